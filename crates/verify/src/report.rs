//! Runs test runners that write a report file to a path we choose, reads the report and compares it with the exit code.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::build::BuildError;
use super::outcome::{Outcome, TestName, TestState, Tests};
use super::session::{
    MAX_MESSAGE_BYTES, RunnerResult, Session, decide_outcome, exit_code, join_output, output_of,
};
use supervisor_process::FinishedProcess;
use supervisor_text::words;

/// The parsed contents of a test report.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TestRunReport {
    pub(super) tests: BTreeMap<TestName, TestState>,
    /// Errors from files that could not be loaded or compiled.
    pub(super) errors: Vec<BuildError>,
    /// Reasons not to trust a passing report.
    pub(super) doubts: Vec<String>,
    /// The last number appended to each name that occurred more than once.
    last_suffix: BTreeMap<String, usize>,
}

impl TestRunReport {
    /// Adds a result. A repeated name gets a number, so that no result hides another.
    pub(super) fn add(&mut self, name: &str, state: TestState) {
        let mut unique = TestName(name.to_owned());
        if self.tests.contains_key(&unique) {
            // Continue after the last number used: a report may repeat one name a million times.
            let number = self.last_suffix.entry(name.to_owned()).or_insert(1);
            while self.tests.contains_key(&unique) {
                *number += 1;
                unique = TestName(format!("{name} #{number}"));
            }
        }
        self.tests.insert(unique, state);
    }
}

/// The state of a failed test, with its message shortened and without colours.
pub(super) fn failed(message: impl AsRef<str>) -> TestState {
    TestState::Failed(
        words::cut_middle(&strip_ansi(message.as_ref()), MAX_MESSAGE_BYTES)
            .trim()
            .to_owned(),
    )
}

/// Whether the runner still prints failures while it writes our report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalOutput {
    ShowsFailures,
    /// The report replaces the usual output.
    HidesFailures,
}

/// How to get a report from one runner and how to read it.
pub(super) struct ReportAdapter {
    /// The program name used in messages.
    pub(super) program: &'static str,
    /// The report's file name.
    pub(super) file: &'static str,
    /// `None` if the text is not a complete report.
    pub(super) parse: fn(&str, &Session<'_>) -> Option<TestRunReport>,
    /// Explains a run without a usable report: no tests, a wrong option, a file that does not load.
    pub(super) explain: fn(&FinishedProcess, i32) -> Option<Outcome>,
    pub(super) terminal: TerminalOutput,
}

impl ReportAdapter {
    pub(super) async fn run(
        &self,
        session: &Session<'_>,
        argv: &[String],
        env: &[(&str, String)],
    ) -> RunnerResult {
        let finished = session.run(argv, env).await;
        self.judge(session, &finished)
    }

    pub(super) fn judge(&self, session: &Session<'_>, finished: &FinishedProcess) -> RunnerResult {
        let report = session
            .report(self.file)
            .and_then(|text| (self.parse)(&text, session));
        let code = exit_code(finished);
        let outcome = session
            .abnormal_outcome(finished, self.program)
            .unwrap_or_else(|| self.outcome(&report, code, finished));
        let tests = report.map(|r| r.tests).unwrap_or_default();
        let failures = if self.terminal == TerminalOutput::HidesFailures {
            format_failures(&tests)
        } else {
            String::new()
        };
        RunnerResult {
            outcome,
            tests: Tests::Named(tests),
            exit_code: code,
            output: join_output([output_of(finished).as_str(), &failures]),
            notes: Vec::new(),
        }
    }

    fn outcome(
        &self,
        report: &Option<TestRunReport>,
        code: Option<i32>,
        finished: &FinishedProcess,
    ) -> Outcome {
        let explained = || code.and_then(|code| (self.explain)(finished, code));
        let Some(report) = report else {
            let code = code.map_or_else(
                || String::from("no exit code"),
                |c| format!("exit code {c}"),
            );
            return explained().unwrap_or_else(|| Outcome::Unclear {
                why: format!(
                    "it ended with {code} before `{}` wrote its report{}",
                    self.program,
                    error_suffix(finished)
                ),
            });
        };
        if !report.errors.is_empty() {
            return Outcome::DidNotBuild {
                errors: report.errors.clone(),
            };
        }
        if let Some(unclear @ Outcome::Unclear { .. }) = explained() {
            return unclear;
        }
        match decide_outcome(&report.tests, code) {
            Outcome::Passed | Outcome::NoTests if !report.doubts.is_empty() => {
                let why = report
                    .doubts
                    .iter()
                    .take(5)
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(", ");
                Outcome::Unclear {
                    why: format!("the exit code is 0, but {why}"),
                }
            }
            Outcome::Unclear { why } => explained().unwrap_or_else(|| Outcome::Unclear {
                why: format!("{why}{}", error_suffix(finished)),
            }),
            other => other,
        }
    }
}

/// A colon and the line of output that most likely names the error; empty if there was no output.
fn error_suffix(finished: &FinishedProcess) -> String {
    /// `SomeError: why`, `error: why`, `** (Mix) why`.
    static ERROR_LINE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"^(?:\w+(?:::|\.))*\w*(?:[Ee]rror|Exception)(?:\[[^\]]*\])?:\s+\S|^\*\*\s+\S|^(?i:fatal|abort(?:ed)?)\b",
        )
        .expect("the pattern is valid")
    });
    let output = strip_ansi(&join_output([
        finished.stderr.text().as_ref(),
        finished.stdout.text().as_ref(),
    ]));
    let mut lines = output
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let line = lines
        .clone()
        .find(|line| ERROR_LINE.is_match(line))
        .or_else(|| lines.next_back());
    line.map(|line| format!(": {}", words::cut_end(&words::plain(line), 240)))
        .unwrap_or_default()
}

/// The first failed tests and their messages, for the reader.
fn format_failures(tests: &BTreeMap<TestName, TestState>) -> String {
    const MAX_FAILURES: usize = 20;
    let failed = tests.iter().filter_map(|(name, state)| match state {
        TestState::Failed(message) => Some(format!("failed: {name}\n{message}\n")),
        TestState::Passed | TestState::Skipped => None,
    });
    failed.take(MAX_FAILURES).collect()
}

/// Removes ANSI escape sequences.
pub(super) fn strip_ansi(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}
