//! The steps of a proof, in the order that fails fastest.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use supervisor_text::words;
use supervisor_verify::{Flags, Outcome, RunEnvironment, Suite, TestName, TestRun, Tests, compare};
use tokio_util::sync::CancellationToken;

use crate::baseline_cache::BaselineCache;
use crate::change::{Change, Git};
use crate::changed_tests::TestFinder;
use crate::flags::{ChangedCode, flags_of};
use crate::project_copy::ProjectCopy;
use crate::report::{Gap, Report, Verdict, names};
use crate::request::{MutantMode, ProveError, ProveRequest};
use crate::test_changes::TestChangeKind;

/// Of the output in an error.
const MAX_OUTPUT_BYTES: usize = 1_000;

/// Proves a change. Files of the project are never changed, or restored before this returns. If the request's time runs
/// out, the report says what was not checked.
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
    let runs = stop.child_token();
    let mut proof = ProofRun {
        request,
        stop: &runs,
        suite,
        environment: request.environment.clone(),
        report: empty_report(request, &copy, &change),
        copy,
        stage: Stage::Change,
        change,
        tracked,
        cache,
        written_with_change: BTreeSet::new(),
        written_on_base: None,
    };
    let result = {
        let steps = proof.run();
        tokio::pin!(steps);
        tokio::select! {
            result = &mut steps => result,
            () = passed(request.deadline) => {
                runs.cancel();
                steps.await
            }
        }
    };
    let closed = proof.copy.close();
    let (mut report, stage) = (proof.report, proof.stage);
    match result {
        Ok(()) => {}
        // Only the time can have ended the runs.
        Err(ProveError::Cancelled) if !stop.is_cancelled() => {
            report.gaps.push(stage.gap(request.mutants));
            report.conclude();
        }
        Err(error) => return Err(error),
    }
    closed?;
    Ok(report)
}

async fn passed(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// What is being checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Change,
    Base,
    Checks,
    TestChanges,
    Red,
    Falsification,
    Mutants,
}

impl Stage {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Change, "the tests with the change"),
        (Self::Base, "the tests on the base"),
        (Self::Checks, "the configured checks"),
        (Self::TestChanges, "whether tests were weakened"),
        (Self::Red, "whether tests fail without the change"),
        (Self::Falsification, "whether the tests can fail"),
        (Self::Mutants, "mutants"),
    ];

    /// What is missing if the time runs out here.
    fn gap(self, mutants: MutantMode) -> Gap {
        let not_checked: Vec<&str> = Self::ALL
            .iter()
            .filter(|(stage, _)| *stage >= self)
            .filter(|(stage, _)| *stage != Self::Mutants || mutants != MutantMode::Never)
            .map(|(_, what)| *what)
            .collect();
        Gap {
            what: format!("Not checked, time ran out: {}.", not_checked.join("; ")),
            next: String::from("run `supervisor prove` without a limit, or with --fast"),
        }
    }
}

/// A proof in progress.
pub(crate) struct ProofRun<'a> {
    pub(crate) request: &'a ProveRequest<'a>,
    pub(crate) stop: &'a CancellationToken,
    pub(crate) suite: Suite,
    pub(crate) environment: RunEnvironment,
    pub(crate) copy: ProjectCopy,
    /// What is known so far.
    pub(crate) report: Report,
    stage: Stage,
    pub(crate) change: Change,
    /// All files that git knows.
    pub(crate) tracked: Vec<String>,
    pub(crate) cache: Option<BaselineCache>,
    /// Tests, their data and configuration that runs wrote.
    pub(crate) written_with_change: BTreeSet<PathBuf>,
    /// `None` if the base has not run in this proof.
    pub(crate) written_on_base: Option<BTreeSet<PathBuf>>,
}

impl ProofRun<'_> {
    async fn run(&mut self) -> Result<(), ProveError> {
        let suite = self.suite.clone();
        let after = self
            .test_state("change", &suite, |_, versions| versions.change.clone())
            .await?;
        self.stage = Stage::Base;
        let before = self.baseline(&after).await?;
        let (before, after) = self.with_stable_names(before, after).await?;
        if matches!(after.outcome(), Outcome::DidNotBuild { .. })
            && before.outcome().is_conclusive()
        {
            self.broken(vec![after.sentence()], "the change does not build");
            return Ok(());
        }
        ensure_conclusive(&before, &after)?;
        let failing_new = self.regressions(&before, &after).await?;
        if self.report.verdict == Verdict::Broken {
            return Ok(());
        }
        self.stage = Stage::Checks;
        let checks = self.newly_failing_checks().await?;
        if !checks.is_empty() {
            let are = if checks.len() == 1 {
                "a check is"
            } else {
                "checks are"
            };
            let summary = format!(
                "{are} clean on `{}` and not with the change",
                self.request.base
            );
            self.broken(checks, &summary);
            return Ok(());
        }
        if !failing_new.is_empty() {
            self.gap(
                format!("New tests fail: {}.", names(&failing_new)),
                "make them pass, or remove them",
            );
        }
        self.stage = Stage::TestChanges;
        self.report.test_changes = self.test_changes(&before, &after).await?;
        self.stage = Stage::Red;
        let red = self.red(&before, &after).await?;
        self.report.fail_without_change.clone_from(&red.fail);
        self.report.pass_without_change.clone_from(&red.pass);
        self.judge_test_changes(&red.fail);
        self.judge_fixed_without_code(&red);
        self.judge_named_tests(&after, &red);
        self.stage = Stage::Falsification;
        let mut wanted = [red.fail.as_slice(), &red.pass].concat();
        wanted.extend(self.edited_tests(&before, &after));
        wanted.sort();
        wanted.dedup();
        self.report.flags = self.flags(&after, &wanted);
        self.falsify(&after, &wanted).await?;
        self.judge_written().await?;
        self.stage = Stage::Mutants;
        self.judge_code(&after, &red).await?;
        self.report.conclude();
        Ok(())
    }

    /// Finds what passed on the base and fails with the change. Returns the new tests that fail.
    async fn regressions(
        &mut self,
        before: &TestRun,
        after: &TestRun,
    ) -> Result<Vec<TestName>, ProveError> {
        let comparison = compare(before, after);
        let (regressions, failing_new): (Vec<TestName>, Vec<TestName>) = comparison
            .newly_failing
            .iter()
            .cloned()
            .partition(|name| before.state(name).is_some());
        let (regressions, flaky) = self.repeated_failures(regressions).await?;
        self.report.flaky = flaky;
        let mut named: Vec<String> = regressions.iter().map(|name| name.0.clone()).collect();
        named.extend(comparison.checks_failing);
        if !named.is_empty() {
            let summary = format!(
                "{} that passed on `{}` {} with the change",
                words::count(named.len(), "test"),
                self.request.base,
                if named.len() == 1 { "fails" } else { "fail" }
            );
            self.broken(named, &summary);
        }
        Ok(failing_new)
    }

    /// Weakened and deleted tests need the user's permission.
    fn judge_test_changes(&mut self, fail_without_change: &[TestName]) {
        for change in &mut self.report.test_changes {
            // Its old version passes with the change, and its new version notices what the change does.
            if change.kind == TestChangeKind::Weakened
                && change
                    .test
                    .as_ref()
                    .is_some_and(|test| fail_without_change.contains(test))
            {
                change.kind = TestChangeKind::Edited;
            }
        }
        let allowed = self.request.allow_test_change;
        let weakened: Vec<String> = self
            .report
            .test_changes
            .iter()
            .filter(|change| change.needs_permission() && !change.is_allowed_by(allowed))
            .map(ToString::to_string)
            .collect();
        for change in weakened {
            self.gap(
                format!("An existing test was weakened: {change}."),
                "restore it, or allow it by name with --allow-test-change",
            );
        }
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
        flags_of(&code, &tests, &self.copy.files_root())
    }

    pub(crate) fn finder(&self) -> TestFinder<'_> {
        TestFinder {
            root: self.request.root,
            suite: &self.suite,
        }
    }

    pub(crate) fn gap(&mut self, what: String, next: &str) {
        self.report.gaps.push(Gap {
            what,
            next: next.to_owned(),
        });
    }

    fn broken(&mut self, regressions: Vec<String>, summary: &str) {
        self.report.verdict = Verdict::Broken;
        summary.clone_into(&mut self.report.summary);
        self.report.regressions = regressions;
    }
}

/// Checks that both runs say something about the code.
fn ensure_conclusive(before: &TestRun, after: &TestRun) -> Result<(), ProveError> {
    if !matches!(after.outcome(), Outcome::NoTests) || *before.outcome() == Outcome::NoTests {
        conclusive("the change", after)?;
    }
    // A base that does not build or has no tests has nothing to lose; the red step still compares with it.
    if !matches!(
        before.outcome(),
        Outcome::DidNotBuild { .. } | Outcome::NoTests
    ) {
        conclusive("the base", before)?;
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
    Ok(())
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

/// A report before the first step.
fn empty_report(request: &ProveRequest<'_>, copy: &ProjectCopy, change: &Change) -> Report {
    let isolation = match copy.in_place_reason.as_str() {
        "" => String::from("overlay"),
        why => format!("in place: {why}"),
    };
    let paths: Vec<String> = change
        .not_files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let mut notes = Vec::new();
    if !paths.is_empty() {
        notes.push(format!(
            "links and submodules stay as they are: {}",
            paths.join(", ")
        ));
    }
    Report {
        changed_files: change.changed().map(|(path, _)| path.to_owned()).collect(),
        isolation,
        notes,
        ..Report::new(request.base)
    }
}
