//! Where the project's repository is and which of its files count. No git program is run and no hook or
//! configuration of the project is obeyed: files are read, that is all.

mod index;

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(super) use index::read_index;

use super::root::{Node, Root, as_path};

/// The repository around a project, by its paths: its directories may be moved or replaced while a worker is at it,
/// so they are opened anew each time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Repository {
    /// The working tree's top.
    pub top: PathBuf,
    /// From the top to the project's root, with a slash at the end; empty if they are the same.
    pub prefix: Vec<u8>,
    pub git: PathBuf,
    /// Device and inode of that directory: it is the same one also under another name.
    pub identity: (u64, u64),
    /// Another directory in a linked working tree.
    pub common: Option<PathBuf>,
}

impl Repository {
    /// Looks from the root upwards, as git does.
    pub(super) fn around(root: &Path) -> io::Result<Option<Self>> {
        for top in root.ancestors() {
            let Some(git) = git_dir(top)? else { continue };
            let inside = root.strip_prefix(top).expect("an ancestor is a prefix");
            let mut prefix = inside.as_os_str().as_bytes().to_vec();
            if !prefix.is_empty() {
                prefix.push(b'/');
            }
            let common = match std::fs::read(git.join("commondir")) {
                Ok(text) => Some(git.join(as_path(text.trim_ascii())).canonicalize()?),
                Err(_) => None,
            };
            let identity = Root::open(&git)?.identity()?;
            return Ok(Some(Self {
                top: top.to_owned(),
                prefix,
                git,
                identity,
                common,
            }));
        }
        Ok(None)
    }

    pub(super) fn common(&self) -> &Path {
        self.common.as_deref().unwrap_or(&self.git)
    }
}

/// `.git` as a directory, or as a file that names one (linked working trees, submodules).
fn git_dir(top: &Path) -> io::Result<Option<PathBuf>> {
    let dot_git = top.join(".git");
    let Ok(meta) = std::fs::symlink_metadata(&dot_git) else {
        return Ok(None);
    };
    let dir = if meta.is_dir() {
        dot_git
    } else if meta.is_file() && meta.len() < 8192 {
        let text = std::fs::read(&dot_git)?;
        let Some(named) = text.strip_prefix(b"gitdir:") else {
            return Ok(None);
        };
        top.join(as_path(named.trim_ascii()))
    } else {
        return Ok(None);
    };
    // Without these git itself does not take it for a repository.
    if !dir.join("HEAD").exists() {
        return Ok(None);
    }
    Ok(Some(dir.canonicalize()?))
}

/// Does this file steer what git runs later? Hooks and configuration come back when a worker has touched them. Where the
/// repository stands (refs, `HEAD`, the index, the stash) is never moved back: a worker's commit cannot be told from
/// the user's, and a commit that stays can be undone by anybody.
pub(super) fn steers(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/').rev();
    let name = parts.next().unwrap_or_default();
    let settings = matches!(name, b"config" | b"config.worktree" | b"hooks" | b"info");
    settings || parts.any(|dir| dir == b"hooks" || dir == b"info")
}

/// What is done with a name in the repository's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitNameUse {
    Take,
    /// Not itself, but something below it.
    Descend,
    Skip,
}

/// Whose part of the repository is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A repository with one working tree: everything.
    Whole,
    /// What a linked working tree has for itself.
    Own,
    /// What it shares with others. Their `HEAD` and index are not ours to judge.
    Shared,
}

/// Files that say where one working tree stands. The index is compared by its entries, see `index`.
const OWN: &[&str] = &[
    "HEAD",
    "config.worktree",
    "commondir",
    "gitdir",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "AUTO_MERGE",
    "SQUASH_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_START",
    "BISECT_LOG",
    "BISECT_TERMS",
    "BISECT_NAMES",
    "BISECT_EXPECTED_REV",
];

/// Files that speak for the whole repository.
const SHARED: &[&str] = &[
    "packed-refs",
    "config",
    "shallow",
    "objects/info/alternates",
    // The stash is a stack, and this file holds all but its top. Other logs are left alone:
    // they only grow, and they keep a worker's rejected commit findable.
    "logs/refs/stash",
];

/// Directories taken whole: a working tree's own, then those of the repository.
const OWN_DIRS: &[&str] = &["refs", "rebase-merge", "rebase-apply", "sequencer"];
const SHARED_DIRS: &[&str] = &["refs", "reftable", "hooks", "info"];

/// Directories on the way to something taken.
const ON_THE_WAY: &[&str] = &["objects", "objects/info", "logs", "logs/refs", "modules"];

pub(super) fn want(path: &[u8], node: Node, part: Part) -> GitNameUse {
    if path.ends_with(b".lock") && node == Node::File {
        return GitNameUse::Skip; // a git at work right now
    }
    if part != Part::Own
        && let Some(inside) = path.strip_prefix(b"modules/")
    {
        // A submodule's own directory has the same shape, some components further down.
        let starts = inside
            .iter()
            .enumerate()
            .filter(|(_, b)| **b == b'/')
            .map(|(i, _)| &inside[i + 1..]);
        let best = starts
            .map(|tail| want_here(tail, Part::Whole))
            .find(|w| *w != GitNameUse::Skip);
        let skipped = inside
            .split(|b| *b == b'/')
            .any(|part| part == b"objects" || part == b"logs" || part == b"lfs");
        return match best {
            Some(want) => want,
            None if node == Node::Dir && !skipped => GitNameUse::Descend,
            None => GitNameUse::Skip,
        };
    }
    want_here(path, part)
}

fn want_here(path: &[u8], part: Part) -> GitNameUse {
    let own = part != Part::Shared;
    let shared = part != Part::Own;
    let files = OWN
        .iter()
        .filter(|_| own)
        .chain(SHARED.iter().filter(|_| shared));
    let dirs = || {
        OWN_DIRS
            .iter()
            .filter(|_| own)
            .chain(SHARED_DIRS.iter().filter(|_| shared))
    };
    let inside = |dir: &str| {
        path.strip_prefix(dir.as_bytes())
            .is_some_and(|rest| rest.starts_with(b"/"))
    };
    if files.chain(dirs()).any(|name| name.as_bytes() == path) || dirs().any(|dir| inside(dir)) {
        GitNameUse::Take
    } else if shared && ON_THE_WAY.iter().any(|name| name.as_bytes() == path) {
        GitNameUse::Descend
    } else {
        GitNameUse::Skip
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_and_configuration_steer_and_refs_do_not() {
        for steering in [
            "config",
            "hooks/pre-commit",
            "info/attributes",
            "modules/a/config",
            "config.worktree",
        ] {
            assert!(steers(steering.as_bytes()), "{steering}");
        }
        for position in [
            "HEAD",
            "index",
            "packed-refs",
            "refs/heads/config-x",
            "logs/refs/stash",
            "modules/a/HEAD",
        ] {
            assert!(!steers(position.as_bytes()), "{position}");
        }
    }

    #[test]
    fn what_says_where_the_repository_stands_is_taken_and_the_object_store_is_not() {
        for taken in [
            "HEAD",
            "refs/heads/a/b",
            "hooks/pre-commit",
            "config",
            "logs/refs/stash",
            "modules/a/b/HEAD",
        ] {
            assert_eq!(
                want(taken.as_bytes(), Node::File, Part::Whole),
                GitNameUse::Take,
                "{taken}"
            );
        }
        for left in [
            "index.lock",
            "objects/ab/cdef",
            "logs/HEAD",
            "COMMIT_EDITMSG",
            "refs/heads/x.lock",
            "worktrees/o/HEAD",
        ] {
            assert_eq!(
                want(left.as_bytes(), Node::File, Part::Whole),
                GitNameUse::Skip,
                "{left}"
            );
        }
        assert_eq!(
            want(b"modules/a", Node::Dir, Part::Whole),
            GitNameUse::Descend
        );
        assert_eq!(
            want(b"modules/a/objects", Node::Dir, Part::Whole),
            GitNameUse::Descend
        );
        assert_eq!(
            want(b"HEAD", Node::File, Part::Shared),
            GitNameUse::Skip,
            "the HEAD of another working tree"
        );
        assert_eq!(
            want(b"modules/a/objects/ab", Node::Dir, Part::Whole),
            GitNameUse::Skip
        );
    }
}
