//! Statistics about models from the log: acceptance rates, durations, costs, and what always asking
//! the top tier would have cost. They use only the log, so every figure can be recomputed;
//! `docs/log.md` has the `jq` commands.

mod advice;
mod calls;
mod model;
mod worth;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

pub use advice::{ADVISED_BELOW, Advice, ENOUGH};
pub use calls::{CallTally, Calls, ComparedCosts, TopTierCost};
pub use model::{AnswerClass, ModelStats, ModelTally, nearest_rank};
pub use worth::{
    Change, ENOUGH_CALLS, Estimate, FalseAccepts, KindWorth, Worth, WorthAdvice, WorthTally,
};

use super::{CallRecord, Damage, LogError, SessionId, SessionLog};

/// Version of [`Stats`]. It changes when the meaning of a field changes, not when fields are added.
const VERSION: u32 = 1;
/// Maximum number of unreadable files that are listed; the rest are only counted.
const MAX_LISTED_FILES: usize = 5;

/// Which calls are counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Only calls that ended at this time or later.
    pub since: Option<Timestamp>,
    /// Only calls of this skill or skill family: `tdd` means `tdd_red`, `tdd_green` and
    /// `tdd_refactor`.
    pub skill: Option<String>,
    pub session: Option<SessionId>,
    /// Only calls in this directory or below.
    pub project: Option<PathBuf>,
}

/// Whether one call is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Counted; with its end time, if that can be parsed.
    Counts(Option<Timestamp>),
    /// Not counted: the filter has a start time, and the call has no readable time.
    Undated,
    LeftOut,
}

impl Filter {
    /// Whether this call is counted. Ignores the session, which decides which log is read.
    pub fn admit(&self, record: &CallRecord) -> Admission {
        let entry = &record.entry;
        if self
            .skill
            .as_ref()
            .is_some_and(|wanted| !is_of(&entry.tool, wanted))
        {
            return Admission::LeftOut;
        }
        let is_elsewhere = |project: &PathBuf| !Path::new(&entry.project_root).starts_with(project);
        if self.project.as_ref().is_some_and(is_elsewhere) {
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

/// The statistics. This is the output of `supervisor stats --json`: fields may be added, never
/// renamed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    pub v: u32,
    /// Logs with at least one counted call.
    pub sessions: usize,
    /// End of the first and of the last of these calls.
    pub from: Option<String>,
    pub to: Option<String>,
    /// Sorted by name.
    pub skills: Vec<SkillStats>,
    pub total: Calls,
    /// Sorted by path; calls without a project are under the empty one.
    pub projects: Vec<ProjectStats>,
    pub advice: Vec<Advice>,
    pub unread: UnreadEntries,
    /// For [`WorthTally::finish`], which needs what a minute is worth.
    #[serde(skip)]
    pub worth: WorthTally,
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

/// The calls in one project.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectStats {
    pub project: String,
    #[serde(flatten)]
    pub calls: Calls,
}

/// Parts of the logs that could not be counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UnreadEntries {
    /// Logs that could not be opened.
    pub files: usize,
    /// Truncated lines.
    pub torn: usize,
    /// Lines that are not an entry.
    pub broken: usize,
    pub too_long: usize,
    /// Attempts left out of an otherwise valid entry.
    pub attempts: usize,
    /// Calls without a readable time, left out because of a `since` filter.
    pub undated: usize,
    /// Counted, but written with an unknown `v`: the fields may mean something else.
    #[serde(skip_serializing_if = "is_zero")]
    pub newer: usize,
    /// Counted, but with a wrong digest: something else changed, added or removed lines.
    #[serde(skip_serializing_if = "is_zero")]
    pub tampered: usize,
    /// Why the first few files could not be opened.
    #[serde(skip)]
    pub first_errors: Vec<String>,
}

impl Stats {
    /// Reads all logs once, line by line. Memory use is eight bytes per attempt, for the
    /// percentiles.
    pub fn gather(log: &SessionLog, filter: &Filter) -> Result<Self, LogError> {
        let sessions = match &filter.session {
            Some(session) => vec![session.clone()],
            None => log.sessions()?,
        };
        let mut gathered = StatsBuilder::default();
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
    /// `None` if everything could be read.
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
        if self.first_errors.len() < MAX_LISTED_FILES {
            self.first_errors.push(error.to_string());
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

/// Statistics while they are being collected.
#[derive(Debug, Default)]
struct StatsBuilder {
    sessions: usize,
    /// The first and the last end time, as written in the log.
    span: Option<[(Timestamp, String); 2]>,
    skills: BTreeMap<String, SkillTally>,
    projects: BTreeMap<String, CallTally>,
    total: CallTally,
    worth: WorthTally,
    unread: UnreadEntries,
}

#[derive(Debug, Default)]
struct SkillTally {
    calls: CallTally,
    models: BTreeMap<String, ModelTally>,
}

impl StatsBuilder {
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
        let project = self.projects.entry(entry.project_root.clone());
        project.or_default().add(record);
        self.worth.add(record);
        let skill = self.skills.entry(entry.tool.clone()).or_default();
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
            advice: skills.iter().flat_map(advice::for_skill).collect(),
            skills,
            total: self.total.finish(),
            projects: self
                .projects
                .into_iter()
                .map(|(project, tally)| ProjectStats {
                    project,
                    calls: tally.finish(),
                })
                .collect(),
            unread: self.unread,
            worth: self.worth,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Whether `skill` is `wanted` or belongs to the family of that name.
pub fn is_of(skill: &str, wanted: &str) -> bool {
    skill
        .strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// Rounds to 1e-9 USD, to remove the rounding errors of float sums.
fn round_to_nano_usd(usd: f64) -> f64 {
    (usd * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skill_family_includes_its_skills() {
        assert!(
            is_of("tdd_green", "tdd") && is_of("tdd", "tdd") && is_of("tdd_green", "tdd_green")
        );
        assert!(!is_of("tddish", "tdd") && !is_of("tdd", "tdd_green") && !is_of("review", "tdd"));
    }

    #[test]
    fn unread_entries_are_summarized() {
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
