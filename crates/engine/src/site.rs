//! Where the work of a call happens: an armed project, or nowhere for answers in words.
//! Blocking file work runs beside the runtime, so that a large tree never holds up another call's cancel.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use supervisor_process::{Guard, Launcher, SandboxMode, StartError, ViewError, Watch};
use supervisor_settings::ViewStrategy;
use supervisor_text::words;
use supervisor_verify::Recheck;
use supervisor_workspace::{
    AppliedEdits, ArmError, ArmedSnapshot, ChangeSet, CommitError, Drift, Edit, EditError, Glance,
    Lease, NotPrivate, PrivateProject, RestoreError, RestoreReport, Scope, UndoRecord, Workspace,
};

/// The place of one call. Whatever is not accepted is undone when it is dropped.
#[derive(Debug)]
pub struct Site {
    root: PathBuf,
    // Before the watch: on a drop we undo first, and the guard finds nothing left to do.
    ground: Ground,
    /// Stands by while no program runs, so that a dead server is put right also then.
    watch: Option<Watch>,
    /// Why the project itself is worked on, where a private view was wished for.
    in_place_because: String,
    /// How the tests of what is accepted are run again, should the project change before it is written.
    recheck: Option<Box<Recheck>>,
    /// What an armed project looked like when it was judged.
    judged: Option<[u8; 32]>,
}

#[derive(Debug)]
enum Ground {
    /// Nothing may change, so nothing needs to come back.
    Words,
    /// Held for a call that only reads, with a look at every name from before: what is touched meanwhile is seen, and
    /// stays.
    Watched(Box<(Lease, Glance)>),
    Armed(Box<ArmedSnapshot>),
    /// Nothing reaches the project before it is accepted.
    Private(Box<PrivateProject>),
    /// Between two states; seen only after a failed restore, when the project stays closed to further work.
    Lost,
}

#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    #[error("this call may not change the project")]
    NotArmed,
    #[error(transparent)]
    Arm(#[from] ArmError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error(
        "a private view of the project is demanded by `strategy` under [workspace], and there is {0}"
    )]
    NoView(#[from] ViewError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error(
        "{} changed during the call, and on top of that the work does not hold: {why}; it was not written{kept}; call again",
        words::list(.paths.iter().map(|path| path.to_str().unwrap_or("a file")), 5)
    )]
    Moved {
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
    /// For answers in words about no project in particular.
    pub fn words(root: impl Into<PathBuf>) -> Self {
        Self::on(root.into(), Ground::Words, None)
    }

    /// For answers in words about a project: changes made to it meanwhile are found, and [`Self::review`] tells them.
    pub async fn watching(lease: Lease) -> Result<Self, SiteError> {
        let workspace = lease.workspace().clone();
        let root = workspace.root().to_owned();
        let glance = blocking(move || workspace.glance()).await?;
        Ok(Self::on(
            root,
            Ground::Watched(Box::new((lease, glance))),
            None,
        ))
    }

    /// For work that edits. Should this server die, the guard that the launcher starts brings the project back.
    pub async fn arm(lease: Lease, launcher: &Launcher) -> Result<Self, SiteError> {
        let root = lease.workspace().root().to_owned();
        let armed = blocking(move || lease.arm()).await?;
        let watch = launcher.watch(&armed.stand_by()?).await?;
        Ok(Self::on(root, Ground::Armed(Box::new(armed)), Some(watch)))
    }

    /// For work that edits, in a private view where one can be had: the user's files are not touched before acceptance.
    pub async fn arm_private(
        lease: Lease,
        launcher: &Launcher,
        strategy: ViewStrategy,
    ) -> Result<Self, SiteError> {
        let root = lease.workspace().root().to_owned();
        if strategy == ViewStrategy::InPlace {
            return Self::arm(lease, launcher).await;
        }
        let walls = launcher.rules().mode != SandboxMode::Off;
        let own = launcher.clone();
        let armed = match walls {
            true => blocking(move || PrivateProject::arm(lease, &own)).await,
            // Without walls nothing leads a child into the view.
            false => Err(NotPrivate::NoView(lease, ViewError::without_walls())),
        };
        match armed {
            Ok(private) => Ok(Self::on(root, Ground::Private(Box::new(private)), None)),
            Err(NotPrivate::Arm(error)) => Err(error.into()),
            Err(NotPrivate::NoView(_, why)) if strategy == ViewStrategy::Overlay => Err(why.into()),
            Err(NotPrivate::NoView(lease, why)) => {
                let in_place = Self::arm(lease, launcher).await?;
                // What was switched off is nothing to wonder about.
                let in_place_because = if walls {
                    why.to_string()
                } else {
                    String::new()
                };
                Ok(Self {
                    in_place_because,
                    ..in_place
                })
            }
        }
    }

    fn on(root: PathBuf, ground: Ground, watch: Option<Watch>) -> Self {
        Self {
            root,
            ground,
            watch,
            in_place_because: String::new(),
            recheck: None,
            judged: None,
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The project behind this site; none for answers in words about no project.
    pub fn workspace(&self) -> Option<Workspace> {
        match &self.ground {
            Ground::Watched(watched) => Some(watched.0.workspace().clone()),
            Ground::Armed(_) | Ground::Private(_) | Ground::Words | Ground::Lost => None,
        }
    }

    /// Where this process finds the files as they are in the work so far: the project itself, or its private view.
    pub fn files_root(&self) -> PathBuf {
        match &self.ground {
            Ground::Private(private) => private.path(),
            _ => self.root.clone(),
        }
    }

    /// The snapshot behind this site, where there is one.
    pub fn armed(&mut self) -> Result<&mut ArmedSnapshot, SiteError> {
        match &mut self.ground {
            Ground::Armed(armed) => Ok(armed),
            Ground::Private(private) => Ok(private.armed_mut()),
            Ground::Words | Ground::Watched(_) | Ground::Lost => Err(SiteError::NotArmed),
        }
    }

    /// Which walls stood around the programs of this call; empty if none was run.
    pub fn sandbox(&self) -> String {
        match &self.ground {
            Ground::Armed(armed) if self.in_place_because.is_empty() => {
                armed.lease().sandbox().sentence()
            }
            Ground::Armed(armed) => {
                format!(
                    "{}; files: in place ({})",
                    armed.lease().sandbox().sentence(),
                    self.in_place_because
                )
            }
            Ground::Private(private) => format!(
                "{}; files: private view",
                private.lease().sandbox().sentence()
            ),
            Ground::Watched(watched) => watched.0.sandbox().sentence(),
            Ground::Words | Ground::Lost => String::new(),
        }
    }

    /// The work happens in the project itself, and so whatever the tests write stays there.
    pub fn is_in_place(&self) -> bool {
        matches!(self.ground, Ground::Armed(_))
    }

    /// Whatever is not accepted here is undone.
    pub fn comes_back(&self) -> bool {
        matches!(self.ground, Ground::Armed(_) | Ground::Private(_))
    }

    /// For programs about to run here: they keep the project locked until they have ended.
    pub fn guard(&mut self) -> Result<Option<Guard>, SiteError> {
        match &mut self.ground {
            Ground::Armed(armed) => Ok(Some(armed.guard()?)),
            Ground::Private(private) => Ok(Some(private.guard()?)),
            Ground::Watched(watched) => Ok(Some(watched.0.guard()?)),
            Ground::Words | Ground::Lost => Ok(None),
        }
    }

    /// For an agent about to run here: it sees the project in a view of its own, where there are views.
    pub fn worker_guard(&mut self) -> Result<Option<Guard>, SiteError> {
        match &mut self.ground {
            Ground::Private(private) => Ok(Some(private.worker_guard()?)),
            _ => self.guard(),
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
        match &mut self.ground {
            Ground::Armed(armed) => {
                let changes = armed.changes()?;
                armed.ensure_within_caps(&changes)?;
                Ok(changes)
            }
            Ground::Private(private) => {
                private.take_in()?;
                Ok(private.armed().changes()?)
            }
            Ground::Watched(watched) => Ok(watched.1.until(&watched.0.workspace().glance()?)),
            Ground::Words | Ground::Lost => Ok(ChangeSet::default()),
        }
    }

    /// What differs now, and the same as a unified diff of at most `max` bytes: one walk over the tree, off this thread.
    pub async fn review(&mut self, max: usize) -> Result<(ChangeSet, String), SiteError> {
        let armed = match std::mem::replace(&mut self.ground, Ground::Lost) {
            Ground::Armed(armed) => armed,
            Ground::Private(mut private) => {
                let (private, seen) = blocking(move || {
                    let taken = private.take_in();
                    let seen = taken
                        .map_err(SiteError::from)
                        .and_then(|()| Ok(private.armed().review(max)?));
                    (private, seen)
                })
                .await;
                self.ground = Ground::Private(private);
                return seen;
            }
            Ground::Watched(watched) => {
                let workspace = watched.0.workspace().clone();
                let now = blocking(move || workspace.glance()).await;
                let changes = now.map(|now| watched.1.until(&now));
                self.ground = Ground::Watched(watched);
                return Ok((changes?, String::new()));
            }
            other => {
                self.ground = other;
                return Ok((ChangeSet::default(), String::new()));
            }
        };
        let (armed, seen) = blocking(move || {
            let seen = armed.review(max);
            (armed, seen)
        })
        .await;
        self.ground = Ground::Armed(armed);
        Ok(seen?)
    }

    /// Brings everything in `scope` back and arms anew for the next tier.
    pub async fn reject(&mut self, scope: Scope) -> Result<RestoreReport, SiteError> {
        let armed = match std::mem::replace(&mut self.ground, Ground::Lost) {
            Ground::Armed(armed) => armed,
            Ground::Private(private) => {
                let (private, restored) = blocking(move || private.reject()).await?;
                self.ground = Ground::Private(Box::new(private));
                return Ok(restored);
            }
            Ground::Watched(mut watched) => {
                // Nothing comes back; but what one tier touched is not held against the next.
                let workspace = watched.0.workspace().clone();
                watched.1 = blocking(move || workspace.glance()).await?;
                self.ground = Ground::Watched(watched);
                return Ok(RestoreReport::default());
            }
            other => {
                self.ground = other;
                return Ok(RestoreReport::default());
            }
        };
        let scope = wider(scope, armed.scope());
        let (armed, restored) = blocking(move || {
            let (lease, restored) = armed.restore(scope)?;
            Ok::<_, SiteError>((lease.arm()?, restored))
        })
        .await?;
        self.ground = Ground::Armed(Box::new(armed));
        Ok(restored)
    }

    /// Says how the tests of what is about to be accepted are run again.
    pub fn confirm_by(&mut self, recheck: Recheck) {
        self.recheck = Some(Box::new(recheck));
    }

    /// Remembers the project as it is judged now. In a private view no other process can write.
    pub async fn note_judged(&mut self) -> Result<(), SiteError> {
        self.judged = self.fingerprint().await?;
        Ok(())
    }

    async fn fingerprint(&mut self) -> Result<Option<[u8; 32]>, SiteError> {
        let armed = match std::mem::replace(&mut self.ground, Ground::Lost) {
            Ground::Armed(armed) => armed,
            other => {
                self.ground = other;
                return Ok(None);
            }
        };
        let (armed, seen) = blocking(move || {
            let seen = armed.fingerprint();
            (armed, seen)
        })
        .await;
        self.ground = Ground::Armed(armed);
        Ok(Some(seen?))
    }

    /// What accepting the work would replace; `None` where nothing can change.
    pub async fn undo_record(&mut self) -> Result<Option<UndoRecord>, SiteError> {
        let (ground, record) = match std::mem::replace(&mut self.ground, Ground::Lost) {
            Ground::Armed(armed) => {
                blocking(move || {
                    let record = armed.undo_record();
                    (Ground::Armed(armed), record)
                })
                .await
            }
            Ground::Private(private) => {
                blocking(move || {
                    let record = private.armed().undo_record();
                    (Ground::Private(private), record)
                })
                .await
            }
            other => {
                self.ground = other;
                return Ok(None);
            }
        };
        self.ground = ground;
        Ok(Some(record?))
    }

    /// What others changed in the project since the work began, or, where it happens in place, since it was judged.
    pub async fn drift(&mut self) -> Result<Drift, SiteError> {
        if let Some(judged) = self.judged
            && self.fingerprint().await? != Some(judged)
        {
            let (changes, _) = self.review(0).await?;
            return Ok(Drift {
                files: changes.changes,
                aside: changes.others,
            });
        }
        match std::mem::replace(&mut self.ground, Ground::Lost) {
            Ground::Private(private) => {
                let (private, drift) = blocking(move || {
                    let drift = private.drift();
                    (private, drift)
                })
                .await;
                self.ground = Ground::Private(private);
                Ok(drift?)
            }
            Ground::Armed(armed) => {
                let changes = armed.changes();
                self.ground = Ground::Armed(armed);
                Ok(Drift {
                    aside: changes?.others,
                    ..Drift::default()
                })
            }
            other => {
                self.ground = other;
                Ok(Drift::default())
            }
        }
    }

    /// The same work on the project as it is now.
    pub async fn follow(&mut self) -> Result<(), SiteError> {
        self.judged = self.fingerprint().await?;
        match std::mem::replace(&mut self.ground, Ground::Lost) {
            Ground::Private(private) => {
                let private = blocking(move || private.follow()).await?;
                self.ground = Ground::Private(Box::new(private));
            }
            other => self.ground = other,
        }
        Ok(())
    }

    /// Runs the tests of the accepted work once more. If they do not show the same, the work is kept aside.
    pub async fn confirm(
        &mut self,
        paths: &[PathBuf],
        stop: &CancellationToken,
    ) -> Result<(), SiteError> {
        let Some(recheck) = self.recheck.take() else {
            return Ok(());
        };
        let guard = self.guard()?;
        let shown = recheck.run(guard, stop).await;
        self.recheck = Some(recheck);
        let Err(why) = shown else { return Ok(()) };
        let kept = match &self.ground {
            Ground::Private(private) => private.keep_aside().ok(),
            _ => None,
        };
        let kept = kept
            .map(|kept| format!(" and is kept in `{}`", kept.display()))
            .unwrap_or_default();
        Err(SiteError::Moved {
            paths: paths.to_vec(),
            why,
            kept,
        })
    }

    /// The work of this call stays.
    pub async fn accept(mut self, call: &str) -> Result<(), SiteError> {
        let call = call.to_owned();
        match std::mem::replace(&mut self.ground, Ground::Lost) {
            Ground::Armed(armed) => {
                let lease = blocking(move || armed.accept_for(&call)).await?;
                self.let_go(lease).await;
            }
            Ground::Private(private) => {
                let launcher = private.launcher().clone();
                let pending = blocking(move || private.commit()).await?;
                // Should this server die now, what was half written is taken back.
                self.watch = Some(launcher.watch(&pending.stand_by()?).await?);
                let lease = blocking(move || pending.write(&call)).await?;
                self.let_go(lease).await;
            }
            Ground::Words | Ground::Watched(_) | Ground::Lost => {}
        }
        Ok(())
    }

    /// The last word about a call that changes nothing: all is brought back and the project let go.
    pub async fn leave(mut self, scope: Scope) -> Result<RestoreReport, SiteError> {
        match std::mem::replace(&mut self.ground, Ground::Lost) {
            Ground::Armed(armed) => {
                let scope = wider(scope, armed.scope());
                let (lease, restored) = blocking(move || armed.restore(scope)).await?;
                self.let_go(lease).await;
                Ok(restored)
            }
            Ground::Private(private) => {
                let lease = blocking(move || private.leave()).await;
                self.let_go(lease).await;
                Ok(RestoreReport::default())
            }
            Ground::Words | Ground::Watched(_) | Ground::Lost => Ok(RestoreReport::default()),
        }
    }

    /// Nothing is open any more: the project is free when this returns.
    async fn let_go(&mut self, lease: Lease) {
        if let Some(watch) = self.watch.take() {
            watch.dismiss().await;
        }
        drop(lease);
    }
}

/// What ran here and was not accounted for may have written anything.
fn wider(asked: Scope, least: Scope) -> Scope {
    match (asked, least) {
        (Scope::Applied, Scope::Applied) => Scope::Applied,
        (Scope::Everything, _) | (_, Scope::Everything) => Scope::Everything,
    }
}

/// Runs file work on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}
