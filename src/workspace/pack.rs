//! The contents of a project's files in one append-only file, addressed by position and checked by hash.
//! Knows bytes. Does not know names.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// One file that only grows. Creating ten thousand files costs seconds; appending to one does not.
#[derive(Debug)]
pub(super) struct Pack {
    file: File,
    path: PathBuf,
    end: AtomicU64,
}

impl Pack {
    pub(super) fn open(dir: &Path, name: &str) -> io::Result<Self> {
        let path = dir.join(name);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        let end = AtomicU64::new(file.metadata()?.len());
        Ok(Self { file, path, end })
    }

    pub(super) fn len(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Appends, and says where. Threads may do this side by side.
    pub(super) fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.reserve(bytes.len() as u64);
        self.write_at(bytes, at)?;
        Ok(at)
    }

    /// Sets room aside for what comes in pieces.
    pub(super) fn reserve(&self, size: u64) -> u64 {
        self.end.fetch_add(size, Ordering::Relaxed)
    }

    pub(super) fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    /// The bytes at a position, or an error if they are not those that were put there.
    pub(super) fn read(&self, at: u64, size: u64, hash: &[u8; 32]) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, at)?;
        if blake3::hash(&bytes) != *hash {
            return Err(self.damaged(at));
        }
        Ok(bytes)
    }

    /// Writes those bytes into a file, a piece at a time. On an error the file's contents mean nothing.
    pub(super) fn copy_to(&self, at: u64, size: u64, hash: &[u8; 32], to: &mut File) -> io::Result<()> {
        let (mut hasher, mut done, mut buffer) = (blake3::Hasher::new(), 0, vec![0; 256 << 10]);
        while done < size {
            let room = buffer.len().min(usize::try_from(size - done).unwrap_or(buffer.len()));
            self.file.read_exact_at(&mut buffer[..room], at + done)?;
            hasher.update(&buffer[..room]);
            to.write_all(&buffer[..room])?;
            done += room as u64;
        }
        if hasher.finalize() == *hash { Ok(()) } else { Err(self.damaged(at)) }
    }

    fn damaged(&self, at: u64) -> io::Error {
        let why = format!("`{}` is damaged at byte {at}", self.path.display());
        io::Error::new(io::ErrorKind::InvalidData, why)
    }

    /// Everything appended so far is on disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_contents_are_never_handed_out() {
        let dir = tempfile::tempdir().expect("temp dir");
        let pack = Pack::open(dir.path(), "p").expect("opened");
        let at = pack.append(b"hello").expect("append");
        let hash = *blake3::hash(b"hello").as_bytes();
        assert_eq!(pack.read(at, 5, &hash).expect("read"), b"hello");
        pack.file.write_all_at(b"j", at).expect("damage");
        let error = pack.read(at, 5, &hash).expect_err("damaged");
        assert!(error.to_string().contains("damaged"), "{error}");
    }
}
