//! The result of a test run. Each way of not passing has its own variant, because most of them are inconclusive about
//! the code.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::build::BuildError;
use super::step::CheckResult;
use supervisor_text::words;

/// A test's name, unique within its suite: `demo::api rejects_empty`, `tests/test_api.py::test_empty`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TestName(pub String);

impl TestName {
    /// The name without the suffix of a parameterised case: `test_x` for `test_x[1-2]`, `adds` for `adds::case_2_zero`.
    pub fn base(&self) -> &str {
        let name = self.0.as_str();
        if let Some(before) = name
            .strip_suffix(']')
            .and_then(|n| n.split_once('['))
            .map(|(before, _)| before)
        {
            return before;
        }
        match name.rsplit_once("::case_") {
            Some((before, rest)) if rest.starts_with(|c: char| c.is_ascii_digit()) => before,
            _ => name,
        }
    }

    /// What stands before the titles: a path for most runners, `tests/a.py` of `tests/a.py::test_x`.
    pub fn file(&self) -> Option<&str> {
        let end = [" > ", "::", "#", " "]
            .iter()
            .filter_map(|separator| self.0.find(separator))
            .min()?;
        Some(&self.0[..end])
    }

    /// Whether this is a subtest of `other`.
    pub fn is_subtest_of(&self, other: &Self) -> bool {
        let has_separator = |separator: &str| {
            self.0
                .strip_prefix(other.0.as_str())
                .is_some_and(|rest| rest.starts_with(separator))
        };
        self != other && (has_separator("/") || has_separator(" > "))
    }
}

/// Removes subtests and counts all cases of a parameterised test as one test.
pub(crate) fn distinct_tests(names: &[TestName]) -> Vec<TestName> {
    let mut counted: Vec<TestName> = Vec::new();
    for name in names
        .iter()
        .filter(|n| !names.iter().any(|m| n.is_subtest_of(m)))
    {
        if !counted.iter().any(|known| known.base() == name.base()) {
            counted.push(name.clone());
        }
    }
    counted
}

/// Like `distinct_tests`, for source whose only new test is `written`: classes that inherit it run it once each, and
/// these runs count as one test.
pub fn distinct_written_tests(names: &[TestName], written: Option<&str>) -> Vec<TestName> {
    let mut counted = distinct_tests(names);
    let is_written_test = |name: &TestName| {
        let before = written.and_then(|written| name.base().strip_suffix(written));
        before.is_some_and(|before| before.is_empty() || before.ends_with([':', '#', '.', ' ']))
    };
    if let Some(first) = counted.iter().position(is_written_test) {
        let kept = counted[first].clone();
        counted.retain(|name| *name == kept || !is_written_test(name));
    }
    counted
}

impl fmt::Display for TestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words::plain(&self.0))
    }
}

impl From<&str> for TestName {
    fn from(name: &str) -> Self {
        Self(name.to_owned())
    }
}

/// The result of one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "message")]
pub enum TestState {
    Passed,
    /// The failure message, truncated.
    Failed(String),
    Skipped,
}

/// The result of a whole run. Only the first two variants are conclusive about the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Outcome {
    Passed,
    Failed,
    /// The tests, or what they test, could not be compiled or loaded.
    DidNotBuild {
        errors: Vec<BuildError>,
    },
    NoTests,
    /// The runner is missing or unusable.
    CouldNotRun {
        why: String,
        remedy: String,
    },
    /// It ran, but its exit code contradicts its report, or the report is missing.
    Unclear {
        why: String,
    },
    TimedOut {
        limit_s: u64,
    },
    Killed {
        signal: i32,
    },
    Cancelled,
}

impl Outcome {
    pub fn is_passed(&self) -> bool {
        matches!(self, Self::Passed)
    }

    /// Whether the outcome says something about the code.
    pub fn is_conclusive(&self) -> bool {
        matches!(self, Self::Passed | Self::Failed)
    }
}

/// The tests by name, if the runner reports names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "known", content = "tests")]
pub enum Tests {
    Named(BTreeMap<TestName, TestState>),
    /// The command is not a known runner; only its exit code is available.
    Unknown,
}

/// The evidence of one run. Only [`super::Suite::run`] creates it, and it is never changed afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRun {
    pub(super) command: String,
    pub(super) root: PathBuf,
    pub(super) outcome: Outcome,
    pub(super) tests: Tests,
    /// Commands run alongside the tests, such as a linter in the same script.
    pub(super) checks: Vec<CheckResult>,
    pub(super) exit_code: Option<i32>,
    pub(super) output: String,
    pub(super) took: Duration,
    pub(super) notes: Vec<String>,
}

impl TestRun {
    /// The same run with a remark for the reader.
    #[must_use]
    pub fn with_note(mut self, note: String) -> Self {
        self.notes.push(note);
        self
    }

    /// The command line, such as `cargo test`.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// The directory it ran in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    pub fn tests(&self) -> &Tests {
        &self.tests
    }

    /// Commands run alongside the tests, in the order in which they ran.
    pub fn checks(&self) -> &[CheckResult] {
        &self.checks
    }

    /// The command lines of the failed checks.
    pub fn failed_checks(&self) -> impl Iterator<Item = &str> {
        self.checks
            .iter()
            .filter(|check| !check.passed)
            .map(|check| check.command.as_str())
    }

    /// `None` if the command did not end by itself.
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// The head and tail of the output, with the cut marked.
    pub fn output(&self) -> &str {
        &self.output
    }

    pub fn took(&self) -> Duration {
        self.took
    }

    /// Remarks for the reader, in addition to the outcome.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub fn failed(&self) -> impl Iterator<Item = (&TestName, &str)> {
        self.named().filter_map(|(name, state)| match state {
            TestState::Failed(message) => Some((name, message.as_str())),
            TestState::Passed | TestState::Skipped => None,
        })
    }

    pub fn passed(&self) -> impl Iterator<Item = &TestName> {
        self.named()
            .filter(|(_, state)| **state == TestState::Passed)
            .map(|(name, _)| name)
    }

    pub fn skipped(&self) -> impl Iterator<Item = &TestName> {
        self.named()
            .filter(|(_, state)| **state == TestState::Skipped)
            .map(|(name, _)| name)
    }

    pub fn state(&self, name: &TestName) -> Option<&TestState> {
        match &self.tests {
            Tests::Named(tests) => tests.get(name),
            Tests::Unknown => None,
        }
    }

    pub fn named(&self) -> impl Iterator<Item = (&TestName, &TestState)> {
        match &self.tests {
            Tests::Named(tests) => Some(tests.iter()),
            Tests::Unknown => None,
        }
        .into_iter()
        .flatten()
    }

    /// This run without some of its tests, in place of a run of a state that does not have them.
    pub fn without_tests(&self, is_left_out: impl Fn(&TestName) -> bool) -> Self {
        let mut run = self.clone();
        if let Tests::Named(tests) = &mut run.tests {
            tests.retain(|name, _| !is_left_out(name));
        }
        run
    }

    /// `3 passed, 1 failed, 2 skipped`, or that the names are unknown, followed by the failed checks.
    pub fn counts(&self) -> String {
        let counts = match &self.tests {
            Tests::Unknown => String::from("number and names of the tests unknown"),
            Tests::Named(_) => format!(
                "{} passed, {} failed, {} skipped",
                self.passed().count(),
                self.failed().count(),
                self.skipped().count()
            ),
        };
        let failed: Vec<String> = self
            .failed_checks()
            .map(|command| format!("; `{}` failed", words::plain(command)))
            .collect();
        counts + &failed.concat()
    }

    /// One sentence for a human reader.
    pub fn sentence(&self) -> String {
        let command = words::plain(&self.command);
        match &self.outcome {
            Outcome::Passed => format!("`{command}` passed: {}", self.counts()),
            Outcome::Failed => format!("`{command}` failed: {}", self.counts()),
            Outcome::DidNotBuild { errors } => {
                let first = errors.first().map(|e| format!(": {e}")).unwrap_or_default();
                format!(
                    "`{command}` did not build, {}{first}",
                    words::count(errors.len(), "error")
                )
            }
            Outcome::NoTests => format!("`{command}` found no tests, which is not a pass"),
            Outcome::CouldNotRun { why, remedy } => {
                format!("`{command}` could not run: {why}; {remedy}")
            }
            Outcome::Unclear { why } => format!("`{command}` gave no reliable result: {why}"),
            Outcome::TimedOut { limit_s } => {
                format!("`{command}` was ended after its limit of {limit_s} s")
            }
            Outcome::Killed { signal } => format!("`{command}` was killed by signal {signal}"),
            Outcome::Cancelled => format!("`{command}` was cancelled"),
        }
    }
}
