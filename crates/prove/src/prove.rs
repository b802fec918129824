//! The steps of a proof, in the order that fails fastest.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt as _};
use supervisor_edits::Edit;
use supervisor_text::words;
use supervisor_verify::falsify::{
    FalsifiableTests, FalsificationVerdict, FalsifiedFileRunner, falsify,
};
use supervisor_verify::protected::{FileRole, role};
use supervisor_verify::{
    DetectRequest, Outcome, RunEnvironment, Suite, TestName, TestRun, TestState, compare,
    run_first, rust_regions,
};
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

use crate::change::{Change, ChangeError, Comparand, Git, Versions};
use crate::project_copy::{CopyError, ProjectCopy};
use crate::report::{Gap, Report, Step, Verdict};
use crate::test_changes::{
    TestChange, TestChangeKind, changed_expectations, first_lost_line, lost,
};

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
    /// How tests are run; its `guard` is not used.
    pub environment: RunEnvironment,
    /// Where locks and snapshots are kept.
    pub state: &'a StateDir,
    /// Told before each step.
    pub on_step: &'a (dyn Fn(&str) + Sync),
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
    let copy = ProjectCopy::open(request.root, request.state, launcher, stop).await?;
    let mut proof = ProofRun {
        request,
        stop,
        suite,
        environment: request.environment.clone(),
        copy,
        steps: Vec::new(),
        change,
    };
    let report = proof.run().await;
    let closed = proof.copy.close();
    let report = report?;
    closed?;
    Ok(report)
}

struct ProofRun<'a> {
    request: &'a ProveRequest<'a>,
    stop: &'a CancellationToken,
    suite: Suite,
    environment: RunEnvironment,
    copy: ProjectCopy,
    steps: Vec<Step>,
    change: Change,
}

impl ProofRun<'_> {
    async fn run(&mut self) -> Result<Report, ProveError> {
        let after = self
            .test_state("change", |_, versions| versions.change.clone())
            .await?;
        let before = self
            .test_state("base", |_, versions| versions.base.clone())
            .await?;
        if matches!(after.outcome(), Outcome::DidNotBuild { .. })
            && before.outcome().is_conclusive()
            && !matches!(before.outcome(), Outcome::DidNotBuild { .. })
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
        let mut regressions: Vec<TestName> = comparison
            .newly_failing
            .iter()
            .filter(|name| before.state(name).is_some())
            .cloned()
            .collect();
        let failing_new: Vec<TestName> = comparison
            .newly_failing
            .iter()
            .filter(|name| before.state(name).is_none())
            .cloned()
            .collect();
        let mut flaky = Vec::new();
        if !regressions.is_empty() {
            let again = self
                .test_state("change again", |_, versions| versions.change.clone())
                .await?;
            let (fails, passes) = regressions.into_iter().partition(|name: &TestName| {
                matches!(again.state(name), Some(TestState::Failed(_)) | None)
            });
            (regressions, flaky) = (fails, passes);
        }
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
        let (fail_without, pass_without) = self.red(&before, &after).await?;
        let falsified = self
            .falsify(&after, &fail_without, &pass_without, &mut gaps)
            .await?;
        self.judge_coverage(&fail_without, &pass_without, &mut gaps);
        let verdict = if gaps.is_empty() {
            Verdict::Proven
        } else {
            Verdict::Unproven
        };
        let summary = match verdict {
            Verdict::Proven => proven_sentence(&fail_without, falsified),
            _ => format!("nothing regressed, but {}", lower_first(&gaps[0].what)),
        };
        Ok(Report {
            verdict,
            summary,
            flaky,
            fail_without_change: fail_without,
            pass_without_change: pass_without,
            falsified,
            test_changes,
            gaps,
            ..self.empty_report()
        })
    }

    /// Runs the suite on the project with `pick` of each changed file.
    async fn test_state(
        &mut self,
        name: &'static str,
        pick: impl Fn(&Path, &Versions) -> Option<Vec<u8>>,
    ) -> Result<TestRun, ProveError> {
        (self.request.on_step)(name);
        let edits = self.change.edits_to(pick);
        self.copy.apply(&edits)?;
        self.environment.guard = Some(self.copy.guard()?);
        let began = Instant::now();
        let run = if self.steps.is_empty() {
            run_first(&self.suite, &mut self.environment, self.stop).await
        } else {
            self.suite.run(&self.environment, self.stop).await
        };
        self.environment.guard = None;
        self.copy.reset()?;
        if matches!(run.outcome(), Outcome::Cancelled) || self.stop.is_cancelled() {
            return Err(ProveError::Cancelled);
        }
        self.note(name, &run, began.elapsed());
        Ok(run)
    }

    fn note(&mut self, name: &'static str, run: &TestRun, took: Duration) {
        self.steps.push(Step {
            name,
            command: run.command().to_owned(),
            result: run.sentence(),
            took,
        });
    }

    fn role(&self, path: &Path) -> FileRole {
        role(self.suite.ecosystem(), path)
    }

    fn is_rust(path: &Path) -> bool {
        path.extension().is_some_and(|end| end == "rs")
    }

    /// What became of existing tests. If their files lost lines, their old version is run on the new code.
    async fn test_changes(
        &mut self,
        before: &TestRun,
        after: &TestRun,
    ) -> Result<Vec<TestChange>, ProveError> {
        let mut found = lost(before, after);
        let edited: Vec<TestChange> = self
            .change
            .changed()
            .filter_map(|(path, versions)| {
                let (old, new) = (
                    self.tests_in(path, versions.base.as_deref())?,
                    self.tests_in(path, versions.change.as_deref()),
                );
                let line = match new {
                    Some(new) => first_lost_line(&old, &new)?,
                    None => 1,
                };
                Some(TestChange {
                    kind: TestChangeKind::Edited,
                    test: None,
                    file: Some(path.to_owned()),
                    line: Some(line),
                })
            })
            .collect();
        if edited.is_empty() {
            return Ok(found);
        }
        let ecosystem = self.suite.ecosystem();
        let old_tests = self
            .test_state("old tests", move |path, versions| {
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

    /// The test code of a file: all of a test file, the test modules of a Rust file.
    fn tests_in(&self, path: &Path, contents: Option<&[u8]>) -> Option<String> {
        let text = String::from_utf8(contents?.to_vec()).ok()?;
        if self.role(path).belongs_to_tests() {
            return Some(text);
        }
        let regions = Self::is_rust(path).then(|| rust_regions(&text)).flatten()?;
        let tests = regions.texts(&text).join("\n");
        (!tests.is_empty()).then_some(tests)
    }

    /// Runs the change's tests on the base's code. Returns the tests that pass with the change and fail without it, and
    /// new tests that pass without it.
    async fn red(
        &mut self,
        before: &TestRun,
        after: &TestRun,
    ) -> Result<(Vec<TestName>, Vec<TestName>), ProveError> {
        let has_tests = self.change.changed().any(|(path, versions)| {
            self.tests_in(path, versions.base.as_deref())
                != self.tests_in(path, versions.change.as_deref())
        });
        if !has_tests {
            // Without new tests, those that failed on the base and pass now show the change.
            let fixed = after
                .passed()
                .filter(|name| matches!(before.state(name), Some(TestState::Failed(_))));
            return Ok((fixed.cloned().collect(), Vec::new()));
        }
        let ecosystem = self.suite.ecosystem();
        let red = self
            .test_state("red", move |path, versions| {
                if role(ecosystem, path) != FileRole::Source {
                    return versions.change.clone();
                }
                with_tests_of(path, versions.base.as_deref(), versions.change.as_deref())
            })
            .await?;
        let is_new = |name: &TestName| before.state(name).is_none();
        if matches!(red.outcome(), Outcome::DidNotBuild { .. }) {
            // A missing symbol: every test of the changed files fails to build without the change.
            let in_changed_files = self.find_in_changed_files(after);
            return Ok((
                in_changed_files.into_iter().map(|(name, _)| name).collect(),
                Vec::new(),
            ));
        }
        let (mut fail, mut pass) = (Vec::new(), Vec::new());
        for name in after.passed() {
            match red.state(name) {
                Some(TestState::Passed) if is_new(name) => pass.push(name.clone()),
                Some(TestState::Passed | TestState::Skipped) => {}
                Some(TestState::Failed(_)) => fail.push(name.clone()),
                // Its file did not load without the change.
                None if is_new(name) || red.outcome() == &Outcome::Failed => {
                    fail.push(name.clone());
                }
                None => {}
            }
        }
        Ok((fail, pass))
    }

    /// Passing tests that are defined in test files of the change, with the file of each.
    fn find_in_changed_files(&self, after: &TestRun) -> Vec<(TestName, PathBuf)> {
        let mut found = Vec::new();
        for (path, versions) in self.change.changed() {
            let is_test_file = self.role(path) == FileRole::Test;
            let Some(tests) = self.tests_in(path, versions.change.as_deref()) else {
                continue;
            };
            if !is_test_file
                && self.tests_in(path, versions.base.as_deref()).as_ref() == Some(&tests)
            {
                continue;
            }
            let Some(source) = versions
                .change
                .as_ref()
                .and_then(|c| String::from_utf8(c.clone()).ok())
            else {
                continue;
            };
            let relative = self.suite_relative(path);
            let is_here = |name: &&TestName| {
                FalsifiableTests::find(&relative, &source, std::slice::from_ref(*name))
                    .is_some_and(|tests| tests.has_all())
            };
            found.extend(
                after
                    .passed()
                    .filter(is_here)
                    .map(|name| (name.clone(), path.to_owned())),
            );
        }
        found
    }

    fn suite_relative(&self, path: &Path) -> PathBuf {
        let full = self.request.root.join(path);
        full.strip_prefix(self.suite.root())
            .map_or_else(|_| path.to_owned(), Path::to_owned)
    }

    /// Changes the expectations of the change's tests, which must fail then.
    async fn falsify(
        &mut self,
        after: &TestRun,
        fail_without: &[TestName],
        pass_without: &[TestName],
        gaps: &mut Vec<Gap>,
    ) -> Result<(usize, usize), ProveError> {
        let located: Vec<(TestName, PathBuf)> = self
            .find_in_changed_files(after)
            .into_iter()
            .filter(|(name, _)| fail_without.contains(name) || pass_without.contains(name))
            .collect();
        let mut files: Vec<PathBuf> = located.iter().map(|(_, file)| file.clone()).collect();
        files.dedup();
        let (mut shown, mut tried) = (0, 0);
        for file in files {
            let targets: Vec<TestName> = located
                .iter()
                .filter(|(_, of)| *of == file)
                .map(|(name, _)| name.clone())
                .collect();
            tried += targets.len();
            (self.request.on_step)("falsification");
            let began = Instant::now();
            let verdict = self.falsify_file(&file, &targets, after).await?;
            let result = match &verdict {
                FalsificationVerdict::Falsified => {
                    shown += targets.len();
                    format!(
                        "{} {} with a changed expectation",
                        words::count(targets.len(), "test"),
                        if targets.len() == 1 { "fails" } else { "fail" }
                    )
                }
                FalsificationVerdict::Survived { sentence, .. } => {
                    gaps.push(Gap {
                        what: format!("A test cannot fail: {sentence}."),
                        next: String::from(
                            "make the test compare what the code returns with a fixed value",
                        ),
                    });
                    sentence.clone()
                }
                FalsificationVerdict::Unproven { why } => {
                    gaps.push(Gap {
                        what: format!(
                            "It was not shown that the tests in {} can fail: {why}.",
                            file.display()
                        ),
                        next: String::from(
                            "compare with literal values, so that they can be changed",
                        ),
                    });
                    why.clone()
                }
            };
            self.steps.push(Step {
                name: "falsification",
                command: self.suite.command(),
                result: format!("{}: {result}", file.display()),
                took: began.elapsed(),
            });
        }
        Ok((shown, tried))
    }

    async fn falsify_file(
        &mut self,
        file: &Path,
        targets: &[TestName],
        after: &TestRun,
    ) -> Result<FalsificationVerdict, ProveError> {
        let text = self.change.files[file]
            .change
            .clone()
            .and_then(|contents| String::from_utf8(contents).ok())
            .unwrap_or_default();
        let Some(mut tests) = FalsifiableTests::find(&self.suite_relative(file), &text, targets)
        else {
            let why = String::from("tests in this language cannot be falsified yet");
            return Ok(FalsificationVerdict::Unproven { why });
        };
        tests.include_rows(after);
        let edits = self.change.edits_to(|_, versions| versions.change.clone());
        self.copy.apply(&edits)?;
        self.environment.guard = Some(self.copy.guard()?);
        let seed = fastrand::u64(..);
        let mut runner = FileRunner {
            path: file.to_str().unwrap_or_default().to_owned(),
            suite: self
                .suite
                .select(targets)
                .unwrap_or_else(|| self.suite.clone()),
            environment: self.environment.clone(),
            copy: &mut self.copy,
            stop: self.stop,
        };
        // Git history contains the original tests, from which code could read its answers.
        runner.environment.sandbox.hides_git = true;
        let mut outcome = falsify(&tests, after, seed, &mut runner).await;
        if outcome.fails_neutral_edit {
            runner.environment.sandbox.hides_git = false;
            outcome = falsify(&tests, after, seed, &mut runner).await;
        }
        drop(runner);
        self.environment.guard = None;
        self.copy.reset()?;
        if self.stop.is_cancelled() {
            return Err(ProveError::Cancelled);
        }
        Ok(outcome.verdict)
    }

    /// A change of code needs a test that fails without it; a change of tests alone needs tests that can fail.
    fn judge_coverage(
        &self,
        fail_without: &[TestName],
        pass_without: &[TestName],
        gaps: &mut Vec<Gap>,
    ) {
        let changes_code = self.change.changed().any(|(path, versions)| {
            self.role(path) == FileRole::Source
                && supervisor_languages::Language::of_path(path).is_some()
                && code_of(path, versions.base.as_deref())
                    != code_of(path, versions.change.as_deref())
        });
        if !changes_code || !fail_without.is_empty() {
            return;
        }
        gaps.push(if pass_without.is_empty() {
            Gap {
                what: String::from("No test fails without the change."),
                next: String::from("add a test that fails on the base and passes with the change"),
            }
        } else {
            Gap {
                what: format!(
                    "The new tests pass without the change: {}.",
                    names(pass_without)
                ),
                next: String::from("make them check what the change adds"),
            }
        });
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
        let mut notes = Vec::new();
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
            steps: self.steps.clone(),
            regressions: Vec::new(),
            flaky: Vec::new(),
            fail_without_change: Vec::new(),
            pass_without_change: Vec::new(),
            falsified: (0, 0),
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

/// Runs falsified versions of one test file in the copy.
struct FileRunner<'a> {
    path: String,
    suite: Suite,
    environment: RunEnvironment,
    copy: &'a mut ProjectCopy,
    stop: &'a CancellationToken,
}

impl FalsifiedFileRunner for FileRunner<'_> {
    fn run(&mut self, text: String) -> BoxFuture<'_, Result<TestRun, String>> {
        async move {
            let edit = Edit::Replace {
                path: self.path.clone(),
                contents: text.into_bytes(),
            };
            self.copy
                .apply(&[edit])
                .map_err(|error| error.to_string())?;
            Ok(self.suite.run(&self.environment, self.stop).await)
        }
        .boxed()
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

/// A Rust file with the code of one version and the test modules of another; other files: `code`.
fn with_tests_of(path: &Path, code: Option<&[u8]>, tests: Option<&[u8]>) -> Option<Vec<u8>> {
    let merged = || {
        if path.extension().is_none_or(|end| end != "rs") {
            return None;
        }
        let (code, tests) = (
            std::str::from_utf8(code?).ok()?,
            std::str::from_utf8(tests?).ok()?,
        );
        let (of_code, of_tests) = (rust_regions(code)?, rust_regions(tests)?);
        let mut text = of_code.rest(code);
        for region in of_tests.texts(tests) {
            text.push('\n');
            text.push_str(region);
            text.push('\n');
        }
        Some(text.into_bytes())
    };
    merged().or_else(|| code.map(<[u8]>::to_vec))
}

/// A file without its test modules.
fn code_of(path: &Path, contents: Option<&[u8]>) -> Option<Vec<u8>> {
    let without_tests = || {
        if path.extension().is_none_or(|end| end != "rs") {
            return None;
        }
        let text = std::str::from_utf8(contents?).ok()?;
        Some(
            rust_regions(text)?
                .rest(text)
                .trim_end()
                .as_bytes()
                .to_vec(),
        )
    };
    without_tests().or_else(|| contents.map(<[u8]>::to_vec))
}

fn proven_sentence(fail_without: &[TestName], falsified: (usize, usize)) -> String {
    match (fail_without.len(), falsified) {
        (0, (0, _)) => String::from("no code changed, and the suite gives the same results"),
        (0, (n, _)) => format!("{} were added and can fail", words::count(n, "test")),
        (n, (shown, tried)) => format!(
            "nothing regressed; {} {} without the change; {shown} of {tried} seen failing with a changed expectation",
            words::count(n, "test"),
            if n == 1 { "fails" } else { "fail" }
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
