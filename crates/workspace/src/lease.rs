//! A project that is held for one call. Knows how to get there, also past a call that was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::journal::{Journal, Who};
use super::lock::{self, LockError, Mode};
use super::snapshot::ArmError;
use super::{ArmedSnapshot, RestoreError, Workspace, recover};
use supervisor_process::{Guard, SandboxRecord, Tag, WalledProject};

/// A locked project. Dropping it lets go, as soon as every command's parent has let go too.
#[derive(Debug)]
pub struct Lease {
    pub(super) workspace: Workspace,
    pub(super) lock: File,
    /// The same in the project itself: a server with another state directory knows nothing of the first.
    pub(super) place: Option<Arc<File>>,
    pub(super) mode: Mode,
    /// Paths that the project's own tests write, as seen so far in this call.
    pub(super) by_products: BTreeSet<Vec<u8>>,
    /// The latest time that a path had in this call, also if it is gone now.
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
    let until = Instant::now() + wait;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let lock = lock::acquire(project, mode, what, left, stop).await?;
        if !has_open_snapshot(project)? {
            if mode == Mode::Exclusive && recover::has_open_view(project) {
                let project = project.clone();
                let ended =
                    tokio::task::spawn_blocking(move || recover::end_viewers(&project)).await;
                if let Ok(Err(error)) = ended {
                    tracing::warn!(
                        "what a killed call left in its private view could not be ended: {error}"
                    );
                }
            }
            let place =
                lock::acquire_place(workspace.0.layout.lock_place(), mode, left, stop).await?;
            return Ok(Lease {
                workspace: workspace.clone(),
                lock,
                place: place.map(Arc::new),
                mode,
                by_products: BTreeSet::new(),
                times: BTreeMap::new(),
                record: SandboxRecord::default(),
            });
        }
        // A call was killed here, with every process that could have put it right.
        drop(lock);
        let left = until.saturating_duration_since(Instant::now());
        let lock = lock::acquire(project, Mode::Exclusive, lock::RECOVERING, left, stop).await?;
        let project = project.clone();
        let root = workspace.root().to_owned();
        let recovered = tokio::task::spawn_blocking(move || {
            let _held = lock;
            recover::finish(&project, Some(&root), Who::Recovery)
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

    /// A path had this time, so something may have been compiled under it.
    pub(super) fn saw(&mut self, path: &[u8], time: i64) {
        let latest = self.times.entry(path.to_vec()).or_insert(time);
        *latest = time.max(*latest);
    }

    /// For programs that run while the project is held but not armed: they keep it held until they have ended.
    pub fn guard(&self) -> io::Result<Guard> {
        Ok(Guard {
            project_lock: Arc::new(self.lock.try_clone()?.into()),
            tree_lock: Arc::new(lock::open_trees(&self.workspace.0.project)?.into()),
            ticket: None,
            tag: Tag::random(),
            project: Some(self.walled_project()),
        })
    }

    fn walled_project(&self) -> WalledProject {
        let (root, git) = (self.workspace.root().to_owned(), self.git_directories());
        WalledProject {
            root,
            git,
            view: None,
            view_files: None,
            record: self.record.clone(),
        }
    }

    /// No child writes to these, wherever a mount can prevent it.
    pub(super) fn git_directories(&self) -> Vec<PathBuf> {
        let repository = self.workspace.0.layout.repository.iter();
        repository
            .flat_map(|found| [found.git.clone(), found.common().to_owned()])
            .collect()
    }

    /// Which walls stood around the programs that were run meanwhile.
    pub fn sandbox(&self) -> &SandboxRecord {
        &self.record
    }

    /// Takes a snapshot and puts it on disk. Only then may anything write to the project.
    pub fn arm(self) -> Result<ArmedSnapshot, ArmError> {
        if self.mode == Mode::Shared {
            return Err(ArmError::SharedLease);
        }
        ArmedSnapshot::new(self)
    }
}
