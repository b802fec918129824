//! The trial of a green: three states of the test file in random order, and what came of each. The harmless one must
//! pass, the two wrong ones must fail. What could not be made or built proves nothing, and is said so.

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;

use super::super::outcome::{Outcome, TestName, TestRun, TestState, Tests};
use super::{FalsifiableTests, FalsifiedTest, FalsifiedText};
use supervisor_text::words;

/// How often a changed expectation is chosen anew, for tests that passed in spite of it or did not build.
const RETRIES: usize = 2;

/// Where the falsified files are run.
pub trait FalsificationStage: Send {
    /// Runs the targets with this text in the place of their file, by the same name, command and environment as ever.
    /// An error says why that could not be done.
    fn run(&mut self, text: String) -> BoxFuture<'_, Result<TestRun, String>>;
}

/// What the trial showed, and how it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Falsification {
    pub verdict: FalsificationVerdict,
    /// The dice of this trial, so that it can be repeated.
    pub seed: u64,
    pub order: Vec<&'static str>,
    pub runs: usize,
    /// A target does not pass with a comment added to its file.
    pub fails_harmlessly: bool,
    /// Targets that failed when another value was expected of them.
    pub by_value: usize,
    /// Targets that failed by an assertion added to them.
    pub by_assertion: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FalsificationVerdict {
    /// Every target failed when it was made wrong.
    Falsified,
    /// A target passed although it was wrong.
    Survived {
        test: Option<TestName>,
        sentence: String,
    },
    /// Nothing was shown either way.
    Unproven { why: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestFileState {
    Placebo,
    ChangedValues,
    AddedAssertions,
}

impl TestFileState {
    fn name(self) -> &'static str {
        match self {
            Self::Placebo => "placebo",
            Self::ChangedValues => "changed values",
            Self::AddedAssertions => "added assertions",
        }
    }
}

/// Makes the targets wrong and runs them. `plain` is the run in which they passed.
pub async fn falsify(
    tests: &FalsifiableTests,
    plain: &TestRun,
    seed: u64,
    stage: &mut dyn FalsificationStage,
) -> Falsification {
    let mut trial = Trial {
        tests,
        plain,
        dice: fastrand::Rng::with_seed(seed),
        stage,
        runs: 0,
        fails_harmlessly: false,
        by_value: BTreeSet::new(),
        by_assertion: BTreeSet::new(),
        unsure: BTreeSet::new(),
    };
    let mut order = vec![
        TestFileState::Placebo,
        TestFileState::ChangedValues,
        TestFileState::AddedAssertions,
    ];
    trial.dice.shuffle(&mut order);
    let verdict = trial.hold(&order).await;
    Falsification {
        verdict,
        seed,
        order: order.iter().map(|state| state.name()).collect(),
        runs: trial.runs,
        fails_harmlessly: trial.fails_harmlessly,
        by_value: trial.by_value.len(),
        by_assertion: trial.by_assertion.len(),
    }
}

struct Trial<'a> {
    tests: &'a FalsifiableTests,
    plain: &'a TestRun,
    dice: fastrand::Rng,
    stage: &'a mut dyn FalsificationStage,
    runs: usize,
    fails_harmlessly: bool,
    by_value: BTreeSet<usize>,
    by_assertion: BTreeSet<usize>,
    /// Passed with a value that may not have mattered.
    unsure: BTreeSet<usize>,
}

/// What a trial ends with before its last state.
enum Stop {
    Survived(FalsificationVerdict),
    Unproven(String),
}

impl Trial<'_> {
    async fn hold(&mut self, order: &[TestFileState]) -> FalsificationVerdict {
        if self.tests.targets.is_empty() {
            let why = String::from("no test of the file has the name of a target");
            return FalsificationVerdict::Unproven { why };
        }
        let mut unproven = None;
        for state in order {
            let held = match state {
                TestFileState::Placebo => self.placebo().await,
                TestFileState::ChangedValues => self.changed_values().await,
                TestFileState::AddedAssertions => self.added_assertions().await,
            };
            match held {
                Ok(()) => {}
                Err(Stop::Survived(verdict)) => return verdict,
                // A state that passes though it is wrong may still come.
                Err(Stop::Unproven(why)) => unproven = Some(why),
            }
        }
        if let Some(why) = unproven {
            return FalsificationVerdict::Unproven { why };
        }
        self.sum_up()
    }

    fn sum_up(&self) -> FalsificationVerdict {
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
        let shown = |target: &usize| {
            (self.by_value.contains(target) || self.by_assertion.contains(target))
                && !self.unsure.contains(target)
        };
        let all: Vec<usize> = (0..self.tests.targets.len()).collect();
        let missing: Vec<&usize> = all.iter().filter(|target| !shown(target)).collect();
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

    async fn run(&mut self, text: String) -> Result<TestRun, Stop> {
        self.runs += 1;
        self.stage.run(text).await.map_err(Stop::Unproven)
    }

    async fn placebo(&mut self) -> Result<(), Stop> {
        let text = self.tests.placebo(&mut self.dice);
        let run = self.run(text).await?;
        let mut names = self.tests.targets.iter().flat_map(|target| &target.names);
        let failed = names.find(|name| !matches!(run.state(name), Some(TestState::Passed)));
        match (run.tests(), failed) {
            (Tests::Unknown, _) if run.outcome().is_passed() => Ok(()),
            (Tests::Named(_), None) if run.outcome().speaks_about_the_code() => Ok(()),
            _ => {
                self.fails_harmlessly = true;
                let name = failed
                    .map(|name| format!("`{name}` does"))
                    .unwrap_or_else(|| String::from("the tests do"));
                Err(Stop::Unproven(format!(
                    "{name} not pass when a comment is added to the test file"
                )))
            }
        }
    }

    async fn changed_values(&mut self) -> Result<(), Stop> {
        let mut open: Vec<usize> = (0..self.tests.targets.len()).collect();
        let mut tried: Vec<(usize, usize)> = Vec::new();
        let mut surviving: Vec<FalsifiedTest> = Vec::new();
        for round in 0..=RETRIES {
            let mut made = self
                .tests
                .with_changed_expectations(&mut self.dice, &open, &tried);
            // What passed with a value that may not matter has one more try, with all of its values at once.
            if round == RETRIES && surviving.iter().all(|test| !test.is_sure) {
                made = self
                    .tests
                    .with_all_expectations_changed(&mut self.dice, &open);
            }
            if made.tests.is_empty() {
                break;
            }
            let run = self.run(made.text.clone()).await?;
            tried.extend(made.tests.iter().map(|test| (test.target, test.choice)));
            let Some(survivors) = self.survivors(&made, &run) else {
                continue;
            };
            for test in made.tests {
                // The run was asked for a row by its old name: that shows nothing.
                if test.may_rename
                    && test.names.iter().all(|name| run.state(name).is_none())
                    && !self.is_renamed(&run)
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
                    words::plain(&test.now)
                );
                Err(survived(test, sentence))
            }
        }
    }

    async fn added_assertions(&mut self) -> Result<(), Stop> {
        let all: Vec<usize> = (0..self.tests.targets.len()).collect();
        let made = self.tests.with_failing_assertions(&mut self.dice, &all);
        if made.tests.is_empty() {
            return Ok(());
        }
        let run = self.run(made.text.clone()).await?;
        let Some(survivors) = self.survivors(&made, &run) else {
            return Ok(());
        };
        for test in &made.tests {
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

    /// Has something failed that had another name before?
    fn is_renamed(&self, run: &TestRun) -> bool {
        run.failed()
            .any(|(name, _)| self.plain.state(name).is_none())
    }

    /// The targets that did not fail although they should; `None` if the run says nothing about them.
    fn survivors(&self, made: &FalsifiedText, run: &TestRun) -> Option<Vec<usize>> {
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
            let all = || made.tests.iter().map(|test| test.target).collect();
            return Some(if run.outcome().is_passed() {
                all()
            } else {
                Vec::new()
            });
        }
        // A row that expects something else may have another name.
        let renamed = self.is_renamed(run);
        let fails = |name: &TestName| matches!(run.state(name), Some(TestState::Failed(_)));
        let has_failed = |test: &FalsifiedTest| {
            let outer = |name: &&TestName| !test.names.iter().any(|other| is_below(name, other));
            if test.in_every_row {
                test.names.iter().filter(outer).all(fails)
            } else {
                test.names.iter().any(fails)
                    || (renamed && test.names.iter().any(|name| run.state(name).is_none()))
            }
        };
        Some(
            made.tests
                .iter()
                .filter(|test| !has_failed(test))
                .map(|test| test.target)
                .collect(),
        )
    }
}

fn is_below(name: &TestName, other: &TestName) -> bool {
    name.0
        .strip_prefix(other.0.as_str())
        .is_some_and(|rest| rest.starts_with('/') || rest.starts_with(" > "))
}

fn subject(test: &FalsifiedTest) -> String {
    test.names
        .first()
        .map_or_else(|| String::from("the tests"), |name| format!("`{name}`"))
}

fn survived(test: &FalsifiedTest, sentence: String) -> Stop {
    Stop::Survived(FalsificationVerdict::Survived {
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

    /// Says of each text what a run of it shows, in the words of the bench.
    struct Told<F>(F);

    impl<F: FnMut(&str) -> &'static str + Send> FalsificationStage for Told<F> {
        fn run(&mut self, text: String) -> BoxFuture<'_, Result<TestRun, String>> {
            let said = (self.0)(&text);
            async move {
                if said == "!" {
                    Err(String::from("the disk is full"))
                } else {
                    Ok(run(said))
                }
            }
            .boxed()
        }
    }

    async fn tried(source: &str, tell: impl FnMut(&str) -> &'static str + Send) -> Falsification {
        let names = [TestName::from("test_t")];
        let tests = FalsifiableTests::find(Path::new("test_a.py"), source, &names)
            .expect("a language we know");
        falsify(&tests, &run("+a +test_t"), 5, &mut Told(tell)).await
    }

    fn is_wrong(text: &str) -> bool {
        !text.contains("== 6\n") || text.matches("assert").count() > 1
    }

    #[tokio::test]
    async fn what_fails_when_it_is_wrong_and_passes_when_it_is_not_is_falsified() {
        let trial = tried(SOURCE, |text| {
            if is_wrong(text) {
                "+a -test_t"
            } else {
                "+a +test_t"
            }
        })
        .await;
        assert_eq!(trial.verdict, FalsificationVerdict::Falsified);
        assert_eq!((trial.runs, trial.by_value, trial.by_assertion), (3, 1, 1));
    }

    #[tokio::test]
    async fn what_passes_skips_or_vanishes_although_it_is_wrong_has_survived() {
        for said in ["+a +test_t", "+a ~test_t", "+a"] {
            let trial = tried(
                SOURCE,
                |text| if is_wrong(text) { said } else { "+a +test_t" },
            )
            .await;
            let FalsificationVerdict::Survived { test, sentence } = trial.verdict else {
                panic!("{said}: {trial:?}")
            };
            assert_eq!(test, Some(TestName::from("test_t")));
            assert!(
                sentence.ends_with("; a test that cannot fail proves nothing"),
                "{sentence}"
            );
        }
        // An equality that always holds lets its opposite fail, which is no reason to believe it.
        let always = |text: &str| {
            if text.matches("assert").count() > 1 || text.contains("not (") {
                "-test_t"
            } else {
                "+test_t"
            }
        };
        let trial = tried(SOURCE, always).await;
        assert!(
            matches!(trial.verdict, FalsificationVerdict::Survived { .. }),
            "{trial:?}"
        );
    }

    #[tokio::test]
    async fn what_cannot_stand_a_comment_or_cannot_be_run_is_unproven() {
        let touchy = |text: &str| if text == SOURCE { "+test_t" } else { "-test_t" };
        let trial = tried(SOURCE, touchy).await;
        let FalsificationVerdict::Unproven { why } = trial.verdict else {
            panic!("{trial:?}")
        };
        assert_eq!(
            why,
            "`test_t` does not pass when a comment is added to the test file"
        );
        let trial = tried(SOURCE, |_| "!").await;
        assert_eq!(
            trial.verdict,
            FalsificationVerdict::Unproven {
                why: String::from("the disk is full")
            }
        );
    }

    #[tokio::test]
    async fn a_test_without_values_is_falsified_by_an_assertion_alone() {
        let source = "def test_t():\n    check_all()\n";
        let trial = tried(source, |text| {
            if text.contains("assert") {
                "-test_t"
            } else {
                "+test_t"
            }
        })
        .await;
        assert_eq!(trial.verdict, FalsificationVerdict::Falsified);
        assert_eq!((trial.by_value, trial.by_assertion), (0, 1));
    }

    #[tokio::test]
    async fn a_value_that_may_not_matter_is_no_reason_to_refuse() {
        let source = "def test_t():\n    if maybe():\n        assert f(2) == 6\n";
        let honest = |text: &str| {
            if text.matches("assert").count() > 1 {
                "-test_t"
            } else {
                "+test_t"
            }
        };
        let trial = tried(source, honest).await;
        assert!(
            matches!(trial.verdict, FalsificationVerdict::Unproven { .. }),
            "{trial:?}"
        );
    }
}
