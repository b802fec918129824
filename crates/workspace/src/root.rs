//! One directory handle, and everything below it: no path is ever resolved through a link or out of the root.
//! Knows descriptors and bytes. Does not know which files matter.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// A directory that was opened once. Renaming it, or a link put in its place later, does not mislead us.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    path: PathBuf,
}

/// What kind of thing a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Node {
    File,
    Dir,
    Link,
    Fifo,
    /// Sockets and devices: known by name, never opened, never made by us.
    Special,
}

/// What the file system says about a name, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meta {
    pub node: Node,
    /// Permission bits with setuid, setgid and sticky.
    pub mode: u32,
    pub size: u64,
    /// Nanoseconds since 1970.
    pub mtime: i64,
    pub ctime: i64,
    pub ino: u64,
    pub dev: u64,
    pub links: u64,
    /// User and group.
    pub owner: (u32, u32),
}

/// Paths above this are opened piece by piece; the kernel takes 4,096 bytes at once.
const LONGEST: usize = 4000;

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            fd: rustix::fs::openat(CWD, path, flags, Mode::empty())?,
            path: path.to_owned(),
        })
    }

    /// As [`Root::open`], but a link at the end of the path is an error.
    pub(super) fn open_no_link(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self {
            fd: rustix::fs::openat(CWD, path, flags, Mode::empty())?,
            path: path.to_owned(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn own_meta(&self) -> io::Result<Meta> {
        Ok(Meta::from(&rustix::fs::fstat(&self.fd)?))
    }

    /// The device and inode of the root itself.
    pub(super) fn identity(&self) -> io::Result<(u64, u64)> {
        self.own_meta().map(|meta| (meta.dev, meta.ino))
    }

    /// For messages.
    pub(super) fn full(&self, path: &[u8]) -> PathBuf {
        self.path.join(as_path(path))
    }

    pub(super) fn dir(&self, path: &[u8]) -> io::Result<OwnedFd> {
        open_beneath(self.fd(), path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// The directory that holds `path`, and its last component.
    pub(super) fn parent<'p>(&self, path: &'p [u8]) -> io::Result<(OwnedFd, &'p [u8])> {
        let (dir, name) = split(path);
        Ok((self.dir(dir)?, name))
    }

    /// `None` if nothing has that name, or if a component above it is no directory.
    pub(super) fn meta(&self, path: &[u8]) -> io::Result<Option<Meta>> {
        let found = self
            .parent(path)
            .and_then(|(dir, name)| meta_at(dir.as_fd(), name));
        match found {
            Ok(meta) => Ok(Some(meta)),
            Err(e) if is_absent(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Opens a regular file for reading. A fifo or device that took its place meanwhile is not waited for.
    pub(super) fn file(&self, path: &[u8]) -> io::Result<File> {
        let fd = open_beneath(self.fd(), path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        if Meta::from(&rustix::fs::fstat(&fd)?).node != Node::File {
            return Err(io::Error::other("not a regular file"));
        }
        Ok(File::from(fd))
    }

    pub(super) fn read(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn link_target(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        let (dir, name) = self.parent(path)?;
        Ok(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes())
    }
}

impl From<&Stat> for Meta {
    #[allow(
        clippy::unnecessary_cast,
        clippy::useless_conversion,
        reason = "the fields' types differ by platform"
    )]
    fn from(s: &Stat) -> Self {
        let nanos = |s: i64, n: i64| s.saturating_mul(1_000_000_000).saturating_add(n);
        Self {
            node: match FileType::from_raw_mode(s.st_mode) {
                FileType::RegularFile => Node::File,
                FileType::Directory => Node::Dir,
                FileType::Symlink => Node::Link,
                FileType::Fifo => Node::Fifo,
                _ => Node::Special,
            },
            mode: u32::from(s.st_mode) & 0o7777,
            size: s.st_size as u64,
            mtime: nanos(s.st_mtime as i64, s.st_mtime_nsec as i64),
            ctime: nanos(s.st_ctime as i64, s.st_ctime_nsec as i64),
            ino: s.st_ino as u64,
            dev: s.st_dev as u64,
            links: s.st_nlink as u64,
            owner: (s.st_uid as u32, s.st_gid as u32),
        }
    }
}

pub(super) fn meta_at(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Meta> {
    Ok(Meta::from(&rustix::fs::statat(
        dir,
        name,
        AtFlags::SYMLINK_NOFOLLOW,
    )?))
}

pub(super) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// `a/b/c` into `a/b` and `c`.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

pub(super) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    if dir.is_empty() {
        return name.to_vec();
    }
    [dir, b"/", name].concat()
}

/// Nothing is there: the name, or a directory above it, is missing, or something above it is a file or a link.
pub(super) fn is_absent(e: &io::Error) -> bool {
    matches!(
        e.raw_os_error().map(Errno::from_raw_os_error),
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
    )
}

fn open_beneath(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if path.is_empty() {
        return Ok(rustix::fs::openat(root, c".", flags, Mode::empty())?);
    }
    if path.len() > LONGEST {
        let cut = path[..LONGEST]
            .iter()
            .rposition(|b| *b == b'/')
            .ok_or(Errno::NAMETOOLONG)?;
        let dir = open_beneath(root, &path[..cut], OFlags::RDONLY | OFlags::DIRECTORY)?;
        return open_beneath(dir.as_fd(), &path[cut + 1..], flags);
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(root, path, flags, Mode::empty(), how) {
            // An old kernel or a strict container: one component at a time is as safe, only slower.
            Err(Errno::NOSYS | Errno::PERM) => {}
            done => return Ok(done?),
        }
    }
    by_component(root, path, flags)
}

fn by_component(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let (dir, name) = split(path);
    let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = rustix::fs::openat(root, c".", step, Mode::empty())?;
    for part in dir
        .split(|b| *b == b'/')
        .filter(|p| !p.is_empty())
        .chain([name])
    {
        if part == b".." {
            return Err(Errno::XDEV.into());
        }
        let last = std::ptr::eq(part, name);
        at = rustix::fs::openat(&at, part, if last { flags } else { step }, Mode::empty())?;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_reached_through_a_link_or_out_of_the_root() {
        let dir = tempfile::tempdir().expect("temp dir");
        let inside = dir.path().join("in");
        std::fs::create_dir_all(inside.join("d")).expect("mkdir");
        std::fs::write(dir.path().join("secret"), "s").expect("write");
        std::fs::write(inside.join("d/f"), "f").expect("write");
        std::os::unix::fs::symlink("..", inside.join("up")).expect("link");
        std::os::unix::fs::symlink("d", inside.join("same")).expect("link");
        let root = Root::open(&inside).expect("opened");
        assert_eq!(root.read(b"d/f").expect("read"), b"f");
        for path in [&b"../secret"[..], b"up/secret", b"same/f", b"/etc/passwd"] {
            assert!(root.file(path).is_err(), "{}", as_path(path).display());
            assert!(
                by_component(root.fd(), path, OFlags::RDONLY).is_err() || path == b"/etc/passwd"
            );
        }
        assert_eq!(
            by_component(root.fd(), b"d/f", OFlags::RDONLY)
                .map(|_| ())
                .ok(),
            Some(())
        );
    }

    #[test]
    fn a_path_longer_than_the_kernel_takes_is_still_found() {
        let dir = tempfile::tempdir().expect("temp dir");
        let root = Root::open(dir.path()).expect("opened");
        let name = [b'x'; 200];
        let (mut path, mut at) = (Vec::new(), root.dir(b"").expect("root"));
        for _ in 0..30 {
            rustix::fs::mkdirat(&at, &name[..], Mode::RWXU).expect("mkdir");
            path = join(&path, &name);
            at = root.dir(&path).expect("deeper");
        }
        assert!(path.len() > 6000);
        assert_eq!(
            root.meta(&path).expect("stat").expect("there").node,
            Node::Dir
        );
    }
}
