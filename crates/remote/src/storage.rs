//! Sends blobs to the content-addressable storage of an engine and reads them from there. Small blobs travel in batches,
//! large ones as streams.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::bytestream::{ReadRequest, WriteRequest};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use prost::Message;
use reapi::{BatchReadBlobsRequest, BatchUpdateBlobsRequest, Digest, FindMissingBlobsRequest};
use tonic::{Code, Request};

use crate::connection::{CALL_LIMIT, Connection, limited};
use crate::error::RemoteError;

/// Digests that one question names: about 0.8 MB.
const MAX_DIGESTS: usize = 10_000;
/// Messages that are on their way at once.
const PARALLEL: usize = 4;
/// Part of a stream.
const PART_BYTES: usize = 1 << 20;

/// Where the contents of a blob are.
#[derive(Debug, Clone)]
pub(crate) enum Blob {
    Bytes(Vec<u8>),
    File(PathBuf),
}

/// Blobs by hash. Equal contents are there once.
#[derive(Debug, Default)]
pub(crate) struct Blobs(BTreeMap<String, (Digest, Blob)>);

impl Blobs {
    pub(crate) fn add(&mut self, digest: Digest, blob: Blob) {
        self.0.insert(digest.hash.clone(), (digest, blob));
    }
}

/// What was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) blobs: usize,
    pub(crate) bytes: u64,
}

fn size(digest: &Digest) -> u64 {
    u64::try_from(digest.size_bytes).unwrap_or_default()
}

impl Connection {
    /// Sends the blobs that the engine does not have.
    pub(crate) async fn send_missing(&self, blobs: &Blobs) -> Result<Sent, RemoteError> {
        let missing = self.find_missing(blobs).await?;
        let found = blobs.0.values();
        let missing = found.filter(|(digest, _)| missing.contains(&digest.hash));
        let missing: Vec<(Digest, Blob)> = missing.cloned().collect();
        let sent = Sent {
            blobs: missing.len(),
            bytes: missing.iter().map(|(digest, _)| size(digest)).sum(),
        };
        let (small, large): (Vec<_>, Vec<_>) = missing
            .into_iter()
            .partition(|(digest, _)| size(digest) <= self.max_batch_bytes);
        let batches = split_by_size(small, self.max_batch_bytes, |(digest, _)| size(digest));
        let batches: Vec<_> = batches.into_iter().map(|b| self.send_batch(b)).collect();
        stream::iter(batches)
            .buffer_unordered(PARALLEL)
            .try_collect::<()>()
            .await?;
        for (digest, blob) in large {
            self.send_stream(&digest, &blob).await?;
        }
        Ok(sent)
    }

    async fn find_missing(&self, blobs: &Blobs) -> Result<HashSet<String>, RemoteError> {
        let digests: Vec<Digest> = blobs.0.values().map(|(digest, _)| digest.clone()).collect();
        let questions = digests.chunks(MAX_DIGESTS).map(|digests| async move {
            let request = FindMissingBlobsRequest {
                instance_name: self.instance.clone(),
                blob_digests: digests.to_vec(),
                digest_function: self.function.number(),
            };
            let mut client = self.storage();
            let answer = client
                .find_missing_blobs(limited(request, CALL_LIMIT))
                .await?;
            Ok::<_, RemoteError>(answer.into_inner().missing_blob_digests)
        });
        let questions: Vec<_> = questions.collect();
        let answers: Vec<Vec<Digest>> = stream::iter(questions)
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await?;
        Ok(answers.into_iter().flatten().map(|d| d.hash).collect())
    }

    async fn send_batch(&self, batch: Vec<(Digest, Blob)>) -> Result<(), RemoteError> {
        let requests = blocking(move || {
            let requests = batch.into_iter().map(|(digest, blob)| {
                let data = match blob {
                    Blob::Bytes(bytes) => bytes,
                    Blob::File(path) => std::fs::read(path)?,
                };
                Ok(reapi::batch_update_blobs_request::Request {
                    digest: Some(digest),
                    data,
                    compressor: 0,
                })
            });
            requests.collect::<io::Result<Vec<_>>>()
        })
        .await?;
        let request = BatchUpdateBlobsRequest {
            instance_name: self.instance.clone(),
            requests,
            digest_function: self.function.number(),
        };
        let mut client = self.storage();
        let answer = client
            .batch_update_blobs(limited(request, CALL_LIMIT))
            .await?;
        for response in answer.into_inner().responses {
            check(response.status)?;
        }
        Ok(())
    }

    async fn send_stream(&self, digest: &Digest, blob: &Blob) -> Result<(), RemoteError> {
        let upload = format!("uploads/{}", random_id());
        let name = self.resource(&format!("{upload}/{}", self.function.blob_name(digest)));
        let (send, receive) = tokio::sync::mpsc::channel(2);
        let (total, blob) = (digest.size_bytes, blob.clone());
        let reading = tokio::task::spawn_blocking(move || -> io::Result<()> {
            let mut source: Box<dyn io::Read> = match blob {
                Blob::Bytes(bytes) => Box::new(io::Cursor::new(bytes)),
                Blob::File(path) => Box::new(File::open(path)?),
            };
            let mut offset = 0;
            while offset < total {
                let mut data = Vec::with_capacity(PART_BYTES);
                source
                    .by_ref()
                    .take(PART_BYTES as u64)
                    .read_to_end(&mut data)?;
                if data.is_empty() {
                    return Err(io::Error::other("a file became shorter while it was sent"));
                }
                let part = WriteRequest {
                    resource_name: name.clone(),
                    write_offset: offset,
                    finish_write: offset + data.len() as i64 >= total,
                    data,
                };
                offset += part.data.len() as i64;
                if send.blocking_send(part).is_err() {
                    break;
                }
            }
            Ok(())
        });
        let parts = stream::unfold(receive, |mut receive| async move {
            receive.recv().await.map(|part| (part, receive))
        });
        let answer = self.streams().write(Request::new(parts)).await;
        reading.await.map_err(io::Error::other)??;
        answer?;
        Ok(())
    }

    /// Reads blobs that fit into messages. The order is not that of the digests.
    pub(crate) async fn read_small(
        &self,
        digests: Vec<Digest>,
    ) -> Result<Vec<(Digest, Vec<u8>)>, RemoteError> {
        let batches = split_by_size(digests, self.max_batch_bytes, size);
        let batches: Vec<_> = batches.into_iter().map(|b| self.read_batch(b)).collect();
        let answers: Vec<Vec<(Digest, Vec<u8>)>> = stream::iter(batches)
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await?;
        Ok(answers.into_iter().flatten().collect())
    }

    async fn read_batch(
        &self,
        digests: Vec<Digest>,
    ) -> Result<Vec<(Digest, Vec<u8>)>, RemoteError> {
        let wanted = digests.len();
        let request = BatchReadBlobsRequest {
            instance_name: self.instance.clone(),
            digests,
            acceptable_compressors: Vec::new(),
            digest_function: self.function.number(),
        };
        let mut client = self.storage();
        let answer = client
            .batch_read_blobs(limited(request, CALL_LIMIT))
            .await?;
        let mut found = Vec::new();
        for response in answer.into_inner().responses {
            check(response.status)?;
            let digest = response.digest.unwrap_or_default();
            if self.function.of_bytes(&response.data) != digest {
                return Err(lost("a blob has other contents than its digest says"));
            }
            found.push((digest, response.data));
        }
        if found.len() < wanted {
            return Err(lost("the engine did not send every blob"));
        }
        Ok(found)
    }

    /// Reads one blob of any size into a file.
    pub(crate) async fn read_into(&self, digest: &Digest, path: &Path) -> Result<(), RemoteError> {
        let mut file = File::create(path)?;
        if digest.size_bytes > 0 {
            self.read_stream(digest, &mut file).await?;
        }
        drop(file);
        let (function, path) = (self.function, path.to_owned());
        if blocking(move || function.of_file(&path)).await? != *digest {
            return Err(lost("a blob has other contents than its digest says"));
        }
        Ok(())
    }

    /// Reads one blob of at most `limit` bytes.
    pub(crate) async fn read(&self, digest: &Digest, limit: u64) -> Result<Vec<u8>, RemoteError> {
        if size(digest) > limit {
            let why = format!("{} bytes, and {limit} is the limit", digest.size_bytes);
            return Err(RemoteError::BadReport(why));
        }
        let mut bytes = Vec::new();
        if digest.size_bytes > 0 {
            self.read_stream(digest, &mut bytes).await?;
        }
        if self.function.of_bytes(&bytes) != *digest {
            return Err(lost("a blob has other contents than its digest says"));
        }
        Ok(bytes)
    }

    async fn read_stream(&self, digest: &Digest, to: &mut impl Write) -> Result<(), RemoteError> {
        let request = ReadRequest {
            resource_name: self.resource(&self.function.blob_name(digest)),
            read_offset: 0,
            read_limit: 0,
        };
        let mut parts = self.streams().read(request).await?.into_inner();
        let mut left = size(digest);
        while let Some(part) = parts.message().await? {
            left = left
                .checked_sub(part.data.len() as u64)
                .ok_or_else(|| lost("a blob is longer than its digest says"))?;
            to.write_all(&part.data)?;
        }
        Ok(())
    }

    /// Reads and decodes a message that is stored as a blob.
    pub(crate) async fn read_message<M: Message + Default>(
        &self,
        digest: &Digest,
    ) -> Result<M, RemoteError> {
        let bytes = self.read(digest, self.max_batch_bytes * 4).await?;
        M::decode(bytes.as_slice()).map_err(|error| lost(&error.to_string()))
    }

    fn resource(&self, name: &str) -> String {
        match self.instance.as_str() {
            "" => name.to_owned(),
            instance => format!("{instance}/{name}"),
        }
    }
}

fn lost(why: &str) -> RemoteError {
    RemoteError::Refused {
        code: Code::DataLoss,
        message: why.to_owned(),
    }
}

fn check(status: Option<bazel_remote_apis::google::rpc::Status>) -> Result<(), RemoteError> {
    match status {
        Some(status) if status.code != 0 => {
            Err(tonic::Status::new(Code::from_i32(status.code), status.message).into())
        }
        _ => Ok(()),
    }
}

/// Splits items into groups of limited total size. Each item costs some bytes for its digest, too.
fn split_by_size<T>(items: Vec<T>, limit: u64, size: impl Fn(&T) -> u64) -> Vec<Vec<T>> {
    const OVERHEAD_BYTES: u64 = 120;
    let mut groups: Vec<Vec<T>> = Vec::new();
    let mut filled = u64::MAX;
    for item in items {
        let needed = size(&item) + OVERHEAD_BYTES;
        filled = filled.saturating_add(needed);
        match groups.last_mut() {
            Some(group) if filled <= limit => group.push(item),
            _ => {
                groups.push(vec![item]);
                filled = needed;
            }
        }
    }
    groups
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, RemoteError> {
    Ok(tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)??)
}

/// An id that nobody else uses, in the form of a UUID.
pub(crate) fn random_id() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_stay_below_the_limit() {
        let groups = split_by_size(vec![500, 300, 300, 5000, 1], 1000, |size| *size);
        assert_eq!(groups, [vec![500], vec![300, 300], vec![5000], vec![1]]);
    }
}
