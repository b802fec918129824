//! The protected directories: the project, and the relevant parts of its git repository. Combines
//! directory handles with ignore rules and walks them.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use super::SnapshotLimits;
use super::git::{GitPart, GitPathAction, Repository, classify};
use super::ignore_rules::{IgnoreRules, patterns};
use super::manifest::{Area, Manifest};
use super::overlay::UpperLayer;
use super::pack::Pack;
use super::root::{Meta, Node, Root, as_path, is_absent, join, meta_at};
use super::walk::{ProtectedName, TreeWalk, WalkMode, WalkedTree};

#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub tree: Arc<Root>,
    pub repository: Option<Repository>,
    /// Set if the tree is an overlay; holds what was written through it. All other differences are
    /// the user's. Our children cannot write to the repository then, so changes there are ignored.
    pub overlay: Option<Arc<UpperLayer>>,
}

impl Layout {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        Ok(Self {
            tree: Arc::new(Root::open(root)?),
            repository: Repository::discover(root)?,
            overlay: None,
        })
    }

    /// Returns the layout with the repository that the snapshot recorded, whatever happened to it
    /// since.
    pub(super) fn at_snapshot(&self, manifest: &Manifest) -> Self {
        Self {
            tree: self.tree.clone(),
            repository: manifest.repository.clone(),
            overlay: self.overlay.clone(),
        }
    }

    /// Returns the layout as seen through an overlay.
    pub(super) fn through_overlay(&self, overlay: &Path, upper: UpperLayer) -> io::Result<Self> {
        let own = self.tree.path().join(".git");
        let repository = self.repository.clone().map(|found| {
            let git = if found.git == own {
                overlay.join(".git")
            } else {
                found.git.clone()
            };
            Repository { git, ..found }
        });
        Ok(Self {
            tree: Arc::new(Root::open(overlay)?),
            repository,
            overlay: Some(Arc::new(upper)),
        })
    }

    /// Returns the directory that identifies the project: two roots in one repository share it.
    pub(super) fn top(&self) -> &Path {
        self.repository
            .as_ref()
            .map_or(self.tree.path(), |r| &r.top)
    }

    /// Returns the directory in the project that is locked while a process works here.
    pub(super) fn lock_dir(&self) -> &Path {
        self.repository
            .as_ref()
            .map_or(self.tree.path(), |r| &r.git)
    }

    /// Opens an area. Fails if the repository's directory is gone or is now a link.
    pub(super) fn area(&self, area: Area) -> io::Result<Arc<Root>> {
        match self.area_path(area) {
            None => Ok(self.tree.clone()),
            Some(path) => Ok(Arc::new(Root::open_no_link(path)?)),
        }
    }

    /// Returns `None` for the tree itself.
    pub(super) fn area_path(&self, area: Area) -> Option<&Path> {
        match (area, &self.repository) {
            (Area::Git, Some(r)) => Some(&r.git),
            (Area::Common, Some(r)) => Some(r.common()),
            (Area::Tree, _) | (_, None) => None,
        }
    }

    /// Returns the areas besides the tree, with the part to walk.
    pub(super) fn git_areas(&self) -> Vec<(Area, GitPart)> {
        match &self.repository {
            _ if self.overlay.is_some() => Vec::new(),
            None => Vec::new(),
            Some(Repository { common: None, .. }) => vec![(Area::Git, GitPart::Whole)],
            Some(_) => vec![(Area::Git, GitPart::Own), (Area::Common, GitPart::Shared)],
        }
    }

    pub(super) fn walk_now(&self, caps: &SnapshotLimits, tracked: &[Vec<u8>]) -> WalkedTree {
        let info = self
            .repository
            .as_ref()
            .and_then(|r| std::fs::read(r.common().join("info/exclude")).ok());
        self.walk(
            caps,
            &info.unwrap_or_default(),
            WalkMode::Current { tracked },
            self.has_dot_git(),
        )
    }

    /// Walks by the ignore rules of the snapshot, so that nothing written since can hide a file.
    pub(super) fn walk_as_snapshot(
        &self,
        caps: &SnapshotLimits,
        manifest: &Manifest,
        pack: &Pack,
    ) -> WalkedTree {
        let text = |area, path: &[u8]| {
            let entry = manifest.find(area, path).filter(|e| e.node == Node::File)?;
            pack.read(entry.at, entry.size, &entry.hash).ok()
        };
        let info = [Area::Git, Area::Common]
            .into_iter()
            .find_map(|area| text(area, b"info/exclude"));
        let left_out: HashSet<&[u8]> = manifest
            .left_out
            .iter()
            .map(|l| l.path.as_slice())
            .collect();
        let ignore_file = |path: &[u8]| text(Area::Tree, path);
        let mode = WalkMode::Snapshot {
            manifest,
            left_out: &left_out,
            ignore_file: &ignore_file,
        };
        // A repository created since is content. One that existed is not, even if it is broken now.
        self.walk(
            caps,
            &info.unwrap_or_default(),
            mode,
            self.at_snapshot(manifest).has_dot_git(),
        )
    }

    fn walk(
        &self,
        caps: &SnapshotLimits,
        info_exclude: &[u8],
        mode: WalkMode<'_>,
        skip_dot_git: bool,
    ) -> WalkedTree {
        let exclude = patterns(&caps.exclude);
        let rules = self.rules_above(info_exclude);
        let max_ignored = caps.max_ignored_file_bytes;
        TreeWalk {
            root: &self.tree,
            rules,
            exclude: &exclude,
            max_ignored,
            skip_dot_git,
            mode,
        }
        .run()
    }

    /// Returns the rules of the user, the repository, and the directories between its top and the
    /// root.
    pub(super) fn rules_above(&self, info_exclude: &[u8]) -> Arc<IgnoreRules> {
        let mut rules = IgnoreRules::base(info_exclude);
        let Some(repository) = &self.repository else {
            return rules;
        };
        let mut at = 0;
        while at < repository.prefix.len() {
            let (done, rest) = repository.prefix.split_at(at);
            if let Ok(text) = std::fs::read(repository.top.join(as_path(done)).join(".gitignore")) {
                rules = IgnoreRules::above_root(rules, &text, rest.to_vec());
            }
            at += rest
                .iter()
                .position(|b| *b == b'/')
                .map_or(rest.len(), |i| i + 1);
        }
        rules
    }

    /// Returns true if the repository's directory is in the root itself.
    fn has_dot_git(&self) -> bool {
        // Each overlay has its own path, and the manifest was made in one of them.
        let is_in_overlay = |git: &Path| self.overlay.is_some() && git.starts_with("/proc/self/fd");
        self.repository
            .as_ref()
            .is_some_and(|r| r.git == self.tree.path().join(".git") || is_in_overlay(&r.git))
    }
}

/// Walks one part of a repository. It is small, so one thread is enough.
pub(super) fn walk_git(root: &Root, part: GitPart) -> io::Result<Vec<ProtectedName>> {
    let (mut found, mut dirs) = (Vec::new(), vec![Vec::new()]);
    while let Some(dir) = dirs.pop() {
        let fd = match root.dir(&dir) {
            Ok(fd) => fd,
            Err(e) if is_absent(&e) => continue,
            Err(e) => return Err(e),
        };
        for entry in rustix::fs::Dir::read_from(&fd)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let path = join(&dir, name);
            let meta: Meta = match meta_at(fd.as_fd(), name) {
                Ok(meta) => meta,
                Err(e) if is_absent(&e) => continue,
                Err(e) => return Err(e),
            };
            if meta.node == Node::Special {
                continue;
            }
            match classify(&path, meta.node, part) {
                GitPathAction::Skip => {}
                GitPathAction::Descend if meta.node == Node::Dir => dirs.push(path),
                // The object store's directories are only passed through; do not follow a link in
                // their place.
                GitPathAction::Descend => {}
                GitPathAction::Include => {
                    if meta.node == Node::Dir {
                        dirs.push(path.clone());
                    }
                    found.push(ProtectedName {
                        path,
                        meta,
                        ignored: false,
                    });
                }
            }
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}
