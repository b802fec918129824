//! The project of a call and how the call may access it: not at all, read-only, in place with a
//! snapshot, or through an overlay. Blocking file work runs on other threads, so that a large tree
//! never delays another call's cancellation.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use supervisor_process::{Launcher, OverlayError, ProjectGuard, SandboxMode, StartError, Watchdog};
use supervisor_settings::ViewStrategy;
use supervisor_text::words;
use supervisor_verify::Recheck;
use supervisor_workspace::{
    ActiveSnapshot, AppliedEdits, ChangeSet, CommitError, Drift, Edit, EditError, Lease,
    MetadataSnapshot, OverlayOpenError, OverlayProject, RestoreError, RestoreReport, Scope,
    SnapshotError, UndoRecord, Workspace,
};

/// The project of one call. Everything that is not accepted is undone on drop.
#[derive(Debug)]
pub struct Site {
    root: PathBuf,
    // Declared before `watch`: on drop we restore first, so that the guard process has nothing to
    // do.
    access: ProjectAccess,
    /// Guard process for the time in which no program runs: it restores the project if the server
    /// dies.
    watch: Option<Watchdog>,
    /// Why the call works in place although an overlay was requested.
    no_overlay_reason: String,
    /// How to re-run the tests of accepted work if the project changes before it is written.
    recheck: Option<Box<Recheck>>,
    /// Fingerprint of the project when it was judged; only for work in place.
    judged: Option<[u8; 32]>,
}

#[derive(Debug)]
enum ProjectAccess {
    /// No project. Nothing can change, so nothing must be restored.
    None,
    /// Locked for a call that only reads, with a metadata snapshot from before. Changes made
    /// meanwhile are detected but not undone.
    ReadOnly(Box<(Lease, MetadataSnapshot)>),
    InPlace(Box<ActiveSnapshot>),
    /// Nothing reaches the project before it is accepted.
    Overlay(Box<OverlayProject>),
    /// Placeholder while a state is replaced. It remains only after a failed restore; then no
    /// further work is possible.
    Poisoned,
}

#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    #[error("this call may not change the project")]
    NotArmed,
    #[error(transparent)]
    Arm(#[from] SnapshotError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error(
        "a private view of the project is demanded by `strategy` under [workspace], and there is {0}"
    )]
    NoOverlay(#[from] OverlayError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error(
        "{} changed during the call, and on top of that the work does not hold: {why}; it was not written{kept}; call again",
        words::list(.paths.iter().map(|path| path.to_str().unwrap_or("a file")), 5)
    )]
    RecheckFailed {
        paths: Vec<PathBuf>,
        why: String,
        kept: String,
    },
    #[error("no process can guard the project while it is worked on: {0}")]
    Watch(#[from] StartError),
    #[error("the project cannot be compared with its snapshot: {0}")]
    Io(#[from] std::io::Error),
}

impl Site {
    /// For calls without a project.
    pub fn without_project(root: impl Into<PathBuf>) -> Self {
        Self::new(root.into(), ProjectAccess::None, None)
    }

    /// For calls that only read a project. Changes made meanwhile are detected and returned by
    /// [`Self::review`].
    pub async fn read_only(lease: Lease) -> Result<Self, SiteError> {
        let workspace = lease.workspace().clone();
        let root = workspace.root().to_owned();
        let glance = blocking(move || workspace.metadata_snapshot()).await?;
        Ok(Self::new(
            root,
            ProjectAccess::ReadOnly(Box::new((lease, glance))),
            None,
        ))
    }

    /// For calls that edit in place. If this server dies, the guard process that the launcher
    /// starts restores the project.
    pub async fn open_in_place(lease: Lease, launcher: &Launcher) -> Result<Self, SiteError> {
        let root = lease.workspace().root().to_owned();
        let armed = blocking(move || lease.take_snapshot()).await?;
        let watch = launcher.watch(&armed.idle_guard()?).await?;
        Ok(Self::new(
            root,
            ProjectAccess::InPlace(Box::new(armed)),
            Some(watch),
        ))
    }

    /// For calls that edit, in an overlay if possible: then the user's files are not touched before
    /// acceptance.
    pub async fn open_for_edit(
        lease: Lease,
        launcher: &Launcher,
        strategy: ViewStrategy,
    ) -> Result<Self, SiteError> {
        let root = lease.workspace().root().to_owned();
        if strategy == ViewStrategy::InPlace {
            return Self::open_in_place(lease, launcher).await;
        }
        let is_sandboxed = launcher.rules().mode != SandboxMode::Off;
        let launcher_clone = launcher.clone();
        let armed = match is_sandboxed {
            true => blocking(move || OverlayProject::open(lease, &launcher_clone)).await,
            // Without a sandbox a child process cannot be put into the overlay.
            false => Err(OverlayOpenError::Unavailable(
                lease,
                OverlayError::sandbox_disabled(),
            )),
        };
        match armed {
            Ok(private) => Ok(Self::new(
                root,
                ProjectAccess::Overlay(Box::new(private)),
                None,
            )),
            Err(OverlayOpenError::Snapshot(error)) => Err(error.into()),
            Err(OverlayOpenError::Unavailable(_, why)) if strategy == ViewStrategy::Overlay => {
                Err(why.into())
            }
            Err(OverlayOpenError::Unavailable(lease, why)) => {
                let in_place = Self::open_in_place(lease, launcher).await?;
                // The sandbox was switched off on purpose, so there is nothing to explain.
                let no_overlay_reason = if is_sandboxed {
                    why.to_string()
                } else {
                    String::new()
                };
                Ok(Self {
                    no_overlay_reason,
                    ..in_place
                })
            }
        }
    }

    fn new(root: PathBuf, access: ProjectAccess, watch: Option<Watchdog>) -> Self {
        Self {
            root,
            access,
            watch,
            no_overlay_reason: String::new(),
            recheck: None,
            judged: None,
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The project's workspace. `None` unless the call only reads it.
    pub fn workspace(&self) -> Option<Workspace> {
        match &self.access {
            ProjectAccess::ReadOnly(watched) => Some(watched.0.workspace().clone()),
            _ => None,
        }
    }

    /// Where this process finds the files with the work so far: the project itself or its overlay.
    pub fn files_root(&self) -> PathBuf {
        match &self.access {
            ProjectAccess::Overlay(private) => private.path(),
            _ => self.root.clone(),
        }
    }

    /// The active snapshot, if there is one.
    pub fn armed(&mut self) -> Result<&mut ActiveSnapshot, SiteError> {
        match &mut self.access {
            ProjectAccess::InPlace(armed) => Ok(armed),
            ProjectAccess::Overlay(private) => Ok(private.snapshot_mut()),
            _ => Err(SiteError::NotArmed),
        }
    }

    /// How the programs of this call were sandboxed; empty if there is no project.
    pub fn sandbox(&self) -> String {
        match &self.access {
            ProjectAccess::InPlace(armed) if self.no_overlay_reason.is_empty() => {
                armed.lease().sandbox().summary()
            }
            ProjectAccess::InPlace(armed) => with_files(
                &armed.lease().sandbox().summary(),
                &format!("files: in place ({})", self.no_overlay_reason),
            ),
            ProjectAccess::Overlay(private) => {
                with_files(&private.lease().sandbox().summary(), "files: private view")
            }
            ProjectAccess::ReadOnly(watched) => watched.0.sandbox().summary(),
            ProjectAccess::None | ProjectAccess::Poisoned => String::new(),
        }
    }

    /// Whether the work happens in the project itself, so that files written by tests stay there.
    pub fn is_in_place(&self) -> bool {
        matches!(self.access, ProjectAccess::InPlace(_))
    }

    /// Whether everything that is not accepted is undone.
    pub fn is_revertible(&self) -> bool {
        matches!(
            self.access,
            ProjectAccess::InPlace(_) | ProjectAccess::Overlay(_)
        )
    }

    /// Guard for programs about to run here: they keep the project locked until they have ended.
    pub fn guard(&mut self) -> Result<Option<ProjectGuard>, SiteError> {
        match &mut self.access {
            ProjectAccess::InPlace(armed) => Ok(Some(armed.guard()?)),
            ProjectAccess::Overlay(private) => Ok(Some(private.guard()?)),
            ProjectAccess::ReadOnly(watched) => Ok(Some(watched.0.guard()?)),
            ProjectAccess::None | ProjectAccess::Poisoned => Ok(None),
        }
    }

    /// Guard for an agent about to run here: it sees the project in its own overlay, if overlays
    /// are available.
    pub fn worker_guard(&mut self) -> Result<Option<ProjectGuard>, SiteError> {
        match &mut self.access {
            ProjectAccess::Overlay(private) => Ok(Some(private.worker_guard()?)),
            _ => self.guard(),
        }
    }

    /// Guard for one run of tests. In an overlay, what it writes goes to a layer of its own, of which
    /// [`Self::changes`] keeps only what was done to files of the project. The work must not be
    /// edited while the tests run.
    pub fn run_guard(&mut self) -> Result<Option<ProjectGuard>, SiteError> {
        if let ProjectAccess::Overlay(private) = &mut self.access {
            match private.run_guard() {
                Ok(guard) => return Ok(Some(guard)),
                Err(error) => tracing::warn!("tests run without a layer of their own: {error}"),
            }
        }
        self.guard()
    }

    /// Files of the project that the last run wrote in its layer, also if it put them back.
    pub fn files_written_by_run(&self) -> Vec<PathBuf> {
        match &self.access {
            ProjectAccess::Overlay(private) => private.files_written_by_run(),
            _ => Vec::new(),
        }
    }

    /// Throws away what the last run wrote in its layer.
    pub fn discard_run(&mut self) {
        if let ProjectAccess::Overlay(private) = &mut self.access {
            private.drop_worker();
        }
    }

    pub fn apply(
        &mut self,
        edits: &[Edit],
        may_touch: &dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<AppliedEdits, SiteError> {
        Ok(self.armed()?.apply(edits, may_touch)?)
    }

    pub fn changes(&mut self) -> Result<ChangeSet, SiteError> {
        self.access.changes()
    }

    /// Runs file work on a thread that may block, so that a large tree does not delay others. The
    /// access is poisoned if the call ends meanwhile; then the project is restored on drop.
    async fn on_thread<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut ProjectAccess) -> Result<T, SiteError> + Send + 'static,
    ) -> Result<T, SiteError> {
        let mut access = self.access.take();
        let (access, result) = blocking(move || {
            let result = work(&mut access);
            (access, result)
        })
        .await;
        self.access = access;
        result
    }

    /// Returns the current changes, and the same as a unified diff of at most `max` bytes. Walks
    /// the tree once.
    pub async fn review(&mut self, max: usize) -> Result<(ChangeSet, String), SiteError> {
        self.on_thread(move |access| match access {
            ProjectAccess::InPlace(armed) => Ok(armed.review(max)?),
            ProjectAccess::Overlay(private) => {
                private.take_worker_changes()?;
                Ok(private.snapshot().review(max)?)
            }
            other => Ok((other.changes()?, String::new())),
        })
        .await
    }

    /// Restores everything in `scope` and takes a new snapshot for the next tier.
    pub async fn reject(&mut self, scope: Scope) -> Result<RestoreReport, SiteError> {
        self.on_thread(move |access| {
            let restored;
            (*access, restored) = match access.take() {
                ProjectAccess::InPlace(armed) => {
                    let scope = wider_scope(scope, armed.scope());
                    let (lease, restored) = armed.restore(scope)?;
                    let armed = Box::new(lease.take_snapshot()?);
                    (ProjectAccess::InPlace(armed), restored)
                }
                ProjectAccess::Overlay(private) => {
                    let (private, restored) = private.reject()?;
                    (ProjectAccess::Overlay(Box::new(private)), restored)
                }
                // Nothing is restored, but changes by one tier must not count against the next.
                ProjectAccess::ReadOnly(mut watched) => {
                    watched.1 = watched.0.workspace().metadata_snapshot()?;
                    (ProjectAccess::ReadOnly(watched), RestoreReport::default())
                }
                other => (other, RestoreReport::default()),
            };
            Ok(restored)
        })
        .await
    }

    /// Sets how the tests of the work are re-run before it is accepted.
    pub fn set_recheck(&mut self, recheck: Recheck) {
        self.recheck = Some(Box::new(recheck));
    }

    /// Remembers the state of the project that is being judged. Not needed in an overlay, where no
    /// other process can write.
    pub async fn record_judged_state(&mut self) -> Result<(), SiteError> {
        self.judged = self.fingerprint().await?;
        Ok(())
    }

    async fn fingerprint(&mut self) -> Result<Option<[u8; 32]>, SiteError> {
        self.on_thread(|access| match access {
            ProjectAccess::InPlace(armed) => Ok(Some(armed.fingerprint()?)),
            _ => Ok(None),
        })
        .await
    }

    /// What accepting the work would replace; `None` if nothing can change.
    pub async fn undo_record(&mut self) -> Result<Option<UndoRecord>, SiteError> {
        self.on_thread(|access| match access {
            ProjectAccess::InPlace(armed) => Ok(Some(armed.undo_record()?)),
            ProjectAccess::Overlay(private) => Ok(Some(private.snapshot().undo_record()?)),
            _ => Ok(None),
        })
        .await
    }

    /// What other processes changed in the project since the work began or, for work in place,
    /// since it was judged.
    pub async fn drift(&mut self) -> Result<Drift, SiteError> {
        if let Some(judged) = self.judged
            && self.fingerprint().await? != Some(judged)
        {
            let (changes, _) = self.review(0).await?;
            return Ok(Drift {
                files: changes.changes,
                irrelevant: changes.others,
            });
        }
        self.on_thread(|access| match access {
            ProjectAccess::Overlay(private) => Ok(private.drift()?),
            ProjectAccess::InPlace(armed) => Ok(Drift {
                irrelevant: armed.changes()?.others,
                ..Drift::default()
            }),
            _ => Ok(Drift::default()),
        })
        .await
    }

    /// Moves the work onto the current state of the project.
    pub async fn rebase(&mut self) -> Result<(), SiteError> {
        self.judged = self.fingerprint().await?;
        self.on_thread(|access| {
            *access = match access.take() {
                ProjectAccess::Overlay(private) => {
                    ProjectAccess::Overlay(Box::new(private.rebase()?))
                }
                other => other,
            };
            Ok(())
        })
        .await
    }

    /// Re-runs the tests of the accepted work. If they do not give the same result, the work is
    /// stored elsewhere.
    pub async fn rerun_tests(
        &mut self,
        paths: &[PathBuf],
        stop: &CancellationToken,
    ) -> Result<(), SiteError> {
        let Some(recheck) = self.recheck.take() else {
            return Ok(());
        };
        let guard = self.guard()?;
        let outcome = recheck.run(guard, stop).await;
        self.recheck = Some(recheck);
        let Err(why) = outcome else { return Ok(()) };
        let kept = match &self.access {
            ProjectAccess::Overlay(private) => private.save_accepted().ok(),
            _ => None,
        };
        let kept = kept
            .map(|kept| format!(" and is kept in `{}`", kept.display()))
            .unwrap_or_default();
        Err(SiteError::RecheckFailed {
            paths: paths.to_vec(),
            why,
            kept,
        })
    }

    /// Accepts the work of this call: the changes become permanent.
    pub async fn accept(mut self, call: &str) -> Result<(), SiteError> {
        let call = call.to_owned();
        match self.access.take() {
            ProjectAccess::InPlace(armed) => {
                let lease = blocking(move || armed.accept_for_call(&call)).await?;
                self.release(lease).await;
            }
            ProjectAccess::Overlay(private) => {
                let launcher = private.launcher().clone();
                let pending = blocking(move || private.commit()).await?;
                // If this server dies from here on, a half-written change is undone.
                self.watch = Some(launcher.watch(&pending.idle_guard()?).await?);
                let lease = blocking(move || pending.write(&call)).await?;
                self.release(lease).await;
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends a call that changes nothing: restores everything in `scope` and releases the project.
    pub async fn discard(mut self, scope: Scope) -> Result<RestoreReport, SiteError> {
        match self.access.take() {
            ProjectAccess::InPlace(armed) => {
                let scope = wider_scope(scope, armed.scope());
                let (lease, restored) = blocking(move || armed.restore(scope)).await?;
                self.release(lease).await;
                Ok(restored)
            }
            ProjectAccess::Overlay(private) => {
                let lease = blocking(move || private.discard()).await;
                self.release(lease).await;
                Ok(RestoreReport::default())
            }
            _ => Ok(RestoreReport::default()),
        }
    }

    /// Releases the project. It is free when this returns.
    async fn release(&mut self, lease: Lease) {
        if let Some(watch) = self.watch.take() {
            watch.dismiss().await;
        }
        drop(lease);
    }
}

impl ProjectAccess {
    /// Takes the value out and leaves [`Self::Poisoned`].
    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Poisoned)
    }

    fn changes(&mut self) -> Result<ChangeSet, SiteError> {
        match self {
            Self::InPlace(armed) => {
                let changes = armed.changes()?;
                armed.ensure_within_caps(&changes)?;
                Ok(changes)
            }
            Self::Overlay(private) => {
                private.take_worker_changes()?;
                Ok(private.snapshot().changes()?)
            }
            Self::ReadOnly(watched) => Ok(watched
                .1
                .changes_until(&watched.0.workspace().metadata_snapshot()?)),
            Self::None | Self::Poisoned => Ok(ChangeSet::default()),
        }
    }
}

/// Programs that ran without being accounted for may have written anything, so the wider scope
/// wins.
fn wider_scope(asked: Scope, least: Scope) -> Scope {
    if asked == Scope::Everything {
        asked
    } else {
        least
    }
}

/// Runs file work on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

/// The summary of the sandbox, which is empty if no program ran, and where files were written.
fn with_files(summary: &str, files: &str) -> String {
    match summary.is_empty() {
        true => files.to_owned(),
        false => format!("{summary}; {files}"),
    }
}
