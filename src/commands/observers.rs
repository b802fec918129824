//! What calls are told to besides the session log, if this program was built with it and it is set up: traces and metrics,
//! and what the team shares.

use supervisor_skills::App;
use tokio::runtime::Runtime;

/// Ended with [`Self::finish`] after the calls, while the runtime still runs.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    #[cfg(feature = "otel")]
    telemetry: Option<supervisor_telemetry::Telemetry>,
    #[cfg(feature = "database")]
    team: Option<Team>,
}

#[cfg(feature = "database")]
#[derive(Clone)]
struct Team {
    state: std::sync::Arc<supervisor_shared_state::SharedState>,
    sender: std::sync::Arc<supervisor_shared_state::Sender>,
}

impl Observers {
    /// Fails if calls could not be told what the settings say. Traces that cannot be sent are a warning only.
    pub(crate) fn start(app: &App, runtime: &Runtime) -> anyhow::Result<Self> {
        let _inside = runtime.enter();
        let _ = app;
        warn_without_traces();
        Ok(Self {
            #[cfg(feature = "otel")]
            telemetry: {
                let telemetry = supervisor_telemetry::Telemetry::from_env(runtime.handle());
                telemetry.unwrap_or_else(|error| {
                    tracing::warn!("{error}");
                    None
                })
            },
            #[cfg(feature = "database")]
            team: team(app)?,
        })
    }

    /// The same, with every call of it observed.
    pub(crate) fn attach(&self, app: App) -> App {
        #[cfg(feature = "otel")]
        let app = match self.telemetry.clone() {
            None => app,
            Some(telemetry) => {
                let layer = supervisor_skills::RecorderLayer::new(move |log| telemetry.wrap(log));
                app.with_recorder_layer(layer)
            }
        };
        #[cfg(feature = "database")]
        let app = match &self.team {
            None => app,
            Some(team) => {
                let budget =
                    supervisor_shared_state::TeamBudget(std::sync::Arc::clone(&team.state));
                app.with_shared_budget(std::sync::Arc::new(budget))
            }
        };
        app
    }

    /// Sends what is left, for a few seconds at most.
    pub(crate) fn finish(self, runtime: &Runtime) {
        let _ = runtime;
        #[cfg(feature = "database")]
        if let Some(team) = self.team {
            runtime.block_on(team.sender.finish());
        }
        #[cfg(feature = "otel")]
        if let Some(telemetry) = self.telemetry {
            telemetry.shutdown();
        }
    }
}

#[cfg(feature = "database")]
fn team(app: &App) -> anyhow::Result<Option<Team>> {
    use supervisor_engine::session::SessionLog;
    use supervisor_shared_state::{SharedState, TeamConfig};

    let Ok(loaded) = app.settings() else {
        return Ok(None); // every call is refused, and says why
    };
    let settings = loaded.routing.team;
    let variable = |name: &str| std::env::var(name).ok();
    let Some(config) = TeamConfig::new(&settings, variable)? else {
        return Ok(None);
    };
    let state = app.state()?;
    let shared = SharedState::new(config, SessionLog::to_read(&state), state.sub("shared")?);
    let sender = std::sync::Arc::new(shared.start());
    Ok(Some(Team {
        state: shared,
        sender,
    }))
}

/// Clients hand down variables meant for themselves, so this is not an error.
fn warn_without_traces() {
    let is_set =
        std::env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT").is_some_and(|value| !value.is_empty());
    if cfg!(not(feature = "otel")) && is_set {
        tracing::info!(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but this program was built without traces; \
             build it with `cargo build --release --features otel`"
        );
    }
}
