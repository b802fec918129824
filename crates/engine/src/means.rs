//! What calls share: the backends, who is not worth asking now, what sessions may still spend, what is secret.
//! Made once by the code that starts the engine.

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::attempt::Attempt;
use super::budget::{Amounts, Budget};
use super::entry::Entry;
use super::event::Listener;
use super::exchange::{ExchangeRecord, ExchangeTexts, TextId};
use super::policy::{TaskClass, TurnRecord};
use supervisor_models::Backends;
use supervisor_models::breaker::Breaker;
use supervisor_models::warm::Warmth;
use supervisor_settings as routing;
use supervisor_settings::{EditFormat, Tier};
use supervisor_text::prompts::Prompts;
use supervisor_text::redact::Redactor;

/// What the engine works with.
pub struct Means {
    pub backends: Backends,
    pub breaker: Breaker,
    pub warmth: Warmth,
    pub redactor: Arc<Redactor>,
    pub prompts: Prompts,
    pub recorder: Arc<dyn Recorder>,
    pub budgets: SessionBudgets,
    pub experience: Arc<dyn Experience>,
    /// What is known from earlier work; `None`: nothing.
    pub recollection: Option<Arc<dyn Recollection>>,
}

impl std::fmt::Debug for Means {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Means")
            .field("prompts", &self.prompts)
            .field("budgets", &self.budgets)
            .finish_non_exhaustive()
    }
}

/// Who keeps the entries. The engine does not know where.
pub trait Recorder: Send + Sync {
    /// The id under which a call is kept: the one that was written, if it can be one, else a new one.
    fn session(&self, written: Option<&str>) -> Result<String, String>;

    /// Can an entry of this session be kept? Asked before a call begins.
    fn ready(&self, session: &str) -> Result<(), String>;

    /// Shows the call to observers outside, until the answer is dropped.
    fn show_live(&self, call: &LiveHeader) -> Box<dyn LiveRecord> {
        let _ = call;
        Box::new(())
    }

    /// Notes that a call has begun, with what is known of it. Should this process die, the next one writes its entry.
    fn begin(&self, entry: &Entry) -> Result<Box<dyn OpenRecord>, String>;

    /// Keeps what was asked and what came back, as far as that is wanted; what cannot be kept is left out.
    fn keep_exchange(&self, texts: &ExchangeTexts) -> ExchangeRecord;

    /// The same for a change.
    fn keep_diff(&self, diff: &str) -> Option<TextId>;

    /// Where a kept text is found, for a person.
    fn locate(&self, text: &TextId) -> Option<PathBuf>;
}

/// A call that begins, as those who watch are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveHeader {
    pub session_id: String,
    pub skill: String,
    #[serde(default)]
    pub phase: String,
    #[serde(default)]
    pub project_root: String,
    /// RFC 3339, UTC.
    pub began: String,
    /// The models in their order.
    #[serde(default)]
    pub chain: Vec<String>,
}

/// A call that can be watched. What cannot be shown stops nothing.
pub trait LiveRecord: Listener {
    /// Did an observer ask for its end?
    fn is_stop_wanted(&self) -> bool;
}

/// Cannot be watched.
impl LiveRecord for () {
    fn is_stop_wanted(&self) -> bool {
        false
    }
}

/// What is remembered of models' turns, over all sessions. The engine does not know where.
pub trait Experience: Send + Sync {
    /// The model's turns at tasks of this kind, and at all tasks together.
    fn turns(&self, model: &str, class: &TaskClass) -> (TurnRecord, TurnRecord);

    /// What `auto` settings of a model should be, as far as it was measured.
    fn hints(&self, model: &str) -> TierHints;

    /// Remembers what came of a call. The answer says why it could not be kept.
    fn note(&self, class: &TaskClass, attempts: &[Attempt]) -> Result<(), String>;
}

/// Remembers nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoExperience;

impl Experience for NoExperience {
    fn turns(&self, _: &str, _: &TaskClass) -> (TurnRecord, TurnRecord) {
        Default::default()
    }

    fn hints(&self, _: &str) -> TierHints {
        TierHints::default()
    }

    fn note(&self, _: &TaskClass, _: &[Attempt]) -> Result<(), String> {
        Ok(())
    }
}

/// What was measured about a model that settings leave open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TierHints {
    /// The form in which it is understood best.
    pub edit_format: Option<EditFormat>,
    /// Tokens of a question that it really takes in.
    pub window_tokens: Option<u32>,
}

impl TierHints {
    /// The tier with what was measured: the form where it is `auto`, the window where it is smaller than believed.
    pub(super) fn applied_to(self, tier: &mut Tier) {
        if let (EditFormat::Auto, Some(format)) = (tier.edit_format, self.edit_format) {
            tier.edit_format = format;
        }
        if let Some(tokens) = self.window_tokens {
            tier.model.context = tier.model.context.min(tokens);
        }
    }
}
/// The record of one call at work.
pub trait OpenRecord: Send + Sync {
    /// An attempt begins, or has ended.
    fn note(&self, attempt: &Attempt);

    /// Keeps the entry before the reply leaves. The answer says why it could not be kept.
    fn close(self: Box<Self>, entry: &Entry) -> Result<(), String>;
}

/// Who remembers earlier work. The engine does not know how.
pub trait Recollection: Send + Sync {
    /// What helps with a task, as text for its brief; empty if there is nothing.
    fn recall<'a>(&'a self, request: RecallRequest<'a>) -> RecalledText<'a>;
}

/// What a brief may carry of earlier work.
#[derive(Debug, Clone, Copy)]
pub struct RecallRequest<'a> {
    pub recall: routing::Recall,
    /// Absolute; empty where no project is involved.
    pub project_root: &'a str,
    pub task: &'a str,
    pub session: &'a str,
}

/// What was remembered, when it has been read.
pub type RecalledText<'a> = Pin<Box<dyn Future<Output = String> + Send + 'a>>;

/// What each session may still spend in this server's life.
#[derive(Debug)]
pub struct SessionBudgets {
    limits: Amounts,
    sessions: Mutex<HashMap<String, Budget>>,
}

impl SessionBudgets {
    pub fn new(limits: routing::BudgetSettings) -> Self {
        Self {
            limits: limits.into(),
            sessions: Mutex::default(),
        }
    }

    /// A call's own budget inside its session's.
    pub fn call(&self, session: &str, limits: routing::BudgetSettings) -> Budget {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions
            .entry(session.to_owned())
            .or_insert_with(|| Budget::new(self.limits));
        session.part(limits.into())
    }
}

impl From<routing::BudgetSettings> for Amounts {
    fn from(limits: routing::BudgetSettings) -> Self {
        Self {
            usd: limits.usd,
            tokens: limits.tokens,
            time: limits.time,
        }
    }
}
