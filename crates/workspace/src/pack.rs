//! The contents of a project's files in an append-only file, addressed by position and verified by
//! hash. A pack may continue the beginning of another one, which holds shared contents and is never
//! written here.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// An append-only file. Creating ten thousand files takes seconds; appending to one does not.
#[derive(Debug)]
pub(super) struct Pack {
    base: Option<PackBase>,
    file: File,
    path: PathBuf,
    /// Position for the next bytes, counted from the beginning of the base.
    end: AtomicU64,
}

/// The beginning of a pack that another project appends to. Its contents never move.
#[derive(Debug)]
pub(super) struct PackBase {
    file: File,
    path: PathBuf,
    length: u64,
}

impl PackBase {
    /// Opens the first `length` bytes of a pack. Fails if it is shorter.
    pub(super) fn open(path: PathBuf, length: u64) -> io::Result<Self> {
        let file = File::open(&path)?;
        if file.metadata()?.len() < length {
            let why = format!("`{}` is shorter than {length} bytes", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(Self { file, path, length })
    }
}

impl Pack {
    pub(super) fn open(dir: &Path, name: &str, base: Option<PackBase>) -> io::Result<Self> {
        let path = dir.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)?;
        let base_length = base.as_ref().map_or(0, |base| base.length);
        let end = AtomicU64::new(base_length + file.metadata()?.len());
        Ok(Self {
            base,
            file,
            path,
            end,
        })
    }

    pub(super) fn len(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Appends bytes and returns their position. Can be called from several threads.
    pub(super) fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.reserve(bytes.len() as u64);
        self.write_at(bytes, at)?;
        Ok(at)
    }

    /// Reserves a range for contents that are written in pieces.
    pub(super) fn reserve(&self, size: u64) -> u64 {
        self.end.fetch_add(size, Ordering::Relaxed)
    }

    pub(super) fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        match at.checked_sub(self.base_length()) {
            Some(at) => self.file.write_all_at(bytes, at),
            None => Err(io::Error::other("what packs share is never written")),
        }
    }

    /// Reads the bytes at a position. Fails if they do not match the hash.
    pub(super) fn read(&self, at: u64, size: u64, hash: &[u8; 32]) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        let (file, _, start) = self.locate(at);
        file.read_exact_at(&mut bytes, start)?;
        if blake3::hash(&bytes) != *hash {
            return Err(self.damaged(at));
        }
        Ok(bytes)
    }

    /// Copies the bytes to a writer in pieces. After an error, the written data is invalid.
    pub(super) fn copy_to(
        &self,
        at: u64,
        size: u64,
        hash: &[u8; 32],
        to: &mut impl Write,
    ) -> io::Result<()> {
        let buffer_size = usize::try_from(size).unwrap_or(usize::MAX).min(256 << 10);
        let (mut hasher, mut done, mut buffer) = (blake3::Hasher::new(), 0, vec![0; buffer_size]);
        let (file, _, start) = self.locate(at);
        while done < size {
            let len = buffer
                .len()
                .min(usize::try_from(size - done).unwrap_or(buffer.len()));
            file.read_exact_at(&mut buffer[..len], start + done)?;
            hasher.update(&buffer[..len]);
            to.write_all(&buffer[..len])?;
            done += len as u64;
        }
        if hasher.finalize() == *hash {
            Ok(())
        } else {
            Err(self.damaged(at))
        }
    }

    /// Returns true if the bytes at a position have this hash. Trusts our own writes; contents of
    /// another project are read once, when they are first used.
    pub(super) fn contains(&self, at: u64, size: u64, hash: &[u8; 32]) -> bool {
        at >= self.base_length() || self.copy_to(at, size, hash, &mut io::sink()).is_ok()
    }

    /// Syncs everything appended so far to disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn base_length(&self) -> u64 {
        self.base.as_ref().map_or(0, |base| base.length)
    }

    /// Returns the file that holds a position, its path and the offset in it.
    fn locate(&self, at: u64) -> (&File, &Path, u64) {
        match &self.base {
            Some(base) if at < base.length => (&base.file, &base.path, at),
            _ => (&self.file, &self.path, at - self.base_length()),
        }
    }

    fn damaged(&self, at: u64) -> io::Error {
        let (_, path, at) = self.locate(at);
        let why = format!("`{}` is damaged at byte {at}", path.display());
        io::Error::new(io::ErrorKind::InvalidData, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_contents_are_never_returned() {
        let dir = tempfile::tempdir().expect("temp dir");
        let pack = Pack::open(dir.path(), "p", None).expect("opened");
        let at = pack.append(b"hello").expect("append");
        let hash = *blake3::hash(b"hello").as_bytes();
        assert_eq!(pack.read(at, 5, &hash).expect("read"), b"hello");
        pack.file.write_all_at(b"j", at).expect("damage");
        let error = pack.read(at, 5, &hash).expect_err("damaged");
        assert!(error.to_string().contains("damaged"), "{error}");
    }

    #[test]
    fn shared_base_is_read_but_never_written() {
        let dir = tempfile::tempdir().expect("temp dir");
        let first = Pack::open(dir.path(), "first", None).expect("opened");
        let shared = first.append(b"shared").expect("append");
        let base = PackBase::open(dir.path().join("first"), first.len()).expect("opened");
        let second = Pack::open(dir.path(), "second", Some(base)).expect("opened");
        let own = second.append(b"own").expect("append");
        // The second pack does not see later growth of the first.
        first.append(b"later").expect("append");
        let hash = |bytes: &[u8]| *blake3::hash(bytes).as_bytes();
        assert_eq!(
            second.read(shared, 6, &hash(b"shared")).expect("read"),
            b"shared"
        );
        assert_eq!(second.read(own, 3, &hash(b"own")).expect("read"), b"own");
        assert!(
            second.contains(shared, 6, &hash(b"shared"))
                && !second.contains(shared, 6, &hash(b"others"))
        );
        assert!(
            second.write_at(b"x", shared).is_err(),
            "the shared part was written"
        );
        assert_eq!(
            std::fs::read(dir.path().join("first")).expect("read"),
            b"sharedlater"
        );
    }
}
