//! What calls need from around them: the settings as they are now, and a recent look at the outside world.
//! Nothing is read or asked before a call wants it, so that listing tools stays instant.

use std::path::PathBuf;
use std::sync::{Arc, Once, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::BrainRecollection;
use crate::tdd::Memory;
use supervisor_engine::call::{CallHost, Surroundings, bounds_of};
use supervisor_engine::means::{Means, SessionBudgets};
use supervisor_engine::session::{LogError, SessionLog, recover_open_calls};
use supervisor_gym::passport::PassportBook;
use supervisor_models::breaker::Breaker;
use supervisor_models::warm::Warmth;
use supervisor_models::world::{Look, World};
use supervisor_models::{Backends, Env, SharedResources};
use supervisor_process::Launcher;
use supervisor_settings as routing;
use supervisor_settings::{LoadedRouting, Routing, RoutingError, Sources};
use supervisor_text::prompts::{Prompt, Prompts};
use supervisor_text::redact::Redactor;
use supervisor_text::words;
use supervisor_workspace as workspace;
use supervisor_workspace::RecoveryOutcome;
use supervisor_workspace::state::{StateDir, StateError};

/// How long a look at the world stays good.
const FRESH: Duration = Duration::from_secs(10);

/// What calls need, made once at start.
#[derive(Debug)]
pub struct App {
    sources: Sources,
    prompts: &'static [Prompt],
    look: Look,
    /// The platform's, unless another was named.
    state: Option<StateDir>,
    seen: Mutex<Option<SeenWorld>>,
    /// What calls share as long as the settings stay the same.
    means: std::sync::Mutex<Option<(Routing, Arc<Means>)>>,
    recovered: Once,
    /// What the phases of a cycle know of each other.
    memory: Arc<Memory>,
    /// A model that failed is asked again at once, where each question is worth its answer.
    never_pauses: bool,
}

/// Why no call can be made.
#[derive(Debug, thiserror::Error)]
pub enum NoMeans {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Log(#[from] LogError),
}

/// A look at the world, and the settings that said where to look.
#[derive(Debug)]
struct SeenWorld {
    at: Instant,
    routing: Routing,
    world: Arc<World>,
}

impl App {
    /// This process: its variables, and the file named by the user or the one in the config directory.
    pub fn of_process(sources: Sources, prompts: &'static [Prompt]) -> Self {
        Self::new(
            sources,
            prompts,
            Look::new(Env::of_this_program(), Launcher::this_program()),
        )
    }

    pub fn new(sources: Sources, prompts: &'static [Prompt], look: Look) -> Self {
        Self {
            sources,
            prompts,
            look,
            state: None,
            seen: Mutex::default(),
            means: std::sync::Mutex::default(),
            recovered: Once::new(),
            memory: Arc::default(),
            never_pauses: false,
        }
    }

    /// Leaves no model alone because it failed a moment ago: the next question is another one. A server that says when to
    /// come back is still obeyed.
    #[must_use]
    pub fn without_pauses(self) -> Self {
        Self {
            never_pauses: true,
            ..self
        }
    }

    /// Keeps snapshots, journals and logs here, and not where the environment says.
    #[must_use]
    pub fn keeping_state_in(self, state: StateDir) -> Self {
        Self {
            state: Some(state),
            ..self
        }
    }

    /// What earlier calls of this server have seen of a project's tests.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Starts programs for calls, and knows their environment.
    pub fn launcher(&self) -> &Launcher {
        &self.look.launcher
    }

    /// The same, with the walls that the settings ask for.
    pub fn walled_launcher(&self, routing: &Routing) -> Launcher {
        let home = self.look.env.get("HOME").map(PathBuf::from);
        let state = self.state().ok();
        self.look.launcher.under(
            routing
                .sandbox
                .rules(home.as_deref(), state.as_ref().map(StateDir::path)),
        )
    }

    pub fn env(&self) -> &Env {
        &self.look.env
    }

    /// Where snapshots, journals and logs are.
    pub fn state(&self) -> Result<StateDir, StateError> {
        self.state.clone().map_or_else(StateDir::locate, Ok)
    }

    /// What calls work with. Made anew when the settings have changed; who is not worth asking, and what sessions have
    /// spent, is remembered only as long as they have not.
    pub fn means(&self, settings: &LoadedRouting) -> Result<Arc<Means>, NoMeans> {
        let mut means = self.means.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((routing, means)) = means.as_ref()
            && *routing == settings.routing
        {
            return Ok(Arc::clone(means));
        }
        let routing = &settings.routing;
        let redactor = Arc::new(self.redactor(routing));
        let log = SessionLog::open(&self.state()?)?
            .redacting(Arc::clone(&redactor))
            .keeping(routing.log);
        let shared = SharedResources::new(
            self.walled_launcher(routing),
            self.look.env.clone(),
            routing.max_workers,
        );
        let mut pauses = routing.breaker;
        if self.never_pauses {
            (pauses.cooldown, pauses.max_cooldown) = (Duration::ZERO, Duration::ZERO);
        }
        let made = Arc::new(Means {
            backends: Backends::new(shared),
            breaker: Breaker::new(pauses),
            warmth: Warmth::new(routing.warm.clone(), self.look.env.clone()),
            redactor,
            prompts: Prompts::new(self.prompts, routing.prompts_dir.clone()),
            recorder: Arc::new(log),
            budgets: SessionBudgets::new(routing.budgets.session),
            experience: Arc::new(PassportBook::of(&self.state()?)),
            recollection: Some(Arc::new(BrainRecollection {
                launcher: self.look.launcher.clone(),
                routing: routing.clone(),
                state: self.state()?,
            })),
        });
        *means = Some((routing.clone(), Arc::clone(&made)));
        Ok(made)
    }

    /// Puts right what killed calls have left, once and in the background: the client has been answered already.
    pub fn recover(&self) {
        self.recovered.call_once(|| {
            let Ok(state) = self.state() else { return };
            let log = SessionLog::to_read(&state);
            tokio::task::spawn_blocking(move || match recover_open_calls(&log) {
                0 => {}
                n => tracing::warn!(
                    "{} of a server that died: written to the session log",
                    words::count(n, "call")
                ),
            });
            tokio::task::spawn_blocking(move || match workspace::recover(&state) {
                Ok(found) => found.iter().for_each(|one| match one.outcome {
                    // Another server's call at work is the ordinary case; a caller that wants the same project is told.
                    RecoveryOutcome::Busy => tracing::debug!("{one}"),
                    RecoveryOutcome::Restored(_) | RecoveryOutcome::Failed(_) => {
                        tracing::warn!("after a killed call: {one}");
                    }
                }),
                Err(error) => tracing::warn!("killed calls could not be looked for: {error}"),
            });
            let (Ok(state), sources) = (self.state(), self.sources.clone()) else {
                return;
            };
            tokio::task::spawn_blocking(move || {
                let Ok(settings) = routing::load(&sources) else {
                    return;
                };
                let gone = workspace::collect_daily(&state, bounds_of(settings.routing.state));
                if !gone.is_empty() {
                    tracing::debug!(
                        "{} removed from the state directory",
                        words::count(gone.len(), "item")
                    );
                }
            });
        });
    }

    /// The settings, read anew for each call: an edited file needs no restart.
    pub fn settings(&self) -> Result<LoadedRouting, RoutingError> {
        routing::load(&self.sources)
    }

    /// Takes the keys that the settings name out of whatever is shown.
    pub fn redactor(&self, routing: &Routing) -> Redactor {
        self.look.env.redactor(
            routing
                .backends
                .values()
                .filter_map(|backend| backend.api_key_env.as_deref()),
        )
    }

    /// The world as seen in the last ten seconds, or now. Calls that come together share one look.
    /// Second: how old it is.
    pub async fn world(
        &self,
        routing: &Routing,
        refresh: bool,
        stop: &CancellationToken,
    ) -> (Arc<World>, Duration) {
        let asked = Instant::now();
        let mut seen = self.seen.lock().await;
        if let Some(seen) = seen.as_ref().filter(|seen| seen.routing == *routing) {
            // One that was begun while we waited is as good as our own, also for a refresh.
            if seen.at >= asked || (!refresh && seen.at.elapsed() < FRESH) {
                return (Arc::clone(&seen.world), seen.at.elapsed());
            }
        }
        let at = Instant::now();
        let world = Arc::new(World::look(routing, &self.look, stop).await);
        if !stop.is_cancelled() {
            *seen = Some(SeenWorld {
                at,
                routing: routing.clone(),
                world: Arc::clone(&world),
            });
        }
        (world, Duration::ZERO)
    }
}

impl CallHost for App {
    fn surroundings(&self) -> Result<Surroundings, String> {
        let settings = self
            .settings()
            .map_err(|e| format!("the settings cannot be used: {e}"))?;
        let means = self.means(&settings).map_err(|e| e.to_string())?;
        Ok(Surroundings {
            launcher: self.walled_launcher(&settings.routing),
            settings,
            means,
            state: self.state().map_err(|e| e.to_string())?,
            env: self.env().clone(),
        })
    }
}
