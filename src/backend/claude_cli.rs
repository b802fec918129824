//! Claude through its own program, `claude --print`: an agent that works in the project with the tools it is given.
//! Believes an answer only if all five signs of success agree; whatever a run leaves behind is ended with it.

mod call;
mod stream;
mod verdict;

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::{BoxFuture, FutureExt as _};
use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::sync::CancellationToken;

use super::{Answered, Ask, AskError, Backend, Edits, Env, Failure, Power, Shared, Step};
use crate::process::{self, End, Finished};
use crate::redact::Redactor;
use crate::routing::{self, Tier};

use stream::Seen;

pub(super) fn connect(backend: &routing::Backend, shared: &Shared) -> Result<Arc<dyn Backend>, AskError> {
    Ok(Arc::new(ClaudeCli { settings: backend.clone(), shared: shared.clone() }))
}

/// What the program is given as its environment, in every run.
pub(super) fn environment(settings: &routing::Backend, env: &Env) -> process::environment::Environment {
    call::environment(settings, &Worker::of(settings, env), env)
}

struct ClaudeCli {
    settings: routing::Backend,
    shared: Shared,
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
    fn of(settings: &routing::Backend, env: &Env) -> Self {
        let key =
            settings.api_key_env.as_ref().and_then(|var| Some(Key { var: var.clone(), secret: env.secret(var)? }));
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
        progress: &'a (dyn Fn(Step) + Send + Sync),
    ) -> BoxFuture<'a, Answered> {
        self.work(ask, tier, stop, progress).boxed()
    }
}

impl ClaudeCli {
    async fn work(
        &self,
        ask: &Ask,
        tier: &Tier,
        stop: &CancellationToken,
        progress: &(dyn Fn(Step) + Send + Sync),
    ) -> Answered {
        let worker = Worker::of(&self.settings, &self.shared.env);
        let (mut spec, mut notes) =
            call::spec(ask, tier, &self.settings, &worker, &self.shared.env).map_err(Failure::free)?;

        let began = Instant::now();
        // Each takes some 280 MB, so only so many run at once. The permit is held until nothing of the run is left.
        let _permit = match self.shared.workers.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                progress(Step::Queued);
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
        progress(Step::Asked);
        let (finished, seen) = self.watch(spec, stop, progress).await;
        if finished.leaked > 0 {
            notes.push(format!("processes left behind by the worker and ended: {}", finished.leaked));
        }
        if finished.containment == process::Containment::Group && !matches!(finished.end, End::CouldNotStart(_)) {
            notes.push("only the worker's process group could be held, not its whole tree".into());
        }
        verdict::judge(&worker, &finished, &seen, ask, tier, notes)
    }

    async fn watch(
        &self,
        mut spec: process::Spec,
        stop: &CancellationToken,
        progress: &(dyn Fn(Step) + Send + Sync),
    ) -> (Finished, Seen) {
        let (sink, mut lines) = process::lines();
        spec.on_line = Some(sink);
        let mut seen = Seen::default();
        let read = async {
            while let Some(line) = lines.next().await {
                if let Some(step) = seen.line(&line) {
                    progress(step);
                }
            }
        };
        let (finished, ()) = tokio::join!(self.shared.launcher.run(spec, stop), read);
        seen.missed = lines.missed();
        (finished, seen)
    }
}

/// True if the files of the project may have been changed.
fn may_edit(power: &Power) -> bool {
    matches!(power, Power::Edit { .. })
}
