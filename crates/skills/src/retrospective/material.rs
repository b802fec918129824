//! Statistics of a session, and the calls that something can be learned from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use supervisor_engine::session::detail::LoggedCall;
use supervisor_engine::session::{RecordedOutcome, Stats};
use supervisor_engine::{Cause, Verdict};
use supervisor_text::words;

/// The material shown to the model, and the statistics.
#[derive(Debug, Clone)]
pub(super) struct SessionMaterial {
    pub(super) stats: Value,
    /// Calls that are not routine.
    pub(super) notable: Vec<LoggedCall>,
    pub(super) routine: usize,
}

/// False for retrospectives and training, which are not work to learn from.
pub(super) fn is_about_work(call: &LoggedCall) -> bool {
    !matches!(call.entry().tool.as_str(), "retrospective" | "trainer")
}

/// Passed at the first attempt without further questions.
pub(super) fn is_routine(call: &LoggedCall) -> bool {
    let attempts = &call.entry().attempts;
    call.record.outcome == RecordedOutcome::Pass
        && attempts.len() <= 1
        && attempts.iter().all(|attempt| attempt.asks.is_empty())
}

impl SessionMaterial {
    pub(super) fn new(
        stats: &Stats,
        all: &[&LoggedCall],
        notable: Vec<LoggedCall>,
        routine: usize,
    ) -> Self {
        let mut escalations: BTreeMap<&str, usize> = BTreeMap::new();
        let mut durations: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let mut feedback: BTreeMap<String, usize> = BTreeMap::new();
        let attempts = all
            .iter()
            .flat_map(|call| &call.entry().attempts)
            .filter(|attempt| attempt.was_asked());
        for attempt in attempts {
            *escalations.entry(&attempt.model).or_default() +=
                usize::from(attempt.verdict == Some(Verdict::Escalate));
            let (sum, n) = durations.entry(&attempt.model).or_default();
            (*sum, *n) = (*sum + attempt.duration_ms, *n + 1);
            let line = attempt.feedback.lines().next().unwrap_or_default();
            if !line.is_empty() {
                *feedback
                    .entry(words::cut_end(line, 200).into_owned())
                    .or_default() += 1;
            }
        }
        let repeated: Vec<Value> = feedback
            .iter()
            .filter(|(_, n)| **n > 1)
            .map(|(line, n)| json!({"said": line, "times": n}))
            .collect();
        let mean: BTreeMap<&str, u64> = durations
            .iter()
            .map(|(model, (sum, n))| (*model, sum / n))
            .collect();
        let total = &stats.total;
        let stats = json!({
            "calls": all.len(), "pass": total.pass, "fail": total.fail, "error": total.error,
            "routine": routine, "escalations": escalations, "mean_ms": mean, "repeated_feedback": repeated,
            "cost_usd": total.cost_usd,
        });
        Self {
            stats,
            notable,
            routine,
        }
    }

    /// The project of most calls.
    pub(super) fn main_project(&self) -> Option<String> {
        let mut roots: BTreeMap<&str, usize> = BTreeMap::new();
        for call in self
            .notable
            .iter()
            .filter(|call| !call.entry().project_root.is_empty())
        {
            *roots.entry(&call.entry().project_root).or_default() += 1;
        }
        roots
            .into_iter()
            .max_by_key(|(_, n)| *n)
            .map(|(root, _)| root.to_owned())
    }

    /// The calls within `max_bytes`. All are cut alike and keep their ids.
    pub(super) fn shown(&self, max_bytes: usize) -> String {
        let each = (max_bytes / self.notable.len().max(1)).clamp(160, 4_000);
        let mut text = format!(
            "figures of the session: {}\n",
            words::cut_end(&self.stats.to_string(), 2_000)
        );
        for call in &self.notable {
            if text.len() + each > max_bytes {
                let _ = writeln!(text, "(further calls are left out)");
                break;
            }
            text += &words::cut_end(&describe_call(call), each);
            text.push('\n');
        }
        text
    }
}

fn describe_call(call: &LoggedCall) -> String {
    let entry = call.entry();
    let mut text = format!(
        "{}: {} → {}: {}",
        call.citation(),
        entry.tool,
        call.record.outcome.word(),
        words::cut_end(&entry.message, 400)
    );
    for attempt in &entry.attempts {
        let _ = write!(
            text,
            "\n  attempt {} by {} ({}): {}",
            attempt.attempt,
            attempt.model,
            attempt.tier.word(),
            attempt.cause.map_or("?", Cause::word)
        );
        if !attempt.feedback.is_empty() {
            let _ = write!(text, ", because {}", words::cut_end(&attempt.feedback, 500));
        }
        if !attempt.runner_output.is_empty() && attempt.cause != Some(Cause::Accepted) {
            let _ = write!(
                text,
                "\n    tests: {}",
                words::cut_middle(&attempt.runner_output, 300).replace('\n', "\n    ")
            );
        }
    }
    text
}
