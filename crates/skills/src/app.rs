//! State shared by all calls: current settings and a recent availability snapshot. Everything is
//! loaded on first use, so listing tools stays instant.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::BrainRecollection;
use crate::tdd::{IdleMutants, TddMemory};
use supervisor_engine::budget::SharedBudget;
use supervisor_engine::call::{CallEnvironment, EnvironmentProvider, bounds_of};
use supervisor_engine::services::{Recorder, Services, SessionBudgets};
use supervisor_engine::session::{LogError, SessionLog, recover_open_calls};
use supervisor_engine::spend_ledger::SpendLedger;
use supervisor_gym::passport::PassportBook;
use supervisor_models::availability::{Availability, ProbeConfig};
use supervisor_models::breaker::Breaker;
use supervisor_models::warm::WarmCheck;
use supervisor_models::{Backends, Env, SharedResources};
use supervisor_process::Launcher;
use supervisor_settings as routing;
use supervisor_settings::{LoadedRouting, RemoteSettings, Routing, RoutingError, Sources};
use supervisor_text::prompts::{Prompt, Prompts};
use supervisor_text::redact::Redactor;
use supervisor_text::words;
use supervisor_verify::Execution;
use supervisor_workspace as workspace;
use supervisor_workspace::RecoveryOutcome;
use supervisor_workspace::state::{StateDir, StateError};

/// How long an availability snapshot stays valid.
const MAX_AGE: Duration = Duration::from_secs(10);

/// Shared state, created once at start.
#[derive(Debug)]
pub struct App {
    sources: Sources,
    prompts: &'static [Prompt],
    probe_config: ProbeConfig,
    /// Overrides the platform's state directory.
    state: Option<StateDir>,
    /// Whose calls these are, if the server has several callers.
    caller: Option<String>,
    cached: Mutex<Option<CachedAvailability>>,
    /// Services shared by calls while the settings stay the same.
    services: parking_lot::Mutex<Option<(Routing, Arc<Services>)>>,
    recovered: Once,
    /// Shared between the phases of a TDD cycle.
    memory: Arc<TddMemory>,
    idle_mutants: IdleMutants,
    /// Reserved from before each ask, besides the budgets of this machine.
    shared_budget: Option<Arc<dyn SharedBudget>>,
    /// What else is told of calls, besides the session log.
    recorder_layers: Vec<RecorderLayer>,
    /// Disables breaker cooldowns, so that a model that failed is asked again at once.
    no_cooldowns: bool,
    /// Decides where test suites run.
    executions: ExecutionSource,
    /// What it decided for these settings.
    execution: parking_lot::Mutex<Option<(RemoteSettings, Execution)>>,
    /// See [`Routing::copies`].
    copies: BTreeMap<PathBuf, PathBuf>,
}

/// Returns where test suites run by these settings. The token is in the environment; the directory is for what is kept
/// between runs.
pub(crate) type ExecutionSource =
    fn(&RemoteSettings, &Env, Option<&StateDir>) -> Result<Execution, String>;

/// Runs suites on this machine, whatever the settings say.
fn local_execution(_: &RemoteSettings, _: &Env, _: Option<&StateDir>) -> Result<Execution, String> {
    Ok(Execution::default())
}

/// Makes a recorder that passes everything on to the one it is given, and tells it to something else as well.
#[derive(Clone)]
pub struct RecorderLayer(Arc<WrapRecorder>);

type WrapRecorder = dyn Fn(Arc<dyn Recorder>) -> Arc<dyn Recorder> + Send + Sync;

impl RecorderLayer {
    pub fn new(
        wrap: impl Fn(Arc<dyn Recorder>) -> Arc<dyn Recorder> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(wrap))
    }

    fn wrap(&self, inner: Arc<dyn Recorder>) -> Arc<dyn Recorder> {
        (self.0)(inner)
    }
}

impl std::fmt::Debug for RecorderLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecorderLayer")
    }
}

/// Why no call can be made.
#[derive(Debug, thiserror::Error)]
pub enum ServicesError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{0}")]
    Execution(String),
}

/// An availability snapshot and the settings it was taken with.
#[derive(Debug)]
struct CachedAvailability {
    at: Instant,
    routing: Routing,
    availability: Arc<Availability>,
}

impl App {
    /// Uses the environment of this process, and the settings file named by the user or the one in
    /// the config directory.
    pub fn of_process(sources: Sources, prompts: &'static [Prompt]) -> Self {
        Self::new(
            sources,
            prompts,
            ProbeConfig::new(Env::from_process(), Launcher::this_program()),
        )
    }

    pub fn new(sources: Sources, prompts: &'static [Prompt], probe_config: ProbeConfig) -> Self {
        Self {
            sources,
            prompts,
            probe_config,
            state: None,
            caller: None,
            cached: Mutex::default(),
            services: parking_lot::Mutex::default(),
            recovered: Once::new(),
            memory: Arc::default(),
            idle_mutants: IdleMutants::default(),
            shared_budget: None,
            recorder_layers: Vec::new(),
            no_cooldowns: false,
            executions: local_execution,
            execution: parking_lot::Mutex::default(),
            copies: BTreeMap::new(),
        }
    }

    /// Lets the settings decide where test suites run.
    #[must_use]
    pub fn with_executions(self, executions: ExecutionSource) -> Self {
        Self { executions, ..self }
    }

    /// Where test suites run. The same value while the settings stay the same.
    pub fn execution(&self, routing: &Routing) -> Result<Execution, String> {
        let mut cached = self.execution.lock();
        if let Some((settings, execution)) = cached.as_ref()
            && *settings == routing.remote
        {
            return Ok(execution.clone());
        }
        let state = self.state().ok();
        let execution = (self.executions)(&routing.remote, self.env(), state.as_ref())?;
        *cached = Some((routing.remote.clone(), execution.clone()));
        Ok(execution)
    }

    /// Applies the settings of a project to copies of it: from each copy to its original.
    #[must_use]
    pub fn with_copies(self, copies: BTreeMap<PathBuf, PathBuf>) -> Self {
        Self { copies, ..self }
    }

    /// Disables breaker cooldowns: a model that just failed is asked again at once. A server's own
    /// retry delay is still respected.
    #[must_use]
    pub fn without_cooldowns(self) -> Self {
        Self {
            no_cooldowns: true,
            ..self
        }
    }

    /// Keeps snapshots, journals and logs here instead of in the default directory.
    #[must_use]
    pub fn with_state_dir(self, state: StateDir) -> Self {
        Self {
            state: Some(state),
            ..self
        }
    }

    /// Keeps logs and jobs of this caller apart from those of others.
    #[must_use]
    pub fn for_caller(self, name: String) -> Self {
        Self {
            caller: Some(name),
            ..self
        }
    }

    /// Reserves from this budget as well before each ask.
    #[must_use]
    pub fn with_shared_budget(self, shared: Arc<dyn SharedBudget>) -> Self {
        Self {
            shared_budget: Some(shared),
            ..self
        }
    }

    /// Tells calls to what this makes of the session log, too.
    #[must_use]
    pub fn with_recorder_layer(mut self, layer: RecorderLayer) -> Self {
        self.recorder_layers.push(layer);
        self
    }

    /// Knowledge about a project's tests from earlier calls of this server.
    pub fn memory(&self) -> &Arc<TddMemory> {
        &self.memory
    }

    /// Mutants of accepted changes, which run while no call does.
    pub fn idle_mutants(&self) -> &IdleMutants {
        &self.idle_mutants
    }

    /// Starts programs for calls.
    pub fn launcher(&self) -> &Launcher {
        &self.probe_config.launcher
    }

    /// The launcher with the sandbox from the settings.
    pub fn sandboxed_launcher(&self, routing: &Routing) -> Launcher {
        let home = self.probe_config.env.get("HOME").map(PathBuf::from);
        let state = self.state().ok();
        self.probe_config.launcher.with_rules(
            routing
                .sandbox
                .rules(home.as_deref(), state.as_ref().map(StateDir::path)),
        )
    }

    pub fn env(&self) -> &Env {
        &self.probe_config.env
    }

    /// Directory of snapshots, journals and logs.
    pub fn state(&self) -> Result<StateDir, StateError> {
        let state = self.state.clone().map_or_else(StateDir::locate, Ok)?;
        if let Some(caller) = &self.caller {
            return Ok(state.for_caller(caller));
        }
        // Without settings no call begins.
        let settings = self.settings().ok();
        Ok(state.with_sessions(settings.and_then(|settings| settings.routing.sessions_dir)))
    }

    /// The services that calls use. They are created again when the settings change, which resets
    /// the breaker and the session budgets.
    pub fn services(&self, settings: &LoadedRouting) -> Result<Arc<Services>, ServicesError> {
        let mut cached = self.services.lock();
        if let Some((routing, services)) = cached.as_ref()
            && *routing == settings.routing
        {
            return Ok(Arc::clone(services));
        }
        let routing = &settings.routing;
        let redactor = Arc::new(self.redactor(routing));
        let log = SessionLog::open(&self.state()?)?
            .with_redactor(Arc::clone(&redactor))
            .with_exchange(routing.log);
        let shared = SharedResources::new(
            self.sandboxed_launcher(routing),
            self.probe_config.env.clone(),
            routing.max_workers,
        );
        let mut breaker_settings = routing.breaker;
        if self.no_cooldowns {
            (breaker_settings.cooldown, breaker_settings.max_cooldown) =
                (Duration::ZERO, Duration::ZERO);
        }
        let recorder = self
            .recorder_layers
            .iter()
            .fold(Arc::new(log) as Arc<dyn Recorder>, |inner, layer| {
                layer.wrap(inner)
            });
        let execution = self.execution(routing).map_err(ServicesError::Execution)?;
        let services = Arc::new(Services {
            execution,
            backends: Backends::new(shared),
            breaker: Breaker::new(breaker_settings),
            warmth: WarmCheck::new(routing.warm.clone(), self.probe_config.env.clone()),
            redactor,
            prompts: Prompts::new(self.prompts, routing.prompts_dir.clone()),
            recorder,
            budgets: SessionBudgets::new(
                routing.budgets.session,
                SpendLedger::new(self.state()?.path(), routing.budgets.caps),
            )
            .with_shared(self.shared_budget.clone()),
            model_history: Arc::new(PassportBook::of(&self.state()?)),
            note_source: Some(Arc::new(BrainRecollection {
                launcher: self.probe_config.launcher.clone(),
                routing: routing.clone(),
                state: self.state()?,
            })),
        });
        *cached = Some((routing.clone(), Arc::clone(&services)));
        Ok(services)
    }

    /// Recovers from killed calls, once and in the background: the client has already been
    /// answered.
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
                    // A running call of another server is the normal case. A caller that wants the
                    // same project gets an error.
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
                let removed = workspace::collect_daily(&state, bounds_of(settings.routing.state));
                if !removed.is_empty() {
                    tracing::debug!(
                        "{} removed from the state directory",
                        words::count(removed.len(), "item")
                    );
                }
            });
        });
    }

    /// Loads the settings. They are read for each call, so an edited file needs no restart.
    pub fn settings(&self) -> Result<LoadedRouting, RoutingError> {
        let mut settings = routing::load(&self.sources)?;
        settings.routing.copies.clone_from(&self.copies);
        Ok(settings)
    }

    /// A redactor for the keys named in the settings.
    pub fn redactor(&self, routing: &Routing) -> Redactor {
        self.probe_config.env.redactor(
            routing
                .backends
                .values()
                .filter_map(|backend| backend.api_key_env.as_deref())
                .chain(routing.remote.token_env.as_deref()),
        )
    }

    /// An availability snapshot from the last ten seconds, or a new one, and its age. Concurrent
    /// calls share one snapshot.
    pub async fn availability(
        &self,
        routing: &Routing,
        refresh: bool,
        stop: &CancellationToken,
    ) -> (Arc<Availability>, Duration) {
        let requested_at = Instant::now();
        let mut cached = self.cached.lock().await;
        if let Some(cached) = cached.as_ref().filter(|cached| cached.routing == *routing) {
            // A snapshot begun while we waited for the lock is as good as our own, even for a
            // refresh.
            if cached.at >= requested_at || (!refresh && cached.at.elapsed() < MAX_AGE) {
                return (Arc::clone(&cached.availability), cached.at.elapsed());
            }
        }
        let at = Instant::now();
        let availability = Arc::new(Availability::probe(routing, &self.probe_config, stop).await);
        if !stop.is_cancelled() {
            *cached = Some(CachedAvailability {
                at,
                routing: routing.clone(),
                availability: Arc::clone(&availability),
            });
        }
        (availability, Duration::ZERO)
    }
}

impl EnvironmentProvider for App {
    fn environment(&self) -> Result<CallEnvironment, String> {
        self.idle_mutants.stop();
        let settings = self
            .settings()
            .map_err(|e| format!("the settings cannot be used: {e}"))?;
        let services = self.services(&settings).map_err(|e| e.to_string())?;
        Ok(CallEnvironment {
            launcher: self.sandboxed_launcher(&settings.routing),
            settings,
            services,
            state: self.state().map_err(|e| e.to_string())?,
            env: self.env().clone(),
        })
    }
}
