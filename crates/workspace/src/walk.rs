//! Walks a project on all cores and decides for each path whether it is protected. Reads no file
//! but `.gitignore`.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use ignore::gitignore::Gitignore;

use super::ignore_rules::{IgnoreRules, is_built};
use super::manifest::{Area, ExcludedPath, Manifest, UnprotectedReason};
use super::root::{Meta, Node, Root, as_path, join, meta_at};

/// A protected path.
#[derive(Debug)]
pub(super) struct ProtectedName {
    pub path: Vec<u8>,
    pub meta: Meta,
    /// Ignored by git, but protected all the same.
    pub ignored: bool,
}

#[derive(Debug, Default)]
pub(super) struct WalkedTree {
    /// Sorted by path.
    pub found: Vec<ProtectedName>,
    pub left_out: Vec<ExcludedPath>,
    /// Directories that could not be read.
    pub unreadable: Vec<(Vec<u8>, io::Error)>,
}

/// The parameters of a walk.
pub(super) struct TreeWalk<'a> {
    pub root: &'a Root,
    pub rules: Arc<IgnoreRules>,
    pub exclude: &'a Gitignore,
    pub max_ignored: u64,
    /// `.git` in the root is the repository, not content.
    pub skip_dot_git: bool,
    pub mode: WalkMode<'a>,
}

/// Which rules decide what is protected.
pub(super) enum WalkMode<'a> {
    /// The files on disk. Tracked files, sorted, are always protected.
    Current { tracked: &'a [Vec<u8>] },
    /// The snapshot: its files and its ignore rules count, whatever a worker has written since.
    Snapshot {
        manifest: &'a Manifest,
        left_out: &'a HashSet<&'a [u8]>,
        ignore_file: &'a (dyn Fn(&[u8]) -> Option<Vec<u8>> + Sync),
    },
}

/// A directory to read.
struct Task {
    dir: Vec<u8>,
    rules: Arc<IgnoreRules>,
    ignored: bool,
    /// Inside a build directory: only tracked files or those in the snapshot.
    pinned_only: bool,
}

impl TreeWalk<'_> {
    pub(super) fn run(&self) -> WalkedTree {
        let first = Task {
            dir: Vec::new(),
            rules: self.rules.clone(),
            ignored: false,
            pinned_only: false,
        };
        let queue = Queue {
            state: Mutex::new((vec![first], 0)),
            more: Condvar::new(),
        };
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
        let mut all = WalkedTree::default();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|_| scope.spawn(|| self.work(&queue)))
                .collect();
            for worker in workers {
                let part = worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                all.found.extend(part.found);
                all.left_out.extend(part.left_out);
                all.unreadable.extend(part.unreadable);
            }
        });
        // Include the root itself: our permissions on it may have been removed.
        if let Ok(stat) = rustix::fs::fstat(self.root.fd()) {
            all.found.push(ProtectedName {
                path: Vec::new(),
                meta: Meta::from(&stat),
                ignored: false,
            });
        }
        all.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        all.left_out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        all
    }

    fn work(&self, queue: &Queue) -> WalkedTree {
        let mut seen = WalkedTree::default();
        while let Some(task) = queue.next() {
            let mut subdirs = Vec::new();
            if let Err(e) = self.read(&task, &mut seen, &mut subdirs) {
                // A directory deleted during the walk is not an error.
                if !super::root::is_absent(&e) {
                    seen.unreadable.push((task.dir.clone(), e));
                }
            }
            queue.done(subdirs);
        }
        seen
    }

    fn read(&self, task: &Task, seen: &mut WalkedTree, subdirs: &mut Vec<Task>) -> io::Result<()> {
        let fd = self.root.dir(&task.dir)?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&fd)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(name.to_vec());
            }
        }
        let rules = self.rules_in(task, &names);
        for name in &names {
            let path = join(&task.dir, name);
            if self.skip_dot_git && path == b".git" {
                continue;
            }
            let meta = match meta_at(fd.as_fd(), name) {
                Ok(meta) => meta,
                Err(e) if super::root::is_absent(&e) => continue,
                Err(e) => return Err(e),
            };
            let is_dir = meta.node == Node::Dir;
            let ignored = task.ignored || rules.ignores(&path, is_dir);
            let why = self.exclusion_reason(
                &path,
                name,
                &names,
                &meta,
                ignored,
                task.pinned_only,
                fd.as_fd(),
            );
            let keep = match why {
                None => true,
                Some(_) => self.is_pinned(&path) || (is_dir && self.any_pinned_below(&path)),
            };
            if let Some(why) = why
                && !task.pinned_only
            {
                seen.left_out.push(ExcludedPath {
                    path: path.clone(),
                    why,
                });
            }
            if !keep {
                continue;
            }
            if is_dir {
                let pinned_only = why.is_some();
                subdirs.push(Task {
                    dir: path.clone(),
                    rules: rules.clone(),
                    ignored,
                    pinned_only,
                });
            }
            let ignored = ignored && !self.is_pinned(&path);
            seen.found.push(ProtectedName {
                path,
                meta,
                ignored,
            });
        }
        Ok(())
    }

    /// Returns why a path is not protected, unless it is pinned.
    #[expect(clippy::too_many_arguments, reason = "private, with a single caller")]
    fn exclusion_reason(
        &self,
        path: &[u8],
        name: &[u8],
        siblings: &[Vec<u8>],
        meta: &Meta,
        ignored: bool,
        pinned_only: bool,
        dir: std::os::fd::BorrowedFd<'_>,
    ) -> Option<UnprotectedReason> {
        let is_dir = meta.node == Node::Dir;
        if pinned_only {
            return Some(UnprotectedReason::BuildOrCache);
        }
        if let WalkMode::Snapshot {
            manifest, left_out, ..
        } = &self.mode
        {
            if left_out.contains(path) {
                return Some(UnprotectedReason::Excluded);
            }
            // What is in the snapshot stays protected, even if it looks like a build directory now.
            if manifest.position(Area::Tree, path).is_some() {
                return None;
            }
        }
        if self.exclude.matched(as_path(path), is_dir).is_ignore() {
            return Some(UnprotectedReason::Excluded);
        }
        match meta.node {
            Node::Special => Some(UnprotectedReason::Special),
            Node::File if ignored && meta.size > self.max_ignored => {
                Some(UnprotectedReason::LargeIgnored)
            }
            Node::Dir => {
                let beside = |file: &str| siblings.iter().any(|n| n == file.as_bytes());
                let inside = |file: &str| meta_at(dir, &join(name, file.as_bytes())).is_ok();
                is_built(name, ignored, beside, inside).then_some(UnprotectedReason::BuildOrCache)
            }
            Node::File | Node::Link | Node::Fifo => None,
        }
    }

    fn is_pinned(&self, path: &[u8]) -> bool {
        match &self.mode {
            WalkMode::Current { tracked } => {
                tracked.binary_search_by(|t| t.as_slice().cmp(path)).is_ok()
            }
            WalkMode::Snapshot { manifest, .. } => manifest.position(Area::Tree, path).is_some(),
        }
    }

    fn any_pinned_below(&self, dir: &[u8]) -> bool {
        match &self.mode {
            WalkMode::Current { tracked } => {
                let prefix = join(dir, b"");
                let at = tracked.partition_point(|t| t.as_slice() < prefix.as_slice());
                tracked.get(at).is_some_and(|t| t.starts_with(&prefix))
            }
            WalkMode::Snapshot { manifest, .. } => manifest.any_below(Area::Tree, dir),
        }
    }

    fn rules_in(&self, task: &Task, names: &[Vec<u8>]) -> Arc<IgnoreRules> {
        let file = join(&task.dir, b".gitignore");
        let text = match &self.mode {
            WalkMode::Current { .. } if names.iter().any(|n| n == b".gitignore") => {
                self.root.read(&file).ok()
            }
            WalkMode::Current { .. } => None,
            WalkMode::Snapshot { ignore_file, .. } => ignore_file(&file),
        };
        match text {
            Some(text) => IgnoreRules::in_dir(task.rules.clone(), &text, &task.dir),
            None => task.rules.clone(),
        }
    }
}

/// Directories to read, and the number being read. The walk is over when both are zero.
struct Queue {
    state: Mutex<(Vec<Task>, usize)>,
    more: Condvar,
}

impl Queue {
    fn next(&self) -> Option<Task> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(task) = state.0.pop() {
                state.1 += 1;
                return Some(task);
            }
            if state.1 == 0 {
                self.more.notify_all();
                return None;
            }
            state = self
                .more
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, subdirs: Vec<Task>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0.extend(subdirs);
        state.1 -= 1;
        self.more.notify_all();
    }
}
