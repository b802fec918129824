//! Compares the project with its snapshot and lists what differs, by area and path.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::SnapshotLimits;
use super::git::read_index;
use super::layout::{Layout, walk_git};
use super::manifest::{Area, ExcludedPath, ManifestEntry};
use super::read::has_content;
use super::root::{Meta, Node, Root, is_absent};
use super::store::Snapshot;
use super::walk::ProtectedName;

/// One path that differs.
#[derive(Debug, Clone)]
pub(super) struct Difference {
    pub area: Area,
    pub path: Vec<u8>,
    pub was: Option<ManifestEntry>,
    pub now: Option<Meta>,
    pub kind: DifferenceKind,
    /// New, and ignored by git.
    pub is_ignored: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DifferenceKind {
    Added,
    Deleted,
    Content,
    /// Only the permissions differ.
    Mode,
    Type,
    /// No longer readable, so a difference cannot be ruled out.
    Unreadable,
}

#[derive(Debug, Default)]
pub(super) struct TreeComparison {
    /// Sorted by area and path.
    pub differences: Vec<Difference>,
    /// In an overlay: differences that were not written through it but come from the project below.
    pub others: Vec<Difference>,
    /// Not protected, and not known when the snapshot was taken.
    pub left_out: Vec<ExcludedPath>,
}

pub(super) fn compare(
    layout: &Layout,
    caps: &SnapshotLimits,
    snapshot: &Snapshot,
) -> io::Result<TreeComparison> {
    let manifest = &snapshot.manifest;
    let layout = &layout.at_snapshot(manifest);
    let walked = layout.walk_as_snapshot(caps, manifest, &snapshot.pack);
    let unreadable: Vec<Vec<u8>> = walked.unreadable.into_iter().map(|(dir, _)| dir).collect();
    let mut found = TreeComparison::default();
    let of = |area: Area| {
        let from = manifest.entries.partition_point(|e| e.area < area);
        let to = manifest.entries.partition_point(|e| e.area <= area);
        &manifest.entries[from..to]
    };
    area_differences(
        &layout.tree,
        of(Area::Tree),
        &walked.found,
        snapshot,
        &unreadable,
        &mut found.differences,
    )?;
    for (area, part) in layout.git_areas() {
        let root = match layout.area(area) {
            Ok(root) => root,
            Err(e) if is_absent(&e) => {
                // The repository is gone or was replaced by something else.
                found
                    .differences
                    .extend(of(area).iter().filter(|e| !is_index(e)).map(deletion));
                continue;
            }
            Err(e) => return Err(e),
        };
        let entries: Vec<ManifestEntry> =
            of(area).iter().filter(|e| !is_index(e)).cloned().collect();
        area_differences(
            &root,
            &entries,
            &walk_git(&root, part)?,
            snapshot,
            &[],
            &mut found.differences,
        )?;
    }
    found
        .differences
        .extend(index_difference(layout, snapshot)?);
    found
        .differences
        .sort_by(|a, b| (a.area, &a.path).cmp(&(b.area, &b.path)));
    if let Some(upper) = &layout.overlay {
        (found.differences, found.others) = found
            .differences
            .into_iter()
            .partition(|d| upper.contains(&d.path));
    }
    let is_known = |path: &[u8]| {
        manifest
            .left_out
            .binary_search_by(|l| l.path.as_slice().cmp(path))
            .is_ok()
    };
    found.left_out = walked
        .left_out
        .into_iter()
        .filter(|l| !is_known(&l.path))
        .collect();
    Ok(found)
}

/// Merges two sorted lists: finds paths on one side only and compares those on both.
fn area_differences(
    root: &Root,
    entries: &[ManifestEntry],
    found: &[ProtectedName],
    snapshot: &Snapshot,
    unreadable: &[Vec<u8>],
    into: &mut Vec<Difference>,
) -> io::Result<()> {
    let area = entries.first().map_or(Area::Tree, |e| e.area);
    let is_unreadable = |path: &[u8]| {
        unreadable.iter().any(|dir| {
            dir.is_empty() || (path.starts_with(dir) && path.get(dir.len()) == Some(&b'/'))
        })
    };
    let (mut i, mut j, mut undecided) = (0, 0, Vec::new());
    loop {
        match (entries.get(i), found.get(j)) {
            (None, None) => break,
            (Some(was), now) if now.is_none_or(|n| was.path < n.path) => {
                if !is_unreadable(&was.path) {
                    into.push(deletion(was));
                }
                i += 1;
            }
            (was, Some(now)) if was.is_none_or(|w| now.path < w.path) => {
                into.push(Difference {
                    area,
                    path: now.path.clone(),
                    was: None,
                    now: Some(now.meta),
                    kind: DifferenceKind::Added,
                    is_ignored: now.ignored,
                });
                j += 1;
            }
            (Some(was), Some(now)) => {
                match compare_meta(was, &now.meta, snapshot.manifest.taken) {
                    Verdict::Same => {}
                    Verdict::Differs(kind) => into.push(difference(was, now.meta, kind)),
                    Verdict::Undecided => undecided.push((was, now.meta)),
                }
                if unreadable.contains(&was.path) {
                    into.push(difference(was, now.meta, DifferenceKind::Unreadable));
                }
                (i, j) = (i + 1, j + 1);
            }
            (Some(_), None) | (None, Some(_)) => unreachable!("one side alone is handled above"),
        }
    }
    into.extend(compare_contents(root, &undecided)?);
    Ok(())
}

fn deletion(was: &ManifestEntry) -> Difference {
    Difference {
        area: was.area,
        path: was.path.clone(),
        was: Some(was.clone()),
        now: None,
        kind: DifferenceKind::Deleted,
        is_ignored: false,
    }
}

fn difference(was: &ManifestEntry, now: Meta, kind: DifferenceKind) -> Difference {
    Difference {
        area: was.area,
        path: was.path.clone(),
        was: Some(was.clone()),
        now: Some(now),
        kind,
        is_ignored: false,
    }
}

enum Verdict {
    Same,
    Differs(DifferenceKind),
    Undecided,
}

fn compare_meta(was: &ManifestEntry, now: &Meta, taken: i64) -> Verdict {
    let mode_differs = was.mode != now.mode && was.node != Node::Link;
    match was.node {
        node if node != now.node => Verdict::Differs(DifferenceKind::Type),
        _ if !has_content(was.node) && mode_differs => Verdict::Differs(DifferenceKind::Mode),
        _ if !has_content(was.node) => Verdict::Same,
        _ if was.is_unchanged(now, taken) => Verdict::Same,
        Node::File if was.size != now.size => Verdict::Differs(DifferenceKind::Content),
        _ => Verdict::Undecided,
    }
}

/// Compares contents where metadata is not conclusive, on all cores.
fn compare_contents(
    root: &Root,
    undecided: &[(&ManifestEntry, Meta)],
) -> io::Result<Vec<Difference>> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism()
        .map_or(1, |n| n.get().min(8))
        .min(undecided.len());
    let work = || {
        let mut differ = Vec::new();
        while let Some((was, now)) = undecided.get(next.fetch_add(1, Ordering::Relaxed)) {
            let kind = match content_equals(root, was) {
                Ok(false) => DifferenceKind::Content,
                Ok(true) if was.mode != now.mode && was.node == Node::File => DifferenceKind::Mode,
                Ok(true) => continue,
                Err(e) if is_absent(&e) => DifferenceKind::Deleted,
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => DifferenceKind::Unreadable,
                Err(e) => return Err(e),
            };
            differ.push(difference(was, *now, kind));
        }
        Ok(differ)
    };
    let parts: Vec<io::Result<Vec<Difference>>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|w| w.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
            .collect()
    });
    let mut all = Vec::new();
    for part in parts {
        all.extend(part?);
    }
    Ok(all)
}

pub(super) fn content_equals(root: &Root, was: &ManifestEntry) -> io::Result<bool> {
    if was.node == Node::Link {
        return Ok(blake3::hash(&root.link_target(&was.path)?) == was.hash);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(root.file(&was.path)?)?;
    Ok(hasher.finalize() == was.hash)
}

pub(super) fn is_index(entry: &ManifestEntry) -> bool {
    entry.area == Area::Git && entry.path == b"index"
}

/// The index differs if its entries differ; refreshed file times are not an edit.
fn index_difference(layout: &Layout, snapshot: &Snapshot) -> io::Result<Option<Difference>> {
    let manifest = &snapshot.manifest;
    if layout.repository.is_none() || layout.overlay.is_some() {
        return Ok(None);
    }
    let was = manifest.find(Area::Git, b"index");
    let git = match layout.area(Area::Git) {
        Ok(git) => git,
        Err(e) if is_absent(&e) => return Ok(was.map(deletion)),
        Err(e) => return Err(e),
    };
    let now = git.meta(b"index")?;
    let kind = match (was, &now) {
        (None, None) => return Ok(None),
        (Some(was), Some(now)) if was.is_unchanged(now, manifest.taken) => return Ok(None),
        (Some(_), None) => DifferenceKind::Deleted,
        (Some(_), Some(now)) if now.node != Node::File => DifferenceKind::Type,
        (None, Some(_)) => {
            // Git may create an index without entries; that is not a difference.
            match read_index(&git.read(b"index").unwrap_or_default()) {
                Some(index) if index.tracked.is_empty() => return Ok(None),
                _ => DifferenceKind::Added,
            }
        }
        (Some(was), Some(now)) => {
            let bytes = git.read(b"index")?;
            let same = match (manifest.index, read_index(&bytes)) {
                (Some(digest), Some(index)) => digest == index.digest,
                _ => blake3::hash(&bytes) == was.hash,
            };
            match same {
                true if was.mode == now.mode => return Ok(None),
                true => DifferenceKind::Mode,
                false => DifferenceKind::Content,
            }
        }
    };
    Ok(Some(Difference {
        area: Area::Git,
        path: b"index".to_vec(),
        was: was.cloned(),
        now,
        kind,
        is_ignored: false,
    }))
}
