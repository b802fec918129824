//! Remembers the digests of files whose metadata has not changed since.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bazel_remote_apis::build::bazel::remote::execution::v2::Digest;
use parking_lot::Mutex;
use supervisor_workspace::FileStamp;

use crate::digest::DigestFunction;

/// A file changed this shortly before it was read may be changed again without a new time.
const RACY: Duration = Duration::from_secs(2);
/// Entries kept; the file is begun anew above it.
const MAX_ENTRIES: usize = 400_000;

/// Digests by path and metadata, kept in a file of the state directory.
#[derive(Debug)]
pub(crate) struct FileHashes {
    file: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    hashes: HashMap<(PathBuf, FileStamp), String>,
    is_changed: bool,
}

impl FileHashes {
    /// Reads what an earlier process knew. A damaged file counts as empty.
    pub(crate) fn open(file: Option<PathBuf>) -> Self {
        let bytes = file.as_ref().and_then(|file| std::fs::read(file).ok());
        let entries: Option<Vec<((PathBuf, FileStamp), String)>> =
            bytes.and_then(|bytes| postcard::from_bytes(&bytes).ok());
        Self {
            file,
            known: Mutex::new(Known {
                hashes: entries.into_iter().flatten().collect(),
                is_changed: false,
            }),
        }
    }

    /// The digest of `root/path`, which has this metadata.
    pub(crate) fn digest(
        &self,
        function: DigestFunction,
        root: &Path,
        path: &Path,
        stamp: FileStamp,
    ) -> io::Result<Digest> {
        // The cache is for the function that everybody has.
        let is_cached = function == DigestFunction::Sha256;
        let key = (path.to_owned(), stamp);
        if is_cached && let Some(hash) = self.known.lock().hashes.get(&key) {
            return Ok(Digest {
                hash: hash.clone(),
                size_bytes: i64::try_from(stamp.size).unwrap_or(i64::MAX),
            });
        }
        let digest = function.of_file(&root.join(path))?;
        if is_cached && !is_racy(stamp) {
            let mut known = self.known.lock();
            if known.hashes.len() >= MAX_ENTRIES {
                known.hashes.clear();
            }
            known.hashes.insert(key, digest.hash.clone());
            known.is_changed = true;
        }
        Ok(digest)
    }

    /// Writes what is new. A failure costs time in the next process and nothing else.
    pub(crate) fn save(&self) {
        let mut known = self.known.lock();
        let Some(file) = self.file.as_ref().filter(|_| known.is_changed) else {
            return;
        };
        let entries: Vec<_> = known.hashes.iter().collect();
        let bytes = postcard::to_stdvec(&entries).unwrap_or_default();
        let dir = file.parent().unwrap_or(Path::new("."));
        let written = tempfile::NamedTempFile::new_in(dir).and_then(|mut temp| {
            io::Write::write_all(&mut temp, &bytes)?;
            temp.persist(file).map_err(|error| error.error)
        });
        match written {
            Ok(_) => known.is_changed = false,
            Err(error) => tracing::debug!("the digests of files are not kept: {error}"),
        }
    }
}

fn is_racy(stamp: FileStamp) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    let changed = u128::try_from(stamp.mtime.max(stamp.ctime)).unwrap_or_default();
    changed + RACY.as_nanos() > now
}
