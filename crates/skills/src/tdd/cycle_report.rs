//! Builds the result of a `tdd` call: one line per criterion. The result stays in the caller's
//! context and costs tokens in every later turn, so everything else goes to the log and to the
//! full-result file.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::common::{Commit, count_criteria};
use supervisor_engine::result::{CallResult, Status};
use supervisor_engine::{Attempt, TopTier};
use supervisor_text::words;

/// Maximum bytes of the line about one criterion.
const MAX_LINE_BYTES: usize = 100;
/// Maximum bytes of all changed file names together; the rest are counted.
const MAX_FILES_BYTES: usize = 160;
/// Maximum bytes of test output for a failed criterion.
const MAX_OUTPUT_BYTES: usize = 140;

/// Attempts of longer calls are only in the full result.
const MAX_ATTEMPTS_SHOWN: usize = 4;
/// Maximum bytes of the diff in the full result.
const MAX_DIFF_BYTES: usize = 64 * 1024;

/// The message of a phase that was cancelled.
pub(super) const PHASE_CANCELLED: &str = "Cancelled.";

/// Collects the phases and results of one `tdd` call.
pub(super) struct CycleReport {
    total: usize,
    pub(super) session_id: String,
    pub(super) criteria: Vec<CriterionOutcome>,
    phases: Vec<PhaseRecord>,
    files: Vec<String>,
    cost_usd: Option<f64>,
    /// Of all phases.
    attempts: Vec<Attempt>,
    top_tier: Option<TopTier>,
    /// What was kept, phase by phase; patches apply in this order.
    diff: String,
    /// The call that usually follows.
    next: Value,
}

/// One phase, as written to the full-result file.
#[derive(Debug, Serialize)]
pub(super) struct PhaseRecord {
    criterion: usize,
    phase: String,
    status: Status,
    verified: bool,
    message: String,
    model_used: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    duration_ms: u64,
    /// Path of the phase's own full-result file.
    full_result: String,
}

/// Result of one criterion.
pub(super) struct CriterionOutcome {
    /// The last phase reached.
    phase: &'static str,
    status: Status,
    verified: bool,
    /// On success the test and the models that wrote it; otherwise the reason for the failure.
    line: String,
    model: String,
    file: String,
    /// What all its phases changed.
    pub(super) files: BTreeSet<PathBuf>,
    /// Its commit, or why there is none; `None` if none was wanted.
    pub(super) committed: Option<Result<Commit, String>>,
    runner_output: String,
    /// What happened to the red test after green failed, or why refactoring failed.
    note: String,
    /// The call that the failed phase suggests.
    next: Value,
    /// Whether the cycle goes on to the next criterion.
    pub(super) continues: bool,
}

impl CriterionOutcome {
    /// The criterion is met, as `red` and `green` show. Without `green` the cycle stops at red by
    /// request.
    pub(super) fn success(criterion: &str, red: &CallResult, green: Option<&CallResult>) -> Self {
        let test = red.more.details["test_names_added"][0]
            .as_str()
            .unwrap_or(criterion);
        let last = green.unwrap_or(red);
        let models = green.map_or_else(
            || red.model_used.clone(),
            |green| match red.model_used == green.model_used {
                true => green.model_used.clone(),
                false => format!("{}, {}", red.model_used, green.model_used),
            },
        );
        let flags = last.more.details["flags"].as_array().map_or(0, Vec::len);
        let mut line = format!("{} ({models})", words::cut_end(test, MAX_LINE_BYTES - 40));
        if flags > 0 {
            line += &format!("; {}", words::count(flags, "flag"));
        }
        if !last.verified {
            line += "; not verified";
        }
        let mut outcome = Self {
            phase: if green.is_some() { "green" } else { "red" },
            status: Status::Pass,
            verified: red.verified && last.verified,
            line,
            model: last.model_used.clone(),
            file: last.file_path.clone(),
            files: BTreeSet::new(),
            committed: None,
            runner_output: last.runner_output.clone(),
            note: String::new(),
            next: Value::Null,
            continues: true,
        };
        outcome.add_files(red);
        green.into_iter().for_each(|green| outcome.add_files(green));
        outcome
    }

    pub(super) fn add_files(&mut self, phase: &CallResult) {
        if phase.status == Status::Pass {
            self.files
                .extend(phase.more.files_changed.iter().map(PathBuf::from));
        }
    }

    /// Whether code makes its test pass.
    pub(super) fn is_green(&self) -> bool {
        self.succeeded() && self.phase != "red"
    }

    /// Ends the cycle after this criterion.
    pub(super) fn and_stop(self) -> Self {
        Self {
            continues: false,
            ..self
        }
    }

    pub(super) fn failure(phase: &'static str, result: &CallResult, note: String) -> Self {
        Self {
            phase,
            status: result.status,
            verified: false,
            line: result.message.clone(),
            model: String::new(),
            file: String::new(),
            files: BTreeSet::new(),
            committed: None,
            runner_output: result.runner_output.clone(),
            note,
            next: result.more.next.clone(),
            continues: false,
        }
    }

    /// Adds the result of the refactor phase. A failed refactoring does not affect the criterion.
    /// An error ends the cycle, because the next phase would fail the same way.
    pub(super) fn add_refactoring(&mut self, result: &CallResult) {
        match result.status {
            Status::Pass => {
                self.phase = "refactor";
                self.verified &= result.verified;
                self.runner_output.clone_from(&result.runner_output);
                self.line += "; refactored";
            }
            Status::Fail => self.line += "; nothing to refactor",
            Status::Error => {
                self.line += "; not refactored";
                self.status = Status::Error;
                self.note = format!("refactor: {}", result.message);
                self.next = result.more.next.clone();
                self.continues = false;
            }
        }
    }

    pub(super) fn succeeded(&self) -> bool {
        !self.model.is_empty()
    }
}

impl CycleReport {
    pub(super) fn new(total: usize) -> Self {
        Self {
            total,
            session_id: String::new(),
            criteria: Vec::new(),
            phases: Vec::new(),
            files: Vec::new(),
            cost_usd: None,
            attempts: Vec::new(),
            top_tier: None,
            diff: String::new(),
            next: Value::Null,
        }
    }

    /// Records one phase of criterion `n`.
    pub(super) fn add_phase(&mut self, n: usize, result: &CallResult) {
        if let Some(cost) = result.more.cost_usd {
            self.cost_usd = Some(self.cost_usd.unwrap_or_default() + cost);
        }
        self.top_tier = match (self.top_tier.take(), result.more.top_tier.clone()) {
            (Some(so_far), Some(phase)) => Some(so_far.and(phase)),
            (so_far, phase) => so_far.or(phase),
        };
        let attempts = result.more.attempts.iter().cloned();
        self.attempts.extend(attempts.map(|attempt| Attempt {
            phase: result.phase.clone(),
            ..attempt
        }));
        self.phases.push(PhaseRecord {
            criterion: n,
            phase: result.phase.clone(),
            status: result.status,
            verified: result.verified,
            message: result.message.clone(),
            model_used: result.model_used.clone(),
            cost_usd: result.more.cost_usd,
            duration_ms: result.more.duration_ms.unwrap_or_default(),
            full_result: result.more.full_result.clone(),
        });
    }

    /// The call to make next.
    pub(super) fn set_next(&mut self, next: Value) {
        self.next = next;
    }

    /// Records what a phase changed, once it is certain to be kept.
    pub(super) fn add_changes(&mut self, result: &CallResult) {
        let diff = result.more.diff.trim_end_matches('\n');
        if self.diff.len() + diff.len() > MAX_DIFF_BYTES {
            self.diff += "(the rest is left out)\n";
        } else if !diff.is_empty() {
            self.diff += diff;
            self.diff.push('\n');
        }
        for file in &result.more.files_changed {
            if !self.files.contains(file) {
                self.files.push(file.clone());
            }
        }
    }

    /// Result of a cycle or phase that could not start.
    pub(super) fn error_result(&self, why: String) -> CallResult {
        let mut result = CallResult::new("tdd", "red", Status::Error, why, Value::Null);
        result.more.session_id.clone_from(&self.session_id);
        result
    }

    /// Returns the full result for the file and the compact one for the caller.
    pub(super) fn conclude(self, took: Duration) -> (CallResult, CallResult) {
        let successes: Vec<&CriterionOutcome> = self
            .criteria
            .iter()
            .filter(|criterion| criterion.succeeded())
            .collect();
        let last = self.criteria.last();
        let status = last.map_or(Status::Error, |last| last.status);
        let lines: Vec<String> = self
            .criteria
            .iter()
            .filter(|criterion| criterion.succeeded())
            .map(|one| {
                let line = format!("{}: {}", one.phase, one.line);
                let line = words::cut_end(&line, MAX_LINE_BYTES);
                match &one.committed {
                    Some(Ok(commit)) => format!("{line}; commit {}", short_id(&commit.id)),
                    Some(Err(_)) => format!("{line}; not committed"),
                    None => line.into_owned(),
                }
            })
            .collect();
        let message = format!(
            "{}{}{}",
            self.message(&successes),
            self.not_committed(),
            self.commit_notes()
        );
        let mut result = self.error_result(message);
        result.status = status;
        result.phase = last.map_or("red", |last| last.phase).to_owned();
        result.verified =
            status == Status::Pass && successes.iter().all(|criterion| criterion.verified);
        if let Some(last_success) = successes.last() {
            (result.model_used, result.file_path) =
                (last_success.model.clone(), last_success.file.clone());
        }
        if let Some(last) = last {
            result.more.next = last.next.clone();
            // After a pass, the reply shows only the relevant lines, so nothing is cut here.
            result.runner_output = match status {
                Status::Pass => last.runner_output.clone(),
                Status::Fail | Status::Error => {
                    words::cut_end(last.runner_output.trim(), MAX_OUTPUT_BYTES).into_owned()
                }
            };
        }
        result.more.duration_ms = Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        result.more.cost_usd = self.cost_usd;
        result.more.details = json!({"criteria": lines});
        let commits: Vec<&str> = self.commits().map(|commit| commit.id.as_str()).collect();
        if !commits.is_empty() {
            result.more.details["commits"] = json!(commits);
        }
        result.more.diff = self.diff;
        if !self.next.is_null() {
            result.more.next = self.next;
        }
        result.more.top_tier = self.top_tier;
        let mut full = result.clone();
        full.more.files_changed = self.files.clone();
        if self.attempts.len() <= MAX_ATTEMPTS_SHOWN {
            result.more.attempts = self.attempts.clone();
        }
        full.more.attempts = self.attempts;
        full.more.details["phases"] = json!(self.phases);
        result.more.files_changed = short_list(&self.files);
        (full, result)
    }

    fn commits(&self) -> impl Iterator<Item = &Commit> {
        let committed = self
            .criteria
            .iter()
            .filter_map(|one| one.committed.as_ref());
        committed.filter_map(|committed| committed.as_ref().ok())
    }

    /// What the user has to do about commits that were made; empty if nothing.
    fn commit_notes(&self) -> String {
        let notes = self.commits().filter(|commit| !commit.note.is_empty());
        notes
            .map(|commit| {
                format!(
                    ". Commit {} was made; {}",
                    short_id(&commit.id),
                    commit.note
                )
            })
            .collect()
    }

    /// Why criteria that are green were not committed; empty if all were.
    fn not_committed(&self) -> String {
        let failures = self.criteria.iter().enumerate().filter_map(|(n, one)| {
            let why = one.committed.as_ref()?.as_ref().err()?;
            Some((n + 1, why))
        });
        let failures: Vec<(usize, &String)> = failures.collect();
        match failures.as_slice() {
            [] => String::new(),
            [(_, why)] if self.total == 1 => {
                format!(". Not committed, the files stay changed: {why}")
            }
            [(n, why), ..] => format!(
                ". Not committed, the files stay changed: {}, first criterion {n}: {why}",
                count_criteria(failures.len())
            ),
        }
    }

    fn message(&self, successes: &[&CriterionOutcome]) -> String {
        let all = count_criteria(self.total);
        let Some(last) = self.criteria.last() else {
            return String::from("No criterion was started, and nothing was changed.");
        };
        if last.succeeded() {
            let not_refactored = if last.note.is_empty() {
                String::new()
            } else {
                format!("; {}", last.note)
            };
            return match last.phase {
                "red" => {
                    format!(
                        "red for criterion {} of {}; `tdd_green` makes it pass",
                        self.criteria.len(),
                        self.total
                    )
                }
                _ => format!(
                    "{} of {all} green, each shown by a test that failed before{not_refactored}",
                    successes.len()
                ),
            };
        }
        let kept = match successes.len() {
            0 => String::from("nothing was changed"),
            1 => String::from("the criterion before it is kept"),
            n => format!("the {n} criteria before it are kept"),
        };
        let note = if last.note.is_empty() {
            String::new()
        } else {
            format!(" {}.", last.note)
        };
        let (n, total, phase) = (self.criteria.len(), self.total, last.phase);
        if last.line == PHASE_CANCELLED {
            return format!("Cancelled at {phase} of criterion {n} of {total}; {kept}.{note}");
        }
        format!(
            "Criterion {n} of {total} failed at {phase}, and {kept}.{note} {}",
            last.line,
        )
    }
}

fn short_id(id: &str) -> &str {
    id.get(..10).unwrap_or(id)
}

/// As many file names as fit, and the number of the others.
fn short_list(files: &[String]) -> Vec<String> {
    let mut bytes_left = MAX_FILES_BYTES;
    let mut shown: Vec<String> = Vec::new();
    for file in files {
        if file.len() + 3 > bytes_left {
            break;
        }
        bytes_left -= file.len() + 3;
        shown.push(file.clone());
    }
    if shown.len() < files.len() {
        shown.push(format!("and {} more", files.len() - shown.len()));
    }
    shown
}
