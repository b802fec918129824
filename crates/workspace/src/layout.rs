//! Which directories are under protection: the project, and the parts of its repository that say where it stands.
//! Knows handles and the order in which ignore rules hold. Does not know what changed.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use super::Caps;
use super::git::{GitNameUse, Part, Repository, want};
use super::ignored::{Rules, patterns};
use super::manifest::{Area, Manifest};
use super::pack::Pack;
use super::private::UpperLayer;
use super::root::{Meta, Node, Root, as_path, is_absent, join, meta_at};
use super::walk::{ProtectedName, TreeWalk, WalkView, WalkedTree};

#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub tree: Arc<Root>,
    pub repository: Option<Repository>,
    /// The tree is a private view, and what was written through it lies here: all else that differs is the user's. No
    /// child of ours can write to the repository then, so whatever changes there is not looked at.
    pub view: Option<Arc<UpperLayer>>,
}

impl Layout {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        Ok(Self {
            tree: Arc::new(Root::open(root)?),
            repository: Repository::around(root)?,
            view: None,
        })
    }

    /// The same project with the repository it had when it was armed, whatever has become of that since.
    pub(super) fn as_armed(&self, manifest: &Manifest) -> Self {
        Self {
            tree: self.tree.clone(),
            repository: manifest.repository.clone(),
            view: self.view.clone(),
        }
    }

    /// The same project as it looks in a private view.
    pub(super) fn seen_through(&self, view: &Path, upper: UpperLayer) -> io::Result<Self> {
        let own = self.tree.path().join(".git");
        let repository = self.repository.clone().map(|found| {
            let git = if found.git == own {
                view.join(".git")
            } else {
                found.git.clone()
            };
            Repository { git, ..found }
        });
        Ok(Self {
            tree: Arc::new(Root::open(view)?),
            repository,
            view: Some(Arc::new(upper)),
        })
    }

    /// The directory that stands for the whole project: what two roots in one repository have in common.
    pub(super) fn top(&self) -> &Path {
        self.repository
            .as_ref()
            .map_or(self.tree.path(), |r| &r.top)
    }

    /// A directory of the project itself that stands for it: the process that holds a lock on it works here.
    pub(super) fn lock_place(&self) -> &Path {
        self.repository
            .as_ref()
            .map_or(self.tree.path(), |r| &r.git)
    }

    /// Opens an area. A repository's directory that is gone, or a link by now, is an error.
    pub(super) fn area(&self, area: Area) -> io::Result<Arc<Root>> {
        match self.area_path(area) {
            None => Ok(self.tree.clone()),
            Some(path) => Ok(Arc::new(Root::open_no_link(path)?)),
        }
    }

    /// `None` for the tree itself.
    pub(super) fn area_path(&self, area: Area) -> Option<&Path> {
        match (area, &self.repository) {
            (Area::Git, Some(r)) => Some(&r.git),
            (Area::Common, Some(r)) => Some(r.common()),
            (Area::Tree, _) | (_, None) => None,
        }
    }

    /// The areas beside the tree, and what of them counts.
    pub(super) fn git_areas(&self) -> Vec<(Area, Part)> {
        match &self.repository {
            _ if self.view.is_some() => Vec::new(),
            None => Vec::new(),
            Some(Repository { common: None, .. }) => vec![(Area::Git, Part::Whole)],
            Some(_) => vec![(Area::Git, Part::Own), (Area::Common, Part::Shared)],
        }
    }

    pub(super) fn walk_now(&self, caps: &Caps, tracked: &[Vec<u8>]) -> WalkedTree {
        let info = self
            .repository
            .as_ref()
            .and_then(|r| std::fs::read(r.common().join("info/exclude")).ok());
        self.walk(
            caps,
            &info.unwrap_or_default(),
            WalkView::Now { tracked },
            self.has_dot_git(),
        )
    }

    /// Walks by the rules of the snapshot: nothing written since can hide a file.
    pub(super) fn walk_as_armed(
        &self,
        caps: &Caps,
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
        let view = WalkView::Armed {
            manifest,
            left_out: &left_out,
            ignore_file: &ignore_file,
        };
        // A repository that was made since is content; one that was there is not, even if it lies in ruins now.
        self.walk(
            caps,
            &info.unwrap_or_default(),
            view,
            self.as_armed(manifest).has_dot_git(),
        )
    }

    fn walk(
        &self,
        caps: &Caps,
        info_exclude: &[u8],
        view: WalkView<'_>,
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
            view,
        }
        .run()
    }

    /// Rules from the user, the repository, and the directories between its top and the root.
    pub(super) fn rules_above(&self, info_exclude: &[u8]) -> Arc<Rules> {
        let mut rules = Rules::base(info_exclude);
        let Some(repository) = &self.repository else {
            return rules;
        };
        let mut at = 0;
        while at < repository.prefix.len() {
            let (done, rest) = repository.prefix.split_at(at);
            if let Ok(text) = std::fs::read(repository.top.join(as_path(done)).join(".gitignore")) {
                rules = Rules::from_above(rules, &text, rest.to_vec());
            }
            at += rest
                .iter()
                .position(|b| *b == b'/')
                .map_or(rest.len(), |i| i + 1);
        }
        rules
    }

    /// The repository's directory lies in the root itself.
    fn has_dot_git(&self) -> bool {
        // Each view has a path of its own, and the manifest was made in one of them.
        let in_view = |git: &Path| self.view.is_some() && git.starts_with("/proc/self/fd");
        self.repository
            .as_ref()
            .is_some_and(|r| r.git == self.tree.path().join(".git") || in_view(&r.git))
    }
}

/// Walks one part of a repository. Small, so one thread will do.
pub(super) fn walk_git(root: &Root, part: Part) -> io::Result<Vec<ProtectedName>> {
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
            match want(&path, meta.node, part) {
                GitNameUse::Skip => {}
                GitNameUse::Descend if meta.node == Node::Dir => dirs.push(path),
                // The store's own directories are only on the way; a link in their place is not followed.
                GitNameUse::Descend => {}
                GitNameUse::Take => {
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
