//! Runners that write a report of their own to a path of our choice: run, read, compare with the exit code.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::build::BuildError;
use super::outcome::{Outcome, TestName, TestState, Tests};
use super::session::{Judgement, MESSAGE, Session, agree, exit_code, join_output, output_of};
use supervisor_process::FinishedProcess;
use supervisor_text::words;

/// What a report says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TestRunReport {
    pub(super) tests: BTreeMap<TestName, TestState>,
    /// Files that could not be loaded or compiled.
    pub(super) errors: Vec<BuildError>,
    /// Why a green report is not believed.
    pub(super) doubts: Vec<String>,
    /// The last number of each name that came more than once.
    numbers: BTreeMap<String, usize>,
}

impl TestRunReport {
    /// Adds a result. The same name twice is told apart by a number, so that no result hides another.
    pub(super) fn add(&mut self, name: &str, state: TestState) {
        let mut free = TestName(name.to_owned());
        if self.tests.contains_key(&free) {
            // Goes on where the last search ended: a report may hold one name a million times.
            let number = self.numbers.entry(name.to_owned()).or_insert(1);
            while self.tests.contains_key(&free) {
                *number += 1;
                free = TestName(format!("{name} #{number}"));
            }
        }
        self.tests.insert(free, state);
    }
}

/// A failed test with what it said, cut.
pub(super) fn failed(message: impl AsRef<str>) -> TestState {
    TestState::Failed(
        words::cut_middle(&without_colour(message.as_ref()), MESSAGE)
            .trim()
            .to_owned(),
    )
}

/// Whether a person at the terminal would see why a test failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Terminal {
    Tells,
    /// The report takes the place of what is usually printed.
    Silent,
}

/// How one runner is asked for a report and understood.
pub(super) struct Reporting {
    /// Named in messages.
    pub(super) program: &'static str,
    /// The report's file name.
    pub(super) file: &'static str,
    /// `None` if the text is not a complete report.
    pub(super) parse: fn(&str, &Session<'_>) -> Option<TestRunReport>,
    /// What is known without a report: no tests at all, a wrong option, something that does not load.
    pub(super) explain: fn(&FinishedProcess, i32) -> Option<Outcome>,
    pub(super) terminal: Terminal,
}

impl Reporting {
    pub(super) async fn run(
        &self,
        session: &Session<'_>,
        argv: &[String],
        env: &[(&str, String)],
    ) -> Judgement {
        let finished = session.run(argv, env).await;
        self.judge(session, &finished)
    }

    pub(super) fn judge(&self, session: &Session<'_>, finished: &FinishedProcess) -> Judgement {
        let report = session
            .report(self.file)
            .and_then(|text| (self.parse)(&text, session));
        let code = exit_code(finished);
        let outcome = session
            .cut_short(finished, self.program)
            .unwrap_or_else(|| self.outcome(&report, code, finished));
        let tests = report.map(|r| r.tests).unwrap_or_default();
        let failures = if self.terminal == Terminal::Silent {
            failures(&tests)
        } else {
            String::new()
        };
        Judgement {
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
                    last_words(finished)
                ),
            });
        };
        if !report.errors.is_empty() {
            return Outcome::DidNotBuild {
                errors: report.errors.clone(),
            };
        }
        match agree(&report.tests, code) {
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
                why: format!("{why}{}", last_words(finished)),
            }),
            other => other,
        }
    }
}

/// The line with which a program most likely says what went wrong, behind a colon; nothing if it said nothing.
fn last_words(finished: &FinishedProcess) -> String {
    /// `SomeError: why`, `error: why`, `** (Mix) why`.
    static COMPLAINT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"^(?:\w+(?:::|\.))*\w*(?:[Ee]rror|Exception)(?:\[[^\]]*\])?:\s+\S|^\*\*\s+\S|^(?i:fatal|abort(?:ed)?)\b",
        )
        .expect("a pattern that a test compiles")
    });
    let said = without_colour(&join_output([
        finished.stderr.text().as_ref(),
        finished.stdout.text().as_ref(),
    ]));
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines
        .clone()
        .find(|line| COMPLAINT.is_match(line))
        .or_else(|| lines.next_back());
    line.map(|line| format!(": {}", words::cut_end(&words::plain(line), 240)))
        .unwrap_or_default()
}

/// What failed and why, for a reader; the rest is as bad.
fn failures(tests: &BTreeMap<TestName, TestState>) -> String {
    const TOLD: usize = 20;
    let failed = tests.iter().filter_map(|(name, state)| match state {
        TestState::Failed(message) => Some(format!("failed: {name}\n{message}\n")),
        TestState::Passed | TestState::Skipped => None,
    });
    failed.take(TOLD).collect()
}

/// Text without the escape sequences that colour it.
pub(super) fn without_colour(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}
