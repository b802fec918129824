//! Writes accepted work to the project, with the same code and journal as edits given as data. A
//! file that another process has changed since the snapshot is not overwritten: the work is refused
//! and saved instead.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use super::super::active_snapshot::rejected_dir;
use super::super::edit::{EditError, PlannedFile};
use super::super::manifest::{Area, ManifestEntry};
use super::super::root::{Node, as_path};
use super::super::snapshot::SnapshotError;
use super::super::store::make_private;
use super::super::{ActiveSnapshot, Lease};
use super::OverlayProject;
use supervisor_process::{OverlayError, ProjectGuard};

/// Why accepted work was not written.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error(
        "the accepted work was not written, because {} changed during the call in the same place; it is kept in `{}`; call again",
        format_paths(.paths), .kept.display()
    )]
    Conflict { paths: Vec<PathBuf>, kept: PathBuf },
    #[error("{0}, so the accepted work was not written; call again")]
    NoOverlay(OverlayError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("the accepted work could not be written: {0}")]
    Io(#[from] io::Error),
}

fn format_paths(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .take(5)
        .map(|path| format!("`{}`", path.display()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The state of a path in the snapshot and in the accepted work.
#[derive(Debug, Clone)]
pub(super) struct AcceptedChange {
    pub(super) base: Option<ManifestEntry>,
    /// Bytes and mode of a file; `None` if it is deleted.
    pub(super) file: Option<(Vec<u8>, u32)>,
    /// A directory, which is created and removed with its contents.
    pub(super) is_dir: bool,
    pub(super) is_gone: bool,
}

/// Accepted work that is about to be written to the project, which has a snapshot for it. If this
/// is dropped before [`PendingCommit::write`], the project is unchanged.
#[derive(Debug)]
pub struct PendingCommit {
    target: ActiveSnapshot,
    wanted: BTreeMap<Vec<u8>, AcceptedChange>,
}

impl PendingCommit {
    /// Returns a guard that undoes a partial write if this process dies.
    pub fn idle_guard(&self) -> io::Result<ProjectGuard> {
        self.target.idle_guard()
    }

    /// Writes all of it or nothing, as the work of this call.
    pub fn write(mut self, call: &str) -> Result<Lease, CommitError> {
        write(&mut self.target, &self.wanted)?;
        Ok(self.target.accept_for_call(call)?)
    }
}

impl OverlayProject {
    /// Checks whether the accepted work can be written, and takes a snapshot of the project for it.
    pub fn commit(mut self) -> Result<PendingCommit, CommitError> {
        self.drop_worker();
        let wanted = self.wanted()?;
        let (state_dir, since, id) = {
            let state = self.snapshot.state();
            (
                state.inner().state.path().to_owned(),
                state.since.clone(),
                state.id.clone(),
            )
        };
        let target = self.discard().take_snapshot()?;
        let conflicts: Vec<&Vec<u8>> = wanted
            .iter()
            .filter(|(path, wanted)| !is_unchanged(&target, path, wanted))
            .map(|(path, _)| path)
            .collect();
        if conflicts.is_empty() {
            return Ok(PendingCommit { target, wanted });
        }
        let kept = rejected_dir(&state_dir, &since, &id).join("accepted");
        save_files(&kept, &wanted)?;
        let paths = conflicts
            .iter()
            .map(|path| as_path(path).to_owned())
            .collect();
        // Nothing was changed, so there is nothing to restore.
        target.accept()?;
        Err(CommitError::Conflict { paths, kept })
    }

    /// Saves the accepted work with the rejected files, which are kept for a week, and returns its
    /// directory.
    pub fn save_accepted(&self) -> Result<PathBuf, CommitError> {
        let state = self.snapshot.state();
        let kept =
            rejected_dir(state.inner().state.path(), &state.since, &state.id).join("accepted");
        save_files(&kept, &self.wanted()?)?;
        Ok(kept)
    }

    pub(super) fn wanted(&self) -> Result<BTreeMap<Vec<u8>, AcceptedChange>, CommitError> {
        let state = self.snapshot.state();
        let tree = &state.inner().layout.tree;
        let mut wanted = BTreeMap::new();
        for difference in state.compare()?.differences {
            if difference.area != Area::Tree || !state.edited.contains_key(&difference.path) {
                continue;
            }
            let now = difference.now.map(|now| now.node);
            let file = match now {
                Some(Node::File) => Some((
                    tree.read(&difference.path)?,
                    difference.now.map_or(0o644, |now| now.mode),
                )),
                _ => None,
            };
            let is_dir = now.or(difference.was.as_ref().map(|was| was.node)) == Some(Node::Dir);
            wanted.insert(
                difference.path,
                AcceptedChange {
                    base: difference.was,
                    file,
                    is_dir,
                    is_gone: now.is_none(),
                },
            );
        }
        Ok(wanted)
    }
}

/// Returns true if this path has not changed since the work began, or already is as wanted.
fn is_unchanged(target: &ActiveSnapshot, path: &[u8], wanted: &AcceptedChange) -> bool {
    let state = target.state();
    let Some(now) = state.snapshot.manifest.find(Area::Tree, path) else {
        // Not in the snapshot: it does not exist, or it may not be replaced.
        let is_there = state
            .inner()
            .layout
            .tree
            .meta(path)
            .ok()
            .flatten()
            .is_some();
        return !is_there && (wanted.base.is_none() || wanted.file.is_none() || wanted.is_dir);
    };
    if wanted.is_dir {
        return now.node == Node::Dir;
    }
    let same_as_base = wanted
        .base
        .as_ref()
        .is_some_and(|base| (base.node, base.hash, base.mode) == (now.node, now.hash, now.mode));
    let same_as_wanted = wanted
        .file
        .as_ref()
        .is_some_and(|(bytes, mode)| blake3::hash(bytes) == now.hash && *mode == now.mode);
    same_as_base || same_as_wanted
}

pub(super) fn write(
    target: &mut ActiveSnapshot,
    wanted: &BTreeMap<Vec<u8>, AcceptedChange>,
) -> Result<(), CommitError> {
    let state = target.state_mut();
    let mut plan = BTreeMap::new();
    for (path, wanted) in wanted.iter().filter(|(_, wanted)| !wanted.is_dir) {
        let name = as_path(path).to_string_lossy().into_owned();
        let before = state.read_current(&name, path)?;
        let (after, mode) = match &wanted.file {
            Some((bytes, mode)) => (Some(bytes.clone()), Some(*mode)),
            None => (None, None),
        };
        if before.is_some() || after.is_some() {
            plan.insert(
                path.clone(),
                PlannedFile {
                    name,
                    before,
                    after,
                    mode,
                },
            );
        }
    }
    state.execute_plan(&plan)?;
    for (path, _) in wanted
        .iter()
        .rev()
        .filter(|(_, wanted)| wanted.is_dir && wanted.is_gone)
    {
        // Remove it only if it is empty: another process may have added files.
        let tree = state.inner().layout.tree.clone();
        if tree.meta(path)?.is_some_and(|meta| meta.node == Node::Dir) {
            tree.remove_if_empty(path)?;
        }
    }
    Ok(())
}

pub(super) fn save_files(
    dir: &std::path::Path,
    wanted: &BTreeMap<Vec<u8>, AcceptedChange>,
) -> io::Result<()> {
    make_private(dir)?;
    for (path, wanted) in wanted {
        if let Some((bytes, _)) = &wanted.file {
            let dest = dir.join(as_path(path));
            if let Some(parent) = dest.parent() {
                make_private(parent)?;
            }
            std::fs::write(dest, bytes)?;
        }
    }
    Ok(())
}
