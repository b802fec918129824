//! Restores a project to its snapshot and verifies the result. Steps are ordered so that each can
//! succeed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SnapshotLimits;
use super::compare::{Difference, DifferenceKind, TreeComparison, compare};
use super::fault_points::{FaultPoint, point};
use super::git::is_git_control_file;
use super::layout::Layout;
use super::manifest::{Area, ManifestEntry};
use super::rejected_files::RejectedFiles;
use super::root::{Meta, Node, Root, as_path, is_absent, split};
use super::store::Snapshot;
use super::write::restored_time;

/// Why a project could not be restored. The snapshot stays open in every case.
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
        format_paths(paths)
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

fn format_paths(paths: &[PathBuf]) -> String {
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

/// What to restore, and how.
pub(super) struct Restore<'a> {
    pub layout: &'a Layout,
    pub caps: &'a SnapshotLimits,
    pub snapshot: &'a Snapshot,
    /// Part of the names of our temporary files.
    pub id: &'a str,
    /// The latest known mtime of each path.
    pub times: &'a BTreeMap<Vec<u8>, i64>,
    /// Deleted when the disk is full, so that a restore never fails for lack of a few blocks.
    pub reserve: &'a Path,
}

/// The result of a restore.
#[derive(Debug, Default)]
pub(super) struct RestoreOutcome {
    pub undone: BTreeSet<(Area, Vec<u8>)>,
    /// Differences that were not ours to undo.
    pub others: TreeComparison,
    /// Properties besides bytes, mode and time that could not be restored.
    pub lost: BTreeSet<(Vec<u8>, &'static str)>,
}

/// Each round can reveal more differences, such as the contents of a directory that was unreadable
/// before.
const MAX_ROUNDS: usize = 6;
/// Above this many files, sync the whole file system once instead of each file.
const SYNC_ALL_ABOVE: usize = 64;

impl Restore<'_> {
    /// Undoes every difference for which `ours` returns true, and compares again until none is
    /// left.
    pub(super) fn run(
        &self,
        rejected: &mut RejectedFiles,
        whole_dirs: bool,
        ours: impl Fn(&Difference) -> bool,
    ) -> Result<RestoreOutcome, RestoreError> {
        let mut outcome = RestoreOutcome::default();
        // Another directory with its own repository may be at the project's path by now.
        let in_place = self.is_in_place();
        if whole_dirs && in_place {
            self.rename_repository_back();
        }
        let ours = |d: &Difference| {
            ours(d) && (d.area == Area::Tree || (in_place && is_git_control_file(&d.path)))
        };
        // Directories that we created and in which another process has put something since.
        let mut shared = BTreeSet::new();
        for _ in 0..MAX_ROUNDS {
            let mut found = self.compare()?;
            let should_undo = |d: &Difference| {
                (ours(d) || self.is_temporary(d))
                    && !(shared.contains(&d.path) && d.kind == DifferenceKind::Added)
            };
            let differences = std::mem::take(&mut found.differences);
            let (mine, others): (Vec<_>, Vec<_>) =
                differences.into_iter().partition(|d| should_undo(d));
            if mine.is_empty() {
                outcome.others = TreeComparison {
                    differences: others,
                    ..found
                };
                return Ok(outcome);
            }
            outcome
                .lost
                .extend(self.undo(&mine, rejected, whole_dirs, &mut shared)?);
            outcome
                .undone
                .extend(mine.into_iter().map(|d| (d.area, d.path)));
        }
        let paths = self.compare()?.differences.into_iter().filter(|d| ours(d));
        Err(RestoreError::NotVerified {
            paths: paths.map(|d| as_path(&d.path).to_owned()).collect(),
        })
    }

    /// Returns true if the snapshotted directory still has its name. If not, only what is below the
    /// directory itself is ours.
    fn is_in_place(&self) -> bool {
        let tree = &self.layout.tree;
        let current = Root::open(tree.path())
            .and_then(|root| root.identity())
            .ok();
        current.is_some() && current == tree.identity().ok()
    }

    /// Renames a moved repository directory back: its objects are not part of any snapshot.
    fn rename_repository_back(&self) {
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
        d.kind == DifferenceKind::Added
            && split(&d.path)
                .1
                .starts_with(super::temporary_name(self.id, "").as_bytes())
    }

    fn undo(
        &self,
        mine: &[Difference],
        rejected: &mut RejectedFiles,
        whole_dirs: bool,
        shared: &mut BTreeSet<Vec<u8>>,
    ) -> Result<BTreeSet<(Vec<u8>, &'static str)>, RestoreError> {
        let (dirs, lost) = (BTreeSet::new(), BTreeSet::new());
        let mut work = RestoreWork {
            restore: self,
            roots: Vec::new(),
            dirs,
            sync_at_end: mine.len() > SYNC_ALL_ABOVE,
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
        // First remove what is in the way, deepest first.
        for d in mine
            .iter()
            .rev()
            .filter(|d| matches!(d.kind, DifferenceKind::Added | DifferenceKind::Type))
        {
            let mut attempt = || work.remove_obstacle(d, rejected, whole_dirs, shared);
            step(d, self.with_reserve(&mut attempt))?;
        }
        // Then restore what is missing, from the top.
        for d in mine {
            let mut attempt = || work.restore_entry(d, rejected);
            step(d, self.with_reserve(&mut attempt))?;
        }
        // Set modes of directories last: a read-only one could not have been filled.
        for d in mine.iter().rev() {
            step(d, work.restore_dir_mode(d))?;
        }
        let last = mine.last().expect("called with at least one difference");
        step(last, work.close())?;
        Ok(work.lost)
    }

    fn with_reserve(&self, attempt: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        with_reserve(self.reserve, attempt)
    }
}

/// Retries after deleting the reserve if the disk is full.
pub(super) fn with_reserve(
    reserve: &Path,
    attempt: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<()> {
    match attempt() {
        Err(e) if is_full(&e) && std::fs::remove_file(reserve).is_ok() => attempt(),
        done => done,
    }
}

struct RestoreWork<'a> {
    restore: &'a Restore<'a>,
    roots: Vec<(Area, Arc<Root>)>,
    /// Directories whose entries or modes changed.
    dirs: BTreeSet<(Area, Vec<u8>)>,
    sync_at_end: bool,
    /// See [`RestoreOutcome::lost`].
    lost: BTreeSet<(Vec<u8>, &'static str)>,
}

impl RestoreWork<'_> {
    fn remove_obstacle(
        &mut self,
        d: &Difference,
        rejected: &mut RejectedFiles,
        whole: bool,
        shared: &mut BTreeSet<Vec<u8>>,
    ) -> io::Result<()> {
        let root = self.root(d.area)?;
        // A changed type below a parent that is itself in the way is removed with that parent.
        let Some(now) = root.meta(&d.path)? else {
            return Ok(());
        };
        self.make_writable(&root, d.area, split(&d.path).0)?;
        if self.restore.is_temporary(d) {
            return root.remove(&d.path);
        }
        if now.node == Node::Dir && d.kind == DifferenceKind::Added && !whole {
            if !root.remove_if_empty(&d.path)? {
                shared.insert(d.path.clone());
            }
            return Ok(());
        }
        if now.node == Node::Dir {
            // Everything of ours below has been moved by now; an empty directory is not worth
            // saving.
            root.chmod(&d.path, now.mode | 0o700)?;
            if root.remove_if_empty(&d.path)? {
                return Ok(());
            }
        }
        rejected.move_away(d.area, &root, &d.path)?;
        point(FaultPoint::KeptAside);
        Ok(())
    }

    fn restore_entry(&mut self, d: &Difference, rejected: &mut RejectedFiles) -> io::Result<()> {
        let Some(was) = &d.was else { return Ok(()) };
        let root = self.root(d.area)?;
        self.ensure_parent(&root, d.area, split(&d.path).0, rejected)?;
        self.make_writable(&root, d.area, split(&d.path).0)?;
        match (was.node, d.kind) {
            (Node::Dir, DifferenceKind::Deleted | DifferenceKind::Type) => {
                root.make_dirs(&d.path, 0o700)?;
            }
            (Node::Dir, _) => root.chmod(&d.path, was.mode | 0o700)?,
            (Node::Fifo, DifferenceKind::Mode) => root.chmod(&d.path, was.mode)?,
            (Node::Fifo, _) => root.make_fifo(&d.path, was.mode)?,
            (Node::File, DifferenceKind::Mode) => root.chmod(&d.path, was.mode)?,
            (Node::File | Node::Link, _) => self.restore_contents(&root, d, was, rejected)?,
            (Node::Special, _) => {}
        }
        point(FaultPoint::FirstRestored);
        Ok(())
    }

    /// Ensures that the parent directory exists: another process may have removed or replaced it.
    fn ensure_parent(
        &mut self,
        root: &Root,
        area: Area,
        dir: &[u8],
        rejected: &mut RejectedFiles,
    ) -> io::Result<()> {
        if dir.is_empty() {
            return Ok(());
        }
        let found = root.meta(dir)?.map(|m| m.node);
        if found == Some(Node::Dir) {
            return Ok(());
        }
        self.ensure_parent(root, area, split(dir).0, rejected)?;
        self.make_writable(root, area, split(dir).0)?;
        rejected.move_away(area, root, dir)?;
        root.make_dirs(dir, 0o700)?;
        self.dirs.insert((area, dir.to_vec()));
        Ok(())
    }

    fn restore_contents(
        &mut self,
        root: &Root,
        d: &Difference,
        was: &ManifestEntry,
        rejected: &mut RejectedFiles,
    ) -> io::Result<()> {
        let now = root.meta(&d.path)?;
        let known_time = self.restore.times.get(&d.path).copied();
        let mtime = restored_time(
            [now.map(|m| m.mtime), known_time, Some(was.mtime)]
                .into_iter()
                .flatten()
                .max(),
        );
        let pack = &self.restore.snapshot.pack;
        let has_hard_links = was
            .attributes
            .as_ref()
            .is_some_and(|attributes| attributes.links > 1);
        if has_hard_links && now.is_some_and(|now| now.node == Node::File && now.ino == was.ino) {
            // Overwrite the same inode, so that all its hard links get the old contents back.
            rejected.keep_copy(d.area, root, &d.path)?;
            point(FaultPoint::KeptAside);
            let fill = |file: &mut std::fs::File| pack.copy_to(was.at, was.size, &was.hash, file);
            if root.overwrite(&d.path, was.ino, was.mode, mtime, fill)? {
                return Ok(());
            }
        } else if now.is_some() {
            rejected.keep(d.area, root, &d.path)?;
            point(FaultPoint::KeptAside);
        }
        if has_hard_links {
            self.lost.insert((d.path.clone(), "its other names"));
        }
        let temporary = super::temporary_name(self.restore.id, &super::random_name()).into_bytes();
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
                .and_then(|attributes| attributes.apply_to(file));
            Ok(())
        };
        let staged = root.stage(&d.path, temporary, was.mode, mtime, !self.sync_at_end, fill)?;
        self.lost.extend(lost.map(|what| (d.path.clone(), what)));
        staged.commit()
    }

    /// Restores the modes of directories, including those opened up on the way.
    fn restore_dir_mode(&mut self, d: &Difference) -> io::Result<()> {
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
            if !self.sync_at_end {
                root.sync_dir(dir)?;
            }
            if let Some(was) = self
                .restore
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
        if self.sync_at_end {
            for (_, root) in &self.roots {
                sync_file_system(root)?;
            }
        }
        Ok(())
    }

    /// Makes a directory writable while we work in it; [`RestoreWork::close`] restores its mode.
    fn make_writable(&mut self, root: &Root, area: Area, dir: &[u8]) -> io::Result<()> {
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

    /// An empty path means the root itself.
    fn meta(&self, root: &Root, dir: &[u8]) -> io::Result<Option<Meta>> {
        if dir.is_empty() {
            root.own_meta().map(Some)
        } else {
            root.meta(dir)
        }
    }

    /// Returns an area's root. Recreates a repository directory that is gone.
    fn root(&mut self, area: Area) -> io::Result<Arc<Root>> {
        if let Some((_, root)) = self.roots.iter().find(|(a, _)| *a == area) {
            return Ok(root.clone());
        }
        let layout = self
            .restore
            .layout
            .at_snapshot(&self.restore.snapshot.manifest);
        let root = match layout.area(area) {
            Err(e) if is_absent(&e) => {
                let path = layout.area_path(area).ok_or(e)?;
                if std::fs::symlink_metadata(path).is_ok() {
                    // A file or link took its place. It is not worth saving; remove it, but not a
                    // link's target.
                    std::fs::remove_file(path)?;
                }
                // Git does not accept a repository without an `objects` directory.
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
