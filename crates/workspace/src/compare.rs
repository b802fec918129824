//! Compares the project with its snapshot. Knows what differs, by area and name; does not know who did it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Caps;
use super::git::read_index;
use super::layout::{Layout, walk_git};
use super::manifest::{Area, LeftOut, ManifestEntry};
use super::read::has_content;
use super::root::{Meta, Node, Root, is_absent};
use super::store::Snapshot;
use super::walk::ProtectedName;

/// One name that is not as it was.
#[derive(Debug, Clone)]
pub(super) struct Difference {
    pub area: Area,
    pub path: Vec<u8>,
    pub was: Option<ManifestEntry>,
    pub now: Option<Meta>,
    pub what: DifferenceKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DifferenceKind {
    Added,
    Deleted,
    Content,
    /// Only the permissions.
    Mode,
    Type,
    /// Can no longer be read, so this is unknown.
    Unreadable,
}

#[derive(Debug, Default)]
pub(super) struct TreeComparison {
    /// Sorted by area and path.
    pub differences: Vec<Difference>,
    /// In a private view: what was not written through it, and shines through from the project below.
    pub others: Vec<Difference>,
    /// Not protected now, and not known when the snapshot was taken.
    pub left_out: Vec<LeftOut>,
}

pub(super) fn compare(
    layout: &Layout,
    caps: &Caps,
    snapshot: &Snapshot,
) -> io::Result<TreeComparison> {
    let manifest = &snapshot.manifest;
    let layout = &layout.as_armed(manifest);
    let walked = layout.walk_as_armed(caps, manifest, &snapshot.pack);
    let blind: Vec<Vec<u8>> = walked.unreadable.into_iter().map(|(dir, _)| dir).collect();
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
        &blind,
        &mut found.differences,
    )?;
    for (area, part) in layout.git_areas() {
        let root = match layout.area(area) {
            Ok(root) => root,
            Err(e) if is_absent(&e) => {
                // The repository is gone, or something else took its place.
                found
                    .differences
                    .extend(of(area).iter().filter(|e| !is_index(e)).map(deleted));
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
    if let Some(upper) = &layout.view {
        (found.differences, found.others) = found
            .differences
            .into_iter()
            .partition(|d| upper.holds(&d.path));
    }
    let known = |path: &[u8]| {
        manifest
            .left_out
            .binary_search_by(|l| l.path.as_slice().cmp(path))
            .is_ok()
    };
    found.left_out = walked
        .left_out
        .into_iter()
        .filter(|l| !known(&l.path))
        .collect();
    Ok(found)
}

/// Both lists are sorted: one pass finds what is on one side only, and what both sides must be asked about.
fn area_differences(
    root: &Root,
    entries: &[ManifestEntry],
    found: &[ProtectedName],
    snapshot: &Snapshot,
    blind: &[Vec<u8>],
    into: &mut Vec<Difference>,
) -> io::Result<()> {
    let area = entries.first().map_or(Area::Tree, |e| e.area);
    let hidden = |path: &[u8]| {
        blind.iter().any(|dir| {
            dir.is_empty() || (path.starts_with(dir) && path.get(dir.len()) == Some(&b'/'))
        })
    };
    let (mut i, mut j, mut unsure) = (0, 0, Vec::new());
    loop {
        match (entries.get(i), found.get(j)) {
            (None, None) => break,
            (Some(was), now) if now.is_none_or(|n| was.path < n.path) => {
                if !hidden(&was.path) {
                    into.push(deleted(was));
                }
                i += 1;
            }
            (was, Some(now)) if was.is_none_or(|w| now.path < w.path) => {
                into.push(Difference {
                    area,
                    path: now.path.clone(),
                    was: None,
                    now: Some(now.meta),
                    what: DifferenceKind::Added,
                });
                j += 1;
            }
            (Some(was), Some(now)) => {
                match by_meta(was, &now.meta, snapshot.manifest.taken) {
                    Verdict::Same => {}
                    Verdict::Differs(what) => into.push(difference(was, now.meta, what)),
                    Verdict::Unsure => unsure.push((was, now.meta)),
                }
                if blind.contains(&was.path) {
                    into.push(difference(was, now.meta, DifferenceKind::Unreadable));
                }
                (i, j) = (i + 1, j + 1);
            }
            (Some(_), None) | (None, Some(_)) => unreachable!("one side alone is handled above"),
        }
    }
    into.extend(by_content(root, &unsure)?);
    Ok(())
}

fn deleted(was: &ManifestEntry) -> Difference {
    Difference {
        area: was.area,
        path: was.path.clone(),
        was: Some(was.clone()),
        now: None,
        what: DifferenceKind::Deleted,
    }
}

fn difference(was: &ManifestEntry, now: Meta, what: DifferenceKind) -> Difference {
    Difference {
        area: was.area,
        path: was.path.clone(),
        was: Some(was.clone()),
        now: Some(now),
        what,
    }
}

enum Verdict {
    Same,
    Differs(DifferenceKind),
    Unsure,
}

fn by_meta(was: &ManifestEntry, now: &Meta, taken: i64) -> Verdict {
    let mode_differs = was.mode != now.mode && was.node != Node::Link;
    match was.node {
        node if node != now.node => Verdict::Differs(DifferenceKind::Type),
        _ if !has_content(was.node) && mode_differs => Verdict::Differs(DifferenceKind::Mode),
        _ if !has_content(was.node) => Verdict::Same,
        _ if was.is_surely(now, taken) => Verdict::Same,
        Node::File if was.size != now.size => Verdict::Differs(DifferenceKind::Content),
        _ => Verdict::Unsure,
    }
}

/// Reads what could differ, on all cores.
fn by_content(root: &Root, unsure: &[(&ManifestEntry, Meta)]) -> io::Result<Vec<Difference>> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism()
        .map_or(1, |n| n.get().min(8))
        .min(unsure.len());
    let work = || {
        let mut differ = Vec::new();
        while let Some((was, now)) = unsure.get(next.fetch_add(1, Ordering::Relaxed)) {
            let what = match content_equals(root, was) {
                Ok(false) => DifferenceKind::Content,
                Ok(true) if was.mode != now.mode && was.node == Node::File => DifferenceKind::Mode,
                Ok(true) => continue,
                Err(e) if is_absent(&e) => DifferenceKind::Deleted,
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => DifferenceKind::Unreadable,
                Err(e) => return Err(e),
            };
            differ.push(difference(was, *now, what));
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

/// The index differs if its entries do; a refreshed cache of file times is not an edit.
fn index_difference(layout: &Layout, snapshot: &Snapshot) -> io::Result<Option<Difference>> {
    let manifest = &snapshot.manifest;
    if layout.repository.is_none() || layout.view.is_some() {
        return Ok(None);
    }
    let was = manifest.find(Area::Git, b"index");
    let git = match layout.area(Area::Git) {
        Ok(git) => git,
        Err(e) if is_absent(&e) => return Ok(was.map(deleted)),
        Err(e) => return Err(e),
    };
    let now = git.meta(b"index")?;
    let what = match (was, &now) {
        (None, None) => return Ok(None),
        (Some(was), Some(now)) if was.is_surely(now, manifest.taken) => return Ok(None),
        (Some(_), None) => DifferenceKind::Deleted,
        (Some(_), Some(now)) if now.node != Node::File => DifferenceKind::Type,
        (None, Some(_)) => {
            // git may write an index without entries where there was none: that says the same.
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
        what,
    }))
}
