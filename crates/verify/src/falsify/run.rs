//! Runs variants of the test file: one with a neutral edit, which must pass, and falsified ones, which must fail. A variant
//! that cannot be created or built proves nothing.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

use super::super::outcome::{Outcome, TestName, TestRun, TestState, Tests};
use super::challenge::Challenge;
use super::{FalsifiableTests, FalsifiedTest, FalsifiedText, TestFiles, overlaps};
use supervisor_text::words;

/// Changed values may take this long, or this often the time of the targets alone, whichever is longer.
const MIN_BUDGET: Duration = Duration::from_secs(10);
const BUDGET_FACTOR: u32 = 8;
/// How often a change of one expectation may fail to build or may make no difference.
const MAX_WAYS: usize = 3;

/// Runs the variants of the test file.
pub trait FalsifiedFileRunner: Send {
    /// Runs the targets with these texts in place of their files, with the same file names, command and environment as
    /// before. The error says why that was not possible.
    fn run(&mut self, files: TestFiles) -> BoxFuture<'_, Result<TestRun, String>>;
}

/// The result of a falsification, with details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Falsification {
    pub verdict: FalsificationVerdict,
    /// The random seed, so that the falsification can be repeated.
    pub seed: u64,
    pub order: Vec<&'static str>,
    pub runs: usize,
    /// A target does not pass with the neutral edit alone. Nothing else was run then.
    pub fails_neutral_edit: bool,
    /// Number of targets that failed with a changed expected value.
    pub by_value: usize,
    /// Number of targets that failed with an added assertion.
    pub by_assertion: usize,
    pub expectations: Expectations,
}

impl Falsification {
    /// Nothing was run.
    pub fn not_tried(why: String) -> Self {
        Self {
            verdict: FalsificationVerdict::Unproven { why },
            seed: 0,
            order: Vec::new(),
            runs: 0,
            fails_neutral_edit: false,
            by_value: 0,
            by_assertion: 0,
            expectations: Expectations::default(),
        }
    }
}

/// How many expectations of the targets were seen to matter.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Expectations {
    /// Those whose change was noticed.
    pub shown: usize,
    /// All that ran, also those that could not be changed.
    pub all: usize,
    /// Those that were not tried for want of time.
    pub left: usize,
}

impl Expectations {
    /// `5 of 5 expectations`, `3 of 12, time ran out`.
    pub fn sentence(self) -> String {
        match self.left {
            0 => format!(
                "falsified: {} of {}",
                self.shown,
                words::count(self.all, "expectation")
            ),
            _ => format!("falsified: {} of {}, time ran out", self.shown, self.all),
        }
    }
}

impl std::ops::AddAssign for Expectations {
    fn add_assign(&mut self, other: Self) {
        self.shown += other.shown;
        self.all += other.all;
        self.left += other.left;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FalsificationVerdict {
    /// Every expectation that was tried failed when it was falsified, at least one of each target.
    Falsified,
    /// A target passed although it was falsified.
    Survived {
        test: Option<TestName>,
        sentence: String,
    },
    /// Nothing was shown either way, or not of every expectation.
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
        shortest_run: None,
        fails_neutral_edit: false,
        by_assertion: BTreeSet::new(),
        progress: Vec::new(),
        counted: 0,
    };
    let mut order = vec![
        TestFileVariant::ChangedValues,
        TestFileVariant::AddedAssertions,
    ];
    trial.rng.shuffle(&mut order);
    // First, because without it the others show nothing.
    order.insert(0, TestFileVariant::NeutralEdit);
    let verdict = trial.run_states(&order).await;
    Falsification {
        verdict,
        seed,
        order: order.iter().map(|state| state.name()).collect(),
        runs: trial.runs,
        fails_neutral_edit: trial.fails_neutral_edit,
        by_value: trial.shown_targets().len(),
        by_assertion: trial.by_assertion.len(),
        expectations: trial.expectations(),
    }
}

struct FalsificationRun<'a> {
    tests: &'a FalsifiableTests,
    plain: &'a TestRun,
    rng: fastrand::Rng,
    stage: &'a mut dyn FalsifiedFileRunner,
    runs: usize,
    /// What a run of the targets takes.
    shortest_run: Option<Duration>,
    fails_neutral_edit: bool,
    by_assertion: BTreeSet<usize>,
    /// Of each challenge: its target and its state.
    progress: Vec<(usize, ChallengeState)>,
    /// How many of them, from the start, are expectations. The others are more literals of these.
    counted: usize,
}

/// How far a challenge came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChallengeState {
    /// The next way to change it.
    Open(usize),
    /// The change was noticed.
    Shown,
    /// The change was not noticed, or could not be made; both say nothing.
    Unknown,
    /// The tests do not get there.
    NotReached,
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
                Err(StateFailure::Unproven(why)) if self.fails_neutral_edit => {
                    return FalsificationVerdict::Unproven { why };
                }
                // Continue: a later state may still survive, which is the stronger result.
                Err(StateFailure::Unproven(why)) => unproven = Some(why),
            }
        }
        if let Some(why) = unproven {
            return FalsificationVerdict::Unproven { why };
        }
        self.final_verdict()
    }

    fn shown_targets(&self) -> BTreeSet<usize> {
        let shown = |(_, state): &&(usize, ChallengeState)| *state == ChallengeState::Shown;
        self.progress
            .iter()
            .filter(shown)
            .map(|(target, _)| *target)
            .collect()
    }

    fn expectations(&self) -> Expectations {
        let mut counts = Expectations::default();
        for (_, state) in &self.progress[..self.counted] {
            match state {
                ChallengeState::Shown => counts.shown += 1,
                ChallengeState::Open(_) => counts.left += 1,
                ChallengeState::Unknown => {}
                ChallengeState::NotReached => continue,
            }
            counts.all += 1;
        }
        counts
    }

    fn final_verdict(&self) -> FalsificationVerdict {
        let unproven = |why: String| FalsificationVerdict::Unproven { why };
        if let Some(name) = self.tests.missing.first() {
            return unproven(format!("`{name}` was not found in its file"));
        }
        let targets = &self.tests.targets;
        let shown = self.shown_targets();
        let is_generic = targets.iter().all(|target| target.names.is_empty());
        let is_left = |target: &usize| {
            let open = |(of, state): &(usize, ChallengeState)| {
                of == target && matches!(state, ChallengeState::Open(_))
            };
            self.progress[..self.counted].iter().any(open)
        };
        let without = (0..targets.len()).find(|target| !shown.contains(target));
        if let Some(first) = without.filter(|_| !is_generic || shown.is_empty()) {
            let name = targets[first].names.first().map(|n| format!("`{n}`"));
            let name = name.unwrap_or_else(|| String::from("a test"));
            return unproven(if is_left(&first) {
                format!("time ran out before {name} could be made wrong")
            } else {
                format!("no value that {name} expects could be changed so that it fails")
            });
        }
        let counts = self.expectations();
        if counts.shown + counts.left < counts.all {
            return unproven(format!(
                "only {} of {} failed when changed",
                counts.shown,
                words::count(counts.all, "expectation")
            ));
        }
        FalsificationVerdict::Falsified
    }

    async fn run(&mut self, files: TestFiles) -> Result<TestRun, StateFailure> {
        self.runs += 1;
        let run = self
            .stage
            .run(files)
            .await
            .map_err(StateFailure::Unproven)?;
        let took = run.took();
        self.shortest_run = Some(self.shortest_run.map_or(took, |known| known.min(took)));
        Ok(run)
    }

    async fn neutral_edit(&mut self) -> Result<(), StateFailure> {
        let run = self.run(self.tests.text().to_owned().into()).await?;
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
                    "{name} not pass when spaces are added at the end of a line of the test file"
                )))
            }
        }
    }

    /// Changes one expectation of each target at a time, until each was changed or the time is over.
    async fn changed_values(&mut self) -> Result<(), StateFailure> {
        let challenges = self.tests.challenges(&mut self.rng);
        self.progress = challenges
            .iter()
            .map(|challenge| (challenge.target, ChallengeState::Open(0)))
            .collect();
        self.counted = challenges.iter().filter(|c| !c.is_extra).count();
        for (at, challenge) in challenges.iter().enumerate() {
            if challenge.changes.is_empty() {
                self.progress[at].1 = ChallengeState::Unknown;
            }
        }
        let began = Instant::now();
        let mut most = usize::MAX;
        loop {
            let picks = self.pick(&challenges, most);
            if picks.is_empty() {
                return Ok(());
            }
            let budget = self
                .shortest_run
                .map_or(MIN_BUDGET, |took| MIN_BUDGET.max(took * BUDGET_FACTOR));
            if began.elapsed() > budget {
                return Ok(());
            }
            let falsified = self.tests.with_changes(&challenges, &picks);
            let run = self.run(falsified.files.clone()).await?;
            let Some(survivors) = self.survivors(&falsified, &run) else {
                // One of the changes does not build. Fewer at a time find out which.
                if picks.len() > 1 {
                    most = picks.len() / 2;
                } else {
                    self.next_way(&challenges, picks[0]);
                }
                continue;
            };
            most = most.saturating_mul(2);
            for (test, pick) in falsified.tests.iter().zip(&picks) {
                // The row was requested by its old name and did not run, which is inconclusive.
                let is_gone = test.may_rename
                    && test.names.iter().all(|name| run.state(name).is_none())
                    && *run.tests() != Tests::Unknown
                    && !self.has_renamed_failure(&run);
                if is_gone {
                    self.next_way(&challenges, *pick);
                } else if survivors.contains(&test.target) {
                    self.survived(&challenges, *pick, test).await?;
                } else {
                    self.progress[test.challenge].1 = ChallengeState::Shown;
                }
            }
        }
    }

    /// One open challenge of each target, at most `most`, whose edits do not touch each other.
    fn pick(&self, challenges: &[Challenge], most: usize) -> Vec<(usize, usize)> {
        // A command without names says only whether all passes.
        let is_generic = self.tests.targets.iter().all(|t| t.names.is_empty());
        let most = if is_generic { 1 } else { most.max(1) };
        let mut picks: Vec<(usize, usize)> = Vec::new();
        for (at, (target, state)) in self.progress.iter().enumerate() {
            let ChallengeState::Open(way) = *state else {
                continue;
            };
            let change = &challenges[at].changes[way];
            let is_free = picks.iter().all(|(other, way)| {
                let other = &challenges[*other];
                other.target != *target
                    && other.changes[*way].edits.iter().all(|old| {
                        change
                            .edits
                            .iter()
                            .all(|new| new == old || !overlaps(&old.range, &new.range))
                    })
            });
            if is_free && picks.len() < most {
                picks.push((at, way));
            }
        }
        picks
    }

    fn next_way(&mut self, challenges: &[Challenge], (at, way): (usize, usize)) {
        let ways = challenges[at].changes.len().min(MAX_WAYS);
        self.progress[at].1 = if way + 1 < ways {
            ChallengeState::Open(way + 1)
        } else {
            ChallengeState::Unknown
        };
    }

    /// A change was not noticed. That refutes the test if the change must be noticed and the test gets there.
    async fn survived(
        &mut self,
        challenges: &[Challenge],
        (at, way): (usize, usize),
        test: &FalsifiedTest,
    ) -> Result<(), StateFailure> {
        let challenge = &challenges[at];
        let probe = self
            .tests
            .with_failure_at(test.target, &challenge.range, &mut self.rng);
        let has_probe = probe.is_some();
        if let Some(files) = probe.filter(|_| test.is_sure || way + 1 >= challenge.changes.len()) {
            let run = self.run(files.clone()).await?;
            let falsified = FalsifiedText {
                files,
                tests: vec![FalsifiedTest {
                    in_every_row: false,
                    ..test.clone()
                }],
            };
            match self.survivors(&falsified, &run) {
                Some(survivors) if !survivors.is_empty() => {
                    self.progress[at].1 = ChallengeState::NotReached;
                    return Ok(());
                }
                Some(_) => {}
                None => {
                    self.progress[at].1 = ChallengeState::Unknown;
                    return Ok(());
                }
            }
        }
        // Of a command without names it is not known which tests ran.
        if !test.is_sure || (test.names.is_empty() && !has_probe) {
            self.next_way(challenges, (at, way));
            return Ok(());
        }
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

    async fn added_assertions(&mut self) -> Result<(), StateFailure> {
        let all: Vec<usize> = (0..self.tests.targets.len()).collect();
        let falsified = self.tests.with_failing_assertions(&mut self.rng, &all);
        if falsified.tests.is_empty() {
            return Ok(());
        }
        let run = self.run(falsified.files.clone()).await?;
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
                let row_fails = |name: &TestName| {
                    fails(name) || (renamed && test.may_rename && run.state(name).is_none())
                };
                // A row with a new name must not pass either.
                let passes_renamed = test.may_rename
                    && test.names.iter().any(|name| run.state(name).is_none())
                    && run.passed().any(|name| self.plain.state(name).is_none());
                !passes_renamed && test.names.iter().filter(outer).all(row_fails)
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
        fn run(&mut self, files: TestFiles) -> BoxFuture<'_, Result<TestRun, String>> {
            let lines = files.text.lines().map(str::trim_end);
            let text: String = lines.map(|line| format!("{line}\n")).collect();
            let result = (self.0)(&text);
            async move {
                match result {
                    "!" => Err(String::from("the disk is full")),
                    "build" => Ok(TestRun {
                        outcome: Outcome::DidNotBuild { errors: Vec::new() },
                        ..run("")
                    }),
                    _ => Ok(run(result)),
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
        let result = falsify_with(SOURCE, |_| "-test_t").await;
        assert!(result.fails_neutral_edit && result.runs == 1);
        let FalsificationVerdict::Unproven { why } = result.verdict else {
            panic!("{result:?}")
        };
        assert_eq!(
            why,
            "`test_t` does not pass when spaces are added at the end of a line of the test file"
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
    async fn added_assertion_alone_proves_nothing() {
        let source = "def test_t():\n    check_all()\n";
        let result = falsify_with(source, |text| {
            if text.contains("assert") {
                "-test_t"
            } else {
                "+test_t"
            }
        })
        .await;
        assert!(
            matches!(result.verdict, FalsificationVerdict::Unproven { .. }),
            "{result:?}"
        );
        assert_eq!((result.by_value, result.by_assertion), (0, 1));
    }

    /// The cheat is right in one of two assertions, and equal to anything in the other.
    #[tokio::test]
    async fn survivor_is_remembered_when_another_change_fails() {
        const TWO: &str = "def test_t():\n    assert f(2) == 6\n    assert f(3) == 9\n";
        let has_added = |text: &str| text.matches("assert").count() > 2;
        let result = falsify_with(TWO, |text| {
            if text.contains("f(2) == 6\n") && !has_added(text) {
                "+a +test_t"
            } else {
                "+a -test_t"
            }
        })
        .await;
        assert!(
            matches!(result.verdict, FalsificationVerdict::Survived { .. }),
            "{result:?}"
        );
        let result = falsify_with(TWO, |text| {
            if text.starts_with(TWO) && !has_added(text) {
                "+a +test_t"
            } else {
                "+a -test_t"
            }
        })
        .await;
        assert_eq!(result.verdict, FalsificationVerdict::Falsified);
        assert_eq!(
            result.expectations.sentence(),
            "falsified: 2 of 2 expectations"
        );
    }

    /// The answer is a list in which one element is equal to anything.
    #[tokio::test]
    async fn every_literal_of_a_list_must_matter() {
        const LIST: &str = "def test_t():\n    assert f() == [1, 2, 3]\n";
        let fails_unless = |is_equal: fn(&str) -> bool| {
            falsify_with(LIST, move |text| {
                if is_equal(text) && text.matches("assert").count() == 1 {
                    "+a +test_t"
                } else {
                    "+a -test_t"
                }
            })
        };
        let result = fails_unless(|text| text.contains("[1, ") && text.contains(", 3]")).await;
        assert!(
            matches!(result.verdict, FalsificationVerdict::Survived { .. }),
            "{result:?}"
        );
        let result = fails_unless(|text| text.contains("[1, 2, 3]")).await;
        assert_eq!(result.verdict, FalsificationVerdict::Falsified);
        assert_eq!((result.runs, result.expectations.all), (5, 1));
    }

    #[tokio::test]
    async fn assertion_that_is_not_reached_does_not_count() {
        let source =
            "def test_t():\n    assert f(2) == 6\n    if maybe():\n        assert f(3) == 9\n";
        let result = falsify_with(source, |text| {
            if text.contains("    assert f(2) == 6\n") && text.matches("\n    assert").count() == 1
            {
                "+a +test_t"
            } else {
                "+a -test_t"
            }
        })
        .await;
        assert_eq!(
            result.verdict,
            FalsificationVerdict::Falsified,
            "{result:?}"
        );
        assert_eq!(result.expectations.all, 1);
    }

    #[tokio::test]
    async fn failed_build_or_unknown_assertion_is_unproven() {
        let result = falsify_with(SOURCE, |text| {
            if is_wrong(text) {
                "build"
            } else {
                "+a +test_t"
            }
        })
        .await;
        assert!(
            matches!(result.verdict, FalsificationVerdict::Unproven { .. }),
            "{result:?}"
        );
        let source = "def test_t():\n    assert f(2) == 6\n    check_result(f(3), nine)\n";
        let result = falsify_with(source, |text| {
            if is_wrong(text) {
                "+a -test_t"
            } else {
                "+a +test_t"
            }
        })
        .await;
        assert_eq!(
            result.verdict,
            FalsificationVerdict::Unproven {
                why: String::from("only 1 of 2 expectations failed when changed")
            }
        );
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
