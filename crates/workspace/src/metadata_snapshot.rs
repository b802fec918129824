//! Read-only access to a project: single files, and a snapshot of all metadata to detect later
//! changes. Writes nothing to disk, so a shared lock is enough. Cannot restore anything.

use std::cmp::Ordering;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::layout::walk_git;
use super::manifest::Area;
use super::root::{Meta, Node, as_path};
use super::snapshot::tracked;
use super::{Change, ChangeKind, ChangeSet, EntryType, Workspace};

/// The metadata of every path that a snapshot would protect. Contents are not read: no process can
/// change a file without changing its ctime.
#[derive(Debug, Clone, Default)]
pub struct MetadataSnapshot {
    /// Sorted by area and path.
    entries: Vec<MetadataEntry>,
}

type MetadataEntry = (Area, Vec<u8>, Meta, bool);

/// Changes in the project itself while work went on in an overlay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drift {
    /// Files that tests may depend on.
    pub files: Vec<Change>,
    /// Files that git ignores, such as logs, and changes of the repository.
    pub irrelevant: Vec<Change>,
}

impl Drift {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.irrelevant.is_empty()
    }

    /// Returns all changed paths.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files
            .iter()
            .chain(&self.irrelevant)
            .map(|change| change.path.as_path())
    }
}

/// Why a file is not read. Each message follows the file name.
#[derive(Debug, thiserror::Error)]
pub enum FileReadError {
    #[error("is not there")]
    Absent,
    #[error("is a directory; name the files in it")]
    Directory,
    #[error("is no regular file")]
    NotAFile,
    #[error("has {size} bytes, and {limit} is the most")]
    TooLarge { size: u64, limit: u64 },
    #[error("cannot be read: {0}")]
    Io(io::Error),
}

impl Workspace {
    /// Reads a file of at most `limit` bytes; checks the size before reading. Does not follow
    /// links.
    pub fn peek(&self, path: &Path, limit: u64) -> Result<Vec<u8>, FileReadError> {
        let size = self.size(path)?;
        if size > limit {
            return Err(FileReadError::TooLarge { size, limit });
        }
        let file = self
            .0
            .layout
            .tree
            .file(path.as_os_str().as_bytes())
            .map_err(FileReadError::Io)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        // The file may have grown since.
        file.take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(FileReadError::Io)?;
        match bytes.len() as u64 {
            size if size > limit => Err(FileReadError::TooLarge { size, limit }),
            _ => Ok(bytes),
        }
    }

    /// Returns the size of a file without opening it.
    pub fn size(&self, path: &Path) -> Result<u64, FileReadError> {
        let meta = self
            .0
            .layout
            .tree
            .meta(path.as_os_str().as_bytes())
            .map_err(FileReadError::Io)?;
        match meta {
            None => Err(FileReadError::Absent),
            Some(Meta {
                node: Node::Dir, ..
            }) => Err(FileReadError::Directory),
            Some(Meta {
                node: Node::File,
                size,
                ..
            }) => Ok(size),
            Some(_) => Err(FileReadError::NotAFile),
        }
    }

    /// Collects the metadata of every path. Skips unreadable directories: they are unreadable the
    /// next time too.
    pub fn metadata_snapshot(&self) -> io::Result<MetadataSnapshot> {
        let layout = &self.0.layout;
        let tracked = tracked(layout).unwrap_or_default();
        let walked = layout.walk_now(&self.0.caps, &tracked);
        let mut entries: Vec<_> = walked
            .found
            .into_iter()
            .map(|f| (Area::Tree, f.path, f.meta, f.ignored))
            .collect();
        for (area, part) in layout.git_areas() {
            let root = layout.area(area)?;
            entries.extend(
                walk_git(&root, part)?
                    .into_iter()
                    .map(|f| (area, f.path, f.meta, false)),
            );
        }
        entries.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        Ok(MetadataSnapshot { entries })
    }
}

impl MetadataSnapshot {
    /// Returns a digest of names, sizes and times of the project's own files, without the
    /// repository. Equal as long as the project is untouched.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let files = self
            .entries
            .iter()
            .filter(|(area, _, meta, _)| *area == Area::Tree && meta.node != Node::Dir);
        for (_, path, meta, _) in files {
            hasher
                .update(&(path.len() as u64).to_le_bytes())
                .update(path);
            hasher.update(
                format!(
                    "{:?} {:o} {} {} {}\0",
                    meta.node, meta.mode, meta.size, meta.mtime, meta.ino
                )
                .as_bytes(),
            );
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Returns the changes up to a later snapshot.
    pub fn changes_until(&self, later: &Self) -> ChangeSet {
        let changes = self
            .compare(later)
            .into_iter()
            .map(|(change, _)| change)
            .collect();
        ChangeSet {
            changes,
            ..ChangeSet::default()
        }
    }

    /// Returns the changes up to a later snapshot, separated by whether tests may depend on them.
    /// Ignores directories, which come and go with their files.
    pub fn drift(&self, later: &Self) -> Drift {
        let found = self
            .compare(later)
            .into_iter()
            .filter(|(change, _)| change.entry_type != EntryType::Directory);
        let (irrelevant, files): (Vec<_>, Vec<_>) =
            found.partition(|(change, ignored)| *ignored || change.kind == ChangeKind::Git);
        let without_flag =
            |changes: Vec<(Change, bool)>| changes.into_iter().map(|(change, _)| change).collect();
        Drift {
            files: without_flag(files),
            irrelevant: without_flag(irrelevant),
        }
    }

    /// Returns the first path that belongs to another user or group. In a user namespace such files
    /// cannot be written, whatever their mode. Root needs no user namespace.
    pub(super) fn other_owner(&self) -> Option<PathBuf> {
        let (user, group) = (
            rustix::process::geteuid(),
            rustix::process::getegid().as_raw(),
        );
        let own = (user.as_raw(), group);
        let is_foreign =
            |(area, _, meta, _): &&MetadataEntry| *area == Area::Tree && meta.owner != own;
        let found = if user.is_root() {
            None
        } else {
            self.entries.iter().find(is_foreign)
        };
        found.map(|(_, path, ..)| {
            if path.is_empty() {
                PathBuf::from(".")
            } else {
                as_path(path).to_owned()
            }
        })
    }

    fn compare(&self, later: &Self) -> Vec<(Change, bool)> {
        let (mut before, mut after) = (
            self.entries.iter().peekable(),
            later.entries.iter().peekable(),
        );
        let mut changes = Vec::new();
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(was), Some(now)) => (was.0, &was.1).cmp(&(now.0, &now.1)),
            };
            let was = if order.is_le() { before.next() } else { None };
            let now = if order.is_ge() { after.next() } else { None };
            changes.extend(change(was, now));
        }
        changes
    }
}

fn change(was: Option<&MetadataEntry>, now: Option<&MetadataEntry>) -> Option<(Change, bool)> {
    let (area, path, meta, ignored) = now.or(was)?;
    let kind = match (
        was.map(|(_, _, meta, _)| meta),
        now.map(|(_, _, meta, _)| meta),
    ) {
        (Some(was), Some(now)) => change_kind(was, now)?,
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Deleted,
    };
    let (path, kind) = match area {
        Area::Tree => (as_path(path).to_owned(), kind),
        Area::Git | Area::Common => (PathBuf::from(".git").join(as_path(path)), ChangeKind::Git),
    };
    let entry_type = match meta.node {
        Node::File => EntryType::File,
        Node::Dir => EntryType::Directory,
        Node::Link => EntryType::Link,
        Node::Fifo | Node::Special => EntryType::Special,
    };
    Some((
        Change {
            path,
            kind,
            entry_type,
            is_ignored: *ignored && kind == ChangeKind::Added,
        },
        *ignored,
    ))
}

fn change_kind(was: &Meta, now: &Meta) -> Option<ChangeKind> {
    if was.node != now.node {
        return Some(ChangeKind::TypeChanged);
    }
    // The times of a directory change with ignored files in it.
    let is_touched = was.node != Node::Dir && (was.ctime != now.ctime || was.ino != now.ino);
    let is_same_text =
        (was.size, was.mtime, was.ino) == (now.size, now.mtime, now.ino) || was.node == Node::Dir;
    match (was.mode != now.mode, is_touched) {
        (true, _) if is_same_text => Some(ChangeKind::ModeChanged {
            from: was.mode,
            to: now.mode,
        }),
        (false, false) => None,
        _ => Some(ChangeKind::Modified),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::SnapshotLimits;
    use crate::state::StateDir;

    #[test]
    fn every_kind_of_change_is_detected() {
        let (dir, state) = (
            tempfile::tempdir().expect("made"),
            tempfile::tempdir().expect("made"),
        );
        let root = dir.path();
        for name in ["same", "text", "forged", "mode", "gone", "link"] {
            fs::write(root.join(name), "1234").expect("written");
        }
        fs::create_dir(root.join("d")).expect("made");
        let old = SystemTime::now() - Duration::from_secs(1000);
        let set_time = |name: &str| {
            fs::File::open(root.join(name))
                .and_then(|f| f.set_modified(old))
                .expect("set");
        };
        set_time("forged");
        let state = StateDir::at(state.path().join("s")).expect("made");
        let workspace = Workspace::open(root, SnapshotLimits::default(), &state).expect("opened");
        let before = workspace.metadata_snapshot().expect("seen");
        assert_eq!(workspace.peek(Path::new("same"), 4).expect("read"), b"1234");
        assert!(
            before
                .changes_until(&workspace.metadata_snapshot().expect("seen"))
                .is_empty()
        );

        fs::write(root.join("text"), "12345").expect("written");
        fs::write(root.join("forged"), "4321").expect("written");
        set_time("forged");
        fs::set_permissions(root.join("mode"), fs::Permissions::from_mode(0o600)).expect("set");
        fs::remove_file(root.join("gone")).expect("removed");
        fs::remove_file(root.join("link")).expect("removed");
        std::os::unix::fs::symlink("same", root.join("link")).expect("linked");
        fs::write(root.join("d/new"), "").expect("written");
        let after = workspace.metadata_snapshot().expect("seen");
        let changes: Vec<_> = before
            .changes_until(&after)
            .changes
            .into_iter()
            .map(|c| (c.path.display().to_string(), c.kind))
            .collect();
        let expected = [
            ("d/new", ChangeKind::Added),
            ("forged", ChangeKind::Modified),
            ("gone", ChangeKind::Deleted),
            ("link", ChangeKind::TypeChanged),
            (
                "mode",
                ChangeKind::ModeChanged {
                    from: 0o644,
                    to: 0o600,
                },
            ),
            ("text", ChangeKind::Modified),
        ];
        assert_eq!(
            changes,
            expected.map(|(path, kind)| (path.to_owned(), kind))
        );
    }

    #[test]
    fn only_small_regular_files_are_read() {
        let (dir, state) = (
            tempfile::tempdir().expect("made"),
            tempfile::tempdir().expect("made"),
        );
        fs::write(dir.path().join("f"), "12345").expect("written");
        std::os::unix::fs::symlink("f", dir.path().join("l")).expect("linked");
        let state = StateDir::at(state.path().join("s")).expect("made");
        let workspace =
            Workspace::open(dir.path(), SnapshotLimits::default(), &state).expect("opened");
        let error_of = |path: &str| {
            workspace
                .peek(Path::new(path), 4)
                .expect_err("refused")
                .to_string()
        };
        assert_eq!(error_of("f"), "has 5 bytes, and 4 is the most");
        assert_eq!(
            (error_of("l"), error_of("none")),
            ("is no regular file".into(), "is not there".into())
        );
        assert_eq!(
            error_of("../f"),
            "cannot be read: Invalid cross-device link (os error 18)"
        );
    }
}
