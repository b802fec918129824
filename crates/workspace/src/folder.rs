//! A directory that is accessed without ever leaving it: the folder of a pipeline session, a folder
//! of notes. Every path is relative to one opened directory and no link is followed. Reads are
//! bounded, and files are replaced atomically. Writes are not part of a snapshot and are not
//! undone.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use super::root::{Node, Root, is_absent, meta_at, split};

/// Far longer than another process needs for a write.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// One opened directory.
#[derive(Debug)]
pub struct ConfinedFolder {
    root: Root,
}

/// Metadata of an entry in the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderEntry {
    pub is_dir: bool,
    pub size: u64,
    /// Nanoseconds since the Unix epoch.
    pub mtime: i64,
}

/// Released on drop; other processes wait for it.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error(
        "`{path}` is or lies behind a symbolic link, or leads outside; links are not followed: name the real place"
    )]
    Outside { path: PathBuf },
    #[error("`{path}` has {size} bytes and at most {limit} are read; make it smaller")]
    TooLarge {
        path: PathBuf,
        size: u64,
        limit: u64,
    },
    #[error("`{path}` has been locked by another process for {}s; is one stopped?", LOCK_TIMEOUT.as_secs())]
    Busy { path: PathBuf },
    #[error("`{path}` cannot be used: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl ConfinedFolder {
    /// Opens a folder. Its own path may contain links: the user chose it.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        Root::open(path)
            .map(|root| Self { root })
            .map_err(|source| FolderError::Io {
                path: path.to_owned(),
                source,
            })
    }

    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Returns the full path, for messages and results.
    pub fn locate(&self, path: &str) -> PathBuf {
        self.root.full(path.as_bytes())
    }

    /// Returns `None` if nothing has that name. A link is an error: it is neither absent nor its
    /// target.
    pub fn entry(&self, path: &str) -> Result<Option<FolderEntry>, FolderError> {
        let meta = self
            .root
            .meta(path.as_bytes())
            .map_err(|e| self.error(path, e))?;
        match meta {
            None => self.refuse_links_above(path).map(|()| None),
            Some(meta) if meta.node == Node::Link => Err(FolderError::Outside {
                path: self.locate(path),
            }),
            Some(meta) => Ok(Some(FolderEntry {
                is_dir: meta.node == Node::Dir,
                size: meta.size,
                mtime: meta.mtime,
            })),
        }
    }

    /// Reads a file; `None` if it does not exist.
    pub fn read(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, FolderError> {
        let Some(entry) = self.entry(path)? else {
            return Ok(None);
        };
        if entry.size > limit {
            return Err(FolderError::TooLarge {
                path: self.locate(path),
                size: entry.size,
                limit,
            });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(entry.size).unwrap_or(0));
        let read = self
            .root
            .file(path.as_bytes())
            .and_then(|file| file.take(limit).read_to_end(&mut bytes));
        match read {
            Ok(_) => Ok(Some(bytes)),
            Err(e) if is_absent(&e) => Ok(None),
            Err(e) => Err(self.error(path, e)),
        }
    }

    /// Reads at most `limit` bytes from `offset`; empty if the file does not exist.
    pub fn read_from(&self, path: &str, offset: u64, limit: u64) -> Result<Vec<u8>, FolderError> {
        let mut bytes = Vec::new();
        let read = self.root.file(path.as_bytes()).and_then(|mut file| {
            file.seek(SeekFrom::Start(offset))?;
            file.take(limit).read_to_end(&mut bytes)
        });
        match read {
            Ok(_) => Ok(bytes),
            Err(e) if is_absent(&e) => self.refuse_links_above(path).map(|()| Vec::new()),
            Err(e) => Err(self.error(path, e)),
        }
    }

    /// Returns the names in a directory, sorted; empty if it does not exist. Skips names that are
    /// not UTF-8.
    pub fn list(&self, dir: &str) -> Result<Vec<String>, FolderError> {
        match self.root.names(dir.as_bytes()) {
            Ok(names) => {
                let mut names: Vec<String> = names
                    .into_iter()
                    .filter_map(|n| String::from_utf8(n).ok())
                    .collect();
                names.sort();
                Ok(names)
            }
            Err(e) if is_absent(&e) => self.refuse_links_above(dir).map(|()| Vec::new()),
            Err(e) => Err(self.error(dir, e)),
        }
    }

    /// Like [`ConfinedFolder::list`], with metadata. The directory is opened only once, so
    /// thousands of files cost one `stat` each. Skips links and files that disappeared meanwhile.
    pub fn entries(&self, dir: &str) -> Result<Vec<(String, FolderEntry)>, FolderError> {
        let names = self.list(dir)?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let opened = self
            .root
            .dir(dir.as_bytes())
            .map_err(|e| self.error(dir, e))?;
        let with_metadata = |name: String| {
            let meta = meta_at(opened.as_fd(), name.as_bytes())
                .ok()
                .filter(|meta| meta.node != Node::Link)?;
            Some((
                name,
                FolderEntry {
                    is_dir: meta.node == Node::Dir,
                    size: meta.size,
                    mtime: meta.mtime,
                },
            ))
        };
        Ok(names.into_iter().filter_map(with_metadata).collect())
    }

    pub fn make_dirs(&self, dir: &str) -> Result<(), FolderError> {
        self.root
            .make_dirs(dir.as_bytes(), 0o755)
            .map(drop)
            .map_err(|e| self.error(dir, e))
    }

    /// Replaces a file atomically: a concurrent reader sees the old or the new contents.
    pub fn write(&self, path: &str, contents: &[u8]) -> Result<(), FolderError> {
        let (dir, name) = split(path.as_bytes());
        self.make_dirs(&String::from_utf8_lossy(dir))?;
        if self
            .root
            .meta(path.as_bytes())
            .map_err(|e| self.error(path, e))?
            .is_some_and(|m| m.node == Node::Link)
        {
            return Err(FolderError::Outside {
                path: self.locate(path),
            });
        }
        let mut unique = [0; 8];
        getrandom::fill(&mut unique).map_err(|e| self.error(path, io::Error::other(e)))?;
        let temporary = [
            b".".as_slice(),
            name,
            b".",
            format!("{:016x}", u64::from_ne_bytes(unique)).as_bytes(),
        ]
        .concat();
        self.root
            .stage(
                path.as_bytes(),
                temporary,
                0o644,
                super::now(),
                true,
                |file| file.write_all(contents),
            )
            .and_then(|staged| staged.commit())
            .map_err(|e| self.error(path, e))
    }

    /// Appends to a file and creates it if missing. The data is on disk when this returns.
    pub fn append(&self, path: &str, contents: &[u8]) -> Result<(), FolderError> {
        let written = self
            .open_file(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)
            .and_then(|mut file| {
                file.write_all(contents)?;
                file.sync_data()
            });
        written.map_err(|e| self.error(path, e))
    }

    /// Overwrites bytes inside a file; everything else keeps its position.
    pub fn overwrite(&self, path: &str, offset: u64, contents: &[u8]) -> Result<(), FolderError> {
        let written = self.open_file(path, OFlags::WRONLY).and_then(|file| {
            file.write_all_at(contents, offset)?;
            file.sync_data()
        });
        written.map_err(|e| self.error(path, e))
    }

    pub fn rename(&self, from: &str, to: &str) -> Result<(), FolderError> {
        let (dir, _) = split(to.as_bytes());
        self.make_dirs(&String::from_utf8_lossy(dir))?;
        let renamed = self
            .root
            .parent(from.as_bytes())
            .and_then(|(from_dir, from_name)| {
                let (to_dir, to_name) = self.root.parent(to.as_bytes())?;
                Ok(rustix::fs::renameat(
                    &from_dir, from_name, &to_dir, to_name,
                )?)
            });
        renamed.map_err(|e| self.error(from, e))
    }

    /// Waits for the lock on the file `path`, which is created if missing.
    pub fn lock(&self, path: &str) -> Result<FolderLock, FolderError> {
        let (dir, _) = split(path.as_bytes());
        self.make_dirs(&String::from_utf8_lossy(dir))?;
        let file = self
            .open_file(path, OFlags::RDWR | OFlags::CREATE)
            .map_err(|e| self.error(path, e))?;
        let began = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(FolderLock { _file: file }),
                Err(TryLockError::Error(e)) => return Err(self.error(path, e)),
                Err(TryLockError::WouldBlock) if began.elapsed() > LOCK_TIMEOUT => {
                    return Err(FolderError::Busy {
                        path: self.locate(path),
                    });
                }
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(20));
                }
            }
        }
    }

    fn open_file(&self, path: &str, flags: OFlags) -> io::Result<File> {
        let (dir, name) = self.root.parent(path.as_bytes())?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(File::from(rustix::fs::openat(
            &dir,
            name,
            flags,
            Mode::from_raw_mode(0o644),
        )?))
    }

    /// Refuses paths behind a link, which otherwise look absent.
    fn refuse_links_above(&self, path: &str) -> Result<(), FolderError> {
        let mut at = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if !at.is_empty() {
                at.push('/');
            }
            at.push_str(part);
            match self.root.meta(at.as_bytes()) {
                Ok(Some(meta)) if meta.node == Node::Link => {
                    return Err(FolderError::Outside {
                        path: self.locate(&at),
                    });
                }
                Ok(Some(_)) => {}
                _ => break,
            }
        }
        Ok(())
    }

    fn error(&self, path: &str, source: io::Error) -> FolderError {
        use rustix::io::Errno;
        let path = self.locate(path);
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::LOOP | Errno::XDEV) => FolderError::Outside { path },
            _ => FolderError::Io { path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_never_followed() {
        let dir = tempfile::tempdir().expect("temp dir");
        let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
        std::fs::create_dir_all(&inside).expect("mkdir");
        std::fs::create_dir_all(&outside).expect("mkdir");
        std::fs::write(outside.join("f"), "secret").expect("write");
        std::os::unix::fs::symlink(&outside, inside.join("linked")).expect("link");
        std::os::unix::fs::symlink(outside.join("f"), inside.join("file")).expect("link");
        let folder = ConfinedFolder::open(&inside).expect("opened");
        for path in ["linked/f", "file", "../out/f"] {
            assert!(folder.read(path, 100).is_err(), "{path} was read");
            assert!(folder.write(path, b"x").is_err(), "{path} was written");
            assert!(folder.append(path, b"x").is_err(), "{path} was appended to");
        }
        assert!(matches!(
            folder.list("linked"),
            Err(FolderError::Outside { .. })
        ));
        assert_eq!(std::fs::read(outside.join("f")).expect("read"), b"secret");
    }

    #[test]
    fn large_files_are_refused_before_reading() {
        let dir = tempfile::tempdir().expect("temp dir");
        std::fs::File::create(dir.path().join("big"))
            .and_then(|f| f.set_len(1 << 40))
            .expect("sparse");
        let folder = ConfinedFolder::open(dir.path()).expect("opened");
        assert!(
            matches!(folder.read("big", 1000), Err(FolderError::TooLarge { size, .. }) if size == 1 << 40)
        );
        assert_eq!(folder.read("none", 1000).expect("absent"), None);
    }
}
