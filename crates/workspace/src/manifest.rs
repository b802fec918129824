//! The manifest of a snapshot: one entry per path, with paths as bytes. Contents are referenced by
//! their position in the pack.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::attributes::FileAttributes;
use super::git::Repository;
use super::root::{Meta, Node};

/// The protected directory that a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Area {
    /// The project's own files.
    Tree,
    /// This working tree's part of the repository: `HEAD`, the index.
    Git,
    /// The part shared by all working trees: refs, config, hooks.
    Common,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ManifestEntry {
    pub area: Area,
    pub path: Vec<u8>,
    pub node: Node,
    pub mode: u32,
    pub size: u64,
    pub mtime: i64,
    pub ctime: i64,
    pub ino: u64,
    /// Hash of a file's bytes or a link's target.
    pub hash: [u8; 32],
    /// Position of those bytes in the pack.
    pub at: u64,
    /// Further attributes, if the file has any besides bytes, mode and time.
    pub attributes: Option<Box<FileAttributes>>,
}

/// A path left out of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExcludedPath {
    pub path: Vec<u8>,
    pub why: UnprotectedReason,
}

/// Why a path is not protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UnprotectedReason {
    /// Created by a build or a package manager, which can recreate it.
    BuildOrCache,
    /// Ignored by git and larger than `max_ignored_file_bytes`.
    LargeIgnored,
    /// Matched by `exclude`.
    Excluded,
    /// A socket or a device.
    Special,
    /// The repository's object store: it only grows, and copying it would copy the whole history.
    GitObjects,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub version: u32,
    /// Start of the walk. Files written shortly before are read again, because their times are not
    /// reliable.
    pub taken: i64,
    /// The pack that holds the contents.
    pub pack: String,
    /// Sorted by area and path.
    pub entries: Vec<ManifestEntry>,
    pub left_out: Vec<ExcludedPath>,
    /// The repository when the snapshot was taken.
    pub repository: Option<Repository>,
    /// Digest of the entries of git's index, without times.
    pub index: Option<[u8; 32]>,
    /// The base of the pack, if another project already stores most of the contents.
    pub base: Option<SharedPack>,
}

/// The beginning of another project's pack. Positions below `length` are in it, all others in the
/// project's own pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SharedPack {
    pub name: String,
    pub length: u64,
}

pub(super) const VERSION: u32 = 3;

/// File times may be coarse: a write this shortly before the walk could be followed by another with
/// the same time.
const RACY_NANOS: i64 = 2_000_000_000;

impl ManifestEntry {
    /// Returns true if the metadata proves that the contents are unchanged.
    pub(super) fn is_unchanged(&self, meta: &Meta, taken: i64) -> bool {
        self.node == meta.node
            && self.size == meta.size
            && self.mtime == meta.mtime
            && self.ctime == meta.ctime
            && self.ino == meta.ino
            && !self.is_racy(taken)
    }

    pub(super) fn is_racy(&self, taken: i64) -> bool {
        self.mtime.max(self.ctime) > taken - RACY_NANOS
    }

    pub(super) fn key(&self) -> (Area, &[u8]) {
        (self.area, &self.path)
    }
}

impl Manifest {
    pub(super) fn find(&self, area: Area, path: &[u8]) -> Option<&ManifestEntry> {
        self.position(area, path).map(|i| &self.entries[i])
    }

    pub(super) fn position(&self, area: Area, path: &[u8]) -> Option<usize> {
        self.entries
            .binary_search_by(|e| e.key().cmp(&(area, path)))
            .ok()
    }

    /// Returns true if the manifest contains something below the directory.
    pub(super) fn any_below(&self, area: Area, dir: &[u8]) -> bool {
        let below = super::root::join(dir, b"");
        let at = self
            .entries
            .partition_point(|e| e.key() < (area, below.as_slice()));
        self.entries
            .get(at)
            .is_some_and(|e| e.area == area && e.path.starts_with(&below))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = postcard::to_stdvec(self).expect("plain data always encodes");
        let sum = blake3::hash(&bytes);
        bytes.extend_from_slice(sum.as_bytes());
        bytes
    }

    pub(super) fn load(path: &Path) -> io::Result<Self> {
        let bytes = std::fs::read(path)?;
        let invalid = |why: &str| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("`{}` {why}", path.display()),
            )
        };
        let (body, sum) = bytes
            .split_last_chunk::<32>()
            .ok_or_else(|| invalid("is too short"))?;
        if blake3::hash(body) != *sum {
            return Err(invalid("does not match its checksum"));
        }
        let (version, _) =
            postcard::take_from_bytes::<u32>(body).map_err(|_| invalid("cannot be read"))?;
        if version != VERSION {
            return Err(invalid(&format!(
                "is of format {version} and this supervisor reads format {VERSION}; `recover` with the supervisor that wrote it"
            )));
        }
        postcard::from_bytes(body).map_err(|_| invalid("cannot be read"))
    }
}
