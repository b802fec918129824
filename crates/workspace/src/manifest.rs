//! What the project looked like when it was armed: one entry per name, names as bytes.
//! Knows its own file format. Does not know where contents are kept beyond a position in the pack.

mod former;

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::attributes::FileAttributes;
use super::git::Repository;
use super::root::{Meta, Node};

/// Which of the directories under protection a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Area {
    /// The project's own files.
    Tree,
    /// This working tree's part of the repository: `HEAD`, the index.
    Git,
    /// What all working trees of the repository share: refs, config, hooks.
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
    /// Of a file's bytes or a link's target.
    pub hash: [u8; 32],
    /// Where those bytes start in the pack.
    pub at: u64,
    /// Of a file that has more than bytes, mode and time.
    pub attributes: Option<Box<FileAttributes>>,
}

/// Left out of the snapshot, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeftOut {
    pub path: Vec<u8>,
    pub why: Why,
}

/// Why something is not protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Why {
    /// Made by a build or a package manager, and made again by it.
    BuildOrCache,
    /// Ignored by git and larger than `max_ignored_file_bytes`.
    LargeIgnored,
    /// Named by `exclude`.
    Excluded,
    /// A socket or a device.
    Special,
    /// The repository's object store: it only grows, and copying it would copy the whole history.
    GitObjects,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub version: u32,
    /// When the walk began. What was written shortly before is read again rather than believed.
    pub taken: i64,
    /// The pack that holds the contents.
    pub pack: String,
    /// Sorted by area and path.
    pub entries: Vec<ManifestEntry>,
    pub left_out: Vec<LeftOut>,
    /// Where the repository was.
    pub repository: Option<Repository>,
    /// Over the entries of git's index, without the times in it.
    pub index: Option<[u8; 32]>,
    /// What the pack stands on, if another project has kept most of the contents already.
    pub base: Option<SharedPack>,
}

/// The beginning of another project's pack. Positions below `length` lie in it, those from there on in the own one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SharedPack {
    pub name: String,
    pub length: u64,
}

pub(super) const VERSION: u32 = 3;

/// File times may be coarse: a write this shortly before the walk could come again with the same time.
const RACY: i64 = 2_000_000_000;

impl ManifestEntry {
    /// True if the file system's word is enough: nothing says that the bytes could differ.
    pub(super) fn is_surely(&self, meta: &Meta, taken: i64) -> bool {
        self.node == meta.node
            && self.size == meta.size
            && self.mtime == meta.mtime
            && self.ctime == meta.ctime
            && self.ino == meta.ino
            && !self.is_racy(taken)
    }

    pub(super) fn is_racy(&self, taken: i64) -> bool {
        self.mtime.max(self.ctime) > taken - RACY
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

    /// True if something below the directory is in the manifest.
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
        let mut bytes = postcard::to_stdvec(self).expect("plain data in memory always encodes");
        let sum = blake3::hash(&bytes);
        bytes.extend_from_slice(sum.as_bytes());
        bytes
    }

    pub(super) fn load(path: &Path) -> io::Result<Self> {
        let bytes = std::fs::read(path)?;
        let broken = |why: &str| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("`{}` {why}", path.display()),
            )
        };
        let (body, sum) = bytes
            .split_last_chunk::<32>()
            .ok_or_else(|| broken("is too short"))?;
        if blake3::hash(body) != *sum {
            return Err(broken("does not match its checksum"));
        }
        let (version, _) =
            postcard::take_from_bytes::<u32>(body).map_err(|_| broken("cannot be read"))?;
        match version {
            VERSION => postcard::from_bytes(body),
            former::FIRST | former::SECOND => former::read(version, body),
            _ => {
                let why =
                    format!("is of format {version} and this supervisor reads up to {VERSION}; use the newer one");
                return Err(broken(&why));
            }
        }
        .map_err(|_| broken("cannot be read"))
    }
}
