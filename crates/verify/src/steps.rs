//! Combines the results of the commands of one suite run: named tests from test commands, exit codes from the others.

use std::collections::BTreeMap;
use std::time::Duration;

use super::build::BuildError;
use super::build::parse_compiler_errors;
use super::command;
use super::outcome::{Outcome, TestName, TestRun, TestState, Tests};
use super::session::{RunnerResult, Session, exit_code, join_output, output_of};
use super::step::{CheckResult, StepTask, SuiteStep};
use super::suite::Suite;
use supervisor_process::FinishedProcess;
use supervisor_text::words;

/// Limit for the output kept of a command that does not run tests.
const MAX_CHECK_OUTPUT: usize = 4_000;

/// Collects the results of the commands of one run.
#[derive(Debug, Default)]
pub(super) struct StepResults {
    tests: Option<Tests>,
    outcome: Option<Outcome>,
    exit_code: Option<i32>,
    outputs: Vec<String>,
    notes: Vec<String>,
    checks: Vec<CheckResult>,
}

/// A finished command that does not run tests.
#[derive(Debug)]
pub(super) struct FinishedStep {
    result: CheckResult,
    /// The outcome of the run if the command did not exit by itself.
    cut_short: Option<Outcome>,
    is_build: bool,
    exit_code: Option<i32>,
}

/// Runs a command that does not run tests. Its exit code decides whether it passed.
pub(super) async fn run_non_test_step(step: &SuiteStep, session: &Session<'_>) -> FinishedStep {
    let finished: FinishedProcess = session.run(&step.with_arguments(&[]), &[]).await;
    let code = exit_code(&finished);
    FinishedStep {
        result: CheckResult {
            command: step.command_line(),
            passed: code == Some(0),
            output: words::cut_middle(&output_of(&finished), MAX_CHECK_OUTPUT).into_owned(),
        },
        cut_short: session.abnormal_outcome(&finished, command::program(&step.argv)),
        is_build: matches!(step.task, StepTask::Build),
        exit_code: code,
    }
}

impl StepResults {
    /// Adds the judgement of a test command, with `prefix` prepended to the test names.
    pub(super) fn add_tests(&mut self, judgement: RunnerResult, prefix: &str) {
        self.outputs.push(judgement.output);
        self.notes.extend(judgement.notes);
        let outcome = prefix_error_paths(judgement.outcome, prefix);
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

    /// Adds a command that does not run tests. A failed build ends the run if tests would follow, because they would run
    /// against an older build.
    pub(super) fn add_check(&mut self, step: FinishedStep, more_tests: bool) {
        let failed = !step.result.passed;
        if failed {
            self.outputs
                .push(format!("$ {}\n{}", step.result.command, step.result.output));
            self.exit_code = self.exit_code.filter(|code| *code != 0).or(step.exit_code);
        }
        if failed && step.is_build && more_tests {
            let mut errors = parse_compiler_errors(&step.result.output);
            if errors.is_empty() {
                let last = step
                    .result
                    .output
                    .lines()
                    .rfind(|l| !l.trim().is_empty())
                    .unwrap_or_default();
                errors.push(BuildError::new(format!(
                    "`{}` failed: {}",
                    step.result.command,
                    last.trim()
                )));
            }
            self.outcome = Some(step.cut_short.unwrap_or(Outcome::DidNotBuild { errors }));
            self.tests
                .get_or_insert_with(|| Tests::Named(BTreeMap::new()));
            return;
        }
        if let Some(outcome @ (Outcome::TimedOut { .. } | Outcome::Cancelled)) = step.cut_short {
            self.outcome = Some(outcome);
            self.tests
                .get_or_insert_with(|| Tests::Named(BTreeMap::new()));
        }
        self.checks.push(step.result);
    }

    /// Whether the run is over: later commands could not change the outcome, or there is no time left for them.
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

/// The worse of two outcomes.
fn worse(first: Outcome, second: Outcome) -> Outcome {
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
    match (first, second) {
        (Outcome::DidNotBuild { mut errors }, Outcome::DidNotBuild { errors: more }) => {
            errors.extend(more);
            Outcome::DidNotBuild { errors }
        }
        (first, second) if rank(&second) > rank(&first) => second,
        (first, _) => first,
    }
}

fn prefix_error_paths(outcome: Outcome, prefix: &str) -> Outcome {
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

/// Inserts a result. A repeated name gets a number, so that no result hides another.
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
        .expect("the range is unbounded");
    tests.insert(name, state);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(outcome: Outcome, names: &[&str]) -> RunnerResult {
        let tests = names
            .iter()
            .map(|n| (TestName::from(*n), TestState::Passed))
            .collect();
        RunnerResult {
            outcome,
            tests: Tests::Named(tests),
            exit_code: Some(0),
            output: String::new(),
            notes: Vec::new(),
        }
    }

    fn finished(command: &str, code: i32, is_build: bool) -> FinishedStep {
        let output = String::from("src/a.ts(3,1): error TS2304: Cannot find name 'add'.");
        let result = CheckResult {
            command: command.to_owned(),
            passed: code == 0,
            output,
        };
        FinishedStep {
            result,
            cut_short: None,
            is_build,
            exit_code: Some(code),
        }
    }

    #[test]
    fn worst_outcome_of_several_packages_counts() {
        let mut results = StepResults::default();
        results.add_tests(
            judgement(Outcome::Passed, &["a.test.js > adds"]),
            "packages/a/",
        );
        results.add_tests(
            judgement(Outcome::Failed, &["a.test.js > adds"]),
            "packages/b/",
        );
        results.add_tests(judgement(Outcome::NoTests, &[]), "packages/c/");
        let Some(Tests::Named(tests)) = &results.tests else {
            panic!("{results:?}")
        };
        let names: Vec<&str> = tests.keys().map(|n| n.0.as_str()).collect();
        assert_eq!(
            names,
            ["packages/a/a.test.js > adds", "packages/b/a.test.js > adds"]
        );
        assert_eq!(results.outcome, Some(Outcome::Failed));
    }

    #[test]
    fn only_a_failed_build_hides_tests() {
        let mut results = StepResults::default();
        results.add_check(finished("prettier --check .", 1, false), true);
        assert!(!results.is_over());
        results.add_tests(judgement(Outcome::Passed, &["adds"]), "");
        assert_eq!(
            (results.outcome.as_ref(), results.checks.len()),
            (Some(&Outcome::Passed), 1)
        );
        let mut results = StepResults::default();
        results.add_check(finished("tsc -b", 2, true), true);
        assert!(results.is_over());
        let Some(Outcome::DidNotBuild { errors }) = results.outcome else {
            panic!("built")
        };
        assert_eq!(
            (errors[0].file.as_deref(), errors[0].missing.as_slice()),
            (Some("src/a.ts"), &["add".to_owned()][..])
        );
    }
}
