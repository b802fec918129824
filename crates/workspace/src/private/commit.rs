//! Writes accepted work into the project, by the same code and journal as edits that came as data. A file that
//! another process has changed since the snapshot is not overwritten: the work is refused by name and kept aside.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use super::super::armed::aside_path;
use super::super::edit::{EditError, PlannedFile};
use super::super::manifest::{Area, ManifestEntry};
use super::super::root::{Node, as_path};
use super::super::snapshot::ArmError;
use super::super::store::make_private;
use super::super::{ArmedSnapshot, Lease};
use super::PrivateProject;
use supervisor_process::{Guard, ViewError};

/// Why accepted work was not written.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error(
        "the accepted work was not written, because {} changed during the call in the same place; it is kept in `{}`; call again",
        names(.paths), .kept.display()
    )]
    Conflict { paths: Vec<PathBuf>, kept: PathBuf },
    #[error("{0}, so the accepted work was not written; call again")]
    NoView(ViewError),
    #[error(transparent)]
    Arm(#[from] ArmError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("the accepted work could not be written: {0}")]
    Io(#[from] io::Error),
}

fn names(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .take(5)
        .map(|path| format!("`{}`", path.display()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// What a name was in the snapshot and is in the accepted work.
#[derive(Debug, Clone)]
pub(super) struct WantedState {
    pub(super) base: Option<ManifestEntry>,
    /// Bytes and mode of a file; `None`: gone.
    pub(super) file: Option<(Vec<u8>, u32)>,
    /// A directory, which comes and goes with what is in it.
    pub(super) is_dir: bool,
    pub(super) is_gone: bool,
}

/// Accepted work that is about to be written to the project, which is armed for it. Dropped before
/// [`PendingCommit::write`], nothing has happened.
#[derive(Debug)]
pub struct PendingCommit {
    target: ArmedSnapshot,
    wanted: BTreeMap<Vec<u8>, WantedState>,
}

impl PendingCommit {
    /// For the guard: should this process die in the middle, what was written is taken back.
    pub fn stand_by(&self) -> io::Result<Guard> {
        self.target.stand_by()
    }

    /// All of it or nothing, as the work of this call.
    pub fn write(mut self, call: &str) -> Result<Lease, CommitError> {
        write(&mut self.target, &self.wanted)?;
        Ok(self.target.accept_for(call)?)
    }
}

impl PrivateProject {
    /// Looks whether the accepted work can be written, and arms the project for it.
    pub fn commit(mut self) -> Result<PendingCommit, CommitError> {
        self.drop_worker();
        let wanted = self.wanted()?;
        let (state_dir, since, id) = {
            let state = self.armed.state();
            (
                state.inner().state.path().to_owned(),
                state.since.clone(),
                state.id.clone(),
            )
        };
        let target = self.leave().arm()?;
        let conflicts: Vec<&Vec<u8>> = wanted
            .iter()
            .filter(|(path, wanted)| !is_free(&target, path, wanted))
            .map(|(path, _)| path)
            .collect();
        if conflicts.is_empty() {
            return Ok(PendingCommit { target, wanted });
        }
        let kept = aside_path(&state_dir, &since, &id).join("accepted");
        keep(&kept, &wanted)?;
        let paths = conflicts
            .iter()
            .map(|path| as_path(path).to_owned())
            .collect();
        // Nothing was changed, so there is nothing to bring back.
        target.accept()?;
        Err(CommitError::Conflict { paths, kept })
    }

    /// Puts the accepted work aside, where a week's worth of it is kept, and gives the place.
    pub fn keep_aside(&self) -> Result<PathBuf, CommitError> {
        let state = self.armed.state();
        let kept = aside_path(state.inner().state.path(), &state.since, &state.id).join("accepted");
        keep(&kept, &self.wanted()?)?;
        Ok(kept)
    }

    pub(super) fn wanted(&self) -> Result<BTreeMap<Vec<u8>, WantedState>, CommitError> {
        let state = self.armed.state();
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
                WantedState {
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

/// This name has not changed since the work began, or it is already as the work wants it.
fn is_free(target: &ArmedSnapshot, path: &[u8], wanted: &WantedState) -> bool {
    let state = target.state();
    let Some(now) = state.snapshot.manifest.find(Area::Tree, path) else {
        // Not in the snapshot: not there, or nothing that may be replaced.
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
    target: &mut ArmedSnapshot,
    wanted: &BTreeMap<Vec<u8>, WantedState>,
) -> Result<(), CommitError> {
    let state = target.state_mut();
    let mut plan = BTreeMap::new();
    for (path, wanted) in wanted.iter().filter(|(_, wanted)| !wanted.is_dir) {
        let name = as_path(path).to_string_lossy().into_owned();
        let before = state.before(&name, path)?;
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
    state.carry_out(&plan)?;
    for (path, _) in wanted
        .iter()
        .rev()
        .filter(|(_, wanted)| wanted.is_dir && wanted.is_gone)
    {
        // Only an empty one is removed: another process may have put something there.
        let tree = state.inner().layout.tree.clone();
        if tree.meta(path)?.is_some_and(|meta| meta.node == Node::Dir) {
            tree.remove_if_empty(path)?;
        }
    }
    Ok(())
}

pub(super) fn keep(
    place: &std::path::Path,
    wanted: &BTreeMap<Vec<u8>, WantedState>,
) -> io::Result<()> {
    make_private(place)?;
    for (path, wanted) in wanted {
        if let Some((bytes, _)) = &wanted.file {
            let whole = place.join(as_path(path));
            if let Some(above) = whole.parent() {
                make_private(above)?;
            }
            std::fs::write(whole, bytes)?;
        }
    }
    Ok(())
}
