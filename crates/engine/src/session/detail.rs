//! One logged call with its stored texts. For people, reports and training data.

use super::{CallRecord, LogError, SessionId, SessionLog};
use crate::exchange::TextId;
use crate::{Attempt, Entry};

/// One call of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedCall {
    /// Position in the session, from 1.
    pub index: usize,
    pub record: CallRecord,
}

/// The stored texts of one question. Texts that were not stored or have been removed are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredExchange {
    pub rules: Option<String>,
    pub prompt: Option<String>,
    pub answer: Option<String>,
}

/// Selects calls of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallChoice {
    All,
    /// Position, from 1.
    Index(usize),
    /// The `call` field of its entry, or a prefix of it.
    Id(String),
}

impl LoggedCall {
    /// `session:3`, as notes cite it.
    pub fn citation(&self) -> String {
        format!("{}:{}", self.record.entry.session_id, self.index)
    }

    pub fn entry(&self) -> &Entry {
        &self.record.entry
    }
}

impl CallChoice {
    /// A number is a position, unless it is as long as an id.
    pub fn parse(text: &str) -> Self {
        match text.parse() {
            Ok(index) if text.len() < 8 => Self::Index(index),
            _ => Self::Id(text.to_owned()),
        }
    }

    fn matches(&self, index: usize, entry: &Entry) -> bool {
        match self {
            Self::All => true,
            Self::Index(wanted) => *wanted == index,
            Self::Id(id) => !id.is_empty() && entry.call.starts_with(id.as_str()),
        }
    }
}

impl SessionLog {
    /// The selected calls of a session, in order.
    pub fn calls(&self, id: &SessionId, choice: &CallChoice) -> Result<Vec<LoggedCall>, LogError> {
        let all = self.reader(id)?.enumerate().map(|(n, record)| LoggedCall {
            index: n + 1,
            record,
        });
        Ok(all
            .filter(|call| choice.matches(call.index, call.entry()))
            .collect())
    }

    /// The stored texts of each question of an attempt.
    pub fn exchanges(&self, attempt: &Attempt) -> Vec<StoredExchange> {
        let one = |kept: &crate::ExchangeRecord| StoredExchange {
            rules: self.kept_text(kept.rules.as_ref()),
            prompt: self.kept_text(kept.prompt.as_ref()),
            answer: self.kept_text(kept.answer.as_ref()),
        };
        attempt.exchange.iter().map(one).collect()
    }

    /// The change that an attempt made or tried, as a unified diff.
    pub fn kept_diff(&self, attempt: &Attempt) -> Option<String> {
        self.kept_text(attempt.diff.as_ref())
    }

    /// `None` for a text that was never stored, has been removed or cannot be read.
    fn kept_text(&self, id: Option<&TextId>) -> Option<String> {
        self.exchange().read(id?).ok().flatten()
    }
}
