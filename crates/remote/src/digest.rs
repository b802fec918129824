//! Digests of blobs, and the digest function that client and engine agree on.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use bazel_remote_apis::build::bazel::remote::execution::v2::{Digest, digest_function};
use sha2::{Digest as _, Sha256};

/// A digest function that both sides know. SHA-256 is preferred, because every engine has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DigestFunction {
    Sha256,
    Blake3,
}

enum Hasher {
    Sha256(Sha256),
    Blake3(Box<blake3::Hasher>),
}

impl DigestFunction {
    /// The function to use with an engine that supports these.
    pub(crate) fn choose(supported: &[i32]) -> Option<Self> {
        [Self::Sha256, Self::Blake3]
            .into_iter()
            .find(|function| supported.contains(&function.number()))
    }

    /// The number in the API.
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Sha256 => digest_function::Value::Sha256 as i32,
            Self::Blake3 => digest_function::Value::Blake3 as i32,
        }
    }

    /// How blobs are named in streams: the function is part of the name unless its length tells.
    pub(crate) fn blob_name(self, digest: &Digest) -> String {
        let prefix = match self {
            Self::Sha256 => "blobs",
            Self::Blake3 => "blobs/blake3",
        };
        format!("{prefix}/{}/{}", digest.hash, digest.size_bytes)
    }

    pub(crate) fn of_bytes(self, bytes: &[u8]) -> Digest {
        let mut hasher = Hasher::new(self);
        hasher.update(bytes);
        hasher.finish(bytes.len() as u64)
    }

    pub(crate) fn of_file(self, path: &Path) -> io::Result<Digest> {
        let mut file = File::open(path)?;
        let (mut hasher, mut size) = (Hasher::new(self), 0);
        let mut buffer = vec![0; 128 * 1024];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(hasher.finish(size)),
                read => {
                    hasher.update(&buffer[..read]);
                    size += read as u64;
                }
            }
        }
    }
}

impl Hasher {
    fn new(function: DigestFunction) -> Self {
        match function {
            DigestFunction::Sha256 => Self::Sha256(Sha256::new()),
            DigestFunction::Blake3 => Self::Blake3(Box::default()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Blake3(hasher) => {
                hasher.update(bytes);
            }
        }
    }

    fn finish(self, size: u64) -> Digest {
        let hash = match self {
            Self::Sha256(hasher) => hex(&hasher.finalize()),
            Self::Blake3(hasher) => hasher.finalize().to_hex().to_string(),
        };
        Digest {
            hash,
            size_bytes: i64::try_from(size).unwrap_or(i64::MAX),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_function_is_negotiated() {
        let (sha256, blake3, md5) = (1, 9, 3);
        assert_eq!(
            DigestFunction::choose(&[md5, blake3, sha256]),
            Some(DigestFunction::Sha256)
        );
        assert_eq!(
            DigestFunction::choose(&[md5, blake3]),
            Some(DigestFunction::Blake3)
        );
        assert_eq!(DigestFunction::choose(&[md5]), None);
        let empty = DigestFunction::Sha256.of_bytes(b"");
        assert_eq!(
            &empty.hash[..8],
            "e3b0c442",
            "the digest of `sha256sum /dev/null`"
        );
    }
}
