//! Claude through its own program, `claude --print`: an agent that works in the project with the tools it is given.
//! Believes an answer only if all five signs of success agree; whatever a run leaves behind is ended with it.

mod call;
pub(super) mod fuzz;
mod stream;
mod verdict;

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::{BoxFuture, FutureExt as _};
use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::sync::CancellationToken;

use super::cost::{CostBound, CostForecast, UNKNOWN_USD};
use super::installed::{self, InstalledAgent, Login};
use super::probe::{AddressRole, CLOUD_URL, CLOUD_URL_VAR, Endpoint};
use super::world::{BackendSight, Look, TierOutage, World, agent_hint, login_hint};
use super::{
    Ask, AskError, AskResult, AskStep, Backend, BackendFacts, BackendPlace, Edits, Env, Failure,
    Power, SharedResources,
};
use supervisor_process as process;
use supervisor_process::{End, FinishedProcess};
use supervisor_settings as routing;
use supervisor_settings::Tier;
use supervisor_text::redact::Redactor;

use stream::SeenStream;

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
        let address = backend.base_url.clone().or_else(|| env.get(CLOUD_URL_VAR));
        Some(Endpoint::new(
            "anthropic",
            AddressRole::Cloud,
            Some(address.unwrap_or_else(|| CLOUD_URL.into())),
            "/",
        ))
    }

    fn look<'a>(
        &'a self,
        backend: &'a routing::BackendSettings,
        look: &'a Look,
        _: bool,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, BackendSight> {
        async move {
            BackendSight::Agent(
                installed::ask(backend, &look.env, &look.launcher, look.agent_limit, stop).await,
            )
        }
        .boxed()
    }

    fn outage(&self, world: &World, tier: &Tier) -> Option<TierOutage> {
        let name = &tier.backend.name;
        match world.agents.get(name)? {
            Err(trouble) => Some(TierOutage {
                why: trouble.to_string(),
                hint: agent_hint(name, trouble),
            }),
            Ok(InstalledAgent {
                program,
                login: Login::Out,
                ..
            }) => Some(TierOutage {
                why: format!("`{}` is not logged in", program.display()),
                hint: login_hint(name),
            }),
            Ok(InstalledAgent { login, .. }) if login.is_first_party() => world.unreachable(
                AddressRole::Cloud,
                "anthropic",
                &format!("${CLOUD_URL_VAR}"),
            ),
            Ok(_) => None,
        }
    }

    /// It takes as many turns as it likes: only what it is granted holds it, and the size of the question says little.
    fn forecast(&self, ask: &Ask, tier: &Tier) -> CostForecast {
        let mut likely = CostForecast::of_one_answer(ask, tier).likely;
        if ask.power != Power::None {
            likely.usd = likely.usd.map(|usd| usd.max(UNKNOWN_USD));
        }
        CostForecast {
            worst: CostBound::default(),
            likely,
        }
    }

    fn place(&self, backend: &routing::BackendSettings) -> BackendPlace {
        BackendPlace {
            verb: "runs",
            key: "program",
            value: backend.program.clone(),
        }
    }
}

/// What the program is given as its environment, in every run.
pub(super) fn environment(
    settings: &routing::BackendSettings,
    env: &Env,
) -> process::environment::Environment {
    call::environment(settings, &Worker::of(settings, env), env)
}

struct ClaudeCli {
    settings: routing::BackendSettings,
    shared: SharedResources,
}

/// Who ran, for messages, and what must not be in them.
struct Worker {
    backend: String,
    program: String,
    /// Where its API lives, if that was configured.
    base_url: Option<String>,
    key: Option<Key>,
    /// Takes the key out of what the program says.
    secrets: Redactor,
}

struct Key {
    /// The variable that holds it.
    var: String,
    secret: SecretString,
}

impl Worker {
    fn of(settings: &routing::BackendSettings, env: &Env) -> Self {
        let key = settings.api_key_env.as_ref().and_then(|var| {
            Some(Key {
                var: var.clone(),
                secret: env.secret(var)?,
            })
        });
        Self {
            backend: settings.name.clone(),
            program: settings.program.clone().unwrap_or_else(|| "claude".into()),
            base_url: settings.base_url.clone(),
            secrets: Redactor::knowing(key.iter().map(|key| key.secret.expose_secret())),
            key,
        }
    }
}

impl Backend for ClaudeCli {
    fn edits(&self) -> Edits {
        Edits::InPlace
    }

    fn ask<'a>(
        &'a self,
        ask: &'a Ask,
        tier: &'a Tier,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(AskStep) + Send + Sync),
    ) -> BoxFuture<'a, AskResult> {
        self.work(ask, tier, stop, progress).boxed()
    }
}

impl ClaudeCli {
    async fn work(
        &self,
        ask: &Ask,
        tier: &Tier,
        stop: &CancellationToken,
        progress: &(dyn Fn(AskStep) + Send + Sync),
    ) -> AskResult {
        let worker = Worker::of(&self.settings, &self.shared.env);
        let (mut spec, mut notes) =
            call::spec(ask, tier, &self.settings, &worker, &self.shared.env)
                .map_err(Failure::free)?;

        let began = Instant::now();
        // Each takes some 280 MB, so only so many run at once. The permit is held until nothing of the run is left.
        let _permit = match self.shared.workers.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                progress(AskStep::Queued);
                let free = self.shared.workers.acquire();
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return Err(Failure::free(AskError::Cancelled)),
                    () = tokio::time::sleep(ask.limit) => {
                        return Err(Failure::free(AskError::NoWorker { waited: ask.limit }));
                    }
                    permit = free => permit.expect("the semaphore is never closed"),
                }
            }
        };
        if stop.is_cancelled() {
            return Err(Failure::free(AskError::Cancelled));
        }
        spec.limit = ask.limit.saturating_sub(began.elapsed());
        progress(AskStep::Asked);
        let (finished, seen) = self.watch(spec, stop, progress).await;
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

    async fn watch(
        &self,
        mut spec: process::Spec,
        stop: &CancellationToken,
        progress: &(dyn Fn(AskStep) + Send + Sync),
    ) -> (FinishedProcess, SeenStream) {
        let (sink, mut lines) = process::lines();
        spec.on_line = Some(sink);
        let mut seen = SeenStream::default();
        let read = async {
            while let Some(line) = lines.next().await {
                if let Some(step) = seen.line(&line) {
                    progress(step);
                }
            }
        };
        // Whatever has come in is taken at once: with tokio's fair share of 128 lines a turn, a flood would pile up.
        let read = tokio::task::unconstrained(read);
        let (finished, ()) = tokio::join!(self.shared.launcher.run(spec, stop), read);
        seen.missed = lines.missed();
        (finished, seen)
    }
}
