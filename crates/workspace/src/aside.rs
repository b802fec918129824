//! Where rejected work goes: nothing that a restore overwrites or deletes is lost, for a week.
//! Knows how to move and copy. Does not know what was rejected, or why.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;

use super::manifest::Area;
use super::root::{Node, Root, is_absent, join, split};
use super::store::make_private;

/// How long rejected work is kept.
pub(super) const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The directory of one call's rejected work. Made when the first file comes.
#[derive(Debug)]
pub(super) struct Aside {
    path: PathBuf,
    root: Option<Root>,
}

impl Aside {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path, root: None }
    }

    /// The directory, if something was put there.
    pub(super) fn used(&self) -> Option<&Path> {
        self.root.as_ref().map(|_| self.path.as_path())
    }

    /// Keeps a file that is about to be replaced; it stays in place.
    pub(super) fn keep(&mut self, area: Area, from: &Root, path: &[u8]) -> io::Result<()> {
        let place = self.place(area, path)?;
        let to = self.root()?;
        let (from_dir, name) = from.parent(path)?;
        let (to_dir, to_name) = to.parent(&place)?;
        match rustix::fs::linkat(&from_dir, name, &to_dir, to_name, AtFlags::empty()) {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => Ok(()), // gone already: nothing to keep
            // Another file system, or one without hard links.
            Err(_) => copy(from, path, to, &place),
        }
    }

    /// The same for a file that is about to be written to: what is kept must not change with it.
    pub(super) fn keep_copy(&mut self, area: Area, from: &Root, path: &[u8]) -> io::Result<()> {
        let place = self.place(area, path)?;
        copy(from, path, self.root()?, &place)
    }

    /// Moves a name away, with everything below it.
    pub(super) fn take(&mut self, area: Area, from: &Root, path: &[u8]) -> io::Result<()> {
        let place = self.place(area, path)?;
        let to = self.root()?;
        let (from_dir, name) = match from.parent(path) {
            Ok(found) => found,
            Err(e) if is_absent(&e) => return Ok(()),
            Err(e) => return Err(e),
        };
        let (to_dir, to_name) = to.parent(&place)?;
        match rustix::fs::renameat_with(&from_dir, name, &to_dir, to_name, RenameFlags::NOREPLACE) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            // Another file system, or a kernel or file system that cannot promise not to replace.
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                copy(from, path, to, &place)?;
                from.remove(path)
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Removes what was kept for longer than a week.
    pub(super) fn prune(rejected: &Path) {
        let Ok(entries) = std::fs::read_dir(rejected) else {
            return;
        };
        for entry in entries.flatten() {
            let modified = entry.metadata().and_then(|m| m.modified());
            let old = modified.is_ok_and(|at| {
                SystemTime::now()
                    .duration_since(at)
                    .is_ok_and(|age| age > KEPT)
            });
            if old
                && let Err(e) = Root::open(rejected)
                    .and_then(|r| remove_all(&r, entry.file_name().as_encoded_bytes()))
            {
                tracing::warn!("`{}` could not be removed: {e}", entry.path().display());
            }
        }
    }

    /// A free name for this path, its directories made.
    fn place(&mut self, area: Area, path: &[u8]) -> io::Result<Vec<u8>> {
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
        let wanted = join(area, path);
        for n in 1.. {
            let place = if n == 1 {
                wanted.clone()
            } else {
                [&wanted, format!(".{n}").as_bytes()].concat()
            };
            let (dir, _) = split(&place);
            // Something kept earlier may stand where a directory is needed now.
            let free = root.make_dirs(dir, 0o700).is_ok() && root.meta(&place)?.is_none();
            if free {
                return Ok(place);
            }
            if n == 1 && root.meta(dir)?.is_none_or(|m| m.node != Node::Dir) {
                let flat: Vec<u8> = path
                    .iter()
                    .map(|b| if *b == b'/' { b'_' } else { *b })
                    .collect();
                root.make_dirs(area, 0o700)?;
                let place = join(
                    area,
                    &[
                        &flat[flat.len().saturating_sub(200)..],
                        b".",
                        super::random_name().as_bytes(),
                    ]
                    .concat(),
                );
                return Ok(place);
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

/// Copies a name and everything below it. Sockets and devices have no contents and are passed over.
fn copy(from: &Root, path: &[u8], to: &Root, place: &[u8]) -> io::Result<()> {
    let Some(meta) = from.meta(path)? else {
        return Ok(());
    };
    match meta.node {
        Node::File => {
            let mut source = from
                .file(path)
                .or_else(|e| readable(from, path, meta.mode | 0o400, e))?;
            let fill = |file: &mut std::fs::File| io::copy(&mut source, file).map(|_| ());
            let temporary = [b".", super::random_name().as_bytes()].concat();
            to.stage(place, temporary, meta.mode, meta.mtime, false, fill)?
                .commit()
        }
        Node::Dir => {
            let (dir, name) = to.parent(place)?;
            rustix::fs::mkdirat(&dir, name, Mode::RWXU)?;
            if meta.mode & 0o700 != 0o700 {
                from.chmod(path, meta.mode | 0o700)?;
            }
            for below in from.names(path)? {
                copy(from, &join(path, &below), to, &join(place, &below))?;
            }
            Ok(())
        }
        Node::Link => {
            let temporary = [b".", super::random_name().as_bytes()].concat();
            to.stage_link(place, temporary, &from.link_target(path)?)?
                .commit()
        }
        Node::Fifo => to.make_fifo(place, meta.mode),
        Node::Special => Ok(()),
    }
}

/// It will be gone in a moment, so its mode may change.
fn readable(from: &Root, path: &[u8], mode: u32, error: io::Error) -> io::Result<std::fs::File> {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return Err(error);
    }
    from.chmod(path, mode)?;
    from.file(path)
}

/// As [`Root::remove`], also where a kept directory forbids it.
pub(super) fn remove_all(root: &Root, path: &[u8]) -> io::Result<()> {
    if root.meta(path)?.is_some_and(|m| m.node == Node::Dir) {
        root.chmod(path, 0o700)?;
        for below in root.names(path)? {
            remove_all(root, &join(path, &below))?;
        }
    }
    root.remove(path)
}
