//! Compact rows with what the charts and the page's list need of each call. Names are interned.

use std::collections::HashMap;

use serde_json::{Value, json};

use supervisor_engine::session::stats::AnswerClass;
use supervisor_engine::session::{CallRecord, RecordedOutcome};
use supervisor_engine::{Attempt, Cause};
use supervisor_text::words;

/// Maximum bytes of a call's message in its row; the details have all of it.
const MAX_MESSAGE_BYTES: usize = 240;

/// One call.
#[derive(Debug, Clone)]
pub(super) struct CallRow {
    /// End time in milliseconds since 1970, if the log has one.
    pub(super) ended_ms: Option<i64>,
    pub(super) skill: usize,
    pub(super) outcome: RecordedOutcome,
    pub(super) project: usize,
    pub(super) session: usize,
    pub(super) duration_ms: u64,
    /// `None` if the cost of an attempt is unknown.
    pub(super) cost_usd: Option<f64>,
    pub(super) top_tier_usd: Option<f64>,
    pub(super) attempts: Vec<AttemptRow>,
    pub(super) message: String,
}

/// One attempt in which the model was really asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttemptRow {
    pub(super) model: usize,
    pub(super) cause: Option<Cause>,
    pub(super) class: AnswerClass,
    /// Index of the reason, if it was not accepted.
    pub(super) reason: Option<usize>,
}

/// Interned strings.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    names: Vec<String>,
    indices: HashMap<String, usize>,
}

impl NameTable {
    pub(super) fn intern(&mut self, name: &str) -> usize {
        if let Some(index) = self.indices.get(name) {
            return *index;
        }
        self.names.push(name.to_owned());
        self.indices.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    pub(super) fn get(&self, index: usize) -> &str {
        &self.names[index]
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }
}

/// All names of a report.
#[derive(Debug, Default)]
pub(super) struct ReportNames {
    pub(super) skills: NameTable,
    pub(super) models: NameTable,
    pub(super) projects: NameTable,
    pub(super) sessions: NameTable,
}

impl CallRow {
    pub(super) fn of(
        record: &CallRecord,
        ended_ms: Option<i64>,
        names: &mut ReportNames,
        mut reason: impl FnMut(&Attempt) -> Option<usize>,
    ) -> Self {
        let entry = &record.entry;
        let asked_attempts = || entry.attempts.iter().filter(|attempt| attempt.was_asked());
        let attempts = asked_attempts().map(|attempt| AttemptRow {
            model: names.models.intern(&attempt.model),
            cause: attempt.cause,
            class: AnswerClass::of(attempt),
            reason: reason(attempt),
        });
        Self {
            ended_ms,
            attempts: attempts.collect(),
            skill: names.skills.intern(&entry.tool),
            outcome: record.outcome.clone(),
            project: names.projects.intern(&entry.project_root),
            session: names.sessions.intern(&entry.session_id),
            duration_ms: entry.duration_ms,
            cost_usd: asked_attempts().map(|attempt| attempt.cost_usd).sum(),
            top_tier_usd: entry.top_tier.as_ref().and_then(|top| top.cost_usd),
            message: words::cut_end(&entry.message, MAX_MESSAGE_BYTES).into_owned(),
        }
    }

    /// The row as the page's script reads it: an array, because field names would be most of the
    /// data.
    pub(super) fn to_json(&self) -> Value {
        let attempts: Vec<Value> = self
            .attempts
            .iter()
            .map(|attempt| {
                json!([
                    attempt.model,
                    attempt.cause.map(Cause::word),
                    attempt.reason
                ])
            })
            .collect();
        json!([
            self.ended_ms,
            self.skill,
            self.outcome.word(),
            self.duration_ms,
            self.cost_usd.map(|usd| (usd * 1e6).round() / 1e6),
            self.project,
            self.session,
            attempts,
            self.message,
        ])
    }

    pub(super) fn is_accepted(&self) -> bool {
        self.attempts
            .last()
            .is_some_and(|last| last.class == AnswerClass::Accepted)
    }
}
