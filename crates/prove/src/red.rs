//! Does the change do anything that a test notices? Its tests run on the base's code and must fail there.

use supervisor_languages::Language;
use supervisor_text::words;
use supervisor_verify::protected::{FileRole, role};
use supervisor_verify::{Outcome, TestName, TestRun, TestState, Tests};

use crate::changed_tests::{code_of, with_tests_of};
use crate::mutants::{Mutants, every_group_is_noticed};
use crate::prove::{MutantMode, ProofRun, ProveError, names};
use crate::report::Gap;

/// What the change's tests did on the base's code.
#[derive(Default)]
pub(crate) struct Red {
    /// Tests that pass with the change and fail without it.
    pub(crate) fail: Vec<TestName>,
    /// New tests that pass without it.
    pub(crate) pass: Vec<TestName>,
    /// Tests that failed on the base and pass with only the tests and the configuration of the change.
    pub(crate) fixed_without_code: Vec<TestName>,
}

impl ProofRun<'_> {
    /// Runs the change's tests, with its configuration, on the base's code.
    pub(crate) async fn red(
        &mut self,
        before: &TestRun,
        after: &TestRun,
    ) -> Result<Red, ProveError> {
        let is_new = |name: &TestName| before.state(name).is_none();
        let failed_before =
            |name: &TestName| matches!(before.state(name), Some(TestState::Failed(_)));
        // Rust files can hold both, so their tests count as a changed file too.
        let changed_files = self
            .finder()
            .changed_test_files(&self.change, after, |v| v.change.as_deref());
        let changes_tests = !changed_files.is_empty()
            || self
                .change
                .changed()
                .any(|(path, _)| self.finder().role(path).is_protected());
        if !changes_tests {
            // The base with the change's tests is the base.
            return Ok(Red {
                fail: after
                    .passed()
                    .filter(|name| failed_before(name))
                    .cloned()
                    .collect(),
                ..Red::default()
            });
        }
        let mut tests: Vec<TestName> = changed_files
            .into_iter()
            .flat_map(|file| file.tests)
            .collect();
        let shows_change = |name: &&TestName| is_new(name) || failed_before(name);
        tests.extend(after.passed().filter(shows_change).cloned());
        tests.sort();
        tests.dedup();
        // Helpers, data and configuration can change any test.
        if self.change.changed().any(|(path, _)| {
            let role = self.finder().role(path);
            role.is_protected() && role != FileRole::Test
        }) {
            tests.clear();
        }
        let ecosystem = self.suite.ecosystem();
        let red = self
            .selected_state("red", &tests, move |path, versions| {
                if role(ecosystem, path) != FileRole::Source {
                    return versions.change.clone();
                }
                with_tests_of(path, versions.base.as_deref(), versions.change.as_deref())
            })
            .await?;
        let did_not_build = matches!(red.outcome(), Outcome::DidNotBuild { .. });
        if *after.tests() == Tests::Unknown {
            let fails = did_not_build || *red.outcome() == Outcome::Failed;
            let command = TestName(self.suite.command());
            return Ok(Red {
                fail: if fails { vec![command] } else { Vec::new() },
                ..Red::default()
            });
        }
        let mut found = Red::default();
        // If the base does not build with the new tests, that is said of the new ones only, if there are any.
        let adds_tests = after.passed().any(&is_new);
        for name in after.passed() {
            let is_candidate = tests.is_empty() || tests.contains(name);
            match red.state(name) {
                Some(TestState::Passed) if is_new(name) => found.pass.push(name.clone()),
                Some(TestState::Passed) if failed_before(name) => {
                    found.fixed_without_code.push(name.clone());
                }
                Some(TestState::Passed | TestState::Skipped) => {}
                Some(TestState::Failed(_)) => found.fail.push(name.clone()),
                // Nothing was built, or its file did not load without the change.
                None if is_candidate && (is_new(name) || (did_not_build && !adds_tests)) => {
                    found.fail.push(name.clone());
                }
                None if is_candidate && !adds_tests && *red.outcome() == Outcome::Failed => {
                    found.fail.push(name.clone());
                }
                None => {}
            }
        }
        Ok(found)
    }

    /// A change of code needs a test that fails without it, or, if behaviour stays, tests that notice mutants of it.
    pub(crate) async fn judge_code(
        &mut self,
        after: &TestRun,
        red: &Red,
        gaps: &mut Vec<Gap>,
    ) -> Result<Option<Mutants>, ProveError> {
        if !self.changes_code() {
            return Ok(None);
        }
        let needs_mutants = red.fail.is_empty() && gaps.is_empty();
        let mutants = match self.request.mutants {
            MutantMode::Always(budget) => self.run_mutants(after, budget).await?,
            MutantMode::IfNeeded if needs_mutants => self.run_mutants(after, None).await?,
            MutantMode::IfNeeded | MutantMode::Never => None,
        };
        if !red.fail.is_empty() {
            return Ok(mutants);
        }
        let notices = mutants.as_ref().is_some_and(|found| {
            found.noticed() > 0
                && found.noticed() * 2 >= found.tried()
                && every_group_is_noticed(found)
        });
        // A refactoring, also if it came with more tests of what was there before.
        if notices {
            return Ok(mutants);
        }
        // Tests behind a feature or a flag that the command does not set.
        let not_run: Vec<String> = self
            .finder()
            .changed_test_files(&self.change, after, |versions| versions.change.as_deref())
            .into_iter()
            .filter(|file| file.tests.is_empty() && *after.tests() != Tests::Unknown)
            .filter(|file| self.finder().role(&file.path) == FileRole::Test)
            .map(|file| file.path.display().to_string())
            .collect();
        gaps.push(if !not_run.is_empty() {
            Gap {
                what: format!("No test of {} ran.", words::plain(&not_run.join(", "))),
                next: String::from(
                    "name the command that runs them with --test-cmd, for example with the feature they need",
                ),
            }
        } else if red.pass.is_empty() {
            let noticed = match &mutants {
                Some(found) => format!(" Existing tests: {}.", found.sentence()),
                None => String::new(),
            };
            Gap {
                what: format!("No test fails without the change.{noticed}"),
                next: String::from("add a test that fails on the base and passes with the change"),
            }
        } else {
            Gap {
                what: format!(
                    "The new tests pass without the change: {}.",
                    names(&red.pass)
                ),
                next: String::from("make them check what the change adds"),
            }
        });
        Ok(mutants)
    }

    /// Whether code changed: of the product, or code that the runner loads, which can decide what tests say.
    pub(crate) fn changes_code(&self) -> bool {
        let finder = self.finder();
        self.change.changed().any(|(path, versions)| {
            matches!(finder.role(path), FileRole::Source | FileRole::RunnerConfig)
                && Language::of_path(path).is_some()
                && code_of(path, versions.base.as_deref())
                    != code_of(path, versions.change.as_deref())
        })
    }

    /// Tests that pass only because tests or configuration changed need the user's permission.
    pub(crate) fn judge_fixed_without_code(&self, red: &Red, gaps: &mut Vec<Gap>) {
        let fixed: Vec<TestName> = red
            .fixed_without_code
            .iter()
            .filter(|test| !self.is_allowed(test))
            .cloned()
            .collect();
        if fixed.is_empty() {
            return;
        }
        let files: Vec<String> = self
            .change
            .changed()
            .filter(|(path, _)| self.finder().role(path).is_protected())
            .map(|(path, _)| path.display().to_string())
            .collect();
        gaps.push(Gap {
            what: format!(
                "{} failed on the base and pass{} without the changed code, only because of {}.",
                names(&fixed),
                if fixed.len() == 1 { "es" } else { "" },
                words::plain(&files.join(", "))
            ),
            next: String::from(
                "change the code instead, or allow it by name with --allow-test-change",
            ),
        });
    }

    fn is_allowed(&self, test: &TestName) -> bool {
        self.request
            .allow_test_change
            .iter()
            .any(|name| name == "*" || test.0.contains(name.as_str()))
    }
}
