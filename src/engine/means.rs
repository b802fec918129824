//! What calls share: the backends, who is not worth asking now, what sessions may still spend, what is secret.
//! Made once by whoever starts the engine.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::budget::{Amounts, Budget};
use super::entry::Entry;
use crate::backend::Backends;
use crate::backend::breaker::Breaker;
use crate::backend::warm::Warmth;
use crate::redact::Redactor;
use crate::routing;

/// What the engine works with.
pub struct Means {
    pub backends: Backends,
    pub breaker: Breaker,
    pub warmth: Warmth,
    pub redactor: Arc<Redactor>,
    /// The user's own prompts.
    pub prompts: Option<PathBuf>,
    pub recorder: Arc<dyn Recorder>,
    pub budgets: SessionBudgets,
}

impl std::fmt::Debug for Means {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Means").field("prompts", &self.prompts).field("budgets", &self.budgets).finish_non_exhaustive()
    }
}

/// Who keeps the entries. The engine does not know where.
pub trait Recorder: Send + Sync {
    /// Can an entry of this session be kept? Asked before a call begins.
    fn ready(&self, session: &str) -> Result<(), String>;

    /// Keeps the entry before the reply leaves. The answer says why it could not be kept.
    fn record(&self, entry: &Entry) -> Result<(), String>;
}

/// What each session may still spend in this server's life.
#[derive(Debug)]
pub struct SessionBudgets {
    limits: Amounts,
    sessions: Mutex<HashMap<String, Budget>>,
}

impl SessionBudgets {
    pub fn new(limits: routing::Budget) -> Self {
        Self { limits: amounts(limits), sessions: Mutex::default() }
    }

    /// A call's own budget inside its session's.
    pub fn call(&self, session: &str, limits: routing::Budget) -> Budget {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.entry(session.to_owned()).or_insert_with(|| Budget::new(self.limits));
        session.part(amounts(limits))
    }
}

fn amounts(limits: routing::Budget) -> Amounts {
    Amounts { usd: limits.usd, tokens: limits.tokens, time: limits.time }
}
