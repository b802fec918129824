//! The test run before a change, and how a later run differs from it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::build::BuildError;
use super::outcome::{Outcome, TestName, TestRun, TestState};
use super::suite::Suite;

/// A run of the unchanged project.
#[derive(Debug, Clone)]
pub struct Baseline {
    run: TestRun,
    origin: BaselineOrigin,
}

/// Where a baseline comes from. Results that were not run just now are reported as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BaselineOrigin {
    Ran,
    /// Cached in this process for the same files, command and environment.
    Known,
}

impl Baseline {
    /// Accepts a conclusive run, or one that found no tests. Returns any other run as the error.
    pub fn of(run: TestRun, origin: BaselineOrigin) -> Result<Self, TestRun> {
        match run.outcome {
            Outcome::Passed | Outcome::Failed | Outcome::NoTests => Ok(Self { run, origin }),
            _ => Err(run),
        }
    }

    /// Accepts the part that ran (other packages, other files) of a project that does not fully build.
    /// `None` if nothing ran.
    pub fn of_partial_run(run: TestRun, origin: BaselineOrigin) -> Option<Self> {
        let is_part =
            matches!(run.outcome, Outcome::DidNotBuild { .. }) && run.named().next().is_some();
        is_part.then_some(Self { run, origin })
    }

    /// Whether the whole project was built, so that every test is known.
    pub fn is_complete(&self) -> bool {
        !matches!(self.run.outcome, Outcome::DidNotBuild { .. })
    }

    /// Whether a later run fails to build too, with no new errors.
    pub fn fails_to_build_as_before(&self, after: &TestRun) -> bool {
        matches!(
            (&self.run.outcome, &after.outcome),
            (Outcome::DidNotBuild { .. }, Outcome::DidNotBuild { .. })
        ) && self.new_errors(after).is_empty()
    }

    /// The build errors of a later run that were not there before. Errors that name a file are matched by file, not by
    /// message: a stack trace through changed code differs even if the file failed to load before.
    pub fn new_errors(&self, after: &TestRun) -> Vec<BuildError> {
        let errors = |run: &TestRun| match &run.outcome {
            Outcome::DidNotBuild { errors } => errors.clone(),
            _ => Vec::new(),
        };
        let before = errors(&self.run);
        let is_known = |now: &BuildError| {
            before
                .iter()
                .any(|b| b.file == now.file && (now.file.is_some() || b.message == now.message))
        };
        errors(after)
            .into_iter()
            .filter(|error| !is_known(error))
            .collect()
    }

    pub fn run(&self) -> &TestRun {
        &self.run
    }

    /// This baseline with the names that later runs of the suite have.
    pub fn with_stable_names(&self, suite: &Suite) -> Self {
        Self {
            run: suite.with_stable_names(self.run.clone()),
            origin: self.origin,
        }
    }

    pub fn origin(&self) -> BaselineOrigin {
        self.origin
    }

    /// Whether this test already failed before the change.
    pub fn failed_before(&self, name: &TestName) -> bool {
        matches!(self.run.state(name), Some(TestState::Failed(_)))
    }
}

/// The difference between two runs, by test name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Fail now and did not fail before, including new tests.
    pub newly_failing: Vec<TestName>,
    /// Pass now, and failed or were skipped before.
    pub newly_passing: Vec<TestName>,
    /// Ran before and are missing now.
    pub vanished: Vec<TestName>,
    /// Are skipped now and were not before.
    pub newly_skipped: Vec<TestName>,
    /// Did not exist before, whatever their state now.
    pub added: Vec<TestName>,
    /// Commands run alongside the tests (such as linters) that fail now and did not before.
    pub checks_failing: Vec<String>,
}

impl Comparison {
    /// Whether nothing got worse: no new failure, no test missing, none newly skipped.
    pub fn has_no_regression(&self) -> bool {
        self.newly_failing.is_empty()
            && self.vanished.is_empty()
            && self.newly_skipped.is_empty()
            && self.checks_failing.is_empty()
    }
}

/// Compares two runs by test name.
pub fn compare(before: &TestRun, after: &TestRun) -> Comparison {
    let mut comparison = Comparison::default();
    for (name, state) in after.named() {
        let previous = before.state(name);
        if previous.is_none() {
            comparison.added.push(name.clone());
        }
        match (previous, state) {
            (Some(TestState::Failed(_)), TestState::Failed(_))
            | (Some(TestState::Passed), TestState::Passed) => {}
            (_, TestState::Failed(_)) => comparison.newly_failing.push(name.clone()),
            (Some(TestState::Failed(_) | TestState::Skipped), TestState::Passed) => {
                comparison.newly_passing.push(name.clone());
            }
            (Some(TestState::Passed | TestState::Failed(_)), TestState::Skipped) => {
                comparison.newly_skipped.push(name.clone());
            }
            (None, TestState::Skipped) => comparison.newly_skipped.push(name.clone()),
            (None, TestState::Passed) | (Some(TestState::Skipped), TestState::Skipped) => {}
        }
    }
    let failed_before: BTreeSet<&str> = before.failed_checks().collect();
    comparison.checks_failing = after
        .failed_checks()
        .filter(|check| !failed_before.contains(check))
        .map(str::to_owned)
        .collect();
    let now: BTreeSet<&TestName> = after.named().map(|(name, _)| name).collect();
    comparison.vanished = before
        .named()
        .map(|(name, _)| name)
        .filter(|n| !now.contains(n))
        .cloned()
        .collect();
    comparison
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::super::outcome::Tests;
    use super::*;

    /// Builds a run from one word per test: `+passed -failed ~skipped`.
    pub(in super::super) fn run(words: &str) -> TestRun {
        let tests: std::collections::BTreeMap<TestName, TestState> = words
            .split_whitespace()
            .map(|w| {
                let state = match &w[..1] {
                    "+" => TestState::Passed,
                    "-" => TestState::Failed(String::from("assertion failed")),
                    _ => TestState::Skipped,
                };
                (TestName(w[1..].to_owned()), state)
            })
            .collect();
        let failed = tests.values().any(|s| matches!(s, TestState::Failed(_)));
        let outcome = match (tests.is_empty(), failed) {
            (true, _) => Outcome::NoTests,
            (_, true) => Outcome::Failed,
            _ => Outcome::Passed,
        };
        TestRun {
            command: String::from("cargo test"),
            root: "/p".into(),
            outcome,
            tests: Tests::Named(tests),
            checks: Vec::new(),
            exit_code: Some(i32::from(failed)),
            output: String::new(),
            took: Duration::ZERO,
            notes: Vec::new(),
        }
    }

    fn names(list: &[TestName]) -> Vec<&str> {
        list.iter().map(|n| n.0.as_str()).collect()
    }

    #[test]
    fn comparison_sorts_tests_by_change() {
        let before = run("+a +b -c ~d +e -f");
        let after = run("+a -b +c ~e -f -g +h ~i");
        let comparison = compare(&before, &after);
        assert_eq!(names(&comparison.newly_failing), ["b", "g"]);
        assert_eq!(names(&comparison.newly_passing), ["c"]);
        assert_eq!(names(&comparison.vanished), ["d"]);
        assert_eq!(names(&comparison.newly_skipped), ["e", "i"]);
        assert_eq!(names(&comparison.added), ["g", "h", "i"]);
        assert!(!comparison.has_no_regression());
        assert!(compare(&before, &before).has_no_regression());
    }

    #[test]
    fn inconclusive_run_is_not_a_baseline() {
        let mut unclear = run("+a");
        unclear.outcome = Outcome::TimedOut { limit_s: 1 };
        assert!(Baseline::of(unclear, BaselineOrigin::Ran).is_err());
        assert!(Baseline::of(run(""), BaselineOrigin::Ran).is_ok());
        let unbuilt = |words: &str, file: &str| {
            // The message differs from run to run.
            let errors =
                vec![BuildError::new(format!("undefined: Add, in {words}")).at(file, Some(1))];
            TestRun {
                outcome: Outcome::DidNotBuild { errors },
                ..run(words)
            }
        };
        assert!(Baseline::of_partial_run(unbuilt("", "a.go"), BaselineOrigin::Ran).is_none());
        let part = Baseline::of_partial_run(unbuilt("+a -t", "a.go"), BaselineOrigin::Ran)
            .expect("a part was run");
        assert!(!part.is_complete() && part.fails_to_build_as_before(&unbuilt("+a +t", "a.go")));
        assert!(
            !part.fails_to_build_as_before(&unbuilt("+a +t", "b.go"))
                && !part.fails_to_build_as_before(&run("+a +t"))
        );
    }
}
