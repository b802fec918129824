//! What several commands showed together: the tests by their names, the commands beside them by how they ended.

use std::collections::BTreeMap;
use std::time::Duration;

use super::build::BuildError;
use super::build::errors_in_output;
use super::command;
use super::outcome::{Outcome, TestName, TestRun, TestState, Tests};
use super::session::{Judgement, Session, exit_code, join_output, output_of};
use super::step::{CheckResult, StepTask, SuiteStep};
use super::suite::Suite;
use supervisor_process::FinishedProcess;
use supervisor_text::words;

/// Kept of what a command beside the tests wrote.
const CHECK_OUTPUT: usize = 4_000;

/// The results of the commands of one run, as they come in.
#[derive(Debug, Default)]
pub(super) struct Findings {
    tests: Option<Tests>,
    outcome: Option<Outcome>,
    exit_code: Option<i32>,
    outputs: Vec<String>,
    notes: Vec<String>,
    checks: Vec<CheckResult>,
}

/// A command beside the tests that has ended, or was ended.
#[derive(Debug)]
pub(super) struct StepEnd {
    result: CheckResult,
    /// What it says about the run, if it did not end by itself.
    cut_short: Option<Outcome>,
    is_build: bool,
    exit_code: Option<i32>,
}

/// Runs a command that is not about tests; its exit code decides.
pub(super) async fn run_beside(step: &SuiteStep, session: &Session<'_>) -> StepEnd {
    let finished: FinishedProcess = session.run(&step.with_arguments(&[]), &[]).await;
    let code = exit_code(&finished);
    StepEnd {
        result: CheckResult {
            command: step.typed(),
            passed: code == Some(0),
            output: words::cut_middle(&output_of(&finished), CHECK_OUTPUT).into_owned(),
        },
        cut_short: session.cut_short(&finished, command::program(&step.argv)),
        is_build: matches!(step.task, StepTask::Build),
        exit_code: code,
    }
}

impl Findings {
    /// Adds what a runner made of its command; names get `prefix` where they begin with a path.
    pub(super) fn add_tests(&mut self, judgement: Judgement, prefix: &str) {
        self.outputs.push(judgement.output);
        self.notes.extend(judgement.notes);
        let outcome = with_prefix(judgement.outcome, prefix);
        match (&mut self.tests, judgement.tests) {
            (Some(Tests::Named(known)), Tests::Named(more)) => {
                for (name, state) in more {
                    add_named(known, &format!("{prefix}{}", name.0), state);
                }
            }
            (Some(Tests::Unknown), _) => {}
            (known @ Some(Tests::Named(_)), Tests::Unknown) => *known = Some(Tests::Unknown),
            (known @ None, Tests::Named(more)) => {
                let named = more
                    .into_iter()
                    .map(|(name, state)| (TestName(format!("{prefix}{}", name.0)), state));
                *known = Some(Tests::Named(named.collect()));
            }
            (known @ None, Tests::Unknown) => *known = Some(Tests::Unknown),
        }
        if self.exit_code.is_none_or(|code| code == 0) {
            self.exit_code = judgement.exit_code;
        }
        self.outcome = Some(match self.outcome.take() {
            None => outcome,
            Some(before) => worse(before, outcome),
        });
    }

    /// Adds a command beside the tests. One that fails where tests are still to come, and may have made what they run,
    /// ends the run: they would speak of something older.
    pub(super) fn add_check(&mut self, end: StepEnd, more_tests: bool) {
        let failed = !end.result.passed;
        if failed {
            self.outputs
                .push(format!("$ {}\n{}", end.result.command, end.result.output));
            self.exit_code = self.exit_code.filter(|code| *code != 0).or(end.exit_code);
        }
        if failed && end.is_build && more_tests {
            let mut errors = errors_in_output(&end.result.output);
            if errors.is_empty() {
                let last = end
                    .result
                    .output
                    .lines()
                    .rfind(|l| !l.trim().is_empty())
                    .unwrap_or_default();
                errors.push(BuildError::new(format!(
                    "`{}` failed: {}",
                    end.result.command,
                    last.trim()
                )));
            }
            self.outcome = Some(end.cut_short.unwrap_or(Outcome::DidNotBuild { errors }));
            self.tests
                .get_or_insert_with(|| Tests::Named(BTreeMap::new()));
            return;
        }
        if let Some(outcome @ (Outcome::TimedOut { .. } | Outcome::Cancelled)) = end.cut_short {
            self.outcome = Some(outcome);
            self.tests
                .get_or_insert_with(|| Tests::Named(BTreeMap::new()));
        }
        self.checks.push(end.result);
    }

    /// Nothing that comes later could change what was seen, or there is no time for it.
    pub(super) fn is_over(&self) -> bool {
        matches!(
            self.outcome,
            Some(
                Outcome::TimedOut { .. }
                    | Outcome::Cancelled
                    | Outcome::CouldNotRun { .. }
                    | Outcome::Killed { .. }
            )
        ) || (matches!(self.outcome, Some(Outcome::DidNotBuild { .. }))
            && matches!(&self.tests, Some(Tests::Named(tests)) if tests.is_empty()))
    }

    pub(super) fn into_run(self, suite: &Suite, took: Duration) -> TestRun {
        let mut outcome = self.outcome.unwrap_or(Outcome::NoTests);
        if outcome == Outcome::Passed && self.checks.iter().any(|check| !check.passed) {
            outcome = Outcome::Failed;
        }
        TestRun {
            command: suite.command(),
            root: suite.root.clone(),
            outcome,
            tests: self.tests.unwrap_or(Tests::Unknown),
            checks: self.checks,
            exit_code: self.exit_code,
            output: match self.outputs.as_slice() {
                [one] => one.clone(),
                many => join_output(many.iter().map(String::as_str)),
            },
            took,
            notes: self
                .notes
                .into_iter()
                .chain(suite.notes.iter().cloned())
                .collect(),
        }
    }
}

/// The one of two outcomes that says less well of the project.
fn worse(one: Outcome, other: Outcome) -> Outcome {
    let rank = |outcome: &Outcome| match outcome {
        Outcome::NoTests => 0,
        Outcome::Passed => 1,
        Outcome::Failed => 2,
        Outcome::DidNotBuild { .. } => 3,
        Outcome::Unclear { .. } => 4,
        Outcome::CouldNotRun { .. } => 5,
        Outcome::Killed { .. } => 6,
        Outcome::TimedOut { .. } => 7,
        Outcome::Cancelled => 8,
    };
    match (one, other) {
        (Outcome::DidNotBuild { mut errors }, Outcome::DidNotBuild { errors: more }) => {
            errors.extend(more);
            Outcome::DidNotBuild { errors }
        }
        (one, other) if rank(&other) > rank(&one) => other,
        (one, _) => one,
    }
}

fn with_prefix(outcome: Outcome, prefix: &str) -> Outcome {
    match outcome {
        Outcome::DidNotBuild { mut errors } if !prefix.is_empty() => {
            for error in &mut errors {
                error.file = error.file.take().map(|f| {
                    if f.starts_with('/') {
                        f
                    } else {
                        format!("{prefix}{f}")
                    }
                });
            }
            Outcome::DidNotBuild { errors }
        }
        other => other,
    }
}

/// The same name twice is told apart by a number, so that no result hides another.
fn add_named(tests: &mut BTreeMap<TestName, TestState>, name: &str, state: TestState) {
    let name = (1..)
        .map(|n| {
            TestName(if n == 1 {
                name.to_owned()
            } else {
                format!("{name} #{n}")
            })
        })
        .find(|name| !tests.contains_key(name))
        .expect("numbers do not end");
    tests.insert(name, state);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(outcome: Outcome, names: &[&str]) -> Judgement {
        let tests = names
            .iter()
            .map(|n| (TestName::from(*n), TestState::Passed))
            .collect();
        Judgement {
            outcome,
            tests: Tests::Named(tests),
            exit_code: Some(0),
            output: String::new(),
            notes: Vec::new(),
        }
    }

    fn end(command: &str, code: i32, is_build: bool) -> StepEnd {
        let output = String::from("src/a.ts(3,1): error TS2304: Cannot find name 'add'.");
        let result = CheckResult {
            command: command.to_owned(),
            passed: code == 0,
            output,
        };
        StepEnd {
            result,
            cut_short: None,
            is_build,
            exit_code: Some(code),
        }
    }

    #[test]
    fn the_tests_of_several_packages_are_told_apart_and_the_worst_outcome_counts() {
        let mut findings = Findings::default();
        findings.add_tests(
            judgement(Outcome::Passed, &["a.test.js > adds"]),
            "packages/a/",
        );
        findings.add_tests(
            judgement(Outcome::Failed, &["a.test.js > adds"]),
            "packages/b/",
        );
        findings.add_tests(judgement(Outcome::NoTests, &[]), "packages/c/");
        let Some(Tests::Named(tests)) = &findings.tests else {
            panic!("{findings:?}")
        };
        let names: Vec<&str> = tests.keys().map(|n| n.0.as_str()).collect();
        assert_eq!(
            names,
            ["packages/a/a.test.js > adds", "packages/b/a.test.js > adds"]
        );
        assert_eq!(findings.outcome, Some(Outcome::Failed));
    }

    #[test]
    fn a_linter_that_fails_does_not_hide_the_tests_and_a_build_that_fails_does() {
        let mut findings = Findings::default();
        findings.add_check(end("prettier --check .", 1, false), true);
        assert!(!findings.is_over());
        findings.add_tests(judgement(Outcome::Passed, &["adds"]), "");
        assert_eq!(
            (findings.outcome.as_ref(), findings.checks.len()),
            (Some(&Outcome::Passed), 1)
        );
        let mut findings = Findings::default();
        findings.add_check(end("tsc -b", 2, true), true);
        assert!(findings.is_over());
        let Some(Outcome::DidNotBuild { errors }) = findings.outcome else {
            panic!("built")
        };
        assert_eq!(
            (errors[0].file.as_deref(), errors[0].missing.as_slice()),
            (Some("src/a.ts"), &["add".to_owned()][..])
        );
    }
}
