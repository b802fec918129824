//! A directory handle. Paths below it are never resolved through a link or out of the directory.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// A directory that was opened once. Renaming it, or replacing it with a link, does not redirect
/// us.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    path: PathBuf,
}

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Node {
    File,
    Dir,
    Link,
    Fifo,
    /// Sockets and devices: listed, but never opened or created by us.
    Special,
}

/// The metadata of a path, without following links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meta {
    pub node: Node,
    /// Permission bits including setuid, setgid and sticky.
    pub mode: u32,
    pub size: u64,
    /// Nanoseconds since the Unix epoch.
    pub mtime: i64,
    pub ctime: i64,
    pub ino: u64,
    pub dev: u64,
    pub links: u64,
    /// User and group.
    pub owner: (u32, u32),
}

/// Longer paths are opened in pieces; the kernel accepts at most 4,096 bytes.
const MAX_PATH_BYTES: usize = 4000;

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            fd: rustix::fs::openat(CWD, path, flags, Mode::empty())?,
            path: path.to_owned(),
        })
    }

    /// Like [`Root::open`], but a link at the end of the path is an error.
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

    /// Returns device and inode of the root itself.
    pub(super) fn identity(&self) -> io::Result<(u64, u64)> {
        self.own_meta().map(|meta| (meta.dev, meta.ino))
    }

    /// Returns the full path, for messages.
    pub(super) fn full(&self, path: &[u8]) -> PathBuf {
        self.path.join(as_path(path))
    }

    pub(super) fn dir(&self, path: &[u8]) -> io::Result<OwnedFd> {
        open_beneath(self.fd(), path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Returns the directory that contains `path`, and its last component.
    pub(super) fn parent<'p>(&self, path: &'p [u8]) -> io::Result<(OwnedFd, &'p [u8])> {
        let (dir, name) = split(path);
        Ok((self.dir(dir)?, name))
    }

    /// Returns `None` if nothing has that name, or if a component above it is not a directory.
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

    /// Opens a regular file for reading. Does not block on a fifo or device that has replaced it.
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

/// Splits `a/b/c` into `a/b` and `c`.
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

/// Returns true if the path does not exist: it or a parent is missing, or a parent is a file or a
/// link.
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
    if path.len() > MAX_PATH_BYTES {
        let cut = path[..MAX_PATH_BYTES]
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
            // Old kernel or strict container: opening one component at a time is equally safe, only
            // slower.
            Err(Errno::NOSYS | Errno::PERM) => {}
            done => return Ok(done?),
        }
    }
    open_by_component(root, path, flags)
}

fn open_by_component(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
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
        let is_last = std::ptr::eq(part, name);
        at = rustix::fs::openat(&at, part, if is_last { flags } else { step }, Mode::empty())?;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_parent_paths_are_refused() {
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
                open_by_component(root.fd(), path, OFlags::RDONLY).is_err()
                    || path == b"/etc/passwd"
            );
        }
        assert_eq!(
            open_by_component(root.fd(), b"d/f", OFlags::RDONLY)
                .map(|_| ())
                .ok(),
            Some(())
        );
    }

    #[test]
    fn paths_beyond_kernel_limit_are_opened() {
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
