//! One question and its answer, in words that every backend understands.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use supervisor_process::Guard;
use supervisor_settings::Model;

/// One question.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The discipline: rules that stand above the task.
    pub system: String,
    /// The task with everything that belongs to it. May hold untrusted text; it never becomes an argument.
    pub prompt: String,
    /// What the answer looks like: a JSON schema whose root is an object; null where the answer is text.
    pub schema: Value,
    pub power: Power,
    /// The project, where an agent is started.
    pub root: PathBuf,
    /// For all of it. The smaller of the tier's limit and what is left of the call.
    pub limit: Duration,
    /// Holds the project's lock and its restore while an agent works in it.
    pub guard: Option<Guard>,
    /// How many turns an agent may take, if not as many as its backend's settings say.
    pub max_turns: Option<NonZeroU32>,
    /// What an agent may spend; a backend that cannot be held to it ignores it.
    pub budget_usd: Option<f64>,
    /// The longest answer in tokens; none leaves it to the server.
    pub max_tokens: Option<u32>,
    /// Which ask of this tier it is, from 1: a further one is asked at a higher temperature, for another answer.
    pub attempt: u32,
}

impl Ask {
    /// A question without any power: nothing can be read or written beside the prompt.
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
            power: Power::None,
            root: root.into(),
            limit: Duration::from_secs(300),
            guard: None,
            max_turns: None,
            budget_usd: None,
            max_tokens: None,
            attempt: 1,
        }
    }
}

impl Ask {
    /// Edits that come as data are read from the whole text, in whatever shape it is; other answers are one object.
    pub fn wants_text(&self) -> bool {
        matches!(self.power, Power::Edit { .. })
    }

    /// The tokens after which the answer of this model is cut off, by the question or by its settings.
    pub(super) fn longest_answer(&self, model: &Model) -> Option<u32> {
        [self.max_tokens, model.max_tokens]
            .into_iter()
            .flatten()
            .min()
    }
}

/// What an agent may do in the project. Backends without tools only see from it whether edits are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Power {
    /// No tools at all: verifiers.
    None,
    /// Read and search.
    ReadOnly,
    /// Read, search, edit and create.
    Edit { shell: Shell },
}

/// Whether an editing agent may run the project's test command itself. What it sees there is never evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shell {
    Never,
    /// Only while no key is in the agent's environment: what it runs could read it.
    UnlessKey(Vec<String>),
    /// The user asked for it.
    Always(Vec<String>),
}

/// How a backend's edits come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edits {
    /// In the answer, for the server to apply.
    AsData,
    /// The files are changed when the answer comes, and possibly also when none comes.
    InPlace,
}

/// One answer. It has the form that was asked for, and nothing more is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The object; or a string, where [`Ask::wants_text`].
    pub body: Value,
    /// What was said, as far as it was kept; for the log.
    pub raw: String,
    /// Who says to have answered.
    pub model_answered: String,
    pub usage: Usage,
    /// What a reader of the log should know: tools refused, processes left behind.
    pub notes: Vec<String>,
}

/// What an ask used. `None` is unknown, which is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Nothing was used, for certain: the question did not reach a model.
    pub const NOTHING: Self = Self {
        tokens_in: Some(0),
        tokens_out: Some(0),
        cost_usd: Some(0.0),
    };

    /// Without figures that cannot be: what no model takes in and no user pays counts as unknown.
    #[must_use]
    pub fn plausible(self) -> Self {
        const MOST_TOKENS: u64 = 1_000_000_000;
        const MOST_USD: f64 = 10_000.0;
        let tokens = |n: Option<u64>| n.filter(|n| *n <= MOST_TOKENS);
        Self {
            tokens_in: tokens(self.tokens_in),
            tokens_out: tokens(self.tokens_out),
            cost_usd: self.cost_usd.filter(|usd| (0.0..=MOST_USD).contains(usd)),
        }
    }

    /// Both together. Unknown and known together are unknown.
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

/// What a backend is doing, for progress. Reads after a colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskStep {
    /// Too many agents are running already.
    Queued,
    Asked,
    /// The server did not take the form of the request, so it is asked again in a plainer one.
    AskedPlainly,
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
}

impl fmt::Display for AskStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queued => f.write_str("waiting for a free worker"),
            Self::Asked => f.write_str("asked"),
            Self::AskedPlainly => f.write_str("asked again without a response format"),
            Self::Retrying { attempt, of, why } => {
                write!(f, "its API failed ({why}), try {attempt} of {of}")
            }
            Self::Tool { name, on } if on.is_empty() => f.write_str(name),
            Self::Tool { name, on } => write!(f, "{name} {on}"),
            Self::Thinking => f.write_str("thinking"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_cannot_be_are_unknown_and_no_costs() {
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
