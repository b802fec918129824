//! Backend `replay`: answers from a file with one JSON object per line, for tests, demos and CI
//! without models. Each model's lines are used in order. Every question is appended to
//! `<file>.asked` for inspection. [`Recording`] writes such a file from any other backend.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::availability::{Availability, BackendStatus, ProbeConfig, TierOutage};
use super::probe::{AddressRole, Endpoint};
use super::{
    Ask, AskError, AskResult, AskStep, Backend, BackendFacts, BackendLocation, Edits, Env, Failure,
    FailureBlame, Reply, SharedResources, Usage, extract::required, object,
};
use supervisor_settings as routing;
use supervisor_settings::Tier;
use supervisor_text::redact::Redactor;

/// One recorded answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayLine {
    /// The model's name in the chain.
    pub model: String,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// Instead of `answer`: text as a model might send it, from which an object is extracted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Instead of an answer: `infra`, `quota`, `incapable`, `refused`, `setup`, or `hang`, which
    /// never answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Delay in milliseconds before the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_in: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_out: Option<u64>,
    /// If absent, computed from tokens and the model's prices where both are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

struct Replay {
    name: String,
    file: PathBuf,
    /// Number of lines used so far, by model.
    given: Mutex<HashMap<String, usize>>,
}

/// The kind `replay`.
pub(super) struct ReplayKind;

impl BackendFacts for ReplayKind {
    fn connect(
        &self,
        backend: &routing::BackendSettings,
        _: &SharedResources,
    ) -> Result<Arc<dyn Backend>, AskError> {
        let Some(file) = backend.file.as_deref() else {
            return Err(AskError::Misconfigured {
                setting: format!("backends.{}.file", backend.name),
                why: String::from("names no file with recorded answers"),
            });
        };
        Ok(Arc::new(Replay {
            name: backend.name.clone(),
            file: file.into(),
            given: Mutex::default(),
        }))
    }

    fn role(&self) -> Option<AddressRole> {
        None
    }

    fn endpoint(&self, _: &routing::BackendSettings, _: &Env) -> Option<Endpoint> {
        None
    }

    fn probe<'a>(
        &'a self,
        _: &'a routing::BackendSettings,
        _: &'a ProbeConfig,
        _: bool,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, BackendStatus> {
        Box::pin(async { BackendStatus::Nothing })
    }

    /// The file may not have been recorded yet.
    fn outage(&self, _: &Availability, tier: &Tier) -> Option<TierOutage> {
        let backend = &tier.backend.name;
        let file = tier.backend.file.as_deref().unwrap_or_default();
        let why = match fs::metadata(file) {
            // Check access without opening: opening a pipe would block.
            Ok(meta) if meta.is_file() => rustix::fs::access(file, rustix::fs::Access::READ_OK)
                .err()?
                .to_string(),
            Ok(_) => String::from("it is not a file"),
            Err(error) => error.to_string(),
        };
        Some(TierOutage {
            why: format!("`{backend}` has no recorded answers: `{file}` cannot be read: {why}"),
            hint: format!(
                "record them with `record` in another backend, or correct `backends.{backend}.file`"
            ),
        })
    }

    fn location(&self, backend: &routing::BackendSettings) -> BackendLocation {
        BackendLocation {
            verb: "replays",
            key: "file",
            value: backend.file.clone(),
        }
    }
}

impl Backend for Replay {
    fn edits(&self, _: &Tier) -> Edits {
        Edits::AsData
    }

    fn ask<'a>(
        &'a self,
        ask: &'a Ask,
        tier: &'a Tier,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(AskStep) + Send + Sync),
    ) -> BoxFuture<'a, AskResult> {
        Box::pin(async move {
            progress(AskStep::Asked);
            self.log_question(ask, tier)
                .map_err(Failure::without_cost)?;
            let line = self.next(tier).map_err(Failure::without_cost)?;
            line.play(&self.name, tier, ask, stop).await
        })
    }
}

impl Replay {
    fn misconfigured(&self, why: impl Into<String>) -> AskError {
        AskError::Misconfigured {
            setting: format!("backends.{}.file", self.name),
            why: why.into(),
        }
    }

    /// The next line for this model. The file is read again each time, because it may be written
    /// while the server runs.
    fn next(&self, tier: &Tier) -> Result<ReplayLine, AskError> {
        let text = fs::read_to_string(&self.file).map_err(|e| {
            self.misconfigured(format!("`{}` cannot be read: {e}", self.file.display()))
        })?;
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let n = given.entry(tier.name.to_string()).or_default();
        let mut seen = 0;
        for (number, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let line: ReplayLine = serde_json::from_str(line).map_err(|e| {
                self.misconfigured(format!(
                    "line {} of `{}`: {e}",
                    number + 1,
                    self.file.display()
                ))
            })?;
            if line.model == tier.name.0 {
                if seen == *n {
                    *n += 1;
                    return Ok(line);
                }
                seen += 1;
            }
        }
        Err(self.misconfigured(format!(
            "`{}` has no answer left for `{}` after {seen}",
            self.file.display(),
            tier.name
        )))
    }

    fn log_question(&self, ask: &Ask, tier: &Tier) -> Result<(), AskError> {
        let mut asked = self.file.clone().into_os_string();
        asked.push(".asked");
        let question = json!({"model": tier.name, "system": ask.system, "prompt": ask.prompt, "schema": ask.schema});
        append(Path::new(&asked), &question).map_err(|e| {
            self.misconfigured(format!(
                "`{}` cannot be written: {e}",
                Path::new(&asked).display()
            ))
        })
    }
}

impl ReplayLine {
    async fn play(
        self,
        backend: &str,
        tier: &Tier,
        ask: &Ask,
        stop: &CancellationToken,
    ) -> AskResult {
        let cost_usd = self
            .cost_usd
            .or_else(|| tier.model.price(self.tokens_in, self.tokens_out));
        let usage = Usage {
            tokens_in: self.tokens_in,
            tokens_out: self.tokens_out,
            cost_usd,
        };
        let model = tier.name.to_string();
        let fail = |why| {
            Err(Box::new(Failure {
                why,
                usage,
                notes: Vec::new(),
                answer: String::new(),
            }))
        };
        let wait = Duration::from_millis(self.wait_ms.unwrap_or_default());
        tokio::select! {
            () = stop.cancelled() => return fail(AskError::Cancelled),
            () = tokio::time::sleep(wait.min(ask.limit)) => {}
        }
        if wait > ask.limit {
            return fail(AskError::timed_out(tier, ask.limit));
        }
        if let Some(failure) = self.failure {
            let detail = String::from("recorded");
            return fail(match failure.as_str() {
                "infra" => AskError::ServerFailed {
                    backend: backend.into(),
                    status: 500,
                    detail,
                    blame: FailureBlame::Neither,
                },
                "quota" => AskError::RateLimited {
                    backend: backend.into(),
                    detail,
                    retry_after: None,
                },
                "incapable" => AskError::ContextTooLong { model, detail },
                "refused" => AskError::Declined { model, detail },
                "setup" => AskError::UnknownModel {
                    backend: backend.into(),
                    id: tier.model.id.clone(),
                    model,
                    detail,
                },
                "hang" => tokio::select! {
                    () = stop.cancelled() => AskError::Cancelled,
                    () = tokio::time::sleep(ask.limit) => AskError::timed_out(tier, ask.limit),
                },
                other => AskError::Misconfigured {
                    setting: format!("backends.{backend}.file"),
                    why: format!(
                        "`{other}` is not a failure: `infra`, `quota`, `incapable`, `refused`, `setup` or `hang`"
                    ),
                },
            });
        }
        let raw = self.text.unwrap_or_else(|| {
            self.answer
                .as_ref()
                .map(Value::to_string)
                .unwrap_or_default()
        });
        let body = match self.answer.filter(Value::is_object) {
            Some(body) => body,
            None if ask.wants_text() => Value::String(raw.clone()),
            None => match object(&raw, &required(&ask.schema)) {
                Ok(body) => Value::Object(body),
                Err(why) => {
                    let why = AskError::Malformed {
                        model,
                        why: why.to_string(),
                    };
                    return Err(Box::new(Failure {
                        why,
                        usage,
                        notes: Vec::new(),
                        answer: raw,
                    }));
                }
            },
        };
        Ok(Reply {
            body,
            raw,
            model_answered: model,
            usage,
            notes: Vec::new(),
        })
    }
}

/// Records another backend's answers for `replay`. Edits an agent makes in place are not part of
/// its answer.
pub struct Recording {
    inner: Arc<dyn Backend>,
    file: PathBuf,
    redactor: Arc<Redactor>,
}

impl Recording {
    pub fn new(inner: Arc<dyn Backend>, file: impl Into<PathBuf>, redactor: Arc<Redactor>) -> Self {
        Self {
            inner,
            file: file.into(),
            redactor,
        }
    }

    fn record(&self, tier: &Tier, answered: &AskResult) {
        let (usage, mut line) = match answered {
            Ok(Reply {
                usage,
                body: Value::String(text),
                ..
            }) => (
                *usage,
                ReplayLine {
                    text: Some(text.clone()),
                    ..ReplayLine::default()
                },
            ),
            Ok(reply) => (
                reply.usage,
                ReplayLine {
                    answer: Some(reply.body.clone()),
                    ..ReplayLine::default()
                },
            ),
            Err(failure) => (
                failure.usage,
                ReplayLine {
                    failure: Some(failure.why.cause().name().into()),
                    ..ReplayLine::default()
                },
            ),
        };
        line = ReplayLine {
            model: tier.name.to_string(),
            tokens_in: usage.tokens_in,
            tokens_out: usage.tokens_out,
            cost_usd: usage.cost_usd,
            ..line
        };
        let mut value = serde_json::to_value(line).expect("a line is plain data");
        self.redactor.redact_json(&mut value);
        if let Err(e) = append(&self.file, &value) {
            tracing::warn!(
                "an answer could not be recorded in `{}`: {e}",
                self.file.display()
            );
        }
    }
}

impl Backend for Recording {
    fn edits(&self, tier: &Tier) -> Edits {
        self.inner.edits(tier)
    }

    fn ask<'a>(
        &'a self,
        ask: &'a Ask,
        tier: &'a Tier,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(AskStep) + Send + Sync),
    ) -> BoxFuture<'a, AskResult> {
        Box::pin(async move {
            let answered = self.inner.ask(ask, tier, stop, progress).await;
            self.record(tier, &answered);
            answered
        })
    }

    fn ask_samples<'a>(
        &'a self,
        ask: &'a Ask,
        tier: &'a Tier,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(AskStep) + Send + Sync),
    ) -> BoxFuture<'a, Vec<AskResult>> {
        Box::pin(async move {
            let answered = self.inner.ask_samples(ask, tier, stop, progress).await;
            answered.iter().for_each(|one| self.record(tier, one));
            answered
        })
    }
}

/// Appends one line in one write, so that several servers can share a file.
fn append(path: &Path, line: &Value) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}
