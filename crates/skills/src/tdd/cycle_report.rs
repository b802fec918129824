//! What a `tdd` call tells: one line a criterion. What stands in the caller's context is paid for in every later turn,
//! so that everything else is in the log and in the file of the whole result.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use supervisor_engine::result::{CallResult, More, Status};
use supervisor_text::words;

/// Bytes of the line about one criterion, and of the sentence about the one that could not be had.
const LINE: usize = 100;
const WHY: usize = 280;
/// Bytes of all changed files together; more are counted.
const FILES: usize = 160;
/// Bytes of what the tests printed where a criterion could not be had.
const OUTPUT: usize = 140;

/// The story of one `tdd` call.
pub(super) struct CycleReport {
    wanted: usize,
    pub(super) session_id: String,
    pub(super) criteria: Vec<CriterionEnd>,
    phases: Vec<PhaseRecord>,
    files: Vec<String>,
    cost_usd: Option<f64>,
}

/// One phase, for the file of the whole result.
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
    /// The file with the whole of it.
    full_result: String,
}

/// How one criterion ended.
pub(super) struct CriterionEnd {
    /// The phase it reached.
    phase: &'static str,
    status: Status,
    verified: bool,
    /// For a criterion that was had: its test and who wrote what. Else why not.
    line: String,
    model: String,
    file: String,
    runner_output: String,
    /// What became of the red test of a green that could not be had.
    aftermath: String,
    /// May the next one be begun?
    pub(super) goes_on: bool,
}

impl CriterionEnd {
    /// The criterion holds, shown by `red` and `green`; without a green it is red, as wanted.
    pub(super) fn had(criterion: &str, red: &CallResult, green: Option<&CallResult>) -> Self {
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
        let mut line = format!("{} ({models})", words::cut_end(test, LINE - 40));
        if flags > 0 {
            line += &format!("; {}", words::count(flags, "flag"));
        }
        if !last.verified {
            line += "; not verified";
        }
        Self {
            phase: if green.is_some() { "green" } else { "red" },
            status: Status::Pass,
            verified: red.verified && last.verified,
            line,
            model: last.model_used.clone(),
            file: last.file_path.clone(),
            runner_output: last.runner_output.clone(),
            aftermath: String::new(),
            goes_on: true,
        }
    }

    /// The caller wants no more than this.
    pub(super) fn ending_here(self) -> Self {
        Self {
            goes_on: false,
            ..self
        }
    }

    pub(super) fn missed(phase: &'static str, result: &CallResult, aftermath: String) -> Self {
        Self {
            phase,
            status: result.status,
            verified: false,
            line: result.message.clone(),
            model: String::new(),
            file: String::new(),
            runner_output: result.runner_output.clone(),
            aftermath,
            goes_on: false,
        }
    }

    /// A refactoring that is not to be had takes nothing from the criterion. Nothing to improve is an answer; no answer
    /// at all ends the cycle, because the next phase would have none either.
    pub(super) fn refactored(&mut self, result: &CallResult) {
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
                self.aftermath = format!("refactor: {}", words::cut_end(&result.message, WHY));
                self.goes_on = false;
            }
        }
    }

    fn holds(&self) -> bool {
        !self.model.is_empty()
    }
}

impl CycleReport {
    pub(super) fn new(wanted: usize) -> Self {
        Self {
            wanted,
            session_id: String::new(),
            criteria: Vec::new(),
            phases: Vec::new(),
            files: Vec::new(),
            cost_usd: None,
        }
    }

    /// Notes one phase of criterion `n`.
    pub(super) fn add(&mut self, n: usize, result: &CallResult) {
        if let Some(cost) = result.more.cost_usd {
            self.cost_usd = Some(self.cost_usd.unwrap_or_default() + cost);
        }
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

    /// Notes what a phase changed, once it is sure that it stays.
    pub(super) fn keep_files(&mut self, result: &CallResult) {
        for file in &result.more.files_changed {
            if !self.files.contains(file) {
                self.files.push(file.clone());
            }
        }
    }

    /// A cycle or a phase that could not begin.
    pub(super) fn refused(&self, why: String) -> CallResult {
        CallResult {
            status: Status::Error,
            message: why,
            phase: String::from("red"),
            skill: String::from("tdd"),
            file_path: String::new(),
            runner_output: String::new(),
            verified: false,
            model_used: String::new(),
            more: More {
                session_id: self.session_id.clone(),
                ..More::default()
            },
        }
    }

    /// The whole for the file, and what the caller is told.
    pub(super) fn conclude(self, took: Duration) -> (CallResult, CallResult) {
        let had: Vec<&CriterionEnd> = self.criteria.iter().filter(|one| one.holds()).collect();
        let last = self.criteria.last();
        let status = last.map_or(Status::Error, |last| last.status);
        let lines: Vec<String> = self
            .criteria
            .iter()
            .filter(|one| one.holds())
            .map(|one| words::cut_end(&format!("{}: {}", one.phase, one.line), LINE).into_owned())
            .collect();
        let mut result = self.refused(self.message(&had));
        result.status = status;
        result.phase = last.map_or("red", |last| last.phase).to_owned();
        result.verified = status == Status::Pass && had.iter().all(|one| one.verified);
        if let Some(best) = had.last() {
            (result.model_used, result.file_path) = (best.model.clone(), best.file.clone());
        }
        if let Some(last) = last {
            // After a success the reply shows only the lines that count.
            result.runner_output = match status {
                Status::Pass => last.runner_output.clone(),
                Status::Fail | Status::Error => {
                    words::cut_end(last.runner_output.trim(), OUTPUT).into_owned()
                }
            };
        }
        result.more.duration_ms = Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        result.more.cost_usd = self.cost_usd;
        result.more.details = json!({"criteria": lines});
        let mut whole = result.clone();
        whole.more.files_changed = self.files.clone();
        whole.more.details["phases"] = json!(self.phases);
        result.more.files_changed = short_list(&self.files);
        (whole, result)
    }

    fn message(&self, had: &[&CriterionEnd]) -> String {
        let all = count_criteria(self.wanted);
        let Some(last) = self.criteria.last() else {
            return String::from("nothing was begun");
        };
        if last.holds() {
            let not_refactored = if last.aftermath.is_empty() {
                String::new()
            } else {
                format!("; {}", last.aftermath)
            };
            return match last.phase {
                "red" => {
                    format!(
                        "red for criterion {} of {}; `tdd_green` makes it pass",
                        self.criteria.len(),
                        self.wanted
                    )
                }
                _ => format!(
                    "{} of {all} green, each shown by a test that failed before{not_refactored}",
                    had.len()
                ),
            };
        }
        let stays = match had.len() {
            0 => String::from("nothing was changed"),
            n => format!("{} before it stay", count_criteria(n)),
        };
        let aftermath = if last.aftermath.is_empty() {
            String::new()
        } else {
            format!("; {}", last.aftermath)
        };
        format!(
            "criterion {} of {} could not be had, {}: {}{aftermath}; {stays}",
            self.criteria.len(),
            self.wanted,
            last.phase,
            words::cut_end(&last.line, WHY),
        )
    }
}

pub(super) fn count_criteria(n: usize) -> String {
    if n == 1 {
        String::from("1 criterion")
    } else {
        format!("{n} criteria")
    }
}

/// As many names as fit, and how many more there are.
fn short_list(files: &[String]) -> Vec<String> {
    let mut room = FILES;
    let mut shown: Vec<String> = Vec::new();
    for file in files {
        if file.len() + 3 > room {
            break;
        }
        room -= file.len() + 3;
        shown.push(file.clone());
    }
    if shown.len() < files.len() {
        shown.push(format!("and {} more", files.len() - shown.len()));
    }
    shown
}
