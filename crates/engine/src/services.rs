//! Services shared by all calls: backends, circuit breaker, session budgets, redaction, and the
//! traits through which the engine reaches the log, the model history and the memory. Created once
//! at startup.

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;

use serde::{Deserialize, Serialize};

use super::attempt::Attempt;
use super::budget::{Amounts, Budget, SharedBudget};
use super::entry::Entry;
use super::event::Listener;
use super::exchange::{ExchangeRecord, ExchangeTexts, TextId};
use super::policy::{MeasuredSamples, TaskClass, TurnRecord};
use super::spend_ledger::SpendLedger;
use supervisor_models::Backends;
use supervisor_models::breaker::Breaker;
use supervisor_models::warm::WarmCheck;
use supervisor_settings as routing;
use supervisor_settings::{EditFormat, Repair, Tier, Worker};
use supervisor_text::prompts::Prompts;
use supervisor_text::redact::Redactor;
use supervisor_verify::Execution;

/// Shared services of the engine.
pub struct Services {
    pub backends: Backends,
    pub breaker: Breaker,
    pub warmth: WarmCheck,
    pub redactor: Arc<Redactor>,
    pub prompts: Prompts,
    pub recorder: Arc<dyn Recorder>,
    pub budgets: SessionBudgets,
    pub model_history: Arc<dyn ModelHistory>,
    /// Notes from earlier work; `None` if there is no memory.
    pub note_source: Option<Arc<dyn NoteSource>>,
    /// Where test suites run.
    pub execution: Execution,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Means")
            .field("prompts", &self.prompts)
            .field("budgets", &self.budgets)
            .finish_non_exhaustive()
    }
}

/// Stores log entries and the texts that belong to them.
pub trait Recorder: Send + Sync {
    /// Returns the session id of a call: `requested` if given, otherwise a new one. Fails if
    /// `requested` is not a valid id.
    fn session(&self, requested: Option<&str>) -> Result<String, String>;

    /// Checks that an entry of this session can be stored. Called before a call begins.
    fn ready(&self, session: &str) -> Result<(), String>;

    /// Makes the call visible to other processes until the returned record is dropped.
    fn show_live(&self, call: &LiveHeader) -> Box<dyn LiveRecord> {
        let _ = call;
        Box::new(())
    }

    /// Records that a call has begun. If this process dies, the next one completes the entry.
    fn begin(&self, entry: &Entry) -> Result<Box<dyn OpenRecord>, String>;

    /// Stores prompt and answer, as far as the settings ask for it. Anything that cannot be stored
    /// is left out of the record.
    fn keep_exchange(&self, texts: &ExchangeTexts) -> ExchangeRecord;

    /// Stores a diff, like [`Self::keep_exchange`].
    fn keep_diff(&self, diff: &str) -> Option<TextId>;

    /// Path of a stored text, for messages to people.
    fn locate(&self, text: &TextId) -> Option<PathBuf>;
}

/// Description of a running call for `supervisor watch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveHeader {
    pub session_id: String,
    /// The `call` field of its entry.
    #[serde(default)]
    pub call: String,
    pub skill: String,
    #[serde(default)]
    pub phase: String,
    #[serde(default)]
    pub project_root: String,
    /// RFC 3339, UTC.
    pub began: String,
    /// Model names, in chain order.
    #[serde(default)]
    pub chain: Vec<String>,
}

/// A call that other processes can watch. Failures to publish never stop the call.
pub trait LiveRecord: Listener {
    /// Whether an observer has asked to stop the call.
    fn is_stop_requested(&self) -> bool;
}

/// A record that nobody can watch.
impl LiveRecord for () {
    fn is_stop_requested(&self) -> bool {
        false
    }
}

/// How models did in earlier turns, over all sessions.
pub trait ModelHistory: Send + Sync {
    /// Returns the model's turns at tasks of this class, and at all tasks together.
    fn turns(&self, model: &str, class: &TaskClass) -> (TurnRecord, TurnRecord);

    /// Returns measured values for settings of the model that are `auto`.
    fn hints(&self, model: &str) -> TierHints;

    /// What was measured of each number of answers to a first ask, with this way to repair and to work.
    fn measured_samples(
        &self,
        model: &str,
        repair: Repair,
        worker: Worker,
    ) -> Vec<MeasuredSamples> {
        let _ = (model, repair, worker);
        Vec::new()
    }

    /// Records the attempts of a call. The error says why they could not be stored.
    fn note(&self, class: &TaskClass, attempts: &[Attempt]) -> Result<(), String>;
}

/// A history that stores nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModelHistory;

impl ModelHistory for NoModelHistory {
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

/// Measured properties of a model, for settings that leave them open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TierHints {
    /// The edit format that the model handles best.
    pub edit_format: Option<EditFormat>,
    /// Number of prompt tokens that the model really takes in.
    pub window_tokens: Option<u32>,
}

impl TierHints {
    /// Applies the hints to a tier: the edit format if it is `auto`, the window if it is smaller
    /// than configured.
    pub(super) fn apply_to(self, tier: &mut Tier) {
        if let (EditFormat::Auto, Some(format)) = (tier.edit_format, self.edit_format) {
            tier.edit_format = format;
        }
        if let Some(tokens) = self.window_tokens {
            tier.model.context = tier.model.context.min(tokens);
        }
    }
}
/// The open log record of a running call.
pub trait OpenRecord: Send + Sync {
    /// Records an attempt, once when it begins and once when it has ended.
    fn note(&self, attempt: &Attempt);

    /// Writes the final entry; called before the reply is sent. The error says why it could not be
    /// stored.
    fn close(self: Box<Self>, entry: &Entry) -> Result<(), String>;
}

/// Looks up notes from earlier work.
pub trait NoteSource: Send + Sync {
    /// Returns notes relevant to a task, as text for its prompt; empty if there are none.
    fn recall<'a>(&'a self, request: RecallRequest<'a>) -> RecallFuture<'a>;
}

/// Describes the task for which notes are looked up.
#[derive(Debug, Clone, Copy)]
pub struct RecallRequest<'a> {
    pub recall: routing::Recall,
    /// Absolute; empty if no project is involved.
    pub project_root: &'a str,
    pub task: &'a str,
    pub session: &'a str,
}

/// Future of the notes found.
pub type RecallFuture<'a> = Pin<Box<dyn Future<Output = String> + Send + 'a>>;

/// Remaining budget of each session, for the lifetime of this server.
#[derive(Debug)]
pub struct SessionBudgets {
    limits: Amounts,
    /// What is spent in all sessions, if there are caps on it.
    ledger: Option<Arc<SpendLedger>>,
    shared: Option<Arc<dyn SharedBudget>>,
    sessions: Mutex<HashMap<String, Budget>>,
}

impl SessionBudgets {
    pub fn new(limits: routing::BudgetSettings, ledger: Option<SpendLedger>) -> Self {
        Self {
            limits: limits.into(),
            ledger: ledger.map(Arc::new),
            shared: None,
            sessions: Mutex::default(),
        }
    }

    /// Every ask is reserved from this budget as well.
    #[must_use]
    pub fn with_shared(self, shared: Option<Arc<dyn SharedBudget>>) -> Self {
        Self { shared, ..self }
    }

    /// Creates the budget of a call in a project, inside its session's budget.
    pub fn call(&self, session: &str, project: &str, limits: routing::BudgetSettings) -> Budget {
        let mut sessions = self.sessions.lock();
        let session = sessions
            .entry(session.to_owned())
            .or_insert_with(|| Budget::new(self.limits).with_shared(self.shared.clone()));
        let call = session.sub_budget(limits.into());
        match &self.ledger {
            Some(ledger) => call.with_ledger(ledger.for_project(project)),
            None => call,
        }
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
