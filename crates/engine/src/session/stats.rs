//! What the log says about the models: how often each was right, how long it took, what it cost, and what always
//! asking the top tier would have cost. Reads only the log, line by line, so every figure can be recomputed from it;
//! `docs/log.md` has the `jq` lines. Does not know how a table looks.

mod advice;
mod calls;
mod model;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

pub use advice::{ADVISED_BELOW, Advice, ENOUGH};
pub use calls::{CallTally, Calls};
pub use model::{AnswerClass, ModelStats, ModelTally, nearest_rank};

use super::{CallRecord, Damage, LogError, SessionId, SessionLog};

/// The shape of [`Stats`]; moves when the meaning of a field does, not when one is added.
const VERSION: u32 = 1;
/// Files that could not be opened, told one by one; the rest are counted.
const FILES_TOLD: usize = 5;

/// Which calls count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Those that ended then or later.
    pub since: Option<Timestamp>,
    /// Those of this skill, or of the family it names: `tdd` is `tdd_red`, `tdd_green` and `tdd_refactor`.
    pub skill: Option<String>,
    pub session: Option<SessionId>,
}

/// Whether one call counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It does; with the time at which it ended, where that can be read.
    Counts(Option<Timestamp>),
    /// Only calls since a time are wanted, and this one has none that can be read.
    Undated,
    LeftOut,
}

impl Filter {
    /// Does this call count? Its session is not looked at: that decides which log is read.
    pub fn admit(&self, record: &CallRecord) -> Admission {
        let entry = &record.entry;
        if self
            .skill
            .as_ref()
            .is_some_and(|wanted| !is_of(&entry.skill, wanted))
        {
            return Admission::LeftOut;
        }
        let ended: Option<Timestamp> = entry.timestamp.parse().ok();
        match (self.since, ended) {
            (Some(_), None) => Admission::Undated,
            (Some(since), Some(ended)) if ended < since => Admission::LeftOut,
            _ => Admission::Counts(ended),
        }
    }
}

/// What was found. Serialised it is the answer of `supervisor stats --json`: fields are added, never renamed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    pub v: u32,
    /// Logs with at least one call that counts.
    pub sessions: usize,
    /// When the first and the last of these calls ended.
    pub from: Option<String>,
    pub to: Option<String>,
    /// By name.
    pub skills: Vec<SkillStats>,
    pub total: Calls,
    pub advice: Vec<Advice>,
    pub unread: UnreadEntries,
}

/// One skill and the models that were asked for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkillStats {
    pub skill: String,
    #[serde(flatten)]
    pub calls: Calls,
    /// From local to managed tiers, then by name.
    pub models: Vec<ModelStats>,
}

/// What is in the logs and could not be counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UnreadEntries {
    /// Logs that could not be opened.
    pub files: usize,
    /// Lines that end too early.
    pub torn: usize,
    /// Lines that are no entry.
    pub broken: usize,
    pub too_long: usize,
    /// Attempts left out of an entry otherwise sound.
    pub attempts: usize,
    /// Calls without a time that can be read, left out because only those since a time were wanted.
    pub undated: usize,
    /// Counted, but by a `v` that is not known here: what they say may mean something else.
    #[serde(skip_serializing_if = "is_none")]
    pub newer: usize,
    /// Counted, but they do not follow from the line before: something else changed, added or removed lines.
    #[serde(skip_serializing_if = "is_none")]
    pub tampered: usize,
    /// Why the first few files could not be opened.
    #[serde(skip)]
    pub told: Vec<String>,
}

impl Stats {
    /// Goes through the logs once. Beyond one line at a time it holds eight bytes for each attempt, for the percentiles.
    pub fn gather(log: &SessionLog, filter: &Filter) -> Result<Self, LogError> {
        let sessions = match &filter.session {
            Some(session) => vec![session.clone()],
            None => log.sessions()?,
        };
        let mut gathered = GatheredFigures::default();
        for session in sessions {
            let mut reader = match log.reader(&session) {
                Ok(reader) => reader,
                Err(error) => {
                    gathered.unread.file(&error);
                    continue;
                }
            };
            let before = gathered.total.calls();
            for record in reader.by_ref() {
                gathered.add(&record, filter);
            }
            gathered.unread.lines(reader.damage());
            gathered.sessions += usize::from(gathered.total.calls() > before);
        }
        Ok(gathered.finish())
    }

    pub fn is_empty(&self) -> bool {
        self.total.calls == 0
    }
}

impl UnreadEntries {
    /// Nothing, if everything was read.
    pub fn summary(&self) -> Option<String> {
        let damage = Damage {
            torn: self.torn,
            broken: self.broken,
            too_long: self.too_long,
            attempts: self.attempts,
            ..Damage::default()
        };
        let files = (self.files > 0).then(|| {
            format!(
                "{} could not be opened",
                supervisor_text::words::count(self.files, "log")
            )
        });
        let undated = (self.undated > 0).then(|| {
            format!(
                "{} left out: no time",
                supervisor_text::words::count(self.undated, "call")
            )
        });
        let parts: Vec<String> = [files, damage.summary(), undated]
            .into_iter()
            .flatten()
            .collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    pub fn file(&mut self, error: &LogError) {
        self.files += 1;
        if self.told.len() < FILES_TOLD {
            self.told.push(error.to_string());
        }
    }

    pub fn lines(&mut self, damage: &Damage) {
        self.torn += damage.torn;
        self.broken += damage.broken;
        self.too_long += damage.too_long;
        self.attempts += damage.attempts;
        self.tampered += damage.tampered;
    }
}

/// The figures on their way.
#[derive(Debug, Default)]
struct GatheredFigures {
    sessions: usize,
    /// The first and the last, as they are written in the log.
    span: Option<[(Timestamp, String); 2]>,
    skills: BTreeMap<String, SkillTally>,
    total: CallTally,
    unread: UnreadEntries,
}

#[derive(Debug, Default)]
struct SkillTally {
    calls: CallTally,
    models: BTreeMap<String, ModelTally>,
}

impl GatheredFigures {
    fn add(&mut self, record: &CallRecord, filter: &Filter) {
        let entry = &record.entry;
        let ended = match filter.admit(record) {
            Admission::Counts(ended) => ended,
            Admission::Undated => {
                self.unread.undated += 1;
                return;
            }
            Admission::LeftOut => return,
        };
        if let Some(ended) = ended {
            let this = || (ended, entry.timestamp.clone());
            let [first, last] = self.span.get_or_insert_with(|| [this(), this()]);
            if ended < first.0 {
                *first = this();
            } else if ended > last.0 {
                *last = this();
            }
        }
        self.unread.newer += usize::from(entry.v > crate::entry::VERSION);
        self.total.add(record);
        let skill = self.skills.entry(entry.skill.clone()).or_default();
        skill.calls.add(record);
        for attempt in &entry.attempts {
            skill
                .models
                .entry(attempt.model.clone())
                .or_default()
                .add(attempt);
        }
    }

    fn finish(self) -> Stats {
        let (from, to) = self
            .span
            .map(|[(_, first), (_, last)]| (first, last))
            .unzip();
        let mut skills = Vec::new();
        for (skill, tally) in self.skills {
            let mut models: Vec<ModelStats> = tally
                .models
                .into_iter()
                .map(|(model, tally)| tally.finish(model))
                .collect();
            models.sort_by(|a, b| (a.tier, &a.model).cmp(&(b.tier, &b.model)));
            skills.push(SkillStats {
                skill,
                calls: tally.calls.finish(),
                models,
            });
        }
        Stats {
            v: VERSION,
            sessions: self.sessions,
            from,
            to,
            advice: skills.iter().flat_map(advice::of).collect(),
            skills,
            total: self.total.finish(),
            unread: self.unread,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Is it this skill, or one of the family of that name?
pub fn is_of(skill: &str, wanted: &str) -> bool {
    skill
        .strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// Sums of money without the dust that adding leaves behind.
fn dusted(usd: f64) -> f64 {
    (usd * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_stands_for_its_skills() {
        assert!(
            is_of("tdd_green", "tdd") && is_of("tdd", "tdd") && is_of("tdd_green", "tdd_green")
        );
        assert!(!is_of("tddish", "tdd") && !is_of("tdd", "tdd_green") && !is_of("review", "tdd"));
    }

    #[test]
    fn what_could_not_be_read_is_one_sentence() {
        let unread = UnreadEntries {
            files: 1,
            torn: 2,
            undated: 1,
            ..UnreadEntries::default()
        };
        assert_eq!(
            unread.summary().as_deref(),
            Some(
                "1 log could not be opened; 2 lines could not be read (2 torn); 1 call left out: no time"
            )
        );
        assert_eq!(UnreadEntries::default().summary(), None);
    }
}
