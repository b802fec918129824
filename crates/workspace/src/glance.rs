//! A project that is only read: one file at a time, and how every name looks right now, to tell later what was touched.
//! Keeps nothing on disk, so a shared lock will do. Cannot bring anything back, and says so by its type.

use std::cmp::Ordering;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::layout::walk_git;
use super::manifest::Area;
use super::root::{Meta, Node, as_path};
use super::snapshot::tracked;
use super::{Change, ChangeKind, ChangeSet, Thing, Workspace};

/// Every name of a project that would be protected, and what the file system said about it. Contents are not read:
/// a process that changes some cannot keep the time of the inode's last change.
#[derive(Debug, Clone, Default)]
pub struct Glance {
    /// Sorted by area and path.
    seen: Vec<SeenName>,
}

type SeenName = (Area, Vec<u8>, Meta, bool);

/// What was changed in the project itself while work went on in a view of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drift {
    /// Files that tests may depend on.
    pub files: Vec<Change>,
    /// Files that git ignores, such as logs, and where the repository stands.
    pub aside: Vec<Change>,
}

impl Drift {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.aside.is_empty()
    }

    /// All of it, for the reader of a result.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files
            .iter()
            .chain(&self.aside)
            .map(|change| change.path.as_path())
    }
}

/// Why a file is not read; each reads after the file's name.
#[derive(Debug, thiserror::Error)]
pub enum PeekError {
    #[error("is not there")]
    Absent,
    #[error("is a directory; name the files in it")]
    Directory,
    #[error("is no regular file")]
    NotAFile,
    #[error("has {size} bytes, and {most} is the most")]
    TooLarge { size: u64, most: u64 },
    #[error("cannot be read: {0}")]
    Io(io::Error),
}

impl Workspace {
    /// The bytes of one file, which has at most `most`; asked before it is read. No link is followed.
    pub fn peek(&self, path: &Path, most: u64) -> Result<Vec<u8>, PeekError> {
        let size = self.size(path)?;
        if size > most {
            return Err(PeekError::TooLarge { size, most });
        }
        let file = self
            .0
            .layout
            .tree
            .file(path.as_os_str().as_bytes())
            .map_err(PeekError::Io)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        // It may have grown since.
        file.take(most + 1)
            .read_to_end(&mut bytes)
            .map_err(PeekError::Io)?;
        match bytes.len() as u64 {
            size if size > most => Err(PeekError::TooLarge { size, most }),
            _ => Ok(bytes),
        }
    }

    /// How many bytes a file has, without opening it.
    pub fn size(&self, path: &Path) -> Result<u64, PeekError> {
        let meta = self
            .0
            .layout
            .tree
            .meta(path.as_os_str().as_bytes())
            .map_err(PeekError::Io)?;
        match meta {
            None => Err(PeekError::Absent),
            Some(Meta {
                node: Node::Dir, ..
            }) => Err(PeekError::Directory),
            Some(Meta {
                node: Node::File,
                size,
                ..
            }) => Ok(size),
            Some(_) => Err(PeekError::NotAFile),
        }
    }

    /// Looks at every name. What cannot be looked into is passed over: it is the same the next time.
    pub fn glance(&self) -> io::Result<Glance> {
        let layout = &self.0.layout;
        let tracked = tracked(layout).unwrap_or_default();
        let walked = layout.walk_now(&self.0.caps, &tracked);
        let mut seen: Vec<_> = walked
            .found
            .into_iter()
            .map(|f| (Area::Tree, f.path, f.meta, f.ignored))
            .collect();
        for (area, part) in layout.git_areas() {
            let root = layout.area(area)?;
            seen.extend(
                walk_git(&root, part)?
                    .into_iter()
                    .map(|f| (area, f.path, f.meta, false)),
            );
        }
        seen.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        Ok(Glance { seen })
    }
}

impl Glance {
    /// Over names, sizes and times of the project's own files; the repository aside. Equal for an untouched project.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let files = self
            .seen
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

    /// What is different in a later look.
    pub fn until(&self, later: &Self) -> ChangeSet {
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

    /// The same, told apart by what it may mean for the tests. Directories come and go with what is in them.
    pub fn drift(&self, later: &Self) -> Drift {
        let found = self
            .compare(later)
            .into_iter()
            .filter(|(change, _)| change.thing != Thing::Directory);
        let (aside, files): (Vec<_>, Vec<_>) =
            found.partition(|(change, ignored)| *ignored || change.kind == ChangeKind::Git);
        let plain =
            |changes: Vec<(Change, bool)>| changes.into_iter().map(|(change, _)| change).collect();
        Drift {
            files: plain(files),
            aside: plain(aside),
        }
    }

    /// The first name that belongs to another user or group. In a user namespace such files cannot be written, whatever
    /// their mode says; the superuser needs no such namespace.
    pub(super) fn other_owner(&self) -> Option<PathBuf> {
        let (user, group) = (
            rustix::process::geteuid(),
            rustix::process::getegid().as_raw(),
        );
        let own = (user.as_raw(), group);
        let other = |(area, _, meta, _): &&SeenName| *area == Area::Tree && meta.owner != own;
        let found = if user.is_root() {
            None
        } else {
            self.seen.iter().find(other)
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
        let (mut before, mut after) = (self.seen.iter().peekable(), later.seen.iter().peekable());
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

fn change(was: Option<&SeenName>, now: Option<&SeenName>) -> Option<(Change, bool)> {
    let (area, path, meta, ignored) = now.or(was)?;
    let kind = match (
        was.map(|(_, _, meta, _)| meta),
        now.map(|(_, _, meta, _)| meta),
    ) {
        (Some(was), Some(now)) => differs(was, now)?,
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Deleted,
    };
    let (path, kind) = match area {
        Area::Tree => (as_path(path).to_owned(), kind),
        Area::Git | Area::Common => (PathBuf::from(".git").join(as_path(path)), ChangeKind::Git),
    };
    let thing = match meta.node {
        Node::File => Thing::File,
        Node::Dir => Thing::Directory,
        Node::Link => Thing::Link,
        Node::Fifo | Node::Special => Thing::Special,
    };
    Some((Change { path, kind, thing }, *ignored))
}

fn differs(was: &Meta, now: &Meta) -> Option<ChangeKind> {
    if was.node != now.node {
        return Some(ChangeKind::TypeChanged);
    }
    // A directory's times move with what is ignored in it.
    let touched = was.node != Node::Dir && (was.ctime != now.ctime || was.ino != now.ino);
    let same_text =
        (was.size, was.mtime, was.ino) == (now.size, now.mtime, now.ino) || was.node == Node::Dir;
    match (was.mode != now.mode, touched) {
        (true, _) if same_text => Some(ChangeKind::ModeChanged {
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
    use crate::Caps;
    use crate::state::StateDir;

    #[test]
    fn every_kind_of_touch_is_seen_and_looking_is_none() {
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
                .expect("set")
        };
        set_time("forged");
        let state = StateDir::at(state.path().join("s")).expect("made");
        let workspace = Workspace::open(root, Caps::default(), &state).expect("opened");
        let before = workspace.glance().expect("seen");
        assert_eq!(workspace.peek(Path::new("same"), 4).expect("read"), b"1234");
        assert!(before.until(&workspace.glance().expect("seen")).is_empty());

        fs::write(root.join("text"), "12345").expect("written");
        fs::write(root.join("forged"), "4321").expect("written");
        set_time("forged");
        fs::set_permissions(root.join("mode"), fs::Permissions::from_mode(0o600)).expect("set");
        fs::remove_file(root.join("gone")).expect("removed");
        fs::remove_file(root.join("link")).expect("removed");
        std::os::unix::fs::symlink("same", root.join("link")).expect("linked");
        fs::write(root.join("d/new"), "").expect("written");
        let after = workspace.glance().expect("seen");
        let seen: Vec<_> = before
            .until(&after)
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
        assert_eq!(seen, expected.map(|(path, kind)| (path.to_owned(), kind)));
    }

    #[test]
    fn what_is_no_small_file_is_not_read() {
        let (dir, state) = (
            tempfile::tempdir().expect("made"),
            tempfile::tempdir().expect("made"),
        );
        fs::write(dir.path().join("f"), "12345").expect("written");
        std::os::unix::fs::symlink("f", dir.path().join("l")).expect("linked");
        let state = StateDir::at(state.path().join("s")).expect("made");
        let workspace = Workspace::open(dir.path(), Caps::default(), &state).expect("opened");
        let said = |path: &str| {
            workspace
                .peek(Path::new(path), 4)
                .expect_err("refused")
                .to_string()
        };
        assert_eq!(said("f"), "has 5 bytes, and 4 is the most");
        assert_eq!(
            (said("l"), said("none")),
            ("is no regular file".into(), "is not there".into())
        );
        assert_eq!(
            said("../f"),
            "cannot be read: Invalid cross-device link (os error 18)"
        );
    }
}
