//! What was true before, and what a later run changed about it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::build::BuildError;
use super::outcome::{Outcome, TestName, TestRun, TestState};

/// A run that says what was true before anybody touched the project.
#[derive(Debug, Clone)]
pub struct Baseline {
    run: TestRun,
    origin: BaselineOrigin,
}

/// Where a baseline comes from; a result that was not run just now is said to be so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BaselineOrigin {
    Ran,
    /// The outcome of the very same files, command and environment was known in this process.
    Known,
}

impl Baseline {
    /// A run that speaks about the code, or found no tests at all, is a baseline. The others are given back.
    pub fn of(run: TestRun, origin: BaselineOrigin) -> Result<Self, TestRun> {
        match run.outcome {
            Outcome::Passed | Outcome::Failed | Outcome::NoTests => Ok(Self { run, origin }),
            _ => Err(run),
        }
    }

    /// What was run of a project that does not build as a whole: other packages, other files. `None` if nothing was.
    pub fn of_part(run: TestRun, origin: BaselineOrigin) -> Option<Self> {
        let is_part =
            matches!(run.outcome, Outcome::DidNotBuild { .. }) && run.named().next().is_some();
        is_part.then_some(Self { run, origin })
    }

    /// Every test is known, not only those of what could be built.
    pub fn is_whole(&self) -> bool {
        !matches!(self.run.outcome, Outcome::DidNotBuild { .. })
    }

    /// A later run that does not build either, and nowhere else.
    pub fn is_as_unbuilt_as(&self, after: &TestRun) -> bool {
        matches!(
            (&self.run.outcome, &after.outcome),
            (Outcome::DidNotBuild { .. }, Outcome::DidNotBuild { .. })
        ) && self.new_errors(after).is_empty()
    }

    /// What keeps a later run from being built and did not before. A file that did not load before and does not load now
    /// is as it was, whatever is said of it: a trace through changed code is another text. What was run is compared by name.
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

    pub fn origin(&self) -> BaselineOrigin {
        self.origin
    }

    /// True if this test failed before, so that its failure now is no news.
    pub fn failed_before(&self, name: &TestName) -> bool {
        matches!(self.run.state(name), Some(TestState::Failed(_)))
    }
}

/// The difference between two runs, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Fail now and did not before, new tests included.
    pub newly_failing: Vec<TestName>,
    /// Pass now and failed or were skipped before.
    pub newly_passing: Vec<TestName>,
    /// Were there before and are gone.
    pub vanished: Vec<TestName>,
    /// Are skipped now and were not before.
    pub newly_skipped: Vec<TestName>,
    /// Were not there before, whatever they do now.
    pub added: Vec<TestName>,
    /// Commands beside the tests that fail now and did not before.
    pub checks_failing: Vec<String>,
}

impl Comparison {
    /// Nothing got worse: no new failure, nothing vanished, nothing newly skipped.
    pub fn nothing_lost(&self) -> bool {
        self.newly_failing.is_empty()
            && self.vanished.is_empty()
            && self.newly_skipped.is_empty()
            && self.checks_failing.is_empty()
    }
}

/// What changed from `before` to `after`.
pub fn compare(before: &TestRun, after: &TestRun) -> Comparison {
    let mut comparison = Comparison::default();
    for (name, state) in after.named() {
        let was = before.state(name);
        if was.is_none() {
            comparison.added.push(name.clone());
        }
        match (was, state) {
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

    /// A run as a word per test: `+adds -wrong ~later`.
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
    fn every_way_of_changing_has_its_own_list() {
        let before = run("+a +b -c ~d +e -f");
        let after = run("+a -b +c ~e -f -g +h ~i");
        let comparison = compare(&before, &after);
        assert_eq!(names(&comparison.newly_failing), ["b", "g"]);
        assert_eq!(names(&comparison.newly_passing), ["c"]);
        assert_eq!(names(&comparison.vanished), ["d"]);
        assert_eq!(names(&comparison.newly_skipped), ["e", "i"]);
        assert_eq!(names(&comparison.added), ["g", "h", "i"]);
        assert!(!comparison.nothing_lost());
        assert!(compare(&before, &before).nothing_lost());
    }

    #[test]
    fn what_says_nothing_about_the_code_is_no_baseline() {
        let mut unclear = run("+a");
        unclear.outcome = Outcome::TimedOut { limit_s: 1 };
        assert!(Baseline::of(unclear, BaselineOrigin::Ran).is_err());
        assert!(Baseline::of(run(""), BaselineOrigin::Ran).is_ok());
        let unbuilt = |words: &str, file: &str| {
            // Each run tells it in other words.
            let errors =
                vec![BuildError::new(format!("undefined: Add, in {words}")).at(file, Some(1))];
            TestRun {
                outcome: Outcome::DidNotBuild { errors },
                ..run(words)
            }
        };
        assert!(Baseline::of_part(unbuilt("", "a.go"), BaselineOrigin::Ran).is_none());
        let part = Baseline::of_part(unbuilt("+a -t", "a.go"), BaselineOrigin::Ran)
            .expect("a part was run");
        assert!(!part.is_whole() && part.is_as_unbuilt_as(&unbuilt("+a +t", "a.go")));
        assert!(
            !part.is_as_unbuilt_as(&unbuilt("+a +t", "b.go"))
                && !part.is_as_unbuilt_as(&run("+a +t"))
        );
    }
}
