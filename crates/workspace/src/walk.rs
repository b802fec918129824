//! Walks a project side by side on all cores and tells, for each name, whether it is protected.
//! Knows handles, ignore rules and the table of build directories. Reads no file but `.gitignore`.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use ignore::gitignore::Gitignore;

use super::ignored::{Rules, is_built};
use super::manifest::{Area, LeftOut, Manifest, Why};
use super::root::{Meta, Node, Root, as_path, join, meta_at};

/// A name that is protected.
#[derive(Debug)]
pub(super) struct ProtectedName {
    pub path: Vec<u8>,
    pub meta: Meta,
    /// By git's rules, and protected all the same.
    pub ignored: bool,
}

#[derive(Debug, Default)]
pub(super) struct WalkedTree {
    /// Sorted by path.
    pub found: Vec<ProtectedName>,
    pub left_out: Vec<LeftOut>,
    /// Directories that could not be read.
    pub unreadable: Vec<(Vec<u8>, io::Error)>,
}

/// How to walk.
pub(super) struct TreeWalk<'a> {
    pub root: &'a Root,
    pub rules: Arc<Rules>,
    pub exclude: &'a Gitignore,
    pub max_ignored: u64,
    /// `.git` in the root is the repository and not content.
    pub skip_dot_git: bool,
    pub view: WalkView<'a>,
}

/// Whose word counts.
pub(super) enum WalkView<'a> {
    /// The disk as it is; tracked files are protected whatever the rules say. Sorted.
    Now { tracked: &'a [Vec<u8>] },
    /// The snapshot: what is in it is looked at, and its ignore files hold, whatever a worker has written since.
    Armed {
        manifest: &'a Manifest,
        left_out: &'a HashSet<&'a [u8]>,
        ignore_file: &'a (dyn Fn(&[u8]) -> Option<Vec<u8>> + Sync),
    },
}

/// A directory still to be read.
struct Task {
    dir: Vec<u8>,
    rules: Arc<Rules>,
    ignored: bool,
    /// In a build directory: only what is tracked or was armed.
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
        // The root itself: our rights to it may have been taken away.
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
            let mut below = Vec::new();
            if let Err(e) = self.read(&task, &mut seen, &mut below) {
                // Deleted while we walked is not unreadable.
                if !super::root::is_absent(&e) {
                    seen.unreadable.push((task.dir.clone(), e));
                }
            }
            queue.done(below);
        }
        seen
    }

    fn read(&self, task: &Task, seen: &mut WalkedTree, below: &mut Vec<Task>) -> io::Result<()> {
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
            let why = self.left_out(
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
                seen.left_out.push(LeftOut {
                    path: path.clone(),
                    why,
                });
            }
            if !keep {
                continue;
            }
            if is_dir {
                let pinned_only = why.is_some();
                below.push(Task {
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

    /// Why a name is not protected, unless it is pinned.
    #[expect(
        clippy::too_many_arguments,
        reason = "one question about one name, asked in one place"
    )]
    fn left_out(
        &self,
        path: &[u8],
        name: &[u8],
        beside: &[Vec<u8>],
        meta: &Meta,
        ignored: bool,
        pinned_only: bool,
        dir: std::os::fd::BorrowedFd<'_>,
    ) -> Option<Why> {
        let is_dir = meta.node == Node::Dir;
        if pinned_only {
            return Some(Why::BuildOrCache);
        }
        if let WalkView::Armed {
            manifest, left_out, ..
        } = &self.view
        {
            if left_out.contains(path) {
                return Some(Why::Excluded);
            }
            // What was armed stays so, also if it looks like a build directory by now.
            if manifest.position(Area::Tree, path).is_some() {
                return None;
            }
        }
        if self.exclude.matched(as_path(path), is_dir).is_ignore() {
            return Some(Why::Excluded);
        }
        match meta.node {
            Node::Special => Some(Why::Special),
            Node::File if ignored && meta.size > self.max_ignored => Some(Why::LargeIgnored),
            Node::Dir => {
                let beside = |file: &str| beside.iter().any(|n| n == file.as_bytes());
                let inside = |file: &str| meta_at(dir, &join(name, file.as_bytes())).is_ok();
                is_built(name, ignored, beside, inside).then_some(Why::BuildOrCache)
            }
            Node::File | Node::Link | Node::Fifo => None,
        }
    }

    fn is_pinned(&self, path: &[u8]) -> bool {
        match &self.view {
            WalkView::Now { tracked } => {
                tracked.binary_search_by(|t| t.as_slice().cmp(path)).is_ok()
            }
            WalkView::Armed { manifest, .. } => manifest.position(Area::Tree, path).is_some(),
        }
    }

    fn any_pinned_below(&self, dir: &[u8]) -> bool {
        match &self.view {
            WalkView::Now { tracked } => {
                let below = join(dir, b"");
                let at = tracked.partition_point(|t| t.as_slice() < below.as_slice());
                tracked.get(at).is_some_and(|t| t.starts_with(&below))
            }
            WalkView::Armed { manifest, .. } => manifest.any_below(Area::Tree, dir),
        }
    }

    fn rules_in(&self, task: &Task, names: &[Vec<u8>]) -> Arc<Rules> {
        let file = join(&task.dir, b".gitignore");
        let text = match &self.view {
            WalkView::Now { .. } if names.iter().any(|n| n == b".gitignore") => {
                self.root.read(&file).ok()
            }
            WalkView::Now { .. } => None,
            WalkView::Armed { ignore_file, .. } => ignore_file(&file),
        };
        match text {
            Some(text) => Rules::below(task.rules.clone(), &text, &task.dir),
            None => task.rules.clone(),
        }
    }
}

/// Directories to read, and how many are being read: when both are none, the walk is over.
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

    fn done(&self, below: Vec<Task>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0.extend(below);
        state.1 -= 1;
        self.more.notify_all();
    }
}
