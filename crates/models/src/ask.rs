//! One question to a model and its answer, independent of the backend.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use supervisor_process::ProjectGuard;
use supervisor_settings::Model;

/// One question.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Rules that take precedence over the task.
    pub system: String,
    /// The task with its context. It may contain untrusted text, so it is never passed as a
    /// command-line argument.
    pub prompt: String,
    /// JSON schema of the answer, with an object at its root. Null if the answer is text.
    pub schema: Value,
    pub tool_access: ToolAccess,
    /// Project directory in which an agent is started.
    pub root: PathBuf,
    /// Time limit for the whole question: the smaller of the tier's limit and the time left for the
    /// call. Waiting for a free worker does not count.
    pub limit: Duration,
    /// When the time of the call is over.
    pub deadline: Option<Instant>,
    /// Holds the project's lock and its restore point while an agent works in the project.
    pub guard: Option<ProjectGuard>,
    /// Maximum number of agent turns; overrides the backend's setting.
    pub max_turns: Option<NonZeroU32>,
    /// Spending limit for an agent. Backends that cannot enforce it ignore it.
    pub budget_usd: Option<f64>,
    /// Maximum answer length in tokens. `None` leaves it to the server.
    pub max_tokens: Option<u32>,
    /// Number of this attempt at the tier, from 1. Later attempts use a higher temperature to get a
    /// different answer.
    pub attempt: u32,
    /// Number of answers wanted. They are independent: none is shown to another.
    pub samples: u32,
    /// Number of this answer among several, from 0, if each is asked for separately.
    pub sample: Option<u32>,
    /// Time limit for all answers together.
    pub samples_limit: Duration,
}

impl Ask {
    /// A question without tool access: the model sees only the prompt.
    pub fn new(
        system: impl Into<String>,
        prompt: impl Into<String>,
        schema: Value,
        root: impl Into<PathBuf>,
    ) -> Self {
        Self {
            system: system.into(),
            prompt: prompt.into(),
            schema,
            tool_access: ToolAccess::None,
            root: root.into(),
            limit: Duration::from_secs(300),
            deadline: None,
            guard: None,
            max_turns: None,
            budget_usd: None,
            max_tokens: None,
            attempt: 1,
            samples: 1,
            sample: None,
            samples_limit: Duration::from_secs(300),
        }
    }
}

impl Ask {
    /// Edits returned as data may come in several formats, so they are read from the whole text.
    /// All other answers are one JSON object.
    pub fn wants_text(&self) -> bool {
        matches!(self.tool_access, ToolAccess::Edit { .. })
    }

    /// Whether this asks for one of several answers, which should differ.
    pub(super) fn is_sampled(&self) -> bool {
        self.samples > 1 || self.sample.is_some()
    }

    /// The question for one of several answers, within what is left of the time for all.
    pub(super) fn for_sample(&self, number: u32, began: Instant) -> Self {
        let left = self.samples_limit.saturating_sub(began.elapsed());
        Self {
            samples: 1,
            sample: Some(number),
            limit: self.limit.min(left),
            ..self.clone()
        }
    }

    /// The rules, with the schema of the answer if it has one. Servers that enforce a schema do not
    /// show it to the model, and without seeing it small models write nonsense of the right form.
    pub(super) fn rules_with_schema(&self) -> String {
        let mut rules = self.system.trim_end().to_owned();
        if !self.schema.is_null() {
            rules += "\n\nAnswer with one JSON object and nothing else: no prose, no code fence. It must match this JSON schema:\n";
            rules += &self.schema.to_string();
        }
        rules
    }

    /// The answer length limit in tokens: the smaller of the question's and the model's.
    pub(super) fn max_answer_tokens(&self, model: &Model) -> Option<u32> {
        [self.max_tokens, model.max_tokens]
            .into_iter()
            .flatten()
            .min()
    }
}

/// Tools an agent may use in the project. Backends without tools only check whether edits are
/// requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolAccess {
    /// No tools at all: verifiers.
    None,
    /// Read and search.
    ReadOnly,
    /// Read, search, edit and create.
    Edit { shell: Shell },
}

/// Whether an editing agent may run the project's test command itself. Its own test results never
/// count as evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shell {
    Never,
    /// Allowed only while the agent's environment holds no key, because the command could read it.
    UnlessKey(Vec<String>),
    /// The user asked for it.
    Always(Vec<String>),
}

/// How a backend returns edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edits {
    /// In the answer, for the server to apply.
    AsData,
    /// The agent changes the files itself, possibly even if it returns no answer.
    InPlace,
}

/// One answer in the requested form. Its content has not been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// A JSON object, or a string if [`Ask::wants_text`].
    pub body: Value,
    /// The raw answer, possibly truncated, for the log.
    pub raw: String,
    /// The model that the backend says has answered.
    pub model_answered: String,
    pub usage: Usage,
    /// Notes for the log: refused tools, leftover processes.
    pub notes: Vec<String>,
}

/// Tokens and money used by a question. `None` means unknown, not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Known to be zero, because the question did not reach a model.
    pub const ZERO: Self = Self {
        tokens_in: Some(0),
        tokens_out: Some(0),
        cost_usd: Some(0.0),
    };

    /// Replaces implausible figures with unknown.
    #[must_use]
    pub fn plausible(self) -> Self {
        const MAX_TOKENS: u64 = 1_000_000_000;
        const MAX_USD: f64 = 10_000.0;
        let tokens = |n: Option<u64>| n.filter(|n| *n <= MAX_TOKENS);
        Self {
            tokens_in: tokens(self.tokens_in),
            tokens_out: tokens(self.tokens_out),
            cost_usd: self.cost_usd.filter(|usd| (0.0..=MAX_USD).contains(usd)),
        }
    }

    /// Sum of both. The sum of a known and an unknown value is unknown.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let tokens = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
        Self {
            tokens_in: tokens(self.tokens_in, other.tokens_in),
            tokens_out: tokens(self.tokens_out, other.tokens_out),
            cost_usd: self.cost_usd.zip(other.cost_usd).map(|(a, b)| a + b),
        }
    }
}

/// A step of a backend for progress messages. Its text follows a colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskStep {
    /// Too many agents are running already.
    Queued,
    Asked,
    /// The server rejected the response format, so the question is sent again without it.
    AskedWithoutFormat,
    Retrying {
        attempt: u32,
        of: u32,
        why: String,
    },
    /// An agent uses a tool.
    Tool {
        name: String,
        on: String,
    },
    Thinking,
    /// The first part of the answer has arrived.
    Answering,
}

impl fmt::Display for AskStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queued => f.write_str("waiting for a free worker"),
            Self::Asked => f.write_str("asked"),
            Self::AskedWithoutFormat => f.write_str("asked again without a response format"),
            Self::Retrying { attempt, of, why } => {
                write!(f, "its API failed ({why}), try {attempt} of {of}")
            }
            Self::Tool { name, on } if on.is_empty() => f.write_str(name),
            Self::Tool { name, on } => write!(f, "{name} {on}"),
            Self::Thinking => f.write_str("thinking"),
            Self::Answering => f.write_str("answering"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implausible_figures_count_as_unknown() {
        let cost = |usd: f64| {
            Usage {
                cost_usd: Some(usd),
                ..Usage::default()
            }
            .plausible()
            .cost_usd
        };
        for absurd in [-0.01, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e12] {
            assert_eq!(cost(absurd), None, "{absurd}");
        }
        assert_eq!((cost(0.0), cost(1.5)), (Some(0.0), Some(1.5)));
        let tokens = Usage {
            tokens_in: Some(u64::MAX),
            tokens_out: Some(12),
            cost_usd: None,
        }
        .plausible();
        assert_eq!((tokens.tokens_in, tokens.tokens_out), (None, Some(12)));
    }
}
