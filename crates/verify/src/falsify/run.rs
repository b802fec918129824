//! Runs three variants of the test file in random order: one with a neutral edit, which must pass, and two falsified
//! ones, which must fail. A variant that cannot be created or built leaves the result unproven.

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;

use super::super::outcome::{Outcome, TestName, TestRun, TestState, Tests};
use super::{FalsifiableTests, FalsifiedTest, FalsifiedText};
use supervisor_text::words;

/// How often another expectation is tried for tests that passed despite the change or did not build.
const RETRIES: usize = 2;

/// Runs the variants of the test file.
pub trait FalsifiedFileRunner: Send {
    /// Runs the targets with this text in place of their file, with the same file name, command and environment as
    /// before. The error says why that was not possible.
    fn run(&mut self, text: String) -> BoxFuture<'_, Result<TestRun, String>>;
}

/// The result of a falsification, with details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Falsification {
    pub verdict: FalsificationVerdict,
    /// The random seed, so that the falsification can be repeated.
    pub seed: u64,
    pub order: Vec<&'static str>,
    pub runs: usize,
    /// A target does not pass with a comment added to its file.
    pub fails_neutral_edit: bool,
    /// Number of targets that failed with a changed expected value.
    pub by_value: usize,
    /// Number of targets that failed with an added assertion.
    pub by_assertion: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FalsificationVerdict {
    /// Every target failed when it was falsified.
    Falsified,
    /// A target passed although it was falsified.
    Survived {
        test: Option<TestName>,
        sentence: String,
    },
    /// Nothing was shown either way.
    Unproven { why: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestFileVariant {
    NeutralEdit,
    ChangedValues,
    AddedAssertions,
}

impl TestFileVariant {
    fn name(self) -> &'static str {
        match self {
            Self::NeutralEdit => "placebo",
            Self::ChangedValues => "changed values",
            Self::AddedAssertions => "added assertions",
        }
    }
}

/// Falsifies the targets and runs them. `plain` is the run in which they passed.
pub async fn falsify(
    tests: &FalsifiableTests,
    plain: &TestRun,
    seed: u64,
    stage: &mut dyn FalsifiedFileRunner,
) -> Falsification {
    let mut trial = FalsificationRun {
        tests,
        plain,
        rng: fastrand::Rng::with_seed(seed),
        stage,
        runs: 0,
        fails_neutral_edit: false,
        by_value: BTreeSet::new(),
        by_assertion: BTreeSet::new(),
        unsure: BTreeSet::new(),
    };
    let mut order = vec![
        TestFileVariant::NeutralEdit,
        TestFileVariant::ChangedValues,
        TestFileVariant::AddedAssertions,
    ];
    trial.rng.shuffle(&mut order);
    let verdict = trial.run_states(&order).await;
    Falsification {
        verdict,
        seed,
        order: order.iter().map(|state| state.name()).collect(),
        runs: trial.runs,
        fails_neutral_edit: trial.fails_neutral_edit,
        by_value: trial.by_value.len(),
        by_assertion: trial.by_assertion.len(),
    }
}

struct FalsificationRun<'a> {
    tests: &'a FalsifiableTests,
    plain: &'a TestRun,
    rng: fastrand::Rng,
    stage: &'a mut dyn FalsifiedFileRunner,
    runs: usize,
    fails_neutral_edit: bool,
    by_value: BTreeSet<usize>,
    by_assertion: BTreeSet<usize>,
    /// Targets that passed with a changed value that may be irrelevant.
    unsure: BTreeSet<usize>,
}

/// Why a state did not give the expected result.
enum StateFailure {
    Survived(FalsificationVerdict),
    Unproven(String),
}

impl FalsificationRun<'_> {
    async fn run_states(&mut self, order: &[TestFileVariant]) -> FalsificationVerdict {
        if self.tests.targets.is_empty() {
            let why = String::from("no test of the file has the name of a target");
            return FalsificationVerdict::Unproven { why };
        }
        let mut unproven = None;
        for state in order {
            let result = match state {
                TestFileVariant::NeutralEdit => self.neutral_edit().await,
                TestFileVariant::ChangedValues => self.changed_values().await,
                TestFileVariant::AddedAssertions => self.added_assertions().await,
            };
            match result {
                Ok(()) => {}
                Err(StateFailure::Survived(verdict)) => return verdict,
                // Continue: a later state may still survive, which is the stronger result.
                Err(StateFailure::Unproven(why)) => unproven = Some(why),
            }
        }
        if let Some(why) = unproven {
            return FalsificationVerdict::Unproven { why };
        }
        self.final_verdict()
    }

    fn final_verdict(&self) -> FalsificationVerdict {
        if let Some(name) = self.tests.missing.first() {
            return FalsificationVerdict::Unproven {
                why: format!("`{name}` was not found in its file"),
            };
        }
        let is_generic = self
            .tests
            .targets
            .iter()
            .all(|target| target.names.is_empty());
        let is_falsified = |target: &usize| {
            (self.by_value.contains(target) || self.by_assertion.contains(target))
                && !self.unsure.contains(target)
        };
        let all: Vec<usize> = (0..self.tests.targets.len()).collect();
        let missing: Vec<&usize> = all.iter().filter(|target| !is_falsified(target)).collect();
        match missing.first() {
            None => FalsificationVerdict::Falsified,
            Some(_) if is_generic && missing.len() < all.len() => FalsificationVerdict::Falsified,
            Some(first) => {
                let name = self.tests.targets[**first]
                    .names
                    .first()
                    .map(|n| format!("`{n}`"));
                let name = name.unwrap_or_else(|| String::from("a test"));
                FalsificationVerdict::Unproven {
                    why: format!("{name} could not be made wrong"),
                }
            }
        }
    }

    async fn run(&mut self, text: String) -> Result<TestRun, StateFailure> {
        self.runs += 1;
        self.stage.run(text).await.map_err(StateFailure::Unproven)
    }

    async fn neutral_edit(&mut self) -> Result<(), StateFailure> {
        let text = self.tests.with_neutral_edit(&mut self.rng);
        let run = self.run(text).await?;
        let mut names = self.tests.targets.iter().flat_map(|target| &target.names);
        let failed = names.find(|name| !matches!(run.state(name), Some(TestState::Passed)));
        match (run.tests(), failed) {
            (Tests::Unknown, _) if run.outcome().is_passed() => Ok(()),
            (Tests::Named(_), None) if run.outcome().is_conclusive() => Ok(()),
            _ => {
                self.fails_neutral_edit = true;
                let name = failed
                    .map(|name| format!("`{name}` does"))
                    .unwrap_or_else(|| String::from("the tests do"));
                Err(StateFailure::Unproven(format!(
                    "{name} not pass when a comment is added to the test file"
                )))
            }
        }
    }

    async fn changed_values(&mut self) -> Result<(), StateFailure> {
        let mut open: Vec<usize> = (0..self.tests.targets.len()).collect();
        let mut tried: Vec<(usize, usize)> = Vec::new();
        let mut surviving: Vec<FalsifiedTest> = Vec::new();
        for round in 0..=RETRIES {
            let mut falsified = self
                .tests
                .with_changed_expectations(&mut self.rng, &open, &tried);
            // The last try changes all values at once, if the tests passed only with possibly irrelevant values.
            if round == RETRIES && surviving.iter().all(|test| !test.is_sure) {
                falsified = self
                    .tests
                    .with_all_expectations_changed(&mut self.rng, &open);
            }
            if falsified.tests.is_empty() {
                break;
            }
            let run = self.run(falsified.text.clone()).await?;
            tried.extend(
                falsified
                    .tests
                    .iter()
                    .map(|test| (test.target, test.choice)),
            );
            let Some(survivors) = self.survivors(&falsified, &run) else {
                continue;
            };
            for test in falsified.tests {
                // The row was requested by its old name and did not run, which is inconclusive.
                if test.may_rename
                    && test.names.iter().all(|name| run.state(name).is_none())
                    && !self.has_renamed_failure(&run)
                {
                    continue;
                }
                surviving.retain(|old| old.target != test.target);
                if survivors.contains(&test.target) {
                    surviving.push(test);
                } else {
                    self.by_value.insert(test.target);
                }
            }
            open = surviving.iter().map(|test| test.target).collect();
            if open.is_empty() {
                break;
            }
        }
        self.unsure.extend(
            surviving
                .iter()
                .filter(|test| !test.is_sure)
                .map(|test| test.target),
        );
        match surviving.iter().find(|test| test.is_sure) {
            None => Ok(()),
            Some(test) => {
                let sentence = format!(
                    "{} also {} when {} `{}`; a test that cannot fail proves nothing",
                    subject(test),
                    if test.names.is_empty() {
                        "pass"
                    } else {
                        "passes"
                    },
                    if test.names.is_empty() {
                        "one expects"
                    } else {
                        "it expects"
                    },
                    words::plain(&test.new_value)
                );
                Err(survived(test, sentence))
            }
        }
    }

    async fn added_assertions(&mut self) -> Result<(), StateFailure> {
        let all: Vec<usize> = (0..self.tests.targets.len()).collect();
        let falsified = self.tests.with_failing_assertions(&mut self.rng, &all);
        if falsified.tests.is_empty() {
            return Ok(());
        }
        let run = self.run(falsified.text.clone()).await?;
        let Some(survivors) = self.survivors(&falsified, &run) else {
            return Ok(());
        };
        for test in &falsified.tests {
            if survivors.contains(&test.target) {
                let sentence = format!(
                    "{} also {} with an assertion at the end that never holds; a test that cannot fail proves nothing",
                    subject(test),
                    if test.names.is_empty() {
                        "pass"
                    } else {
                        "passes"
                    },
                );
                return Err(survived(test, sentence));
            }
            self.by_assertion.insert(test.target);
        }
        Ok(())
    }

    /// Whether a test failed that did not exist in the plain run, such as a renamed row.
    fn has_renamed_failure(&self, run: &TestRun) -> bool {
        run.failed()
            .any(|(name, _)| self.plain.state(name).is_none())
    }

    /// The targets that should have failed but did not; `None` if the run is inconclusive.
    fn survivors(&self, falsified: &FalsifiedText, run: &TestRun) -> Option<Vec<usize>> {
        match run.outcome() {
            Outcome::Passed | Outcome::Failed | Outcome::NoTests => {}
            Outcome::DidNotBuild { .. }
            | Outcome::CouldNotRun { .. }
            | Outcome::Unclear { .. }
            | Outcome::TimedOut { .. }
            | Outcome::Killed { .. }
            | Outcome::Cancelled => return None,
        }
        if *run.tests() == Tests::Unknown {
            let all = || falsified.tests.iter().map(|test| test.target).collect();
            return Some(if run.outcome().is_passed() {
                all()
            } else {
                Vec::new()
            });
        }
        // A row with a changed expectation may have a different name.
        let renamed = self.has_renamed_failure(run);
        let fails = |name: &TestName| matches!(run.state(name), Some(TestState::Failed(_)));
        let has_failed = |test: &FalsifiedTest| {
            let outer =
                |name: &&TestName| !test.names.iter().any(|other| is_subtest_of(name, other));
            if test.in_every_row {
                test.names.iter().filter(outer).all(fails)
            } else {
                test.names.iter().any(fails)
                    || (renamed && test.names.iter().any(|name| run.state(name).is_none()))
            }
        };
        Some(
            falsified
                .tests
                .iter()
                .filter(|test| !has_failed(test))
                .map(|test| test.target)
                .collect(),
        )
    }
}

fn is_subtest_of(name: &TestName, other: &TestName) -> bool {
    name.0
        .strip_prefix(other.0.as_str())
        .is_some_and(|rest| rest.starts_with('/') || rest.starts_with(" > "))
}

fn subject(test: &FalsifiedTest) -> String {
    test.names
        .first()
        .map_or_else(|| String::from("the tests"), |name| format!("`{name}`"))
}

fn survived(test: &FalsifiedTest, sentence: String) -> StateFailure {
    StateFailure::Survived(FalsificationVerdict::Survived {
        test: test.names.first().cloned(),
        sentence,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use futures_util::future::FutureExt as _;

    use super::super::super::baseline::tests::run;
    use super::*;

    const SOURCE: &str = "def test_t():\n    assert f(2) == 6\n";

    /// Returns a scripted result for each text, in the notation of [`run`].
    struct ScriptedRunner<F>(F);

    impl<F: FnMut(&str) -> &'static str + Send> FalsifiedFileRunner for ScriptedRunner<F> {
        fn run(&mut self, text: String) -> BoxFuture<'_, Result<TestRun, String>> {
            let result = (self.0)(&text);
            async move {
                if result == "!" {
                    Err(String::from("the disk is full"))
                } else {
                    Ok(run(result))
                }
            }
            .boxed()
        }
    }

    async fn falsify_with(
        source: &str,
        script: impl FnMut(&str) -> &'static str + Send,
    ) -> Falsification {
        let names = [TestName::from("test_t")];
        let tests = FalsifiableTests::find(Path::new("test_a.py"), source, &names)
            .expect("a language we know");
        falsify(&tests, &run("+a +test_t"), 5, &mut ScriptedRunner(script)).await
    }

    fn is_wrong(text: &str) -> bool {
        !text.contains("== 6\n") || text.matches("assert").count() > 1
    }

    #[tokio::test]
    async fn test_that_fails_when_wrong_is_falsified() {
        let result = falsify_with(SOURCE, |text| {
            if is_wrong(text) {
                "+a -test_t"
            } else {
                "+a +test_t"
            }
        })
        .await;
        assert_eq!(result.verdict, FalsificationVerdict::Falsified);
        assert_eq!(
            (result.runs, result.by_value, result.by_assertion),
            (3, 1, 1)
        );
    }

    #[tokio::test]
    async fn wrong_test_that_does_not_fail_survives() {
        for outcome in ["+a +test_t", "+a ~test_t", "+a"] {
            let result = falsify_with(SOURCE, |text| {
                if is_wrong(text) {
                    outcome
                } else {
                    "+a +test_t"
                }
            })
            .await;
            let FalsificationVerdict::Survived { test, sentence } = result.verdict else {
                panic!("{outcome}: {result:?}")
            };
            assert_eq!(test, Some(TestName::from("test_t")));
            assert!(
                sentence.ends_with("; a test that cannot fail proves nothing"),
                "{sentence}"
            );
        }
        // An equality that always holds fails when negated. That must not count as falsified.
        let always = |text: &str| {
            if text.matches("assert").count() > 1 || text.contains("not (") {
                "-test_t"
            } else {
                "+test_t"
            }
        };
        let result = falsify_with(SOURCE, always).await;
        assert!(
            matches!(result.verdict, FalsificationVerdict::Survived { .. }),
            "{result:?}"
        );
    }

    #[tokio::test]
    async fn failure_on_neutral_edit_is_unproven() {
        let touchy = |text: &str| if text == SOURCE { "+test_t" } else { "-test_t" };
        let result = falsify_with(SOURCE, touchy).await;
        let FalsificationVerdict::Unproven { why } = result.verdict else {
            panic!("{result:?}")
        };
        assert_eq!(
            why,
            "`test_t` does not pass when a comment is added to the test file"
        );
        let result = falsify_with(SOURCE, |_| "!").await;
        assert_eq!(
            result.verdict,
            FalsificationVerdict::Unproven {
                why: String::from("the disk is full")
            }
        );
    }

    #[tokio::test]
    async fn test_without_values_is_falsified_by_assertion() {
        let source = "def test_t():\n    check_all()\n";
        let result = falsify_with(source, |text| {
            if text.contains("assert") {
                "-test_t"
            } else {
                "+test_t"
            }
        })
        .await;
        assert_eq!(result.verdict, FalsificationVerdict::Falsified);
        assert_eq!((result.by_value, result.by_assertion), (0, 1));
    }

    #[tokio::test]
    async fn irrelevant_value_is_unproven() {
        let source = "def test_t():\n    if maybe():\n        assert f(2) == 6\n";
        let honest = |text: &str| {
            if text.matches("assert").count() > 1 {
                "-test_t"
            } else {
                "+test_t"
            }
        };
        let result = falsify_with(source, honest).await;
        assert!(
            matches!(result.verdict, FalsificationVerdict::Unproven { .. }),
            "{result:?}"
        );
    }
}
