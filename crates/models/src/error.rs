//! Why there is no answer. Variants carry the data that the next step needs; cause, blame and hint
//! are derived from them here.

use std::time::Duration;

use super::Usage;
use supervisor_settings::Tier;

/// Why there is no answer. The text is a fragment that follows a colon and contains no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    #[error("`{backend}` at {address} cannot be reached: {why}")]
    Unreachable {
        backend: String,
        address: String,
        why: String,
    },
    #[error("`{model}` gave no answer within {} s", seconds(*.waited))]
    TimedOut {
        model: String,
        waited: Duration,
        /// The setting that determined the limit.
        setting: String,
    },
    #[error("`{backend}` gave up on `{model}` after {} s, before the limit was reached{}", seconds(*.waited), detail_suffix(.detail))]
    GaveUpEarly {
        backend: String,
        model: String,
        waited: Duration,
        detail: String,
    },
    #[error("`{backend}` failed with status {status}{}", detail_suffix(.detail))]
    ServerFailed {
        backend: String,
        status: u16,
        detail: String,
        /// A gateway that reports a dead model is itself alive.
        blame: FailureBlame,
    },
    #[error("`{model}` is still being loaded")]
    Loading {
        model: String,
        retry_after: Option<Duration>,
    },
    #[error("`{model}` sent no usable answer: {why}")]
    Malformed { model: String, why: String },
    #[error("`{program}` ended without a result: {why}")]
    Crashed { program: String, why: String },
    #[error("the question never reached the model{}", detail_suffix(.detail))]
    NotAsked { detail: String },
    #[error("no worker became free within {} s", .waited.as_secs())]
    NoWorker { waited: Duration },

    #[error("`{backend}` limits the rate of requests{}", detail_suffix(.detail))]
    RateLimited {
        backend: String,
        detail: String,
        retry_after: Option<Duration>,
    },
    #[error("`{backend}` has no credit left{}", detail_suffix(.detail))]
    NoCredit { backend: String, detail: String },
    #[error("`{model}` takes no more requests for now{}", detail_suffix(.detail))]
    Crowded {
        model: String,
        detail: String,
        retry_after: Option<Duration>,
    },

    #[error("the prompt is too long for `{model}`{}", detail_suffix(.detail))]
    ContextTooLong { model: String, detail: String },
    #[error(
        "`{model}` saw only {seen_tokens} tokens of a prompt of {sent_bytes} bytes: it was cut silently"
    )]
    PromptCut {
        model: String,
        sent_bytes: usize,
        seen_tokens: u64,
    },
    #[error("the answer of `{model}` was cut off at its length limit")]
    AnswerCut { model: String },
    #[error("`{model}` cannot take this request{}", detail_suffix(.detail))]
    Unsupported { model: String, detail: String },
    #[error("`{model}` used up its {turns} turns")]
    TurnsUsedUp { model: String, turns: u32 },

    #[error("`{model}` declined{}", detail_suffix(.detail))]
    Declined { model: String, detail: String },

    #[error("`{backend}` requires a key{}", detail_suffix(.detail))]
    NoKey {
        backend: String,
        var: Option<String>,
        detail: String,
    },
    #[error("`{backend}` refused the key{}", detail_suffix(.detail))]
    KeyRefused {
        backend: String,
        var: Option<String>,
        detail: String,
    },
    #[error("the server behind `{backend}` refused the gateway's own key{}", detail_suffix(.detail))]
    UpstreamKeyRefused { backend: String, detail: String },
    #[error("`{backend}` does not know the model `{id}`{}", detail_suffix(.detail))]
    UnknownModel {
        backend: String,
        model: String,
        id: String,
        detail: String,
    },
    #[error("`{address}` is not an OpenAI-compatible address{}", detail_suffix(.detail))]
    WrongAddress {
        backend: String,
        address: String,
        detail: String,
    },
    #[error("`{model}` was asked, but `{answered}` answered")]
    OtherModel {
        backend: String,
        model: String,
        answered: String,
    },
    #[error("`{backend}` cannot be started: {why}")]
    NoProgram { backend: String, why: String },
    #[error("`{backend}` is not logged in{}", detail_suffix(.detail))]
    NotLoggedIn { backend: String, detail: String },
    #[error("`{program}` refused to start{}", detail_suffix(.detail))]
    CallRefused { program: String, detail: String },
    #[error("`{setting}`: {why}")]
    Misconfigured { setting: String, why: String },

    #[error("the budget of this call would be crossed by `{model}`")]
    BudgetUsedUp { model: String },
    #[error("the call was cancelled")]
    Cancelled,
}

/// The kind of failure. The names are those of the session log; the engine adds its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureCause {
    Infra,
    Quota,
    Incapable,
    Refused,
    Setup,
    Budget,
    Cancelled,
}

impl FailureCause {
    pub fn name(self) -> &'static str {
        match self {
            Self::Infra => "infra",
            Self::Quota => "quota",
            Self::Incapable => "incapable",
            Self::Refused => "refused",
            Self::Setup => "setup",
            Self::Budget => "budget",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The part of the breaker that a failure counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureBlame {
    /// Everything behind this address or login.
    Endpoint,
    /// This model only; other models of the endpoint may be fine.
    Model,
    /// Neither: the failure depends on the question, or only a person can fix it.
    Neither,
}

impl AskError {
    /// The time limit of a question was reached.
    pub(super) fn timed_out(tier: &Tier, waited: Duration) -> Self {
        // A wait shorter than the tier's limit means that the whole call ran out of time.
        let setting = if waited < tier.limit {
            "budgets.call_s"
        } else {
            &tier.limit_by
        };
        Self::TimedOut {
            model: tier.name.0.clone(),
            waited,
            setting: setting.to_owned(),
        }
    }

    /// Used as address if only the program knows it.
    pub(super) const ITS_API: &str = "its API";

    pub fn cause(&self) -> FailureCause {
        match self {
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::GaveUpEarly { .. }
            | Self::ServerFailed { .. }
            | Self::Loading { .. }
            | Self::Malformed { .. }
            | Self::Crashed { .. }
            | Self::NotAsked { .. }
            | Self::NoWorker { .. } => FailureCause::Infra,
            Self::RateLimited { .. } | Self::NoCredit { .. } | Self::Crowded { .. } => {
                FailureCause::Quota
            }
            Self::ContextTooLong { .. }
            | Self::PromptCut { .. }
            | Self::AnswerCut { .. }
            | Self::Unsupported { .. }
            | Self::TurnsUsedUp { .. } => FailureCause::Incapable,
            Self::Declined { .. } => FailureCause::Refused,
            Self::NoKey { .. }
            | Self::KeyRefused { .. }
            | Self::UpstreamKeyRefused { .. }
            | Self::UnknownModel { .. }
            | Self::WrongAddress { .. }
            | Self::OtherModel { .. }
            | Self::NoProgram { .. }
            | Self::NotLoggedIn { .. }
            | Self::CallRefused { .. }
            | Self::Misconfigured { .. } => FailureCause::Setup,
            Self::BudgetUsedUp { .. } => FailureCause::Budget,
            Self::Cancelled => FailureCause::Cancelled,
        }
    }

    /// The part of the breaker that the failure counts against. Configuration errors are not counted, so that
    /// they work at once when fixed.
    pub fn blame(&self) -> FailureBlame {
        match self {
            Self::ServerFailed { blame, .. } => *blame,
            Self::Unreachable { .. } | Self::RateLimited { .. } | Self::NoCredit { .. } => {
                FailureBlame::Endpoint
            }
            // A crash with one model says nothing about the next: Opus is asked after Sonnet
            // failed.
            Self::TimedOut { .. }
            | Self::GaveUpEarly { .. }
            | Self::Crashed { .. }
            | Self::Loading { .. }
            | Self::Malformed { .. }
            | Self::Crowded { .. } => FailureBlame::Model,
            _ => FailureBlame::Neither,
        }
    }

    /// The wait the server asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. }
            | Self::Crowded { retry_after, .. }
            | Self::Loading { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The setting, variable or command that fixes it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unreachable {
                backend, address, ..
            } if address == Self::ITS_API => {
                format!(
                    "check the network and the proxy variables, or set `backends.{backend}.base_url`"
                )
            }
            Self::Unreachable { backend, .. } => {
                format!("start it, or correct `backends.{backend}.base_url`")
            }
            Self::TimedOut { setting, .. } => format!("raise `{setting}`"),
            Self::GaveUpEarly { backend, .. } => {
                format!(
                    "raise the time limit of the server behind `{backend}` (LiteLLM: `timeout`, `request_timeout`)"
                )
            }
            Self::ServerFailed { backend, .. } => {
                format!("try later, or see the log of the server behind `{backend}`")
            }
            Self::Loading { model, .. } => {
                format!("load `{model}` before, or raise `limits.local_s`")
            }
            Self::Malformed { model, .. } => {
                format!("if it happens often, drop `{model}` from the chain")
            }
            Self::Crashed { program, .. } => format!("run `{program} --version` by hand"),
            Self::NoWorker { .. } => "raise `max_workers`, if the machine has the memory".into(),
            Self::NotAsked { .. } | Self::Declined { .. } | Self::Cancelled => return None,
            Self::RateLimited { backend, .. } => {
                format!("wait, or put a model of another backend than `{backend}` into the chain")
            }
            Self::NoCredit { backend, .. } => {
                format!("add credit for `{backend}`, or use another backend in the chain")
            }
            Self::Crowded { model, .. } => {
                format!(
                    "raise the server's limits for `{model}` (LiteLLM `cooldown_time`, llama-swap `concurrencyLimit`)"
                )
            }
            Self::ContextTooLong { model, .. } => {
                format!("set `models.\"{model}\".context` to what the server really allows")
            }
            Self::PromptCut { model, .. } => format!(
                "raise the server's window (Ollama: `OLLAMA_CONTEXT_LENGTH` or `num_ctx`), \
                 or set `models.\"{model}\".context` to it"
            ),
            Self::AnswerCut { model } => {
                format!(
                    "raise `models.\"{model}\".max_tokens` if it is set, else the server's own limit (`num_predict`)"
                )
            }
            Self::Unsupported { model, .. } => {
                format!("see `models.\"{model}\"`, or drop it from the chain")
            }
            Self::TurnsUsedUp { .. } => {
                "give it a smaller task, or put a stronger model into the chain".into()
            }
            Self::NoKey { backend, var, .. } => match var {
                Some(var) => format!("set ${var}, which `backends.{backend}.api_key_env` names"),
                None => {
                    format!("name the variable that holds it in `backends.{backend}.api_key_env`")
                }
            },
            Self::KeyRefused { backend, var, .. } => match var {
                Some(var) => {
                    format!("correct ${var}, which `backends.{backend}.api_key_env` names")
                }
                None => format!(
                    "name the variable that holds the right one in `backends.{backend}.api_key_env`"
                ),
            },
            Self::UpstreamKeyRefused { .. } => {
                "correct `litellm_params.api_key` of this model in the gateway".into()
            }
            Self::UnknownModel { backend, model, .. } => {
                format!("set `models.\"{model}\".id` to its name at `{backend}`, or add it there")
            }
            Self::WrongAddress { backend, .. } => format!("correct `backends.{backend}.base_url`"),
            Self::OtherModel { backend, .. } => {
                format!("switch the fallbacks of `{backend}` off for this model")
            }
            Self::NoProgram { backend, .. } => {
                format!("its path can be given in `backends.{backend}.program`")
            }
            Self::NotLoggedIn { backend, .. } => {
                format!(
                    "run `claude` once and log in, or name a key's variable in `backends.{backend}.api_key_env`"
                )
            }
            Self::CallRefused { program, .. } => {
                format!("update `{program}`, and see its settings in models.toml")
            }
            Self::Misconfigured { setting, .. } => format!("correct `{setting}` in models.toml"),
            Self::BudgetUsedUp { .. } => "raise `budget_usd` of the call".into(),
        })
    }

    /// The message for the user: the error and its hint.
    pub fn message(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }
}

/// A question without an answer, and what it cost nevertheless.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{why}")]
pub struct Failure {
    pub why: AskError,
    pub usage: Usage,
    pub notes: Vec<String>,
    /// The unusable answer, redacted; empty if there was none.
    pub answer: String,
}

impl Failure {
    /// The question did not reach a model, so it cost nothing.
    pub fn without_cost(why: AskError) -> Box<Self> {
        Box::new(Self {
            why,
            usage: Usage::ZERO,
            notes: Vec::new(),
            answer: String::new(),
        })
    }

    /// A model may have worked on the question, so the cost is unknown.
    pub fn with_unknown_cost(why: AskError) -> Box<Self> {
        Box::new(Self {
            why,
            usage: Usage::default(),
            notes: Vec::new(),
            answer: String::new(),
        })
    }

    /// Attaches the unusable answer.
    #[must_use]
    pub fn with_answer(mut self: Box<Self>, answer: impl Into<String>) -> Box<Self> {
        self.answer = answer.into();
        self
    }
}

/// Whole seconds, with tenths below ten.
fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 10.0 && s.fract() > 0.05 => format!("{s:.1}"),
        s => format!("{s:.0}"),
    }
}

fn detail_suffix(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!(": {detail}")
    }
}
