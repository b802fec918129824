//! Calls in little room: what the charts and the list of a page need of each, names kept once.

use std::collections::HashMap;

use serde_json::{Value, json};

use supervisor_engine::session::stats::AnswerClass;
use supervisor_engine::session::{CallRecord, RecordedOutcome};
use supervisor_engine::{Attempt, Cause};
use supervisor_text::words;

/// Bytes of a call's message that its row shows; the whole is in its details.
const MESSAGE: usize = 240;

/// One call.
#[derive(Debug, Clone)]
pub(super) struct CallRow {
    /// Milliseconds since 1970 at which it ended, where the log has a time.
    pub(super) ended_ms: Option<i64>,
    pub(super) skill: usize,
    pub(super) outcome: RecordedOutcome,
    pub(super) project: usize,
    pub(super) session: usize,
    pub(super) duration_ms: u64,
    /// `None` where an attempt's cost is unknown.
    pub(super) cost_usd: Option<f64>,
    pub(super) top_tier_usd: Option<f64>,
    pub(super) attempts: Vec<AttemptRow>,
    pub(super) message: String,
}

/// One attempt of a call that was really made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttemptRow {
    pub(super) model: usize,
    pub(super) cause: Option<Cause>,
    pub(super) class: AnswerClass,
    /// Among the reasons of a report, if it was not accepted.
    pub(super) reason: Option<usize>,
}

/// Strings that occur again and again.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

impl NameTable {
    pub(super) fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    pub(super) fn get(&self, place: usize) -> &str {
        &self.names[place]
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
        let asked = || entry.attempts.iter().filter(|attempt| attempt.was_asked());
        let attempts = asked().map(|attempt| AttemptRow {
            model: names.models.place(&attempt.model),
            cause: attempt.cause,
            class: AnswerClass::of(attempt),
            reason: reason(attempt),
        });
        Self {
            ended_ms,
            attempts: attempts.collect(),
            skill: names.skills.place(&entry.skill),
            outcome: record.outcome.clone(),
            project: names.projects.place(&entry.project_root),
            session: names.sessions.place(&entry.session_id),
            duration_ms: entry.duration_ms,
            cost_usd: asked().map(|attempt| attempt.cost_usd).sum(),
            top_tier_usd: entry.top_tier.as_ref().and_then(|top| top.cost_usd),
            message: words::cut_end(&entry.message, MESSAGE).into_owned(),
        }
    }

    /// As the page's script reads it: a list, since the names of fields would be most of it.
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
