//! Backend `claude-cli`: runs `claude --print`, as an agent in the project or without tools for one
//! text answer. An answer is accepted only if all signs of success agree (see `verdict`). Processes left behind by a run are
//! killed with it.

mod call;
pub(super) mod fuzz;
mod own_server;
mod stream;
mod tool_support;
mod verdict;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt as _};
use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::sync::CancellationToken;

use super::availability::{
    Availability, BackendStatus, ProbeConfig, TierOutage, agent_hint, login_hint,
};
use super::cost::{CostBound, CostForecast, UNKNOWN_USD};
use super::installed::{self, InstalledAgent, Login};
use super::probe::{AddressRole, CLOUD_URL, CLOUD_URL_VAR, Endpoint};
use super::{
    Ask, AskError, AskResult, AskStep, Backend, BackendFacts, BackendLocation, Edits, Env, Failure,
    SharedResources, ToolAccess,
};
use super::{samples, settle};
use supervisor_process as process;
use supervisor_process::{End, FinishedProcess};
use supervisor_settings as routing;
use supervisor_settings::{Tier, Worker};
use supervisor_text::redact::Redactor;

use stream::StreamState;

/// The kind `claude-cli`.
pub(super) struct ClaudeCliKind;

impl BackendFacts for ClaudeCliKind {
    fn connect(
        &self,
        backend: &routing::BackendSettings,
        shared: &SharedResources,
    ) -> Result<Arc<dyn Backend>, AskError> {
        Ok(Arc::new(ClaudeCli {
            settings: backend.clone(),
            shared: shared.clone(),
        }))
    }

    fn role(&self) -> Option<AddressRole> {
        Some(AddressRole::Cloud)
    }

    fn endpoint(&self, backend: &routing::BackendSettings, env: &Env) -> Option<Endpoint> {
        if backend.is_foreign() {
            let address = backend.base_url.clone();
            let role = AddressRole::Gateway;
            return Some(Endpoint::new(&backend.name, role, address, "/"));
        }
        let address = backend.base_url.clone().or_else(|| env.get(CLOUD_URL_VAR));
        Some(Endpoint::new(
            "anthropic",
            AddressRole::Cloud,
            Some(address.unwrap_or_else(|| CLOUD_URL.into())),
            "/",
        ))
    }

    fn probe<'a>(
        &'a self,
        backend: &'a routing::BackendSettings,
        config: &'a ProbeConfig,
        _: bool,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, BackendStatus> {
        async move {
            BackendStatus::Agent(
                installed::query(
                    backend,
                    &config.env,
                    &config.launcher,
                    config.agent_limit,
                    stop,
                )
                .await,
            )
        }
        .boxed()
    }

    fn outage(&self, availability: &Availability, tier: &Tier) -> Option<TierOutage> {
        let name = &tier.backend.name;
        let setting = format!("`backends.{name}.base_url`");
        match availability.agents.get(name)? {
            Err(error) => Some(TierOutage {
                why: error.to_string(),
                hint: agent_hint(name, error),
            }),
            Ok(_) if tier.backend.is_foreign() => {
                availability.unreachable(AddressRole::Gateway, name, &setting)
            }
            Ok(InstalledAgent {
                program,
                login: Login::Out,
                ..
            }) => Some(TierOutage {
                why: format!("`{}` is not logged in", program.display()),
                hint: login_hint(name),
            }),
            Ok(InstalledAgent { login, .. }) if login.is_first_party() => availability.unreachable(
                AddressRole::Cloud,
                "anthropic",
                &format!("${CLOUD_URL_VAR}"),
            ),
            Ok(_) => None,
        }
    }

    fn missing<'a>(
        &'a self,
        backend: &'a routing::BackendSettings,
        shared: &'a SharedResources,
    ) -> BoxFuture<'a, Option<TierOutage>> {
        async move {
            if let Err(error) = installed::locate(backend, &shared.env) {
                return Some(TierOutage {
                    why: error.to_string(),
                    hint: agent_hint(&backend.name, &error),
                });
            }
            settle::refused_here(backend).await
        }
        .boxed()
    }

    fn unfit<'a>(
        &'a self,
        tier: &'a Tier,
        shared: &'a SharedResources,
    ) -> BoxFuture<'a, Option<TierOutage>> {
        async move {
            if tier.worker() == Worker::Text || !tier.backend.runs_own_models() {
                return None;
            }
            let key = tier.backend.api_key_env.as_deref();
            let key = key.and_then(|var| shared.env.secret(var));
            let base_url = tier.backend.base_url.as_deref()?;
            if tool_support::offers_tools(base_url, key.as_ref(), &tier.model.id).await != Some(false) {
                return None;
            }
            Some(TierOutage {
                why: format!(
                    "the server of `{}` offers no tools to `{}`: the model's chat template has none",
                    tier.backend.name, tier.model.id
                ),
                hint: format!(
                    "start the server with a template that has tools (llama.cpp: `--jinja --chat-template-file`), \
                     use another model, or set `{}` to \"text\"",
                    tier.key("worker")
                ),
            })
        }
        .boxed()
    }

    /// An agent takes as many turns as it likes. Only its granted budget limits the cost; the size
    /// of the question says little.
    fn forecast(&self, ask: &Ask, tier: &Tier) -> CostForecast {
        if tier.worker() == Worker::Text {
            return CostForecast::of_one_answer(ask, tier);
        }
        let mut likely = CostForecast::of_one_answer(ask, tier).likely;
        if ask.tool_access != ToolAccess::None && !tier.backend.runs_own_models() {
            likely.usd = likely.usd.map(|usd| usd.max(UNKNOWN_USD));
        }
        CostForecast {
            worst: CostBound::default(),
            likely,
        }
    }

    fn location(&self, backend: &routing::BackendSettings) -> BackendLocation {
        BackendLocation {
            verb: "runs",
            key: "program",
            value: backend.program.clone(),
        }
    }
}

/// The program's environment, the same in every run.
pub(super) fn environment(
    settings: &routing::BackendSettings,
    env: &Env,
) -> process::environment::Environment {
    call::environment(settings, &Program::of(settings, env), env)
}

/// True if the program will find a login without the system's keychain: a file, or a variable.
pub(super) fn has_login_file(settings: &routing::BackendSettings, env: &Env) -> bool {
    let env = environment(settings, env);
    let variable = |name: &str| env.get(std::ffi::OsStr::new(name));
    let by_variable = [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
    ];
    let dir = variable("CLAUDE_CONFIG_DIR").map(std::path::PathBuf::from);
    let dir = dir.or_else(|| Some(std::path::Path::new(variable("HOME")?).join(".claude")));
    by_variable.iter().any(|name| variable(name).is_some())
        || dir.is_some_and(|dir| dir.join(".credentials.json").exists())
}

struct ClaudeCli {
    settings: routing::BackendSettings,
    shared: SharedResources,
}

/// Facts about the program for messages, and the redactor to apply to them.
struct Program {
    backend: String,
    program: String,
    /// URL of its API, if configured.
    base_url: Option<String>,
    has_private_network: bool,
    key: Option<Key>,
    /// Removes the key from the program's output.
    redactor: Redactor,
}

struct Key {
    /// Name of the variable that holds the key.
    var: String,
    secret: SecretString,
}

impl Program {
    fn of(settings: &routing::BackendSettings, env: &Env) -> Self {
        let var = settings.api_key_env.as_ref();
        // This is the login of a subscription.
        let var = var.filter(|var| *var != "CLAUDE_CODE_OAUTH_TOKEN" || !settings.is_foreign());
        let key = var.and_then(|var| {
            Some(Key {
                var: var.clone(),
                secret: env.secret(var)?,
            })
        });
        Self {
            backend: settings.name.clone(),
            program: settings.program.clone().unwrap_or_else(|| "claude".into()),
            base_url: settings.base_url.clone(),
            has_private_network: settings.runs_own_models(),
            redactor: Redactor::with_values(key.iter().map(|key| key.secret.expose_secret())),
            key,
        }
    }
}

impl Backend for ClaudeCli {
    fn edits(&self, tier: &Tier) -> Edits {
        match tier.worker() {
            Worker::Agent => Edits::InPlace,
            Worker::Text => Edits::AsData,
        }
    }

    fn ask<'a>(
        &'a self,
        ask: &'a Ask,
        tier: &'a Tier,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(AskStep) + Send + Sync),
    ) -> BoxFuture<'a, AskResult> {
        self.run(ask, tier, stop, progress).boxed()
    }

    /// The semaphore bounds how many programs run at once.
    fn ask_samples<'a>(
        &'a self,
        ask: &'a Ask,
        tier: &'a Tier,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(AskStep) + Send + Sync),
    ) -> BoxFuture<'a, Vec<AskResult>> {
        samples::as_its_tier_allows(self, ask, tier, stop, progress).boxed()
    }
}

impl ClaudeCli {
    async fn run(
        &self,
        ask: &Ask,
        tier: &Tier,
        stop: &CancellationToken,
        progress: &(dyn Fn(AskStep) + Send + Sync),
    ) -> AskResult {
        let worker = Program::of(&self.settings, &self.shared.env);
        // Held until the program has ended.
        let server =
            own_server::ServerAccess::open(&self.settings).map_err(Failure::without_cost)?;
        let settings = &self.settings;
        let (mut spec, mut notes) = call::spec(
            ask,
            tier,
            settings,
            &worker,
            &self.shared.env,
            server.as_ref(),
        )
        .map_err(Failure::without_cost)?;

        let left = |limit: Duration| match ask.deadline {
            Some(deadline) => limit.min(deadline.saturating_duration_since(Instant::now())),
            None => limit,
        };
        // Each process takes about 280 MB, so their number is limited. The permit is held until the
        // whole process tree has ended.
        let _permit = match self.shared.workers.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                progress(AskStep::Queued);
                // Of several answers the last waits for all others.
                let patience = left(match ask.sample {
                    Some(_) => ask.samples_limit,
                    None => ask.limit,
                });
                let free = self.shared.workers.acquire();
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return Err(Failure::without_cost(AskError::Cancelled)),
                    () = tokio::time::sleep(patience) => {
                        return Err(Failure::without_cost(AskError::NoWorker { waited: patience }));
                    }
                    permit = free => permit.expect("the semaphore is never closed"),
                }
            }
        };
        if stop.is_cancelled() {
            return Err(Failure::without_cost(AskError::Cancelled));
        }
        spec.limit = left(ask.limit);
        progress(AskStep::Asked);
        let (finished, seen) = self.run_and_read_stream(spec, stop, progress).await;
        if finished.leaked > 0 {
            notes.push(format!(
                "processes left behind by the worker and ended: {}",
                finished.leaked
            ));
        }
        if finished.containment == process::Containment::Group
            && !matches!(finished.end, End::CouldNotStart(_))
        {
            notes.push("only the worker's process group could be held, not its whole tree".into());
        }
        verdict::judge(&worker, &finished, &seen, ask, tier, notes)
    }

    async fn run_and_read_stream(
        &self,
        mut spec: process::CommandSpec,
        stop: &CancellationToken,
        progress: &(dyn Fn(AskStep) + Send + Sync),
    ) -> (FinishedProcess, StreamState) {
        let (sink, mut lines) = process::lines();
        spec.on_line = Some(sink);
        let mut seen = StreamState::default();
        let read = async {
            while let Some(line) = lines.next().await {
                if let Some(step) = seen.on_line(&line) {
                    progress(step);
                }
            }
        };
        // Read everything that is available at once: with tokio's default budget of 128 lines per
        // poll, a flood of lines would pile up.
        let read = tokio::task::unconstrained(read);
        let (finished, ()) = tokio::join!(self.shared.launcher.run(spec, stop), read);
        seen.missed = lines.missed();
        (finished, seen)
    }
}
