//! The steps of a proof, in the order that fails fastest.

use std::path::Path;
use std::time::{Duration, Instant};

use supervisor_edits::Edit;
use supervisor_languages::Language;
use supervisor_text::words;
use supervisor_verify::protected::{FileRole, role};
use supervisor_verify::{
    DetectRequest, Outcome, RunEnvironment, Suite, TestName, TestRun, TestState, Tests, compare,
    run_first,
};
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

use crate::baseline_cache::BaselineCache;
use crate::change::{Change, ChangeError, Comparand, Git, Versions};
use crate::changed_tests::{TestFinder, code_of, with_tests_of};
use crate::falsification::Falsified;
use crate::mutants::{Mutants, every_group_is_noticed};
use crate::project_copy::{CopyError, ProjectCopy};
use crate::report::{Gap, Report, Step, Verdict};
use crate::test_changes::{
    TestChange, TestChangeKind, changed_expectations, first_lost_line, lost,
};

/// Of a command and of a result in a report.
const MAX_STEP_BYTES: usize = 400;

/// What to prove, and with what.
pub struct ProveRequest<'a> {
    pub root: &'a Path,
    /// A commit, such as `HEAD`.
    pub base: &'a str,
    pub comparand: Comparand,
    /// The test command, if the detected one is not right.
    pub test_cmd: Option<&'a str>,
    pub test_report: Option<&'a str>,
    /// Tests or test files that the user allows to be deleted, skipped or changed.
    pub allow_test_change: &'a [String],
    /// Skip the base where nothing fails with the change and no existing test was edited.
    pub fast: bool,
    /// Run mutants of the changed lines.
    pub mutants: MutantMode,
    /// How tests are run; its `guard` is not used.
    pub environment: RunEnvironment,
    /// Where locks, snapshots and baselines are kept.
    pub state: &'a StateDir,
    /// Called before each step.
    pub on_step: &'a (dyn Fn(&str) + Sync),
}

/// When mutants of the changed lines run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MutantMode {
    Never,
    /// Only where nothing else can prove the change: code without a test that fails on the base.
    #[default]
    IfNeeded,
    /// Always, within this time; by default three times what the tests take, at least 30 s.
    Always(Option<Duration>),
}

/// Why there is no verdict. The project is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    #[error(transparent)]
    Change(#[from] ChangeError),
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error("no tests were found: {0}")]
    NoSuite(String),
    #[error("the tests say nothing about {state}: {reason}")]
    Inconclusive { state: &'static str, reason: String },
    #[error("cancelled; your files are as they were")]
    Cancelled,
}

/// Proves a change. Files of the project are never changed, or restored before this returns.
pub async fn prove(
    request: &ProveRequest<'_>,
    stop: &CancellationToken,
) -> Result<Report, ProveError> {
    let detect = DetectRequest {
        root: request.root,
        near: None,
        test_cmd: request.test_cmd,
        test_report: request.test_report,
        path: None,
    };
    let suite = detect
        .detect()
        .map_err(|error| ProveError::NoSuite(error.to_string()))?;
    let launcher = &request.environment.launcher;
    let git = Git {
        root: request.root,
        launcher,
        env: &request.environment.env,
        stop,
    };
    let change = Change::read(&git, request.base, &request.comparand).await?;
    let tree = git.tree(request.base).await?;
    let tracked = git.tracked().await?;
    let cache = BaselineCache::open(request.state, &tree, &suite, &request.environment.env);
    let copy = ProjectCopy::open(request.root, request.state, launcher, stop).await?;
    let mut proof = ProofRun {
        request,
        stop,
        suite,
        environment: request.environment.clone(),
        copy,
        steps: Vec::new(),
        notes: Vec::new(),
        change,
        tracked,
        cache,
    };
    let report = proof.run().await;
    let closed = proof.copy.close();
    let report = report?;
    closed?;
    Ok(report)
}

/// A proof in progress.
pub(crate) struct ProofRun<'a> {
    pub(crate) request: &'a ProveRequest<'a>,
    pub(crate) stop: &'a CancellationToken,
    pub(crate) suite: Suite,
    pub(crate) environment: RunEnvironment,
    pub(crate) copy: ProjectCopy,
    steps: Vec<Step>,
    notes: Vec<String>,
    pub(crate) change: Change,
    /// All files that git knows.
    pub(crate) tracked: Vec<String>,
    cache: Option<BaselineCache>,
}

/// What the change's tests did on the base's code.
#[derive(Default)]
struct Red {
    /// Tests that pass with the change and fail without it.
    fail: Vec<TestName>,
    /// New tests that pass without it.
    pass: Vec<TestName>,
}

impl ProofRun<'_> {
    async fn run(&mut self) -> Result<Report, ProveError> {
        let suite = self.suite.clone();
        let after = self
            .test_state("change", &suite, |_, versions| versions.change.clone())
            .await?;
        let before = self.baseline(&after).await?;
        if matches!(after.outcome(), Outcome::DidNotBuild { .. })
            && before.outcome().is_conclusive()
        {
            let errors = vec![after.sentence()];
            return Ok(self.broken(errors, vec![], "the change does not build"));
        }
        conclusive("the change", &after)?;
        // A base that does not build or has no tests has nothing to lose; the red step still compares with it.
        if !matches!(
            before.outcome(),
            Outcome::DidNotBuild { .. } | Outcome::NoTests
        ) {
            conclusive("the base", &before)?;
        }
        let comparison = compare(&before, &after);
        let (regressions, failing_new): (Vec<TestName>, Vec<TestName>) = comparison
            .newly_failing
            .iter()
            .cloned()
            .partition(|name| before.state(name).is_some());
        let (regressions, flaky) = self.repeated_failures(regressions).await?;
        if !regressions.is_empty() || !comparison.checks_failing.is_empty() {
            let mut named: Vec<String> = regressions.iter().map(|name| name.0.clone()).collect();
            named.extend(comparison.checks_failing.clone());
            let summary = format!(
                "{} that passed on `{}` {} with the change",
                words::count(named.len(), "test"),
                self.request.base,
                if named.len() == 1 { "fails" } else { "fail" }
            );
            return Ok(self.broken(named, flaky, &summary));
        }
        let mut gaps = Vec::new();
        if !failing_new.is_empty() {
            gaps.push(Gap {
                what: format!("New tests fail: {}.", names(&failing_new)),
                next: String::from("make them pass, or remove them"),
            });
        }
        let test_changes = self.test_changes(&before, &after).await?;
        for change in &test_changes {
            if change.needs_permission() && !change.is_allowed_by(self.request.allow_test_change) {
                gaps.push(Gap {
                    what: format!("An existing test was weakened: {change}."),
                    next: String::from("restore it, or allow it by name with --allow-test-change"),
                });
            }
        }
        let red = self.red(&before, &after).await?;
        let wanted = [red.fail.as_slice(), &red.pass].concat();
        let falsified = self.falsify(&after, &wanted, &mut gaps).await?;
        let mutants = self.judge_code(&after, &red, &mut gaps).await?;
        let verdict = if gaps.is_empty() {
            Verdict::Proven
        } else {
            Verdict::Unproven
        };
        let summary = match verdict {
            Verdict::Proven => proven_sentence(&red.fail, falsified, mutants.as_ref()),
            _ => format!("nothing regressed, but {}", lower_first(&gaps[0].what)),
        };
        Ok(Report {
            verdict,
            summary,
            flaky,
            fail_without_change: red.fail,
            pass_without_change: red.pass,
            falsified: (falsified.shown, falsified.all()),
            mutants,
            test_changes,
            gaps,
            ..self.empty_report()
        })
    }

    pub(crate) fn finder(&self) -> TestFinder<'_> {
        TestFinder {
            root: self.request.root,
            suite: &self.suite,
        }
    }

    /// Runs these tests on the project with `pick` of each changed file.
    async fn test_state(
        &mut self,
        name: &'static str,
        suite: &Suite,
        pick: impl Fn(&Path, &Versions) -> Option<Vec<u8>>,
    ) -> Result<TestRun, ProveError> {
        (self.request.on_step)(name);
        let began = Instant::now();
        let edits = self.change.edits_to(pick);
        let run = self.run_edited(suite, &[&edits], None).await?;
        self.note(name, run.command(), &run.sentence(), began.elapsed());
        Ok(run)
    }

    /// Runs these tests on the change with further edits.
    pub(crate) async fn run_in_change(
        &mut self,
        suite: &Suite,
        edits: &[Edit],
        limit: Option<Duration>,
    ) -> Result<TestRun, ProveError> {
        let change = self.change.edits_to(|_, versions| versions.change.clone());
        self.run_edited(suite, &[&change, edits], limit).await
    }

    async fn run_edited(
        &mut self,
        suite: &Suite,
        edits: &[&[Edit]],
        limit: Option<Duration>,
    ) -> Result<TestRun, ProveError> {
        for edits in edits {
            self.copy.apply(edits)?;
        }
        self.environment.guard = Some(self.copy.guard()?);
        let usual_limit = self.environment.limit;
        self.environment.limit = limit.unwrap_or(usual_limit).min(usual_limit);
        let run = if self.steps.is_empty() {
            run_first(suite, &mut self.environment, self.stop).await
        } else {
            suite.run(&self.environment, self.stop).await
        };
        self.environment.limit = usual_limit;
        self.environment.guard = None;
        self.copy.reset()?;
        if matches!(run.outcome(), Outcome::Cancelled) || self.stop.is_cancelled() {
            return Err(ProveError::Cancelled);
        }
        Ok(run)
    }

    pub(crate) fn note(&mut self, name: &'static str, command: &str, result: &str, took: Duration) {
        // A command that selects tests can name hundreds of them.
        let cut = |text: &str| words::cut_middle(text, MAX_STEP_BYTES).into_owned();
        self.steps.push(Step {
            name,
            command: cut(command),
            result: cut(result),
            took,
        });
    }

    /// The suite on the base: kept from an earlier proof, skipped if that is asked for and safe, or run now.
    async fn baseline(&mut self, after: &TestRun) -> Result<TestRun, ProveError> {
        let kept = self.cache.as_ref().and_then(BaselineCache::load);
        if let Some(run) = kept {
            // A run that is kept can be out of date, so a failure is always compared with a fresh one.
            if compare(&run, after).newly_failing.is_empty() {
                let result = format!("{}, from an earlier proof", run.sentence());
                self.note("base", run.command(), &result, Duration::ZERO);
                return Ok(run);
            }
        }
        if self.request.fast && after.outcome().is_passed() && !self.edits_existing_tests() {
            self.notes.push(String::from(
                "the base was not tested (--fast): nothing fails with the change, and no existing test was edited",
            ));
            return Ok(after.without_tests(|name| self.is_new_test(after, name)));
        }
        let suite = self.suite.clone();
        let before = self
            .test_state("base", &suite, |_, versions| versions.base.clone())
            .await?;
        if let Some(cache) = &self.cache {
            cache.save(&before);
        }
        Ok(before)
    }

    /// Whether the change removes or edits lines of tests or of their configuration.
    fn edits_existing_tests(&self) -> bool {
        let finder = self.finder();
        self.change.changed().any(|(path, versions)| {
            if finder.role(path).is_protected() && finder.tests_in(path, Some(b"")).is_none() {
                return true;
            }
            let tests = |contents| finder.tests_in(path, contents);
            match (
                tests(versions.base.as_deref()),
                tests(versions.change.as_deref()),
            ) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(old), Some(new)) => first_lost_line(&old, &new).is_some(),
            }
        })
    }

    /// Whether the test is in a file of the change and not in the base's version of that file.
    fn is_new_test(&self, after: &TestRun, name: &TestName) -> bool {
        let finder = self.finder();
        let mut files =
            finder.changed_test_files(&self.change, after, |versions| versions.change.as_deref());
        files.retain(|file| file.tests.contains(name));
        files.iter().any(|file| {
            let base = self.change.files[&file.path].base.as_deref();
            let base = base.and_then(|bytes| std::str::from_utf8(bytes).ok());
            base.is_none_or(|base| {
                let title = name.base().rsplit([' ', ':', '>', '#', '/']).next();
                title.is_none_or(|title| !base.contains(title))
            })
        })
    }

    /// Splits newly failing tests into those that fail again and those that pass when repeated.
    async fn repeated_failures(
        &mut self,
        failing: Vec<TestName>,
    ) -> Result<(Vec<TestName>, Vec<TestName>), ProveError> {
        if failing.is_empty() {
            return Ok((failing, Vec::new()));
        }
        let suite = self
            .suite
            .select(&failing)
            .unwrap_or_else(|| self.suite.clone());
        let again = self
            .test_state("change again", &suite, |_, versions| {
                versions.change.clone()
            })
            .await?;
        Ok(failing
            .into_iter()
            .partition(|name| !matches!(again.state(name), Some(TestState::Passed))))
    }

    /// What became of existing tests. If their files lost lines, their old version is run on the new code.
    async fn test_changes(
        &mut self,
        before: &TestRun,
        after: &TestRun,
    ) -> Result<Vec<TestChange>, ProveError> {
        let mut found = lost(before, after);
        let old_files = self
            .finder()
            .changed_test_files(&self.change, before, |v| v.base.as_deref());
        let is_touched = |change: &TestChange| {
            change
                .test
                .as_ref()
                .is_some_and(|test| old_files.iter().any(|file| file.tests.contains(test)))
        };
        // Names with times or addresses differ from run to run. Only a second run without the change can show that.
        if !found.iter().all(is_touched) {
            let suite = self.suite.clone();
            let again = self
                .test_state("base again", &suite, |_, versions| versions.base.clone())
                .await?;
            let all = found.len();
            found.retain(|change| {
                is_touched(change)
                    || change
                        .test
                        .as_ref()
                        .is_none_or(|test| again.state(test) == before.state(test))
            });
            if found.len() < all {
                self.notes.push(format!(
                    "{} of the base differ from run to run and are not compared",
                    words::count(all - found.len(), "test name")
                ));
            }
        }
        let edited: Vec<TestChange> = old_files
            .iter()
            .filter_map(|file| {
                let versions = &self.change.files[&file.path];
                let finder = self.finder();
                let old = finder.tests_in(&file.path, versions.base.as_deref())?;
                let line = match finder.tests_in(&file.path, versions.change.as_deref()) {
                    Some(new) => first_lost_line(&old, &new)?,
                    None => 1,
                };
                Some(TestChange {
                    kind: TestChangeKind::Edited,
                    test: None,
                    file: Some(file.path.clone()),
                    line: Some(line),
                })
            })
            .collect();
        if edited.is_empty() {
            return Ok(found);
        }
        let tests: Vec<TestName> = old_files.into_iter().flat_map(|file| file.tests).collect();
        let ecosystem = self.suite.ecosystem();
        let old_tests = self
            .selected_state("old tests", &tests, move |path, versions| {
                if role(ecosystem, path).belongs_to_tests() {
                    return versions.base.clone();
                }
                with_tests_of(path, versions.change.as_deref(), versions.base.as_deref())
            })
            .await?;
        let changed = changed_expectations(before, after, &old_tests);
        // Old tests that do not build with the new code were changed because an interface was.
        if changed.is_empty() {
            found.extend(edited);
        }
        found.extend(changed);
        Ok(found)
    }

    /// Runs these tests alone if the runner can select them. If that says nothing, runs the whole suite.
    async fn selected_state(
        &mut self,
        name: &'static str,
        tests: &[TestName],
        pick: impl Fn(&Path, &Versions) -> Option<Vec<u8>>,
    ) -> Result<TestRun, ProveError> {
        if let Some(suite) = self.suite.select(tests) {
            let run = self.test_state(name, &suite, &pick).await?;
            if run.outcome().is_conclusive() || matches!(run.outcome(), Outcome::DidNotBuild { .. })
            {
                return Ok(run);
            }
        }
        let suite = self.suite.clone();
        self.test_state(name, &suite, &pick).await
    }

    /// Runs the change's tests on the base's code.
    async fn red(&mut self, before: &TestRun, after: &TestRun) -> Result<Red, ProveError> {
        let files = self
            .finder()
            .changed_test_files(&self.change, after, |v| v.change.as_deref());
        if files.is_empty() {
            // Without new tests, those that failed on the base and pass now show the change.
            let fixed = after
                .passed()
                .filter(|name| matches!(before.state(name), Some(TestState::Failed(_))));
            return Ok(Red {
                fail: fixed.cloned().collect(),
                pass: Vec::new(),
            });
        }
        let is_new = |name: &TestName| before.state(name).is_none();
        let mut tests: Vec<TestName> = files.into_iter().flat_map(|file| file.tests).collect();
        tests.extend(after.passed().filter(|name| is_new(name)).cloned());
        tests.sort();
        tests.dedup();
        // Helpers and data of tests can change any test.
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
                pass: Vec::new(),
            });
        }
        let mut found = Red::default();
        // If the base does not build with the new tests, that is said of the new ones only, if there are any.
        let adds_tests = after.passed().any(&is_new);
        for name in after.passed() {
            let is_candidate = tests.is_empty() || tests.contains(name);
            match red.state(name) {
                Some(TestState::Passed) if is_new(name) => found.pass.push(name.clone()),
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
    async fn judge_code(
        &mut self,
        after: &TestRun,
        red: &Red,
        gaps: &mut Vec<Gap>,
    ) -> Result<Option<Mutants>, ProveError> {
        let finder = self.finder();
        let changes_code = self.change.changed().any(|(path, versions)| {
            finder.role(path) == FileRole::Source
                && Language::of_path(path).is_some()
                && code_of(path, versions.base.as_deref())
                    != code_of(path, versions.change.as_deref())
        });
        if !changes_code {
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
        let is_refactoring = red.pass.is_empty();
        let notices = mutants.as_ref().is_some_and(|found| {
            found.noticed() > 0
                && found.noticed() * 2 >= found.tried()
                && every_group_is_noticed(found)
        });
        if is_refactoring && notices {
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
        } else if is_refactoring {
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

    fn broken(&self, regressions: Vec<String>, flaky: Vec<TestName>, summary: &str) -> Report {
        Report {
            verdict: Verdict::Broken,
            summary: summary.to_owned(),
            regressions,
            flaky,
            ..self.empty_report()
        }
    }

    fn empty_report(&self) -> Report {
        let isolation = match self.copy.in_place_reason.as_str() {
            "" => String::from("overlay"),
            why => format!("in place: {why}"),
        };
        let mut notes = self.notes.clone();
        if !self.change.not_files.is_empty() {
            let paths: Vec<String> = self
                .change
                .not_files
                .iter()
                .map(|p| p.display().to_string())
                .collect();
            notes.push(format!(
                "links and submodules stay as they are: {}",
                paths.join(", ")
            ));
        }
        Report {
            verdict: Verdict::Unproven,
            summary: String::new(),
            base: self.request.base.to_owned(),
            steps: self.steps.clone(),
            regressions: Vec::new(),
            flaky: Vec::new(),
            fail_without_change: Vec::new(),
            pass_without_change: Vec::new(),
            falsified: (0, 0),
            mutants: None,
            test_changes: Vec::new(),
            gaps: Vec::new(),
            changed_files: self
                .change
                .changed()
                .map(|(path, _)| path.to_owned())
                .collect(),
            isolation,
            notes,
        }
    }
}

fn conclusive(state: &'static str, run: &TestRun) -> Result<(), ProveError> {
    if run.outcome().is_conclusive() {
        return Ok(());
    }
    Err(ProveError::Inconclusive {
        state,
        reason: run.sentence(),
    })
}

fn proven_sentence(
    fail_without: &[TestName],
    falsified: Falsified,
    mutants: Option<&Mutants>,
) -> String {
    let left = match falsified.left {
        0 => String::new(),
        left => format!(", {left} not tried, time ran out"),
    };
    match (fail_without.len(), falsified.shown, mutants) {
        (0, 0, Some(mutants)) => format!(
            "nothing regressed and no test fails without the change, as in a refactoring; {}",
            mutants.sentence()
        ),
        (0, 0, None) => String::from("no code changed, and the suite gives the same results"),
        (0, n, _) => format!("{} were added and can fail{left}", words::count(n, "test")),
        (n, shown, _) => format!(
            "nothing regressed; {} {} without the change; {shown} of {} seen failing with a changed expectation{left}",
            words::count(n, "test"),
            if n == 1 { "fails" } else { "fail" },
            falsified.all()
        ),
    }
}

fn names(tests: &[TestName]) -> String {
    const MAX_NAMED: usize = 5;
    let mut text: Vec<String> = tests
        .iter()
        .take(MAX_NAMED)
        .map(|name| format!("`{name}`"))
        .collect();
    if tests.len() > MAX_NAMED {
        text.push(format!("and {} more", tests.len() - MAX_NAMED));
    }
    text.join(", ")
}

fn lower_first(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let first = chars
        .next()
        .map(|c| c.to_lowercase().to_string())
        .unwrap_or_default();
    (first + chars.as_str()).trim_end_matches('.').to_owned()
}
