//! Does the change do anything that a test notices? Its tests run on the base's code and must fail there.

use std::collections::BTreeSet;
use std::path::Path;

use supervisor_languages::Language;
use supervisor_text::words;
use supervisor_verify::protected::{FileRole, role};
use supervisor_verify::{Outcome, TestName, TestRun, TestState, Tests};

use crate::changed_tests::{code_of, is_text_or_data, with_tests_of};
use crate::mutants::every_group_is_noticed;
use crate::prove::ProofRun;
use crate::report::names;
use crate::request::{MutantMode, ProveError};

/// What the change's tests did on the base's code.
#[derive(Default)]
pub(crate) struct Red {
    /// Tests that pass with the change and fail without it.
    pub(crate) fail: Vec<TestName>,
    /// Whether one of them was seen running and failing, not just its file that does not build or load without the change.
    pub(crate) is_observed: bool,
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
                is_observed: true,
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
                is_observed: !did_not_build,
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
                Some(TestState::Failed(_)) => {
                    found.fail.push(name.clone());
                    found.is_observed = true;
                }
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
    ) -> Result<(), ProveError> {
        if !self.changes_code() {
            return Ok(());
        }
        let needs_mutants = red.fail.is_empty() && self.report.gaps.is_empty();
        self.report.mutants = match self.request.mutants {
            MutantMode::Always(budget) => self.run_mutants(after, budget).await?,
            MutantMode::IfNeeded if needs_mutants => self.run_mutants(after, None).await?,
            MutantMode::IfNeeded | MutantMode::Never => None,
        };
        if !red.fail.is_empty() {
            return match red.is_observed {
                true => Ok(()),
                false => self.judge_unobserved(after, &red.fail).await,
            };
        }
        let mutants = self.report.mutants.as_ref();
        let notices = mutants.is_some_and(|found| {
            found.noticed() > 0
                && found.noticed() * 2 >= found.tried()
                && every_group_is_noticed(found)
        });
        let unknown = self.code_without_mutants();
        // A refactoring, also if it came with more tests of what was there before.
        if notices && unknown.is_empty() {
            return Ok(());
        }
        let noticed = match mutants {
            Some(found) => format!(" Existing tests: {}.", found.sentence()),
            None => String::new(),
        };
        // Tests behind a feature or a flag that the command does not set.
        let not_run: Vec<String> = self
            .finder()
            .changed_test_files(&self.change, after, |versions| versions.change.as_deref())
            .into_iter()
            .filter(|file| file.tests.is_empty() && *after.tests() != Tests::Unknown)
            .filter(|file| self.finder().role(&file.path) == FileRole::Test)
            .map(|file| file.path.display().to_string())
            .collect();
        if !not_run.is_empty() {
            self.gap(
                format!("No test of {} ran.", words::plain(&not_run.join(", "))),
                "name the command that runs them with --test-cmd, for example with the feature they need",
            );
        } else if !red.pass.is_empty() && !notices {
            self.gap(
                format!(
                    "The new tests pass without the change: {}.",
                    names(&red.pass)
                ),
                "make them check what the change adds",
            );
        } else {
            let unknown = match unknown.as_slice() {
                [] => String::new(),
                some => format!(
                    " Mutants cannot be made of {}.",
                    words::plain(&some.join(", "))
                ),
            };
            self.gap(
                format!("No test fails without the change.{noticed}{unknown}"),
                "add a test that fails on the base and passes with the change",
            );
        }
        Ok(())
    }

    /// Tests whose files do not build or load without the change show only that something is missing there. That they
    /// check the change is shown by a mutant of it that they notice, or, where none can be made, by names that it adds.
    async fn judge_unobserved(
        &mut self,
        after: &TestRun,
        tests: &[TestName],
    ) -> Result<(), ProveError> {
        if self
            .report
            .mutants
            .as_ref()
            .is_some_and(|found| found.noticed() > 0)
        {
            return Ok(());
        }
        let found = self.find_noticed_mutant(after, tests).await?;
        match found.filter(|found| found.tried() > 0) {
            Some(found) if found.noticed() > 0 => {}
            None if self.tests_name_the_change(after, tests) => {}
            found => {
                let tried = match found {
                    Some(found) => format!(
                        "none of them noticed {}",
                        words::count(found.tried(), "mutant")
                    ),
                    None => String::from("they do not name what it adds"),
                };
                self.gap(
                    format!(
                        "{} not build or load without the change, but {tried}, so it was not shown that {} the change.",
                        if tests.len() == 1 { "The new test does" } else { "The new tests do" },
                        if tests.len() == 1 { "it checks" } else { "they check" },
                    ),
                    "compare what the changed code returns with a fixed value",
                );
            }
        }
        Ok(())
    }

    /// Whether the files of these tests contain a word that changed code has only with the change.
    fn tests_name_the_change(&self, after: &TestRun, tests: &[TestName]) -> bool {
        let code = self.changed_code();
        let new_words: BTreeSet<&str> = code
            .iter()
            .flat_map(|(_, old, new)| {
                let old: BTreeSet<&str> = words_of(old).collect();
                words_of(new).filter(move |word| !old.contains(word))
            })
            .collect();
        let files = self.files_with(after, tests);
        files
            .iter()
            .any(|file| words_of(&file.source).any(|word| new_words.contains(word)))
    }

    /// Changed code in languages without a grammar here.
    fn code_without_mutants(&self) -> Vec<String> {
        self.changed_code_paths()
            .filter(|path| Language::of_path(path).is_none())
            .map(|path| path.display().to_string())
            .collect()
    }

    /// Each named test must fail without the change.
    pub(crate) fn judge_named_tests(&mut self, after: &TestRun, red: &Red) {
        for wanted in self.request.tests {
            let files = self
                .finder()
                .changed_test_files(&self.change, after, |v| v.change.as_deref());
            let in_file = |name: &TestName| {
                files
                    .iter()
                    .any(|file| file.path == Path::new(wanted) && file.tests.contains(name))
            };
            let is_meant = |name: &&TestName| name.0.contains(wanted.as_str()) || in_file(name);
            let all: Vec<TestName> = after.passed().filter(is_meant).cloned().collect();
            let (what, next) = if all.is_empty() {
                (
                    format!("No test `{}` passed.", words::plain(wanted)),
                    "name a test or a test file of the change",
                )
            } else if let Some(test) = all.iter().find(|test| !red.fail.contains(test)) {
                (
                    format!("`{test}` does not fail without the change."),
                    "make it check what the change adds",
                )
            } else {
                continue;
            };
            self.gap(what, next);
        }
    }

    /// Whether code changed: of the product, or code that the runner loads, which can decide what tests say.
    pub(crate) fn changes_code(&self) -> bool {
        self.changed_code_paths().next().is_some()
    }

    fn changed_code_paths(&self) -> impl Iterator<Item = &Path> {
        self.change
            .changed()
            .filter(|(path, versions)| {
                matches!(
                    self.finder().role(path),
                    FileRole::Source | FileRole::RunnerConfig
                ) && !is_text_or_data(path)
                    && code_of(path, versions.base.as_deref())
                        != code_of(path, versions.change.as_deref())
            })
            .map(|(path, _)| path)
    }

    /// Tests that pass only because tests or configuration changed need the user's permission.
    pub(crate) fn judge_fixed_without_code(&mut self, red: &Red) {
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
        self.gap(
            format!(
                "{} failed on the base and pass{} without the changed code, only because of {}.",
                names(&fixed),
                if fixed.len() == 1 { "es" } else { "" },
                words::plain(&files.join(", "))
            ),
            "change the code instead, or allow it by name with --allow-test-change",
        );
    }

    fn is_allowed(&self, test: &TestName) -> bool {
        self.request
            .allow_test_change
            .iter()
            .any(|name| name == "*" || test.0.contains(name.as_str()))
    }
}

/// The words of a text that can be names.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    const MIN_LEN: usize = 3;
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| word.len() >= MIN_LEN && word.starts_with(|c: char| !c.is_ascii_digit()))
}
