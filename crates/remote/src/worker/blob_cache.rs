//! Blobs that a worker has fetched before, as read-only files named by their hash.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use bazel_remote_apis::build::bazel::remote::execution::v2::Digest;

use crate::connection::Connection;
use crate::error::RemoteError;
use crate::storage::{blocking, random_id};

/// What was not used for longest goes first above this size, when a worker starts.
const MAX_BYTES: u64 = 4 << 30;

#[derive(Debug)]
pub(super) struct BlobCache {
    dir: PathBuf,
}

impl BlobCache {
    pub(super) fn open(dir: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&dir)?;
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            let used = meta.accessed().or_else(|_| meta.modified())?;
            files.push((used, meta.len(), entry.path()));
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in files {
            if total <= MAX_BYTES {
                break;
            }
            std::fs::remove_file(path)?;
            total = total.saturating_sub(size);
        }
        Ok(Self { dir })
    }

    pub(super) fn path(&self, digest: &Digest) -> PathBuf {
        self.dir.join(&digest.hash)
    }

    /// Fetches the blobs that are not here.
    pub(super) async fn fetch(
        &self,
        connection: &Connection,
        digests: impl Iterator<Item = &Digest>,
    ) -> Result<(), RemoteError> {
        let wanted: BTreeMap<&str, &Digest> = digests
            .map(|digest| (digest.hash.as_str(), digest))
            .collect();
        let missing = wanted.into_values().filter(|digest| {
            let found = std::fs::metadata(self.path(digest));
            !found.is_ok_and(|meta| i64::try_from(meta.len()) == Ok(digest.size_bytes))
        });
        let limit = connection.max_batch_bytes;
        let fits = |digest: &Digest| u64::try_from(digest.size_bytes).is_ok_and(|s| s <= limit);
        let (small, large): (Vec<_>, Vec<_>) = missing.cloned().partition(fits);
        let found = connection.read_small(small).await?;
        let dir = self.dir.clone();
        blocking(move || {
            found
                .iter()
                .try_for_each(|(digest, bytes)| write_new(&dir, &digest.hash, bytes))
        })
        .await?;
        for digest in large {
            let part = self.dir.join(format!("part-{}", random_id()));
            let fetched = connection.read_into(&digest, &part).await;
            fetched.and_then(|()| Ok(std::fs::rename(&part, self.path(&digest))?))?;
        }
        Ok(())
    }
}

/// Other slots of this worker may write the same blob.
fn write_new(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let part = dir.join(format!("part-{}", random_id()));
    std::fs::write(&part, bytes)?;
    std::fs::rename(part, dir.join(name))
}
