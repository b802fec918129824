//! A project that is locked for one call. Recovers from killed calls while locking.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::journal::{Journal, RestoredBy};
use super::lock::{self, LockError, Mode};
use super::snapshot::SnapshotError;
use super::{ActiveSnapshot, RestoreError, Workspace, recover};
use supervisor_process::{ProcessTag, ProjectGuard, SandboxRecord, SandboxedProject};

/// A locked project. The lock is released when this is dropped and every shim has released it too.
#[derive(Debug)]
pub struct Lease {
    pub(super) workspace: Workspace,
    pub(super) lock: File,
    /// A lock in the project itself: a server with another state directory does not see the first
    /// lock.
    pub(super) dir_lock: Option<Arc<File>>,
    pub(super) mode: Mode,
    /// Paths that the project's own tests have written in this call so far.
    pub(super) by_products: BTreeSet<Vec<u8>>,
    /// The latest mtime of each path in this call, even if the path is gone now.
    pub(super) times: BTreeMap<Vec<u8>, i64>,
    pub(super) record: SandboxRecord,
}

pub(super) async fn lock(
    workspace: &Workspace,
    mode: Mode,
    what: &str,
    wait: Duration,
    stop: &CancellationToken,
) -> Result<Lease, LockError> {
    let project = &workspace.0.project;
    let deadline = Instant::now() + wait;
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let lock = lock::acquire(project, mode, what, remaining, stop).await?;
        if !has_open_snapshot(project)? {
            if mode == Mode::Exclusive && recover::has_open_overlay(project) {
                let project = project.clone();
                let ended =
                    tokio::task::spawn_blocking(move || recover::end_overlay_processes(&project))
                        .await;
                if let Ok(Err(error)) = ended {
                    tracing::warn!(
                        "what a killed call left in its private view could not be ended: {error}"
                    );
                }
            }
            let dir_lock =
                lock::acquire_dir_lock(workspace.0.layout.lock_dir(), mode, remaining, stop)
                    .await?;
            return Ok(Lease {
                workspace: workspace.clone(),
                lock,
                dir_lock: dir_lock.map(Arc::new),
                mode,
                by_products: BTreeSet::new(),
                times: BTreeMap::new(),
                record: SandboxRecord::default(),
            });
        }
        // A call was killed here, together with every process that could have restored the project.
        drop(lock);
        let remaining = deadline.saturating_duration_since(Instant::now());
        let lock =
            lock::acquire(project, Mode::Exclusive, lock::RECOVERING, remaining, stop).await?;
        let project = project.clone();
        let root = workspace.root().to_owned();
        let recovered = tokio::task::spawn_blocking(move || {
            let _lock = lock;
            recover::finish(&project, Some(&root), RestoredBy::Recovery)
        });
        recovered
            .await
            .unwrap_or(Err(RestoreError::StillRunning))
            .map_err(LockError::NotRecovered)?;
    }
}

fn has_open_snapshot(project: &Path) -> Result<bool, LockError> {
    let open = Journal::open(project).and_then(|mut journal| journal.open_snapshot());
    let path = project.join("journal");
    Ok(open
        .map_err(|source| LockError::NotRecovered(RestoreError::Journal { path, source }))?
        .is_some())
}

impl Lease {
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Records the mtime of a path: something may have been compiled with it.
    pub(super) fn record_time(&mut self, path: &[u8], time: i64) {
        let latest = self.times.entry(path.to_vec()).or_insert(time);
        *latest = time.max(*latest);
    }

    /// Returns a guard for programs that run while the project is locked but has no snapshot. They
    /// keep it locked until they end.
    pub fn guard(&self) -> io::Result<ProjectGuard> {
        Ok(ProjectGuard {
            project_lock: Arc::new(self.lock.try_clone()?.into()),
            tree_lock: Arc::new(lock::open_tree_lock(&self.workspace.0.project)?.into()),
            recovery_dir: None,
            tag: ProcessTag::random(),
            project: Some(self.sandboxed_project()),
        })
    }

    fn sandboxed_project(&self) -> SandboxedProject {
        let (root, git) = (self.workspace.root().to_owned(), self.git_directories());
        SandboxedProject {
            root,
            git,
            overlay_holder: None,
            overlay_files: None,
            is_single_run: false,
            record: self.record.clone(),
        }
    }

    /// Returns the directories that no child may write, where a mount can prevent it.
    pub(super) fn git_directories(&self) -> Vec<PathBuf> {
        let repositories = self.workspace.0.layout.repository.iter();
        repositories
            .flat_map(|repository| [repository.git.clone(), repository.common().to_owned()])
            .collect()
    }

    /// Returns the sandbox reports of the programs that were run.
    pub fn sandbox(&self) -> &SandboxRecord {
        &self.record
    }

    /// Takes a snapshot and puts it on disk. Nothing may write to the project before that.
    pub fn take_snapshot(self) -> Result<ActiveSnapshot, SnapshotError> {
        if self.mode == Mode::Shared {
            return Err(SnapshotError::SharedLease);
        }
        ActiveSnapshot::new(self)
    }
}
