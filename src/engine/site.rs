//! Where the work of a call happens: an armed project, or nowhere for answers in words.
//! Blocking file work runs beside the runtime, so that a large tree never holds up another call's cancel.

use std::path::{Path, PathBuf};

use crate::process::{Guard, Launcher, StartError, Watch};
use crate::workspace::{
    Applied, ArmError, Armed, ChangeSet, Edit, EditError, Glance, Lease, RestoreError, Restored, Scope,
};

/// The place of one call. Whatever is not accepted is undone when it is dropped.
#[derive(Debug)]
pub struct Site {
    root: PathBuf,
    // Before the watch: on a drop we undo first, and whoever stands by finds nothing left to do.
    ground: Ground,
    /// Stands by while no program runs, so that a dead server is put right also then.
    watch: Option<Watch>,
}

#[derive(Debug)]
enum Ground {
    /// Nothing may change, so nothing needs to come back.
    Words,
    /// Held for a call that only reads; the lease is let go with the site.
    Held(Option<Lease>),
    /// The same, with a look at every name from before: what is touched meanwhile is seen, and stays.
    Watched(Box<(Lease, Glance)>),
    Armed(Box<Armed>),
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
    #[error("nobody can stand by the project while it is worked on: {0}")]
    Watch(#[from] StartError),
    #[error("the project cannot be compared with its snapshot: {0}")]
    Io(#[from] std::io::Error),
}

impl Site {
    /// For answers in words about no project in particular.
    pub fn words(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), ground: Ground::Words, watch: None }
    }

    /// For answers in words about a project that must not change meanwhile.
    pub fn reading(lease: Lease) -> Self {
        Self { root: lease.workspace().root().to_owned(), ground: Ground::Held(Some(lease)), watch: None }
    }

    /// The same, and whoever touches the project meanwhile is found out: [`Self::review`] tells what is different.
    pub async fn watching(lease: Lease) -> Result<Self, SiteError> {
        let workspace = lease.workspace().clone();
        let root = workspace.root().to_owned();
        let glance = blocking(move || workspace.glance()).await?;
        Ok(Self { root, ground: Ground::Watched(Box::new((lease, glance))), watch: None })
    }

    /// For work that edits. Should this server die, whoever the launcher stations here brings the project back.
    pub async fn arm(lease: Lease, launcher: &Launcher) -> Result<Self, SiteError> {
        let root = lease.workspace().root().to_owned();
        let armed = blocking(move || lease.arm()).await?;
        let watch = launcher.watch(&armed.stand_by()?).await?;
        Ok(Self { root, ground: Ground::Armed(Box::new(armed)), watch: Some(watch) })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The snapshot behind this site, where there is one.
    pub fn armed(&mut self) -> Result<&mut Armed, SiteError> {
        match &mut self.ground {
            Ground::Armed(armed) => Ok(armed),
            Ground::Words | Ground::Held(_) | Ground::Watched(_) | Ground::Lost => Err(SiteError::NotArmed),
        }
    }

    /// Whatever is not accepted here is undone.
    pub fn comes_back(&self) -> bool {
        matches!(self.ground, Ground::Armed(_))
    }

    /// For programs about to run here: they keep the project locked until they have ended.
    pub fn guard(&mut self) -> Result<Option<Guard>, SiteError> {
        match &mut self.ground {
            Ground::Armed(armed) => Ok(Some(armed.guard()?)),
            Ground::Held(Some(lease)) => Ok(Some(lease.guard()?)),
            Ground::Watched(watched) => Ok(Some(watched.0.guard()?)),
            Ground::Held(None) | Ground::Words | Ground::Lost => Ok(None),
        }
    }

    pub fn apply(
        &mut self,
        edits: &[Edit],
        may_touch: &dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<Applied, SiteError> {
        Ok(self.armed()?.apply(edits, may_touch)?)
    }

    pub fn changes(&mut self) -> Result<ChangeSet, SiteError> {
        match &self.ground {
            Ground::Armed(armed) => Ok(armed.changes()?),
            Ground::Watched(watched) => Ok(watched.1.until(&watched.0.workspace().glance()?)),
            Ground::Words | Ground::Held(_) | Ground::Lost => Ok(ChangeSet::default()),
        }
    }

    /// The change so far as a unified diff of at most `max` bytes; empty where nothing can change.
    pub fn diff(&mut self, max: usize) -> Result<String, SiteError> {
        match &self.ground {
            Ground::Armed(armed) => Ok(armed.diff(max)?),
            // What stood there before is not known.
            Ground::Words | Ground::Held(_) | Ground::Watched(_) | Ground::Lost => Ok(String::new()),
        }
    }

    /// What differs now, and the same as a unified diff of at most `max` bytes: one walk over the tree, off this thread.
    pub async fn review(&mut self, max: usize) -> Result<(ChangeSet, String), SiteError> {
        let armed = match std::mem::replace(&mut self.ground, Ground::Lost) {
            Ground::Armed(armed) => armed,
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
    pub async fn reject(&mut self, scope: Scope) -> Result<Restored, SiteError> {
        let armed = match std::mem::replace(&mut self.ground, Ground::Lost) {
            Ground::Armed(armed) => armed,
            Ground::Watched(mut watched) => {
                // Nothing comes back; but what one tier touched is not held against the next.
                let workspace = watched.0.workspace().clone();
                watched.1 = blocking(move || workspace.glance()).await?;
                self.ground = Ground::Watched(watched);
                return Ok(Restored::default());
            }
            other => {
                self.ground = other;
                return Ok(Restored::default());
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

    /// The work stays.
    pub async fn accept(mut self) -> Result<(), SiteError> {
        if let Ground::Armed(armed) = std::mem::replace(&mut self.ground, Ground::Lost) {
            let lease = blocking(move || armed.accept()).await?;
            self.let_go(lease).await;
        }
        Ok(())
    }

    /// The last word about a call that changes nothing: all is brought back and the project let go.
    pub async fn leave(mut self, scope: Scope) -> Result<Restored, SiteError> {
        match std::mem::replace(&mut self.ground, Ground::Lost) {
            Ground::Armed(armed) => {
                let scope = wider(scope, armed.scope());
                let (lease, restored) = blocking(move || armed.restore(scope)).await?;
                self.let_go(lease).await;
                Ok(restored)
            }
            Ground::Words | Ground::Held(_) | Ground::Watched(_) | Ground::Lost => Ok(Restored::default()),
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
