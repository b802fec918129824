//! Reads a project's files into the pack, on all cores. Opens only files that may have changed.

use std::collections::HashMap;
use std::io::{self, Read, Seek};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::SnapshotLimits;
use super::attributes::FileAttributes;
use super::layout::Layout;
use super::manifest::{Area, Manifest, ManifestEntry};
use super::pack::Pack;
use super::root::{Meta, Node, Root, as_path};
use super::snapshot::SnapshotError;
use super::store::Store;

/// Larger files are streamed instead of being held in memory.
const STREAM_ABOVE: u64 = 4 << 20;
const CHUNK: usize = 1 << 20;

pub(super) struct TreeReader<'a> {
    layout: &'a Layout,
    caps: &'a SnapshotLimits,
    pack: &'a Pack,
    store: &'a Store,
    known: Option<&'a Manifest>,
    /// Positions of known contents in the pack.
    positions: Mutex<HashMap<[u8; 32], u64>>,
}

impl<'a> TreeReader<'a> {
    pub(super) fn new(
        layout: &'a Layout,
        caps: &'a SnapshotLimits,
        store: &'a Store,
        pack: &'a Pack,
        known: Option<&'a Manifest>,
        at: HashMap<[u8; 32], u64>,
    ) -> Self {
        Self {
            layout,
            caps,
            store,
            pack,
            known,
            positions: Mutex::new(at),
        }
    }

    /// Returns one entry per name, in the same order. Unchanged files are not opened.
    pub(super) fn read_all(
        &self,
        names: &[(Area, Vec<u8>, Meta)],
    ) -> Result<Vec<ManifestEntry>, SnapshotError> {
        let mut entries = Vec::with_capacity(names.len());
        let mut stale = Vec::new();
        let taken = self.known.map_or(0, |m| m.taken);
        let mut before = self
            .known
            .map(|m| m.entries.as_slice())
            .unwrap_or_default()
            .iter()
            .peekable();
        for (area, path, meta) in names {
            while before
                .next_if(|e| e.key() < (*area, path.as_slice()))
                .is_some()
            {}
            let same = before
                .peek()
                .filter(|e| e.key() == (*area, path.as_slice()));
            match same.filter(|e| has_content(e.node) && e.is_unchanged(meta, taken)) {
                Some(same) => entries.push(ManifestEntry {
                    mode: meta.mode,
                    ..(*same).clone()
                }),
                None => {
                    if has_content(meta.node) {
                        stale.push(entries.len());
                    }
                    entries.push(entry(*area, path.clone(), meta, [0; 32], 0));
                }
            }
        }
        let next = AtomicUsize::new(0);
        let threads = std::thread::available_parallelism()
            .map_or(1, |n| n.get().min(8))
            .min(stale.len());
        let work = || {
            let mut read = Vec::new();
            while let Some(&i) = stale.get(next.fetch_add(1, Ordering::Relaxed)) {
                let old: &ManifestEntry = &entries[i];
                read.push((i, self.read(old.area, &old.path)?));
            }
            Ok(read)
        };
        let parts: Vec<Result<Vec<(usize, ManifestEntry)>, SnapshotError>> =
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                workers
                    .into_iter()
                    .map(|w| w.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
                    .collect()
            });
        for part in parts {
            for (i, entry) in part? {
                entries[i] = entry;
            }
        }
        Ok(entries)
    }

    /// Reads one file or link into the pack. Retries if it changes meanwhile.
    fn read(&self, area: Area, path: &[u8]) -> Result<ManifestEntry, SnapshotError> {
        let root = self
            .layout
            .area(area)
            .map_err(|source| SnapshotError::Unreadable {
                path: as_path(path).to_owned(),
                source,
            })?;
        let unreadable = |source| SnapshotError::Unreadable {
            path: root.full(path),
            source,
        };
        for _ in 0..8 {
            let Some(meta) = root.meta(path).map_err(unreadable)? else {
                break;
            };
            match meta.node {
                Node::Link => {
                    let target = root.link_target(path).map_err(unreadable)?;
                    let (hash, at) = self.store_bytes(&target)?;
                    return Ok(ManifestEntry {
                        size: target.len() as u64,
                        ..entry(area, path.to_vec(), &meta, hash, at)
                    });
                }
                Node::File if meta.size > self.caps.max_file_bytes => {
                    let (size, limit) = (meta.size, self.caps.max_file_bytes);
                    return Err(SnapshotError::FileTooLarge {
                        path: root.full(path),
                        size,
                        limit,
                    });
                }
                Node::File => {
                    let read = self.read_file(&root, path).map_err(|e| match e {
                        ReadError::Source(source) => unreadable(source),
                        ReadError::Pack(source) => SnapshotError::State {
                            path: self.store.path().to_owned(),
                            source,
                        },
                    })?;
                    if let Some(read) = read {
                        let entry = entry(area, path.to_vec(), &read.meta, read.hash, read.at);
                        return Ok(ManifestEntry {
                            attributes: read.attributes,
                            ..entry
                        });
                    }
                }
                _ => break,
            }
        }
        Err(SnapshotError::KeepsChanging {
            path: root.full(path),
        })
    }

    /// Returns `None` if the file changed while it was read.
    fn read_file(&self, root: &Root, path: &[u8]) -> Result<Option<ReadFile>, ReadError> {
        let mut file = root.file(path).map_err(ReadError::Source)?;
        let meta = |file: &std::fs::File| {
            rustix::fs::fstat(file)
                .map(|s| Meta::from(&s))
                .map_err(|e| ReadError::Source(e.into()))
        };
        let before = meta(&file)?;
        let known = if before.size > STREAM_ABOVE {
            self.known_contents(&mut file)?
        } else {
            None
        };
        let (hash, at, length) = if let Some((hash, at)) = known {
            (hash, at, before.size)
        } else if before.size > STREAM_ABOVE {
            let at = self.pack.reserve(before.size);
            let (mut hasher, mut length, mut buffer) = (blake3::Hasher::new(), 0, vec![0; CHUNK]);
            while length < before.size {
                let len = buffer
                    .len()
                    .min(usize::try_from(before.size - length).unwrap_or(CHUNK));
                match file.read(&mut buffer[..len]).map_err(ReadError::Source)? {
                    0 => break,
                    n => {
                        hasher.update(&buffer[..n]);
                        self.pack
                            .write_at(&buffer[..n], at + length)
                            .map_err(ReadError::Pack)?;
                        length += n as u64;
                    }
                }
            }
            (*hasher.finalize().as_bytes(), at, length)
        } else {
            let mut bytes = Vec::with_capacity(usize::try_from(before.size).unwrap_or(0) + 1);
            (&file)
                .take(before.size + 1)
                .read_to_end(&mut bytes)
                .map_err(ReadError::Source)?;
            if bytes.len() as u64 != before.size {
                return Ok(None);
            }
            let (hash, at) = self
                .store_bytes(&bytes)
                .map_err(|e| ReadError::Pack(io::Error::other(e)))?;
            (hash, at, bytes.len() as u64)
        };
        let after = meta(&file)?;
        let is_steady = before == after && length == before.size;
        Ok(is_steady.then(|| ReadFile {
            meta: after,
            hash,
            at,
            attributes: FileAttributes::of(&file, &after),
        }))
    }

    /// Hashes a large file first, if it may already be in the pack: touched, or written a moment
    /// ago.
    fn known_contents(
        &self,
        file: &mut std::fs::File,
    ) -> Result<Option<([u8; 32], u64)>, ReadError> {
        if self.positions.lock().is_empty() {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        hasher
            .update_reader(&mut *file)
            .map_err(ReadError::Source)?;
        file.rewind().map_err(ReadError::Source)?;
        let hash = *hasher.finalize().as_bytes();
        Ok(self.position(hasher.count(), &hash).map(|at| (hash, at)))
    }

    /// Returns the position of these contents, if they are in the pack.
    fn position(&self, size: u64, hash: &[u8; 32]) -> Option<u64> {
        let at = self.positions.lock().get(hash).copied();
        at.filter(|at| self.pack.contains(*at, size, hash))
    }

    /// Adds bytes to the pack unless they are already there.
    fn store_bytes(&self, bytes: &[u8]) -> Result<([u8; 32], u64), SnapshotError> {
        let hash = *blake3::hash(bytes).as_bytes();
        if let Some(at) = self.position(bytes.len() as u64, &hash) {
            return Ok((hash, at));
        }
        let at = self
            .pack
            .append(bytes)
            .map_err(|source| SnapshotError::State {
                path: self.store.path().to_owned(),
                source,
            })?;
        self.positions.lock().insert(hash, at);
        Ok((hash, at))
    }
}

/// A file whose bytes are in the pack.
struct ReadFile {
    meta: Meta,
    hash: [u8; 32],
    at: u64,
    attributes: Option<Box<FileAttributes>>,
}

enum ReadError {
    Source(io::Error),
    Pack(io::Error),
}

fn entry(area: Area, path: Vec<u8>, meta: &Meta, hash: [u8; 32], at: u64) -> ManifestEntry {
    let Meta {
        node,
        mode,
        size,
        mtime,
        ctime,
        ino,
        ..
    } = *meta;
    if !has_content(node) {
        // Only type and mode of a directory or fifo are restored; its times change with every test
        // run.
        return ManifestEntry {
            area,
            path,
            node,
            mode,
            size: 0,
            mtime: 0,
            ctime: 0,
            ino: 0,
            hash,
            at,
            attributes: None,
        };
    }
    ManifestEntry {
        area,
        path,
        node,
        mode,
        size,
        mtime,
        ctime,
        ino,
        hash,
        at,
        attributes: None,
    }
}

pub(super) fn positions(manifest: &Manifest) -> HashMap<[u8; 32], u64> {
    manifest
        .entries
        .iter()
        .filter(|e| has_content(e.node))
        .map(|e| (e.hash, e.at))
        .collect()
}

pub(super) fn has_content(node: Node) -> bool {
    matches!(node, Node::File | Node::Link)
}
