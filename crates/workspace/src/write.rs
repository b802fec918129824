//! Writes beneath a root: staged beside the target and renamed over it, so that half a file is never visible.
//! Knows modes and times. Does not know why something is written.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::root::{Meta, Node, Root, is_absent, join, split};

const SECOND: i64 = 1_000_000_000;

/// New contents beside their target, not yet in place.
#[derive(Debug)]
pub(super) struct StagedFile {
    dir: OwnedFd,
    temporary: Vec<u8>,
    name: Vec<u8>,
}

impl Root {
    /// Writes a file beside `path`, complete with mode and time, and on disk if `sync` says so.
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

    /// Writes into the file that has this name now, so that its other names stay with it. False if it is another one.
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

    /// Changes the mode of what has this name now; never of what a link points to.
    pub(super) fn chmod(&self, path: &[u8], mode: u32) -> io::Result<()> {
        let raw = Mode::from_raw_mode(mode as _);
        if path.is_empty() {
            return Ok(rustix::fs::fchmod(self.fd(), raw)?);
        }
        let (dir, name) = self.parent(path)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        {
            // A descriptor names one thing for good, and needs no permission on it.
            let held = rustix::fs::openat(&dir, name, flags, Mode::empty())?;
            if Meta::from(&rustix::fs::fstat(&held)?).node == Node::Link {
                return Err(Errno::LOOP.into());
            }
            Ok(rustix::fs::chmod(
                format!("/proc/self/fd/{}", held.as_raw_fd()),
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

    /// Makes missing directories down to `dir`; tells which were made.
    pub(super) fn make_dirs(&self, dir: &[u8], mode: u32) -> io::Result<Vec<Vec<u8>>> {
        let mut made = Vec::new();
        if dir.is_empty() || self.meta(dir)?.is_some_and(|m| m.node == Node::Dir) {
            return Ok(made);
        }
        let (above, _) = split(dir);
        made.extend(self.make_dirs(above, mode)?);
        let (fd, name) = self.parent(dir)?;
        match rustix::fs::mkdirat(&fd, name, Mode::from_raw_mode(mode as _)) {
            Ok(()) => made.push(dir.to_vec()),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        Ok(made)
    }

    /// Removes a name and everything below it. What is not there is removed already.
    pub(super) fn remove(&self, path: &[u8]) -> io::Result<()> {
        let Some(meta) = self.meta(path)? else {
            return Ok(());
        };
        let (dir, name) = self.parent(path)?;
        if meta.node != Node::Dir {
            return absent_is_fine(rustix::fs::unlinkat(&dir, name, AtFlags::empty()));
        }
        for below in self.names(path)? {
            self.remove(&join(path, &below))?;
        }
        absent_is_fine(rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR))
    }

    /// Removes a directory if nothing is in it. False if something is.
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
    /// Puts the new contents in place of the old ones in one step.
    pub(super) fn commit(self) -> io::Result<()> {
        let done = rustix::fs::renameat(&self.dir, &*self.temporary, &self.dir, &*self.name);
        if done.is_err() {
            self.discard();
        }
        Ok(done?)
    }

    pub(super) fn discard(&self) {
        let _ = rustix::fs::unlinkat(&self.dir, &*self.temporary, AtFlags::empty());
    }
}

/// The time of a file that we edit: build tools believe times, some only in whole seconds.
pub(super) fn fresh_time(previous: Option<i64>) -> i64 {
    let now = super::now();
    previous.map_or(now, |p| now.max(next_second(p)))
}

/// The time of a file that we restore: later, in whole seconds, than anything written up to now. The rejected contents
/// may have been compiled under any earlier time, also one that is no longer visible.
pub(super) fn restored_time(previous: Option<i64>) -> i64 {
    let next = next_second(super::now());
    previous.map_or(next, |p| next.max(next_second(p)))
}

fn next_second(nanos: i64) -> i64 {
    (nanos.div_euclid(SECOND) + 1).saturating_mul(SECOND)
}

fn times(mtime: i64) -> Timestamps {
    let at = Timespec {
        tv_sec: mtime.div_euclid(SECOND),
        tv_nsec: mtime.rem_euclid(SECOND),
    };
    Timestamps {
        last_access: at,
        last_modification: at,
    }
}

fn absent_is_fine(done: Result<(), Errno>) -> io::Result<()> {
    match done {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewritten_file_is_always_in_a_later_second_than_before() {
        let ahead = super::super::now() + 100 * SECOND + 7;
        assert_eq!(fresh_time(Some(ahead)) / SECOND, ahead / SECOND + 1);
        let now = super::super::now();
        assert!(restored_time(None) / SECOND > now / SECOND);
        assert!(fresh_time(None) >= now);
    }

    #[test]
    fn a_link_at_the_target_is_replaced_and_its_target_left_alone() {
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
