//! Takes a snapshot: walks the project, reads what changed since the last snapshot, and writes it
//! to disk. Either the snapshot is complete or this fails.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use super::SnapshotLimits;
use super::fault_points::{FaultPoint, point};
use super::git::read_index;
use super::layout::{Layout, walk_git};
use super::manifest::{
    Area, ExcludedPath, Manifest, ManifestEntry, SharedPack, UnprotectedReason, VERSION,
};
use super::pack::Pack;
use super::read::{TreeReader, has_content, positions};
use super::root::{Meta, Node, Root};
use super::shared_packs::{SharedContents, TreeSketch, find_shared};
use super::store::{Snapshot, Store};

/// Why no snapshot could be taken; nothing may work on the project then.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error(
        "`{}` cannot be read ({source}), so it could not be restored; make it readable, or name it in `exclude` under [workspace]",
        path.display()
    )]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "`{}` has {size} bytes, more than `max_file_bytes` = {limit} under [workspace]; raise that, or name the file in `exclude`",
        path.display()
    )]
    FileTooLarge {
        path: PathBuf,
        size: u64,
        limit: u64,
    },
    #[error(
        "`{}` has {files} files to protect, more than `max_files` = {limit} under [workspace]; raise that, or name directories in `exclude`",
        root.display()
    )]
    TooManyFiles {
        root: PathBuf,
        files: u64,
        limit: u64,
    },
    #[error(
        "`{}` has {size} bytes to protect, more than `max_total_bytes` = {limit} under [workspace]; raise that, or name directories in `exclude`",
        root.display()
    )]
    TooLarge {
        root: PathBuf,
        size: u64,
        limit: u64,
    },
    #[error("`{}` is being written all the time, so no copy of it is whole; end what writes it, or name it in `exclude` under [workspace]", path.display())]
    KeepsChanging { path: PathBuf },
    #[error("the snapshot cannot be written to `{}`: {source}; free some space there, or set $SUPERVISOR_STATE_DIR", path.display())]
    State { path: PathBuf, source: io::Error },
    #[error("the project is locked for reading only")]
    SharedLease,
}

/// A pack is rewritten when more than half of it, and more than this, is unused.
const MIN_UNUSED_BYTES: u64 = 64 << 20;

/// Takes a snapshot. `projects` is the directory of all projects, to share contents that another
/// one already stores.
pub(super) fn take(
    layout: &Layout,
    caps: &SnapshotLimits,
    store: &Store,
    projects: &Path,
) -> Result<Snapshot, SnapshotError> {
    let state = |source| SnapshotError::State {
        path: store.path().to_owned(),
        source,
    };
    let taken = super::now();
    let newest = store.newest();
    let is_first = newest.is_none();
    let before = newest.filter(|s| s.pack.len() <= 2 * used_bytes(&s.manifest) + MIN_UNUSED_BYTES);
    let names = collect_names(layout, caps)?;
    let Basis {
        known,
        pack_name,
        base,
        at,
        pack,
    } = match before {
        Some(Snapshot {
            manifest,
            pack,
            name,
        }) => {
            let (pack_name, base, at) = (
                manifest.pack.clone(),
                manifest.base.clone(),
                positions(&manifest),
            );
            Basis {
                known: Some((manifest, name)),
                pack_name,
                base,
                at,
                pack,
            }
        }
        None => {
            let sketch = TreeSketch::of(&names.names);
            // Only for the first snapshot: a pack may have become too large because of what it
            // shares.
            let shared = sketch
                .filter(|_| is_first)
                .and_then(|sketch| find_shared(projects, store, &sketch));
            let (base, at, below) = match shared {
                Some(SharedContents { pack, base, at }) => (Some(pack), at, Some(base)),
                None => (None, HashMap::new(), None),
            };
            let (pack_name, pack) = store.new_pack(sketch, below).map_err(state)?;
            Basis {
                known: None,
                pack_name,
                base,
                at,
                pack,
            }
        }
    };
    let start = pack.len();
    let known_manifest = known.as_ref().map(|(m, _)| m);
    let entries =
        TreeReader::new(layout, caps, store, &pack, known_manifest, at).read_all(&names.names)?;
    if pack.len() != start {
        pack.sync().map_err(state)?;
        point(FaultPoint::PackWritten);
    }
    let index = index_digest(layout, &entries, &pack);
    let repository = layout.repository.clone();
    let ProtectedNames { left_out, .. } = names;
    let manifest = Manifest {
        version: VERSION,
        taken,
        pack: pack_name,
        entries,
        left_out,
        repository,
        index,
        base,
    };
    if let Some((before, name)) = known
        && can_be_reused(&before, &manifest)
    {
        return Ok(Snapshot {
            manifest: before,
            pack,
            name,
        });
    }
    let name = store.write(&manifest).map_err(state)?;
    Ok(Snapshot {
        manifest,
        pack,
        name,
    })
}

/// What a new snapshot is based on.
struct Basis {
    /// The newest manifest of this store, and its name.
    known: Option<(Manifest, String)>,
    pack_name: String,
    base: Option<SharedPack>,
    /// Positions of known contents.
    at: HashMap<[u8; 32], u64>,
    pack: Pack,
}

/// Returns true if the older manifest is equal and its file times are reliable, so that there is no
/// need to write a new one.
fn can_be_reused(before: &Manifest, now: &Manifest) -> bool {
    before.entries == now.entries
        && before.left_out == now.left_out
        && before.index == now.index
        && before.repository == now.repository
        && !before
            .entries
            .iter()
            .any(|e| e.node == Node::File && e.is_racy(before.taken))
}

struct ProtectedNames {
    names: Vec<(Area, Vec<u8>, Meta)>,
    left_out: Vec<ExcludedPath>,
}

/// Collects everything to protect and checks the limits.
fn collect_names(layout: &Layout, caps: &SnapshotLimits) -> Result<ProtectedNames, SnapshotError> {
    let unreadable = |root: &Root, path: &[u8], source| SnapshotError::Unreadable {
        path: root.full(path),
        source,
    };
    let tracked = tracked(layout)?;
    let walked = layout.walk_now(caps, &tracked);
    if let Some((path, source)) = walked.unreadable.into_iter().next() {
        return Err(unreadable(&layout.tree, &path, source));
    }
    let mut left_out = walked.left_out;
    let mut names: Vec<_> = walked
        .found
        .into_iter()
        .map(|f| (Area::Tree, f.path, f.meta))
        .collect();
    for (area, part) in layout.git_areas() {
        let root = layout
            .area(area)
            .map_err(|e| unreadable(&layout.tree, b".git", e))?;
        let found = walk_git(&root, part).map_err(|e| unreadable(&root, b"", e))?;
        names.extend(found.into_iter().map(|f| (area, f.path, f.meta)));
        if area == Area::Git
            && let Some(meta) = root
                .meta(b"index")
                .map_err(|e| unreadable(&root, b"index", e))?
        {
            names.push((area, b"index".to_vec(), meta));
        }
    }
    if layout.repository.is_some() {
        left_out.push(ExcludedPath {
            path: b".git/objects".to_vec(),
            why: UnprotectedReason::GitObjects,
        });
    }
    names.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let root = || layout.tree.path().to_owned();
    let files = names.len() as u64;
    if files > caps.max_files {
        return Err(SnapshotError::TooManyFiles {
            root: root(),
            files,
            limit: caps.max_files,
        });
    }
    let mut total = 0;
    for (area, path, meta) in names.iter().filter(|(_, _, m)| m.node == Node::File) {
        if meta.size > caps.max_file_bytes {
            let path = layout.area(*area).map_or_else(|_| root(), |r| r.full(path));
            return Err(SnapshotError::FileTooLarge {
                path,
                size: meta.size,
                limit: caps.max_file_bytes,
            });
        }
        total += meta.size;
    }
    if total > caps.max_total_bytes {
        return Err(SnapshotError::TooLarge {
            root: root(),
            size: total,
            limit: caps.max_total_bytes,
        });
    }
    Ok(ProtectedNames { names, left_out })
}

/// Returns the tracked paths below the root, relative to it, sorted.
pub(super) fn tracked(layout: &Layout) -> Result<Vec<Vec<u8>>, SnapshotError> {
    let Some(repository) = &layout.repository else {
        return Ok(Vec::new());
    };
    let path = repository.git.join("index");
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if super::root::is_absent(&e) => return Ok(Vec::new()),
        Err(source) => return Err(SnapshotError::Unreadable { path, source }),
    };
    let all = read_index(&bytes).map(|i| i.tracked).unwrap_or_default();
    Ok(all
        .into_iter()
        .filter_map(|p| {
            p.strip_prefix(repository.prefix.as_slice())
                .map(<[u8]>::to_vec)
        })
        .collect())
}

fn index_digest(layout: &Layout, entries: &[ManifestEntry], pack: &Pack) -> Option<[u8; 32]> {
    layout.repository.as_ref()?;
    let at = entries
        .iter()
        .position(|e| e.area == Area::Git && e.path == b"index")?;
    let entry = &entries[at];
    Some(read_index(&pack.read(entry.at, entry.size, &entry.hash).ok()?)?.digest)
}

fn used_bytes(manifest: &Manifest) -> u64 {
    let mut blobs: HashMap<&[u8; 32], u64> = HashMap::new();
    blobs.extend(
        manifest
            .entries
            .iter()
            .filter(|e| has_content(e.node))
            .map(|e| (&e.hash, e.size)),
    );
    blobs.values().sum()
}
