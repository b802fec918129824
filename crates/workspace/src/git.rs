//! Locates the project's git repository and selects which of its files are protected. Only reads
//! files: never runs git, a hook, or anything configured in the project.

mod index;

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(super) use index::read_index;

use super::root::{Node, Root, as_path};

/// The repository of a project, by paths. A worker may move or replace its directories, so they are
/// opened again each time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Repository {
    /// Top of the working tree.
    pub top: PathBuf,
    /// Path from the top to the project root, with a trailing slash; empty if they are the same.
    pub prefix: Vec<u8>,
    pub git: PathBuf,
    /// Device and inode of `git`, to recognise it under another name.
    pub identity: (u64, u64),
    /// The common git directory, in a linked working tree.
    pub common: Option<PathBuf>,
}

impl Repository {
    /// Searches from the root upwards, like git.
    pub(super) fn discover(root: &Path) -> io::Result<Option<Self>> {
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

/// Resolves `.git`, which is a directory or a file that names one (linked working trees,
/// submodules).
fn git_dir(top: &Path) -> io::Result<Option<PathBuf>> {
    let dot_git = top.join(".git");
    let Ok(meta) = std::fs::symlink_metadata(&dot_git) else {
        return Ok(None);
    };
    let dir = if meta.is_dir() {
        dot_git
    } else if meta.is_file() && meta.len() < 8192 {
        let text = std::fs::read(&dot_git)?;
        let Some(target) = text.strip_prefix(b"gitdir:") else {
            return Ok(None);
        };
        top.join(as_path(target.trim_ascii()))
    } else {
        return Ok(None);
    };
    // Without HEAD, git does not accept it as a repository either.
    if !dir.join("HEAD").exists() {
        return Ok(None);
    }
    Ok(Some(dir.canonicalize()?))
}

/// Returns true for hooks and configuration, which control what git runs later. They are restored
/// when a worker has changed them. Refs, `HEAD`, the index and the stash are never moved back: a
/// worker's commit cannot be told from the user's, and a commit that stays is easy to undo.
pub(super) fn is_git_control_file(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/').rev();
    let name = parts.next().unwrap_or_default();
    let settings = matches!(name, b"config" | b"config.worktree" | b"hooks" | b"info");
    settings || parts.any(|dir| dir == b"hooks" || dir == b"info")
}

/// How to treat a path in the repository's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitPathAction {
    Include,
    /// Skip it, but walk into it.
    Descend,
    Skip,
}

/// Which part of a repository to walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitPart {
    /// Everything, in a repository with one working tree.
    Whole,
    /// The files of one linked working tree.
    Own,
    /// The files shared by all working trees. Excludes the `HEAD` and index of the others.
    Shared,
}

/// State files of one working tree. The index is compared by its entries, see `index`.
const WORKTREE_FILES: &[&str] = &[
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

/// Files of the whole repository.
const SHARED_FILES: &[&str] = &[
    "packed-refs",
    "config",
    "shallow",
    "objects/info/alternates",
    // The stash is a stack, and this file holds all but its top. Other logs are skipped: they only
    // grow, and they keep a worker's rejected commits reachable.
    "logs/refs/stash",
];

/// Directories included with everything in them: of one working tree, then of the repository.
const WORKTREE_DIRS: &[&str] = &["refs", "rebase-merge", "rebase-apply", "sequencer"];
const SHARED_DIRS: &[&str] = &["refs", "reftable", "hooks", "info"];

/// Directories that contain something included.
const ANCESTOR_DIRS: &[&str] = &["objects", "objects/info", "logs", "logs/refs", "modules"];

pub(super) fn classify(path: &[u8], node: Node, part: GitPart) -> GitPathAction {
    if path.ends_with(b".lock") && node == Node::File {
        return GitPathAction::Skip; // a running git command
    }
    if part != GitPart::Own
        && let Some(inside) = path.strip_prefix(b"modules/")
    {
        // A submodule's git directory has the same layout, some components further down.
        let starts = inside
            .iter()
            .enumerate()
            .filter(|(_, b)| **b == b'/')
            .map(|(i, _)| &inside[i + 1..]);
        let best = starts
            .map(|tail| classify_in_part(tail, GitPart::Whole))
            .find(|w| *w != GitPathAction::Skip);
        let skipped = inside
            .split(|b| *b == b'/')
            .any(|part| part == b"objects" || part == b"logs" || part == b"lfs");
        return match best {
            Some(action) => action,
            None if node == Node::Dir && !skipped => GitPathAction::Descend,
            None => GitPathAction::Skip,
        };
    }
    classify_in_part(path, part)
}

fn classify_in_part(path: &[u8], part: GitPart) -> GitPathAction {
    let own = part != GitPart::Shared;
    let shared = part != GitPart::Own;
    let files = WORKTREE_FILES
        .iter()
        .filter(|_| own)
        .chain(SHARED_FILES.iter().filter(|_| shared));
    let dirs = || {
        WORKTREE_DIRS
            .iter()
            .filter(|_| own)
            .chain(SHARED_DIRS.iter().filter(|_| shared))
    };
    let inside = |dir: &str| {
        path.strip_prefix(dir.as_bytes())
            .is_some_and(|rest| rest.starts_with(b"/"))
    };
    if files.chain(dirs()).any(|name| name.as_bytes() == path) || dirs().any(|dir| inside(dir)) {
        GitPathAction::Include
    } else if shared && ANCESTOR_DIRS.iter().any(|name| name.as_bytes() == path) {
        GitPathAction::Descend
    } else {
        GitPathAction::Skip
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hooks_and_configuration_are_control_files() {
        for path in [
            "config",
            "hooks/pre-commit",
            "info/attributes",
            "modules/a/config",
            "config.worktree",
        ] {
            assert!(is_git_control_file(path.as_bytes()), "{path}");
        }
        for path in [
            "HEAD",
            "index",
            "packed-refs",
            "refs/heads/config-x",
            "logs/refs/stash",
            "modules/a/HEAD",
        ] {
            assert!(!is_git_control_file(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn state_files_are_taken_and_objects_skipped() {
        for taken in [
            "HEAD",
            "refs/heads/a/b",
            "hooks/pre-commit",
            "config",
            "logs/refs/stash",
            "modules/a/b/HEAD",
        ] {
            assert_eq!(
                classify(taken.as_bytes(), Node::File, GitPart::Whole),
                GitPathAction::Include,
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
                classify(left.as_bytes(), Node::File, GitPart::Whole),
                GitPathAction::Skip,
                "{left}"
            );
        }
        assert_eq!(
            classify(b"modules/a", Node::Dir, GitPart::Whole),
            GitPathAction::Descend
        );
        assert_eq!(
            classify(b"modules/a/objects", Node::Dir, GitPart::Whole),
            GitPathAction::Descend
        );
        assert_eq!(
            classify(b"HEAD", Node::File, GitPart::Shared),
            GitPathAction::Skip,
            "the HEAD of another working tree"
        );
        assert_eq!(
            classify(b"modules/a/objects/ab", Node::Dir, GitPart::Whole),
            GitPathAction::Skip
        );
    }
}
