//! The changes of a worker, as a typed set and as a unified diff.

use std::path::{Path, PathBuf};

use super::compare::{Difference, DifferenceKind};
use super::layout::Layout;
use super::manifest::{Area, ManifestEntry, UnprotectedReason};
use super::root::{Node, Root, as_path};
use super::store::Snapshot;
use supervisor_text::words;
use supervisor_text::words::diff::Diff;

/// Everything that differs from the snapshot, sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeSet {
    pub changes: Vec<Change>,
    /// Written by the project's own tests; not held against the worker.
    pub by_products: Vec<ByProduct>,
    /// Not protected and new since the snapshot, such as a fresh build directory.
    pub unprotected: Vec<UnprotectedPath>,
    /// Changes that are probably not the worker's: the user's own edits beside an overlay, and refs
    /// of the repository. Left as they are.
    pub others: Vec<Change>,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the root. Paths of the repository's own files begin with `.git/`.
    pub path: PathBuf,
    pub kind: ChangeKind,
    /// The type it has now, or had if it is deleted.
    pub entry_type: EntryType,
    /// New, in a place that git ignored when the snapshot was taken.
    pub is_ignored: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
    /// Only the permissions changed.
    ModeChanged {
        from: u32,
        to: u32,
    },
    /// A file became a link, a directory or the like, or the other way round.
    TypeChanged,
    /// No longer readable, so a change cannot be ruled out.
    Unreadable,
    /// The repository itself: `HEAD`, a ref, the index, the configuration, a hook.
    Git,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryType {
    File,
    Directory,
    Link,
    /// A fifo, a socket or a device.
    Special,
}

/// A path that the project's own tests write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByProduct {
    pub path: PathBuf,
    /// Written again since it was marked, by another test run or by the worker.
    pub changed_since: bool,
}

/// A path that a restore does not bring back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnprotectedPath {
    pub path: PathBuf,
    pub why: UnprotectedReason,
}

impl ChangeSet {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the changed files and links of the project.
    pub fn files(&self) -> impl Iterator<Item = &Change> {
        self.changes
            .iter()
            .filter(|c| c.kind != ChangeKind::Git && c.entry_type != EntryType::Directory)
    }
}

impl From<&Difference> for Change {
    fn from(d: &Difference) -> Self {
        let node = d
            .now
            .as_ref()
            .map(|m| m.node)
            .or(d.was.as_ref().map(|w| w.node))
            .unwrap_or(Node::Special);
        let kind = match d.kind {
            _ if d.area != Area::Tree => ChangeKind::Git,
            DifferenceKind::Added => ChangeKind::Added,
            DifferenceKind::Deleted => ChangeKind::Deleted,
            DifferenceKind::Content => ChangeKind::Modified,
            DifferenceKind::Type => ChangeKind::TypeChanged,
            DifferenceKind::Unreadable => ChangeKind::Unreadable,
            DifferenceKind::Mode => {
                let from = d.was.as_ref().map_or(0, |w| w.mode);
                ChangeKind::ModeChanged {
                    from,
                    to: d.now.map_or(from, |n| n.mode),
                }
            }
        };
        let path = match d.area {
            Area::Tree => as_path(&d.path).to_owned(),
            Area::Git | Area::Common => Path::new(".git").join(as_path(&d.path)),
        };
        let entry_type = match node {
            Node::File => EntryType::File,
            Node::Dir => EntryType::Directory,
            Node::Link => EntryType::Link,
            Node::Fifo | Node::Special => EntryType::Special,
        };
        Self {
            path,
            kind,
            entry_type,
            is_ignored: d.is_ignored,
        }
    }
}

/// Larger files are only named in the diff.
const MAX_DIFFED_FILE_BYTES: u64 = 1 << 20;

/// Returns a unified diff of at most `max` bytes, with a marker where it is cut.
pub(super) fn unified_diff(
    layout: &Layout,
    snapshot: &Snapshot,
    differences: &[Difference],
    max: usize,
) -> String {
    let mut text = String::new();
    for d in differences.iter().filter(|d| d.area == Area::Tree) {
        if text.len() > max {
            break;
        }
        diff_one(&layout.tree, snapshot, d, &mut text);
    }
    words::cut_end(&text, max).into_owned()
}

fn diff_one(root: &Root, snapshot: &Snapshot, d: &Difference, into: &mut String) {
    let name = words::plain(&as_path(&d.path).to_string_lossy()).replace('\n', "\\n");
    let note = |what: &str| format!("{what} {name}\n");
    if d.kind == DifferenceKind::Mode {
        let (from, to) = (
            d.was.as_ref().map_or(0, |w| w.mode),
            d.now.map_or(0, |n| n.mode),
        );
        into.push_str(&note(&format!("mode {from:04o} => {to:04o}")));
        return;
    }
    let was_file = d.was.as_ref().filter(|w| w.node == Node::File);
    let now_file = d.now.as_ref().filter(|n| n.node == Node::File);
    if was_file.is_none() && now_file.is_none() {
        let is_dir = d.now.map(|n| n.node).or(d.was.as_ref().map(|w| w.node)) == Some(Node::Dir);
        into.push_str(&note(match (d.kind, is_dir) {
            (DifferenceKind::Added, true) => "new directory",
            (DifferenceKind::Added, false) => "new link or special file",
            (DifferenceKind::Deleted, true) => "deleted directory",
            (DifferenceKind::Deleted, false) => "deleted link or special file",
            _ => "changed",
        }));
        return;
    }
    if was_file.is_some_and(|w| w.size > MAX_DIFFED_FILE_BYTES)
        || now_file.is_some_and(|n| n.size > MAX_DIFFED_FILE_BYTES)
    {
        into.push_str(&note("large file differs:"));
        return;
    }
    let old = was_file
        .and_then(|w| old_bytes(snapshot, w))
        .unwrap_or_default();
    let new = now_file
        .and_then(|_| root.read(&d.path).ok())
        .unwrap_or_default();
    if is_binary(&old) || is_binary(&new) {
        into.push_str(&note("binary file differs:"));
        return;
    }
    let before = was_file.map_or_else(|| "/dev/null".to_owned(), |_| format!("a/{name}"));
    let after = now_file.map_or_else(|| "/dev/null".to_owned(), |_| format!("b/{name}"));
    if old == new {
        into.push_str(&format!("--- {before}\n+++ {after}\n"));
        return;
    }
    into.push_str(&Diff::of(&old, &new).unified(&before, &after));
}

fn old_bytes(snapshot: &Snapshot, was: &ManifestEntry) -> Option<Vec<u8>> {
    snapshot.pack.read(was.at, was.size, &was.hash).ok()
}

/// Git's rule: a NUL near the start.
fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(8000).any(|b| *b == 0)
}
