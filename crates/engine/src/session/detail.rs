//! One call in full: its entry, and the texts beside the log that belong to it. For people, reports and training data.

use super::{CallRecord, LogError, SessionId, SessionLog};
use crate::exchange::TextId;
use crate::{Attempt, Entry};

/// One call of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedCall {
    /// Its place in the session, from 1.
    pub index: usize,
    pub record: CallRecord,
}

/// What was asked and answered in one question. What was not kept, or has gone, is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptExchange {
    pub rules: Option<String>,
    pub prompt: Option<String>,
    pub answer: Option<String>,
}

/// Which call of a session is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallChoice {
    All,
    /// From 1.
    Index(usize),
    /// The `call` of its entry, or the beginning of it.
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
    /// A number is a place, unless it is as long as an id.
    pub fn parse(text: &str) -> Self {
        match text.parse() {
            Ok(index) if text.len() < 8 => Self::Index(index),
            _ => Self::Id(text.to_owned()),
        }
    }

    fn fits(&self, index: usize, entry: &Entry) -> bool {
        match self {
            Self::All => true,
            Self::Index(wanted) => *wanted == index,
            Self::Id(id) => !id.is_empty() && entry.call.starts_with(id.as_str()),
        }
    }
}

impl SessionLog {
    /// The calls of a session that are meant, in their order.
    pub fn calls(&self, id: &SessionId, choice: &CallChoice) -> Result<Vec<LoggedCall>, LogError> {
        let all = self.reader(id)?.enumerate().map(|(n, record)| LoggedCall {
            index: n + 1,
            record,
        });
        Ok(all
            .filter(|call| choice.fits(call.index, call.entry()))
            .collect())
    }

    /// Each question of an attempt with its answer.
    pub fn exchanges(&self, attempt: &Attempt) -> Vec<KeptExchange> {
        let one = |kept: &crate::ExchangeRecord| KeptExchange {
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

    /// A text that was never kept, has gone or cannot be read is none.
    fn kept_text(&self, id: Option<&TextId>) -> Option<String> {
        self.exchange().read(id?).ok().flatten()
    }
}
