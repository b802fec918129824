//! The project in a state of its own: an overlay where the system allows it, otherwise the project itself with a snapshot
//! that is restored. The user's files are as they were afterwards, also after a crash.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use supervisor_edits::Edit;
use supervisor_process::{Launcher, OverlayError, ProjectGuard, SandboxMode, StartError, Watchdog};
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{
    ActiveSnapshot, ChangeSet, EditError, LockError, Mode, OpenError, OverlayOpenError,
    OverlayProject, RestoreError, Scope, SnapshotError, SnapshotLimits, Workspace,
};
use tokio_util::sync::CancellationToken;

use crate::falsified_runs::EditedProject;

/// How long another call may keep the project locked.
const LOCK_WAIT: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error(transparent)]
    Watchdog(#[from] StartError),
    #[error("the project's files cannot be read: {0}")]
    Read(#[from] io::Error),
}

pub(crate) struct ProjectCopy {
    root: PathBuf,
    access: Option<CopyAccess>,
    /// Why no overlay is used; empty if one is.
    pub(crate) in_place_reason: String,
    /// Restores the project if this process dies. An overlay needs none.
    _watchdog: Option<Watchdog>,
}

enum CopyAccess {
    Overlay(Box<OverlayProject>),
    InPlace(Box<ActiveSnapshot>),
}

/// A copy with the change in it.
pub(crate) struct ChangedCopy<'a> {
    pub(crate) copy: &'a mut ProjectCopy,
}

impl EditedProject for ChangedCopy<'_> {
    fn apply(&mut self, edits: &[Edit]) -> Result<(), String> {
        self.copy.apply(edits).map_err(|error| error.to_string())
    }

    fn changes(&mut self) -> Result<ChangeSet, String> {
        let changes = self.copy.snapshot().changes();
        changes.map_err(|error| error.to_string())
    }

    fn files_root(&self) -> PathBuf {
        self.copy.files_root()
    }

    fn original(&mut self, path: &Path) -> Option<Vec<u8>> {
        self.copy.original(path)
    }

    fn run_guard(&mut self) -> Result<Option<ProjectGuard>, String> {
        self.copy
            .run_guard()
            .map(Some)
            .map_err(|error| error.to_string())
    }

    fn discard_run(&mut self) -> Vec<PathBuf> {
        match self.copy.access_mut() {
            CopyAccess::Overlay(overlay) => {
                let written = overlay.files_written_by_run();
                overlay.drop_worker();
                written
            }
            CopyAccess::InPlace(_) => Vec::new(),
        }
    }
}

impl ProjectCopy {
    pub(crate) async fn open(
        root: &Path,
        state: &StateDir,
        launcher: &Launcher,
        stop: &CancellationToken,
    ) -> Result<Self, CopyError> {
        let workspace = Workspace::open(root, SnapshotLimits::default(), state)?;
        let lease = workspace
            .lock(Mode::Exclusive, "prove", LOCK_WAIT, stop)
            .await?;
        // Without a sandbox a child process cannot be put into the overlay.
        let overlay = match launcher.rules().mode {
            SandboxMode::Off => Err(OverlayOpenError::Unavailable(
                lease,
                OverlayError::sandbox_disabled(),
            )),
            _ => OverlayProject::open(lease, launcher),
        };
        match overlay {
            Ok(overlay) => Ok(Self {
                root: root.to_owned(),
                access: Some(CopyAccess::Overlay(Box::new(overlay))),
                in_place_reason: String::new(),
                _watchdog: None,
            }),
            Err(OverlayOpenError::Unavailable(lease, why)) => {
                let snapshot = lease.take_snapshot()?;
                let watchdog = launcher.watch(&snapshot.idle_guard()?).await?;
                Ok(Self {
                    root: root.to_owned(),
                    access: Some(CopyAccess::InPlace(Box::new(snapshot))),
                    in_place_reason: why.to_string(),
                    _watchdog: Some(watchdog),
                })
            }
            Err(OverlayOpenError::Snapshot(error)) => Err(error.into()),
        }
    }

    pub(crate) fn files_root(&self) -> PathBuf {
        match self.access.as_ref().expect("open until `close`") {
            CopyAccess::Overlay(overlay) => overlay.path(),
            CopyAccess::InPlace(_) => self.root.clone(),
        }
    }

    fn access_mut(&mut self) -> &mut CopyAccess {
        self.access.as_mut().expect("open until `close`")
    }

    fn snapshot(&mut self) -> &mut ActiveSnapshot {
        match self.access_mut() {
            CopyAccess::Overlay(overlay) => overlay.snapshot_mut(),
            CopyAccess::InPlace(snapshot) => snapshot,
        }
    }

    /// For programs that run in this copy.
    pub(crate) fn guard(&mut self) -> Result<ProjectGuard, CopyError> {
        Ok(match self.access_mut() {
            CopyAccess::Overlay(overlay) => overlay.guard()?,
            CopyAccess::InPlace(snapshot) => snapshot.guard()?,
        })
    }

    /// For one run, which writes to a layer of its own if this is an overlay.
    pub(crate) fn run_guard(&mut self) -> Result<ProjectGuard, CopyError> {
        if let CopyAccess::Overlay(overlay) = self.access_mut() {
            match overlay.run_guard() {
                Ok(guard) => return Ok(guard),
                Err(error) => tracing::warn!("tests run without a layer of their own: {error}"),
            }
        }
        self.guard()
    }

    /// Keeps what the last run did to files of the project.
    pub(crate) fn take_run_changes(&mut self) -> Result<(), CopyError> {
        if let CopyAccess::Overlay(overlay) = self.access_mut() {
            overlay.take_worker_changes()?;
        }
        Ok(())
    }

    pub(crate) fn apply(&mut self, edits: &[Edit]) -> Result<(), CopyError> {
        if !edits.is_empty() {
            self.snapshot().apply(edits, &|_| Ok(()))?;
        }
        Ok(())
    }

    /// Paths that differ from the working tree now.
    pub(crate) fn differing(&mut self) -> Result<Vec<PathBuf>, CopyError> {
        let changes = self.snapshot().changes()?.changes;
        Ok(changes.into_iter().map(|change| change.path).collect())
    }

    /// A file as it is in the working tree.
    pub(crate) fn original(&mut self, path: &Path) -> Option<Vec<u8>> {
        self.snapshot().original(path)
    }

    /// A file as it is in this copy.
    pub(crate) fn read(&self, path: &Path) -> Option<Vec<u8>> {
        std::fs::read(self.files_root().join(path)).ok()
    }

    /// Brings the copy back to the files of the working tree.
    pub(crate) fn reset(&mut self) -> Result<(), CopyError> {
        let access = self.access.take().expect("open until `close`");
        self.access = Some(match access {
            CopyAccess::Overlay(overlay) => CopyAccess::Overlay(Box::new(overlay.reject()?.0)),
            CopyAccess::InPlace(snapshot) => {
                let (lease, _) = snapshot.restore(Scope::Everything)?;
                CopyAccess::InPlace(Box::new(lease.take_snapshot()?))
            }
        });
        Ok(())
    }

    /// Ends the work; the project is as it was.
    pub(crate) fn close(mut self) -> Result<(), CopyError> {
        match self.access.take().expect("closed once") {
            CopyAccess::Overlay(overlay) => drop(overlay.discard()),
            CopyAccess::InPlace(snapshot) => drop(snapshot.restore(Scope::Everything)?),
        }
        Ok(())
    }
}
