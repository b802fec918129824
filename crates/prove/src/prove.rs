//! The steps of a proof, in the order that fails fastest.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use supervisor_edits::Edit;
use supervisor_process::{Launcher, SandboxMode, SandboxRules};
use supervisor_text::words;
use supervisor_verify::{
    DetectRequest, Flags, Outcome, RunEnvironment, Suite, TestName, TestRun, TestSandbox,
    TestState, Tests, VaryingNames, compare, run_first,
};
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

use crate::baseline_cache::BaselineCache;
use crate::change::{Change, ChangeError, Comparand, Git, Versions};
use crate::changed_tests::TestFinder;
use crate::falsification::Falsified;
use crate::flags::{ChangedCode, flags_of};
use crate::mutants::Mutants;
use crate::project_copy::{CopyError, ProjectCopy};
use crate::report::{Gap, Report, Step, Verdict};
use crate::test_changes::{TestChangeKind, first_lost_line};

/// Of one test run, unless the request says otherwise.
const DEFAULT_LIMIT: Duration = Duration::from_secs(600);
/// Of a command and of a result in a report.
const MAX_STEP_BYTES: usize = 400;
/// Of the output in an error.
const MAX_OUTPUT_BYTES: usize = 1_000;

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
    /// Commands such as linters: clean on the base, they must be clean with the change.
    pub checks: &'a [String],
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

impl<'a> ProveRequest<'a> {
    /// The uncommitted change of a project, with the detected test command, this program's environment and a sandbox where
    /// the system has one.
    pub fn new(root: &'a Path, state: &'a StateDir) -> Self {
        let rules = SandboxRules {
            mode: SandboxMode::Auto,
            ..SandboxRules::default()
        };
        Self {
            root,
            base: "HEAD",
            comparand: Comparand::WorkingTree,
            test_cmd: None,
            test_report: None,
            allow_test_change: &[],
            checks: &[],
            fast: false,
            mutants: MutantMode::default(),
            environment: RunEnvironment {
                launcher: Launcher::this_program().with_rules(rules),
                env: std::env::vars_os().collect(),
                limit: DEFAULT_LIMIT,
                guard: None,
                sandbox: TestSandbox::default(),
            },
            state,
            on_step: &|_| {},
        }
    }

    pub(crate) fn detect(&self) -> Result<Suite, ProveError> {
        let detect = DetectRequest {
            root: self.root,
            near: None,
            test_cmd: self.test_cmd,
            test_report: self.test_report,
            path: None,
        };
        detect
            .detect()
            .map_err(|error| ProveError::NoSuite(error.to_string()))
    }
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
    #[error("{0}")]
    NoSuite(String),
    #[error("the tests say nothing about {state}: {reason}")]
    Inconclusive { state: &'static str, reason: String },
    #[error(
        "`{command}` fails with and without the change and names no tests, so it says nothing about the change; \
         make it pass on the base, or name another command with --test-cmd. It printed:\n{output}"
    )]
    FailsAnyway { command: String, output: String },
    #[error("Cancelled. Your files are as they were.")]
    Cancelled,
}

/// Proves a change. Files of the project are never changed, or restored before this returns.
pub async fn prove(
    request: &ProveRequest<'_>,
    stop: &CancellationToken,
) -> Result<Report, ProveError> {
    let suite = request.detect()?;
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
        written_with_change: BTreeSet::new(),
        written_on_base: None,
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
    pub(crate) notes: Vec<String>,
    pub(crate) change: Change,
    /// All files that git knows.
    pub(crate) tracked: Vec<String>,
    cache: Option<BaselineCache>,
    /// Tests, their data and configuration that runs wrote.
    written_with_change: BTreeSet<PathBuf>,
    /// `None` if the base has not run in this proof.
    written_on_base: Option<BTreeSet<PathBuf>>,
}

impl ProofRun<'_> {
    async fn run(&mut self) -> Result<Report, ProveError> {
        let suite = self.suite.clone();
        let after = self
            .test_state("change", &suite, |_, versions| versions.change.clone())
            .await?;
        let before = self.baseline(&after).await?;
        let (before, after) = self.with_stable_names(before, after).await?;
        if matches!(after.outcome(), Outcome::DidNotBuild { .. })
            && before.outcome().is_conclusive()
        {
            let errors = vec![after.sentence()];
            return Ok(self.broken(errors, vec![], "the change does not build"));
        }
        if !matches!(after.outcome(), Outcome::NoTests) || *before.outcome() == Outcome::NoTests {
            conclusive("the change", &after)?;
        }
        // A base that does not build or has no tests has nothing to lose; the red step still compares with it.
        if !matches!(
            before.outcome(),
            Outcome::DidNotBuild { .. } | Outcome::NoTests
        ) {
            conclusive("the base", &before)?;
        }
        if *after.outcome() == Outcome::Failed
            && *after.tests() == Tests::Unknown
            && !before.outcome().is_passed()
        {
            return Err(ProveError::FailsAnyway {
                command: after.command().to_owned(),
                output: words::cut_middle(after.output(), MAX_OUTPUT_BYTES).into_owned(),
            });
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
        let checks = self.newly_failing_checks().await?;
        if !checks.is_empty() {
            let summary = format!(
                "{} clean on `{}` and not with the change",
                if checks.len() == 1 {
                    "a check is"
                } else {
                    "checks are"
                },
                self.request.base
            );
            return Ok(self.broken(checks, flaky, &summary));
        }
        let mut gaps = Vec::new();
        if !failing_new.is_empty() {
            gaps.push(Gap {
                what: format!("New tests fail: {}.", names(&failing_new)),
                next: String::from("make them pass, or remove them"),
            });
        }
        let mut test_changes = self.test_changes(&before, &after).await?;
        let red = self.red(&before, &after).await?;
        // Its old version passes with the change, and its new version notices what the change does.
        for change in &mut test_changes {
            if change.kind == TestChangeKind::Weakened
                && change
                    .test
                    .as_ref()
                    .is_some_and(|test| red.fail.contains(test))
            {
                change.kind = TestChangeKind::Edited;
            }
        }
        for change in &test_changes {
            if change.needs_permission() && !change.is_allowed_by(self.request.allow_test_change) {
                gaps.push(Gap {
                    what: format!("An existing test was weakened: {change}."),
                    next: String::from("restore it, or allow it by name with --allow-test-change"),
                });
            }
        }
        self.judge_fixed_without_code(&red, &mut gaps);
        let mut wanted = [red.fail.as_slice(), &red.pass].concat();
        wanted.extend(self.edited_tests(&before, &after));
        wanted.sort();
        wanted.dedup();
        let falsified = self.falsify(&after, &wanted, &mut gaps).await?;
        self.judge_written(&mut gaps).await?;
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
            flags: self.flags(&after, &wanted),
            gaps,
            ..self.empty_report()
        })
    }

    /// The changed files that are not part of the tests: path, base and change. What is not UTF-8 is left out.
    pub(crate) fn changed_code(&self) -> Vec<(PathBuf, String, String)> {
        let text = |bytes: &Option<Vec<u8>>| match bytes {
            Some(bytes) => String::from_utf8(bytes.clone()).ok(),
            None => Some(String::new()),
        };
        let finder = self.finder();
        self.change
            .changed()
            .filter(|(path, _)| !finder.role(path).is_protected())
            .filter_map(|(path, versions)| {
                Some((
                    path.to_owned(),
                    text(&versions.base)?,
                    text(&versions.change)?,
                ))
            })
            .collect()
    }

    fn flags(&self, after: &TestRun, wanted: &[TestName]) -> Flags {
        let code = self.changed_code();
        let code: Vec<ChangedCode<'_>> = code
            .iter()
            .map(|(path, old, new)| ChangedCode { path, old, new })
            .collect();
        let tests = self.files_with(after, wanted);
        let tests: Vec<(&Path, &str)> = tests
            .iter()
            .map(|file| (file.path.as_path(), file.source.as_str()))
            .collect();
        flags_of(&code, &tests)
    }

    pub(crate) fn finder(&self) -> TestFinder<'_> {
        TestFinder {
            root: self.request.root,
            suite: &self.suite,
        }
    }

    /// Runs these tests on the project with `pick` of each changed file.
    pub(crate) async fn test_state(
        &mut self,
        name: &'static str,
        suite: &Suite,
        pick: impl Fn(&Path, &Versions) -> Option<Vec<u8>>,
    ) -> Result<TestRun, ProveError> {
        (self.request.on_step)(name);
        let began = Instant::now();
        let edits = self.change.edits_to(pick);
        let run = self.run_edited(suite, &[&edits], None).await?;
        let written = self.written(&edits)?;
        self.copy.reset()?;
        if name.starts_with("base") {
            self.written_on_base.get_or_insert_default().extend(written);
        } else {
            self.written_with_change.extend(written);
        }
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
        let run = self.run_edited(suite, &[&change, edits], limit).await?;
        self.copy.reset()?;
        Ok(run)
    }

    pub(crate) async fn run_edited(
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
        if matches!(run.outcome(), Outcome::Cancelled) || self.stop.is_cancelled() {
            return Err(ProveError::Cancelled);
        }
        Ok(run)
    }

    /// Tests, their data and configuration that the last run wrote, though only these edits were made.
    fn written(&mut self, edits: &[Edit]) -> Result<Vec<PathBuf>, ProveError> {
        let mut found = Vec::new();
        for path in self.copy.differing()? {
            let is_known = self.change.files.contains_key(&path)
                || self
                    .tracked
                    .iter()
                    .any(|tracked| Path::new(tracked) == path);
            if !is_known || !self.finder().role(&path).is_protected() {
                continue;
            }
            let edit = edits.iter().rfind(|edit| Path::new(edit.path()) == path);
            let expected = match edit {
                Some(Edit::Create { contents, .. } | Edit::Replace { contents, .. }) => {
                    Some(contents.clone())
                }
                Some(_) => None,
                None => self.copy.original(&path),
            };
            if self.copy.read(&path) != expected {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// Tests that rewrite what they are judged by say nothing, unless the project's tests did that before.
    async fn judge_written(&mut self, gaps: &mut Vec<Gap>) -> Result<(), ProveError> {
        if self.written_with_change.is_empty() {
            return Ok(());
        }
        if self.written_on_base.is_none() {
            let suite = self.suite.clone();
            self.test_state("base again", &suite, |_, versions| versions.base.clone())
                .await?;
        }
        let on_base = self.written_on_base.take().unwrap_or_default();
        let written: Vec<String> = self
            .written_with_change
            .difference(&on_base)
            .map(|path| path.display().to_string())
            .collect();
        if !written.is_empty() {
            gaps.push(Gap {
                what: format!(
                    "Running the tests changed {}, and on the base it does not.",
                    words::plain(&written.join(", "))
                ),
                next: String::from("tests must not change tests, their data or configuration"),
            });
        }
        Ok(())
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

    /// If tests are missing that may have another name now, runs the base once more: only two runs of the same files show
    /// names that vary by themselves.
    async fn with_stable_names(
        &mut self,
        before: TestRun,
        after: TestRun,
    ) -> Result<(TestRun, TestRun), ProveError> {
        let edited: BTreeSet<TestName> = self
            .finder()
            .changed_test_files(&self.change, &before, |versions| versions.base.as_deref())
            .into_iter()
            .flat_map(|file| file.tests)
            .collect();
        if VaryingNames::are_possible(&before, &after, |name| edited.contains(name)) {
            let suite = self.suite.clone();
            let again = self
                .test_state("base again", &suite, |_, versions| versions.base.clone())
                .await?;
            if let Some(varying) = VaryingNames::between(&before, &again) {
                self.notes.push(varying.sentence());
                self.suite.set_varying_names(varying);
            }
        }
        Ok((
            self.suite.with_stable_names(before),
            self.suite.with_stable_names(after),
        ))
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

    /// Runs these tests alone if the runner can select them. If that says nothing, runs the whole suite.
    pub(crate) async fn selected_state(
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
            flags: Flags::default(),
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
        (0, n, _) => format!(
            "no code changed; {} added or edited and can fail{left}",
            words::count(n, "test")
        ),
        (n, shown, _) => format!(
            "nothing regressed; {} {} without the change; {shown} of {} seen failing with a changed expectation{left}",
            words::count(n, "test"),
            if n == 1 { "fails" } else { "fail" },
            falsified.all()
        ),
    }
}

pub(crate) fn names(tests: &[TestName]) -> String {
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
