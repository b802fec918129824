//! Writes below a root: files are staged beside their target and renamed over it, so that a partly
//! written file is never visible.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::root::{Meta, Node, Root, is_absent, join, split};

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// New contents beside their target, not yet in place.
#[derive(Debug)]
pub(super) struct StagedFile {
    dir: OwnedFd,
    temporary: Vec<u8>,
    name: Vec<u8>,
}

impl Root {
    /// Writes a file beside `path`, with mode and mtime, and synced if `sync` is set.
    pub(super) fn stage(
        &self,
        path: &[u8],
        temporary: Vec<u8>,
        mode: u32,
        mtime: i64,
        sync: bool,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<StagedFile> {
        let (dir, name) = self.parent(path)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(
            &dir,
            &*temporary,
            flags,
            Mode::RUSR | Mode::WUSR,
        )?);
        let staged = StagedFile {
            dir,
            temporary,
            name: name.to_vec(),
        };
        let written = fill(&mut file)
            .and_then(|()| Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode as _))?))
            .and_then(|()| Ok(rustix::fs::futimens(&file, &times(mtime))?))
            .and_then(|()| if sync { file.sync_all() } else { Ok(()) });
        match written {
            Ok(()) => Ok(staged),
            Err(e) => {
                staged.discard();
                Err(e)
            }
        }
    }

    /// Overwrites the existing inode, so that its hard links stay intact. Returns false if it is a
    /// different file.
    pub(super) fn overwrite(
        &self,
        path: &[u8],
        inode: u64,
        mode: u32,
        mtime: i64,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<bool> {
        let (dir, name) = self.parent(path)?;
        if !rustix::process::geteuid().is_root() {
            self.chmod(path, mode | 0o200)?;
        }
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&dir, name, flags, Mode::empty())?);
        let meta = Meta::from(&rustix::fs::fstat(&file)?);
        if meta.node != Node::File || meta.ino != inode {
            return Ok(false);
        }
        file.set_len(0)?;
        fill(&mut file)?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode as _))?;
        rustix::fs::futimens(&file, &times(mtime))?;
        file.sync_all()?;
        Ok(true)
    }

    pub(super) fn stage_link(
        &self,
        path: &[u8],
        temporary: Vec<u8>,
        target: &[u8],
    ) -> io::Result<StagedFile> {
        let (dir, name) = self.parent(path)?;
        rustix::fs::symlinkat(target, &dir, &*temporary)?;
        Ok(StagedFile {
            dir,
            temporary,
            name: name.to_vec(),
        })
    }

    /// Changes the mode of a path, but never of a link's target.
    pub(super) fn chmod(&self, path: &[u8], mode: u32) -> io::Result<()> {
        let raw = Mode::from_raw_mode(mode as _);
        if path.is_empty() {
            return Ok(rustix::fs::fchmod(self.fd(), raw)?);
        }
        let (dir, name) = self.parent(path)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        {
            // An `O_PATH` descriptor refers to one file for good and needs no permission on it.
            let fd = rustix::fs::openat(&dir, name, flags, Mode::empty())?;
            if Meta::from(&rustix::fs::fstat(&fd)?).node == Node::Link {
                return Err(Errno::LOOP.into());
            }
            Ok(rustix::fs::chmod(
                format!("/proc/self/fd/{}", fd.as_raw_fd()),
                raw,
            )?)
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = flags;
            Ok(rustix::fs::chmodat(
                &dir,
                name,
                raw,
                AtFlags::SYMLINK_NOFOLLOW,
            )?)
        }
    }

    /// Creates missing directories down to `dir` and returns those created.
    pub(super) fn make_dirs(&self, dir: &[u8], mode: u32) -> io::Result<Vec<Vec<u8>>> {
        let mut made = Vec::new();
        if dir.is_empty() || self.meta(dir)?.is_some_and(|m| m.node == Node::Dir) {
            return Ok(made);
        }
        let (parent, _) = split(dir);
        made.extend(self.make_dirs(parent, mode)?);
        let (fd, name) = self.parent(dir)?;
        match rustix::fs::mkdirat(&fd, name, Mode::from_raw_mode(mode as _)) {
            Ok(()) => made.push(dir.to_vec()),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        Ok(made)
    }

    /// Removes a path with everything below it. A missing path is not an error.
    pub(super) fn remove(&self, path: &[u8]) -> io::Result<()> {
        let Some(meta) = self.meta(path)? else {
            return Ok(());
        };
        let (dir, name) = self.parent(path)?;
        if meta.node != Node::Dir {
            return ignore_absent(rustix::fs::unlinkat(&dir, name, AtFlags::empty()));
        }
        for child in self.names(path)? {
            self.remove(&join(path, &child))?;
        }
        ignore_absent(rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR))
    }

    /// Removes a directory if it is empty. Returns false if it is not.
    pub(super) fn remove_if_empty(&self, path: &[u8]) -> io::Result<bool> {
        let (dir, name) = match self.parent(path) {
            Ok(found) => found,
            Err(e) if is_absent(&e) => return Ok(true),
            Err(e) => return Err(e),
        };
        match rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    pub(super) fn names(&self, dir: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let fd = self.dir(dir)?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&fd)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(name.to_vec());
            }
        }
        Ok(names)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn make_fifo(&self, path: &[u8], mode: u32) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        rustix::fs::mknodat(
            &dir,
            name,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )?;
        self.chmod(path, mode)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn make_fifo(&self, _: &[u8], _: u32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn sync_dir(&self, dir: &[u8]) -> io::Result<()> {
        match self.dir(dir) {
            Ok(fd) => Ok(rustix::fs::fsync(&fd)?),
            Err(e) if is_absent(&e) => Ok(()),
            Err(e) => Err(e),
        }
    }
}

impl StagedFile {
    /// Replaces the target atomically.
    pub(super) fn commit(self) -> io::Result<()> {
        let result = rustix::fs::renameat(&self.dir, &*self.temporary, &self.dir, &*self.name);
        if result.is_err() {
            self.discard();
        }
        Ok(result?)
    }

    pub(super) fn discard(&self) {
        let _ = rustix::fs::unlinkat(&self.dir, &*self.temporary, AtFlags::empty());
    }
}

/// Returns the mtime for an edited file. It is in a later second than the previous one, because
/// build tools rely on mtimes, some only on whole seconds.
pub(super) fn fresh_time(previous: Option<i64>) -> i64 {
    let now = super::now();
    previous.map_or(now, |p| now.max(next_second(p)))
}

/// Returns the mtime for a restored file: later, in whole seconds, than anything written so far.
/// The rejected contents may have been compiled with any earlier mtime, even one that is no longer
/// visible.
pub(super) fn restored_time(previous: Option<i64>) -> i64 {
    let next = next_second(super::now());
    previous.map_or(next, |p| next.max(next_second(p)))
}

fn next_second(nanos: i64) -> i64 {
    (nanos.div_euclid(NANOS_PER_SECOND) + 1).saturating_mul(NANOS_PER_SECOND)
}

fn times(mtime: i64) -> Timestamps {
    let at = Timespec {
        tv_sec: mtime.div_euclid(NANOS_PER_SECOND),
        tv_nsec: mtime.rem_euclid(NANOS_PER_SECOND),
    };
    Timestamps {
        last_access: at,
        last_modification: at,
    }
}

fn ignore_absent(result: Result<(), Errno>) -> io::Result<()> {
    match result {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewritten_files_get_a_later_second() {
        let ahead = super::super::now() + 100 * NANOS_PER_SECOND + 7;
        assert_eq!(
            fresh_time(Some(ahead)) / NANOS_PER_SECOND,
            ahead / NANOS_PER_SECOND + 1
        );
        let now = super::super::now();
        assert!(restored_time(None) / NANOS_PER_SECOND > now / NANOS_PER_SECOND);
        assert!(fresh_time(None) >= now);
    }

    #[test]
    fn link_is_replaced_and_its_target_untouched() {
        let dir = tempfile::tempdir().expect("temp dir");
        std::fs::write(dir.path().join("outside"), "o").expect("write");
        std::fs::create_dir(dir.path().join("in")).expect("mkdir");
        std::os::unix::fs::symlink("../outside", dir.path().join("in/f")).expect("link");
        let root = Root::open(&dir.path().join("in")).expect("opened");
        assert!(root.chmod(b"f", 0o777).is_err());
        let fill = |f: &mut File| io::Write::write_all(f, b"new");
        root.stage(b"f", b".t".to_vec(), 0o640, 0, true, fill)
            .expect("staged")
            .commit()
            .expect("renamed");
        assert_eq!(
            std::fs::read(dir.path().join("outside")).expect("read"),
            b"o"
        );
        assert_eq!(root.read(b"f").expect("read"), b"new");
        assert_eq!(root.meta(b"f").expect("stat").expect("there").mode, 0o640);
    }
}
