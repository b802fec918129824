//! Saves rejected work: everything that a restore overwrites or deletes is kept for a week.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;

use super::manifest::Area;
use super::root::{Node, Root, is_absent, join, split};
use super::store::make_private;

/// How long rejected work is kept.
pub(super) const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The directory for the rejected work of one call. Created with the first file.
#[derive(Debug)]
pub(super) struct RejectedFiles {
    path: PathBuf,
    root: Option<Root>,
}

impl RejectedFiles {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path, root: None }
    }

    /// Returns the directory if something was saved in it.
    pub(super) fn path_if_used(&self) -> Option<&Path> {
        self.root.as_ref().map(|_| self.path.as_path())
    }

    /// Saves a file that is about to be replaced. The file itself stays in place.
    pub(super) fn keep(&mut self, area: Area, from: &Root, path: &[u8]) -> io::Result<()> {
        let dest = self.destination(area, path)?;
        let to = self.root()?;
        let (from_dir, name) = from.parent(path)?;
        let (to_dir, to_name) = to.parent(&dest)?;
        match rustix::fs::linkat(&from_dir, name, &to_dir, to_name, AtFlags::empty()) {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => Ok(()), // already gone
            // A different file system, or one without hard links.
            Err(_) => copy(from, path, to, &dest),
        }
    }

    /// Saves a copy of a file that is about to be overwritten in place, where a hard link would
    /// change with it.
    pub(super) fn keep_copy(&mut self, area: Area, from: &Root, path: &[u8]) -> io::Result<()> {
        let dest = self.destination(area, path)?;
        copy(from, path, self.root()?, &dest)
    }

    /// Moves a path with everything below it.
    pub(super) fn move_away(&mut self, area: Area, from: &Root, path: &[u8]) -> io::Result<()> {
        let dest = self.destination(area, path)?;
        let to = self.root()?;
        let (from_dir, name) = match from.parent(path) {
            Ok(found) => found,
            Err(e) if is_absent(&e) => return Ok(()),
            Err(e) => return Err(e),
        };
        let (to_dir, to_name) = to.parent(&dest)?;
        match rustix::fs::renameat_with(&from_dir, name, &to_dir, to_name, RenameFlags::NOREPLACE) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            // A different file system, or no support for NOREPLACE.
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                copy(from, path, to, &dest)?;
                from.remove(path)
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Removes rejected work that is older than a week.
    pub(super) fn prune(rejected: &Path) {
        let Ok(entries) = std::fs::read_dir(rejected) else {
            return;
        };
        for entry in entries.flatten() {
            let modified = entry.metadata().and_then(|m| m.modified());
            let is_expired = modified.is_ok_and(|at| {
                SystemTime::now()
                    .duration_since(at)
                    .is_ok_and(|age| age > RETENTION)
            });
            if is_expired
                && let Err(e) = Root::open(rejected)
                    .and_then(|r| remove_all(&r, entry.file_name().as_encoded_bytes()))
            {
                tracing::warn!("`{}` could not be removed: {e}", entry.path().display());
            }
        }
    }

    /// Returns a free destination for this path, with its directories created.
    fn destination(&mut self, area: Area, path: &[u8]) -> io::Result<Vec<u8>> {
        let area: &[u8] = match area {
            Area::Tree => b"files",
            Area::Git => b"git",
            Area::Common => b"git-common",
        };
        if self.root.is_none() {
            make_private(&self.path)?;
            self.root = Some(Root::open(&self.path)?);
        }
        let root = self.root()?;
        let preferred = join(area, path);
        for n in 1.. {
            let dest = if n == 1 {
                preferred.clone()
            } else {
                [&preferred, format!(".{n}").as_bytes()].concat()
            };
            let (dir, _) = split(&dest);
            // A file saved earlier may be where a directory is needed now.
            let is_free = root.make_dirs(dir, 0o700).is_ok() && root.meta(&dest)?.is_none();
            if is_free {
                return Ok(dest);
            }
            if n == 1 && root.meta(dir)?.is_none_or(|m| m.node != Node::Dir) {
                let flat: Vec<u8> = path
                    .iter()
                    .map(|b| if *b == b'/' { b'_' } else { *b })
                    .collect();
                root.make_dirs(area, 0o700)?;
                let dest = join(
                    area,
                    &[
                        &flat[flat.len().saturating_sub(200)..],
                        b".",
                        super::random_name().as_bytes(),
                    ]
                    .concat(),
                );
                return Ok(dest);
            }
        }
        unreachable!("some number is free")
    }

    fn root(&self) -> io::Result<&Root> {
        self.root
            .as_ref()
            .ok_or_else(|| io::Error::other("the directory for rejected files was not made"))
    }
}

/// Copies a path with everything below it. Skips sockets and devices, which have no contents.
fn copy(from: &Root, path: &[u8], to: &Root, dest: &[u8]) -> io::Result<()> {
    let Some(meta) = from.meta(path)? else {
        return Ok(());
    };
    match meta.node {
        Node::File => {
            let mut source = from
                .file(path)
                .or_else(|e| make_readable(from, path, meta.mode | 0o400, e))?;
            let fill = |file: &mut std::fs::File| io::copy(&mut source, file).map(|_| ());
            let temporary = [b".", super::random_name().as_bytes()].concat();
            to.stage(dest, temporary, meta.mode, meta.mtime, false, fill)?
                .commit()
        }
        Node::Dir => {
            let (dir, name) = to.parent(dest)?;
            rustix::fs::mkdirat(&dir, name, Mode::RWXU)?;
            if meta.mode & 0o700 != 0o700 {
                from.chmod(path, meta.mode | 0o700)?;
            }
            for child in from.names(path)? {
                copy(from, &join(path, &child), to, &join(dest, &child))?;
            }
            Ok(())
        }
        Node::Link => {
            let temporary = [b".", super::random_name().as_bytes()].concat();
            to.stage_link(dest, temporary, &from.link_target(path)?)?
                .commit()
        }
        Node::Fifo => to.make_fifo(dest, meta.mode),
        Node::Special => Ok(()),
    }
}

/// Makes a file readable and opens it. Its mode may change because it is about to be removed.
fn make_readable(
    from: &Root,
    path: &[u8],
    mode: u32,
    error: io::Error,
) -> io::Result<std::fs::File> {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return Err(error);
    }
    from.chmod(path, mode)?;
    from.file(path)
}

/// Like [`Root::remove`], but also removes directories whose mode forbids it.
pub(super) fn remove_all(root: &Root, path: &[u8]) -> io::Result<()> {
    if root.meta(path)?.is_some_and(|m| m.node == Node::Dir) {
        root.chmod(path, 0o700)?;
        for child in root.names(path)? {
            remove_all(root, &join(path, &child))?;
        }
    }
    root.remove(path)
}
