//! Brings a project back to its snapshot and shows that it is. Knows the order in which things can be undone.
//! Does not know why: who rejected what is the caller's story.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Caps;
use super::aside::Aside;
use super::compare::{Difference, DifferenceKind, TreeComparison, compare};
use super::fault::{Point, point};
use super::git::steers;
use super::layout::Layout;
use super::manifest::{Area, ManifestEntry};
use super::root::{Meta, Node, Root, as_path, is_absent, split};
use super::store::Snapshot;
use super::write::restored_time;

/// Why a project could not be brought back. The snapshot stays armed in every case.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("`{}` could not be restored: {source}; put that right, then run `supervisor recover`", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "the disk is full, so `{}` could not be restored; free some space, then run `supervisor recover`",
        path.display()
    )]
    DiskFull { path: PathBuf },
    #[error(
        "still not as before: {}; something keeps writing there; end it, then run `supervisor recover`",
        list(paths)
    )]
    NotVerified { paths: Vec<PathBuf> },
    #[error("programs are still at work in the project; end them, then run `supervisor recover`")]
    StillRunning,
    #[error("the journal `{}` cannot be used: {source}", path.display())]
    Journal { path: PathBuf, source: io::Error },
    #[error(
        "the snapshot of a killed call cannot be used, so the project is left as that call left it: {source}; run `supervisor recover` of the version that made it, or look the project over and remove `{}`, which gives the snapshot up",
        project.display()
    )]
    Snapshot { project: PathBuf, source: io::Error },
}

fn list(paths: &[PathBuf]) -> String {
    let shown: Vec<_> = paths
        .iter()
        .take(5)
        .map(|p| format!("`{}`", p.display()))
        .collect();
    let more = paths.len().saturating_sub(shown.len());
    if more == 0 {
        shown.join(", ")
    } else {
        format!("{} and {more} more", shown.join(", "))
    }
}

/// What to bring back, and how.
pub(super) struct Restore<'a> {
    pub layout: &'a Layout,
    pub caps: &'a Caps,
    pub snapshot: &'a Snapshot,
    /// The mark on our temporary files.
    pub id: &'a str,
    /// The latest time that a path is known to have had.
    pub times: &'a BTreeMap<Vec<u8>, i64>,
    /// Given up when the disk is full, so that a restore never fails for want of a few blocks.
    pub reserve: &'a Path,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct RestoreOutcome {
    pub undone: BTreeSet<(Area, Vec<u8>)>,
    /// Differences that were not ours to undo.
    pub others: TreeComparison,
    /// What could not be given back to a file beside its bytes, mode and time.
    pub lost: BTreeSet<(Vec<u8>, &'static str)>,
}

/// Each round can uncover more: a directory that could not be read, a file that was hidden by what lay above it.
const ROUNDS: usize = 6;
/// Above this many files the whole file system is synced once instead of file by file.
const TOGETHER: usize = 64;

impl Restore<'_> {
    /// Undoes every difference for which `ours` holds, and compares until none is left.
    pub(super) fn run(
        &self,
        aside: &mut Aside,
        whole_directories: bool,
        ours: impl Fn(&Difference) -> bool,
    ) -> Result<RestoreOutcome, RestoreError> {
        let mut outcome = RestoreOutcome::default();
        // Another directory may stand at the project's path by now, with a repository of its own.
        let in_place = self.is_in_place();
        if whole_directories && in_place {
            self.bring_back_repository();
        }
        let ours =
            |d: &Difference| ours(d) && (d.area == Area::Tree || (in_place && steers(&d.path)));
        // Directories that we made and in which another process has put something since.
        let mut shared = BTreeSet::new();
        for _ in 0..ROUNDS {
            let mut found = self.compare()?;
            let wanted = |d: &Difference| {
                (ours(d) || self.is_temporary(d))
                    && !(shared.contains(&d.path) && d.what == DifferenceKind::Added)
            };
            let differences = std::mem::take(&mut found.differences);
            let (mine, others): (Vec<_>, Vec<_>) = differences.into_iter().partition(|d| wanted(d));
            if mine.is_empty() {
                outcome.others = TreeComparison {
                    differences: others,
                    ..found
                };
                return Ok(outcome);
            }
            outcome
                .lost
                .extend(self.undo(&mine, aside, whole_directories, &mut shared)?);
            outcome
                .undone
                .extend(mine.into_iter().map(|d| (d.area, d.path)));
        }
        let paths = self.compare()?.differences.into_iter().filter(|d| ours(d));
        Err(RestoreError::NotVerified {
            paths: paths.map(|d| as_path(&d.path).to_owned()).collect(),
        })
    }

    /// The directory that was armed still has its name. If not, only what lies below the directory itself is ours.
    fn is_in_place(&self) -> bool {
        let tree = &self.layout.tree;
        let there = Root::open(tree.path())
            .and_then(|root| root.identity())
            .ok();
        there.is_some() && there == tree.identity().ok()
    }

    /// A repository's directory that was only renamed is renamed back: its objects are in no snapshot.
    fn bring_back_repository(&self) {
        let Some(repository) = &self.snapshot.manifest.repository else {
            return;
        };
        if repository.git.parent() != Some(self.layout.tree.path()) || repository.git.exists() {
            return;
        }
        for name in self.layout.tree.names(b"").unwrap_or_default() {
            let found = self.layout.tree.meta(&name).ok().flatten();
            if found.is_some_and(|m| m.node == Node::Dir && (m.dev, m.ino) == repository.identity) {
                let _ = std::fs::rename(self.layout.tree.full(&name), &repository.git);
            }
        }
    }

    fn compare(&self) -> Result<TreeComparison, RestoreError> {
        compare(self.layout, self.caps, self.snapshot).map_err(|source| RestoreError::Io {
            path: self.layout.tree.path().to_owned(),
            source,
        })
    }

    fn is_temporary(&self, d: &Difference) -> bool {
        d.what == DifferenceKind::Added
            && split(&d.path)
                .1
                .starts_with(super::temporary(self.id, "").as_bytes())
    }

    fn undo(
        &self,
        mine: &[Difference],
        aside: &mut Aside,
        whole_directories: bool,
        shared: &mut BTreeSet<Vec<u8>>,
    ) -> Result<BTreeSet<(Vec<u8>, &'static str)>, RestoreError> {
        let (dirs, lost) = (BTreeSet::new(), BTreeSet::new());
        let mut work = Undo {
            of: self,
            roots: Vec::new(),
            dirs,
            together: mine.len() > TOGETHER,
            lost,
        };
        let step = |d: &Difference, done: io::Result<()>| match done {
            Err(e) if is_full(&e) => Err(RestoreError::DiskFull {
                path: as_path(&d.path).to_owned(),
            }),
            Err(source) => Err(RestoreError::Io {
                path: as_path(&d.path).to_owned(),
                source,
            }),
            Ok(()) => Ok(()),
        };
        // First what is in the way, the deepest first.
        for d in mine
            .iter()
            .rev()
            .filter(|d| matches!(d.what, DifferenceKind::Added | DifferenceKind::Type))
        {
            let mut again = || work.clear(d, aside, whole_directories, shared);
            step(d, self.with_reserve(&mut again))?;
        }
        // Then what is missing, from the top.
        for d in mine {
            let mut again = || work.put_back(d, aside);
            step(d, self.with_reserve(&mut again))?;
        }
        // Modes of directories last: one that may not be written could not have been filled.
        for d in mine.iter().rev() {
            step(d, work.finish(d))?;
        }
        let last = mine.last().expect("never called with nothing to do");
        step(last, work.close())?;
        Ok(work.lost)
    }

    fn with_reserve(&self, attempt: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        with_reserve(self.reserve, attempt)
    }
}

/// Tries again with the reserve's blocks free if the disk is full.
pub(super) fn with_reserve(
    reserve: &Path,
    attempt: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<()> {
    match attempt() {
        Err(e) if is_full(&e) && std::fs::remove_file(reserve).is_ok() => attempt(),
        done => done,
    }
}

struct Undo<'a> {
    of: &'a Restore<'a>,
    roots: Vec<(Area, Arc<Root>)>,
    /// Directories whose entries or modes changed.
    dirs: BTreeSet<(Area, Vec<u8>)>,
    together: bool,
    /// See [`RestoreOutcome::lost`].
    lost: BTreeSet<(Vec<u8>, &'static str)>,
}

impl Undo<'_> {
    fn clear(
        &mut self,
        d: &Difference,
        aside: &mut Aside,
        whole: bool,
        shared: &mut BTreeSet<Vec<u8>>,
    ) -> io::Result<()> {
        let root = self.root(d.area)?;
        // A change of type under a parent that is itself in the way goes with that parent.
        let Some(now) = root.meta(&d.path)? else {
            return Ok(());
        };
        self.open_up(&root, d.area, split(&d.path).0)?;
        if self.of.is_temporary(d) {
            return root.remove(&d.path);
        }
        if now.node == Node::Dir && d.what == DifferenceKind::Added && !whole {
            if !root.remove_if_empty(&d.path)? {
                shared.insert(d.path.clone());
            }
            return Ok(());
        }
        if now.node == Node::Dir {
            // Whatever was ours to move from below is gone by now; an empty directory is not worth keeping.
            root.chmod(&d.path, now.mode | 0o700)?;
            if root.remove_if_empty(&d.path)? {
                return Ok(());
            }
        }
        aside.take(d.area, &root, &d.path)?;
        point(Point::KeptAside);
        Ok(())
    }

    fn put_back(&mut self, d: &Difference, aside: &mut Aside) -> io::Result<()> {
        let Some(was) = &d.was else { return Ok(()) };
        let root = self.root(d.area)?;
        self.make_room(&root, d.area, split(&d.path).0, aside)?;
        self.open_up(&root, d.area, split(&d.path).0)?;
        match (was.node, d.what) {
            (Node::Dir, DifferenceKind::Deleted | DifferenceKind::Type) => {
                root.make_dirs(&d.path, 0o700)?;
            }
            (Node::Dir, _) => root.chmod(&d.path, was.mode | 0o700)?,
            (Node::Fifo, DifferenceKind::Mode) => root.chmod(&d.path, was.mode)?,
            (Node::Fifo, _) => root.make_fifo(&d.path, was.mode)?,
            (Node::File, DifferenceKind::Mode) => root.chmod(&d.path, was.mode)?,
            (Node::File | Node::Link, _) => self.put_contents(&root, d, was, aside)?,
            (Node::Special, _) => {}
        }
        point(Point::FirstRestored);
        Ok(())
    }

    /// Another process may have removed the directory above, or put something else in its place.
    fn make_room(
        &mut self,
        root: &Root,
        area: Area,
        dir: &[u8],
        aside: &mut Aside,
    ) -> io::Result<()> {
        if dir.is_empty() {
            return Ok(());
        }
        let found = root.meta(dir)?.map(|m| m.node);
        if found == Some(Node::Dir) {
            return Ok(());
        }
        self.make_room(root, area, split(dir).0, aside)?;
        self.open_up(root, area, split(dir).0)?;
        aside.take(area, root, dir)?;
        root.make_dirs(dir, 0o700)?;
        self.dirs.insert((area, dir.to_vec()));
        Ok(())
    }

    fn put_contents(
        &mut self,
        root: &Root,
        d: &Difference,
        was: &ManifestEntry,
        aside: &mut Aside,
    ) -> io::Result<()> {
        let now = root.meta(&d.path)?;
        let known = self.of.times.get(&d.path).copied();
        let mtime = restored_time(
            [now.map(|m| m.mtime), known, Some(was.mtime)]
                .into_iter()
                .flatten()
                .max(),
        );
        let pack = &self.of.snapshot.pack;
        let has_names = was
            .attributes
            .as_ref()
            .is_some_and(|attributes| attributes.links > 1);
        if has_names && now.is_some_and(|now| now.node == Node::File && now.ino == was.ino) {
            // The very file, so that what was written through one of its names is gone from all of them.
            aside.keep_copy(d.area, root, &d.path)?;
            point(Point::KeptAside);
            let fill = |file: &mut std::fs::File| pack.copy_to(was.at, was.size, &was.hash, file);
            if root.overwrite(&d.path, was.ino, was.mode, mtime, fill)? {
                return Ok(());
            }
        } else if now.is_some() {
            aside.keep(d.area, root, &d.path)?;
            point(Point::KeptAside);
        }
        if has_names {
            self.lost.insert((d.path.clone(), "its other names"));
        }
        let temporary = super::temporary(self.of.id, &super::random_name()).into_bytes();
        if was.node == Node::Link {
            let target = pack.read(was.at, was.size, &was.hash)?;
            return root.stage_link(&d.path, temporary, &target)?.commit();
        }
        let mut lost = None;
        let fill = |file: &mut std::fs::File| {
            pack.copy_to(was.at, was.size, &was.hash, file)?;
            lost = was
                .attributes
                .as_ref()
                .and_then(|attributes| attributes.put_on(file));
            Ok(())
        };
        let staged = root.stage(&d.path, temporary, was.mode, mtime, !self.together, fill)?;
        self.lost.extend(lost.map(|what| (d.path.clone(), what)));
        staged.commit()
    }

    /// Gives directories their own modes back, also those that were opened up on the way.
    fn finish(&mut self, d: &Difference) -> io::Result<()> {
        let root = self.root(d.area)?;
        if let Some(was) = d.was.as_ref().filter(|w| w.node == Node::Dir) {
            self.dirs.insert((d.area, d.path.clone()));
            root.chmod(&d.path, was.mode)?;
        }
        self.dirs.insert((d.area, split(&d.path).0.to_vec()));
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        for (area, dir) in std::mem::take(&mut self.dirs).iter().rev() {
            let root = self.root(*area)?;
            if !self.together {
                root.sync_dir(dir)?;
            }
            if let Some(was) = self
                .of
                .snapshot
                .manifest
                .find(*area, dir)
                .filter(|w| w.node == Node::Dir)
                && self
                    .meta(&root, dir)?
                    .is_some_and(|m| m.node == Node::Dir && m.mode != was.mode)
            {
                root.chmod(dir, was.mode)?;
            }
        }
        if self.together {
            for (_, root) in &self.roots {
                sync_file_system(root)?;
            }
        }
        Ok(())
    }

    /// A directory that its owner may not write is opened up while we work in it; [`Undo::close`] closes it again.
    fn open_up(&mut self, root: &Root, area: Area, dir: &[u8]) -> io::Result<()> {
        if rustix::process::geteuid().is_root() {
            return Ok(());
        }
        if let Some(meta) = self
            .meta(root, dir)?
            .filter(|m| m.node == Node::Dir && m.mode & 0o700 != 0o700)
        {
            root.chmod(dir, meta.mode | 0o700)?;
            self.dirs.insert((area, dir.to_vec()));
        }
        Ok(())
    }

    /// The empty path is the root itself.
    fn meta(&self, root: &Root, dir: &[u8]) -> io::Result<Option<Meta>> {
        if dir.is_empty() {
            root.own_meta().map(Some)
        } else {
            root.meta(dir)
        }
    }

    /// An area's root; a repository's directory that is gone is made again.
    fn root(&mut self, area: Area) -> io::Result<Arc<Root>> {
        if let Some((_, root)) = self.roots.iter().find(|(a, _)| *a == area) {
            return Ok(root.clone());
        }
        let layout = self.of.layout.as_armed(&self.of.snapshot.manifest);
        let root = match layout.area(area) {
            Err(e) if is_absent(&e) => {
                let path = layout.area_path(area).ok_or(e)?;
                if std::fs::symlink_metadata(path).is_ok() {
                    // A file or a link took its place. It is not work to keep; its name goes, its target stays.
                    std::fs::remove_file(path)?;
                }
                // Without a store, however empty, git does not take it for a repository.
                std::fs::create_dir_all(path.join("objects"))?;
                layout.area(area)?
            }
            opened => opened?,
        };
        self.roots.push((area, root.clone()));
        Ok(root)
    }
}

fn is_full(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

#[cfg(target_os = "linux")]
fn sync_file_system(root: &Root) -> io::Result<()> {
    Ok(rustix::fs::syncfs(root.fd())?)
}

#[cfg(not(target_os = "linux"))]
fn sync_file_system(_: &Root) -> io::Result<()> {
    rustix::fs::sync();
    Ok(())
}
