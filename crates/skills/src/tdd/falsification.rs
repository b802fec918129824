//! Gate after green: changes the target tests so that they must fail, under the same names, and
//! runs them again. Code that detects its tests still passes and is refused. The test file is
//! written like any edit, so every way the call can end restores it. The changed tests are never
//! shown to a model.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::baseline::TestBaseline;
use super::gates::{self, Gates, ObservedChanges};
use supervisor_engine::Cause;
use supervisor_engine::project_access::Site;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_process::ProjectGuard;
use supervisor_prove::{EditedProject, FalsifiedRuns, with_forced_rebuild};
use supervisor_verify::falsify::{
    FalsifiableTests, Falsification, FalsificationVerdict, FalsifiedFileRunner as _,
};
use supervisor_verify::{Flags, TestName, TestRun, TestState, Tests};
use supervisor_workspace::{ChangeSet, Edit};

/// For all falsified runs, if each of them takes the whole suite; twice the suite's time if that is longer.
const MIN_WHOLE_BUDGET: Duration = Duration::from_secs(15);

/// Result of the gate for work that it accepts.
#[derive(Debug)]
pub(super) struct FalsificationReport {
    /// The targets pass only if the project's git repository can be read.
    pub(super) needs_git: bool,
    /// Why the gate proved nothing, if it did not.
    pub(super) unproven: Option<String>,
    /// How many expectations were falsified.
    pub(super) sentence: String,
    pub(super) details: Value,
}

/// Runs falsified versions of the targets. `passing_run` is the run in which the originals passed.
pub(super) async fn check(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    test: &Path,
    targets: &[TestName],
    passing_run: &TestRun,
) -> Result<FalsificationReport, RefusedWork> {
    if is_switched_off() {
        return Ok(FalsificationReport {
            needs_git: false,
            unproven: None,
            sentence: String::from("falsification is switched off"),
            details: Value::Null,
        });
    }
    if let Some(check) = &baseline.check {
        return super::check::falsify(baseline, check, work, gates, observed, passing_run).await;
    }
    let (original, mut tests) = match find_targets(baseline, test, targets, passing_run) {
        Ok(found) => found,
        Err(why) => return Ok(unproven(gates, why, Value::Null)),
    };
    work.checking("checking that the new test can fail");
    let alone = match (tests.single_test(passing_run), targets) {
        (Some(only_test), _) => baseline.suite.only(&only_test),
        // Run all cases of a parametrised test: a changed expectation may change a case's name.
        (None, [target]) => baseline.suite.only(&without_case(target)),
        (None, _) => baseline.suite.select(&tests.whole_names()),
    };
    // Where the tests cannot be selected, each falsified run takes the whole suite.
    let budget = match &alone {
        Some(_) => Duration::MAX,
        None => MIN_WHOLE_BUDGET.max(passing_run.took() * 2),
    };
    let suite = alone.unwrap_or_else(|| baseline.suite.clone());
    let environment = gates.site(baseline.bench(work.site))?;
    let mut project = CallProject(work.site);
    let stop = work.stop.child_token();
    let mut runs = FalsifiedRuns::new(
        &mut project,
        &baseline.root,
        test,
        with_forced_rebuild(&suite),
        environment,
        &stop,
    );
    let (mut trial, needs_git) = {
        let mut falsify = Box::pin(runs.falsify(&mut tests, passing_run));
        match tokio::time::timeout(budget, &mut falsify).await {
            Ok(ended) => ended,
            Err(_) => {
                stop.cancel();
                falsify.await
            }
        }
    };
    let ran_out = stop.is_cancelled() && !work.stop.is_cancelled();
    if ran_out && matches!(trial.verdict, FalsificationVerdict::Unproven { .. }) {
        let why = String::from("time ran out, because the command runs the whole suite each time");
        trial.verdict = FalsificationVerdict::Unproven { why };
    }
    let rewritten = std::mem::take(&mut runs.rewritten);
    tracing::info!(
        seed = trial.seed,
        order = trial.order.join(", "),
        runs = trial.runs,
        "falsified {}",
        test.display()
    );
    let written = runs.write(&original);
    if let Err(why) = written {
        // Refusing the attempt restores everything from the snapshot.
        return Err(gates.refuse(
            "falsified",
            Cause::CannotVerify,
            format!("the test file could not be put back: {why}"),
        ));
    }
    gates::ensure_unchanged_by_run(baseline, work, gates, observed, passing_run)?;
    if !rewritten.is_empty() {
        return Err(gates::refuse_changed_files(gates, &rewritten, passing_run));
    }
    let report = report_verdict(gates, trial)?;
    Ok(FalsificationReport {
        needs_git,
        ..report
    })
}

/// Certifies that a red test fails because of what the code does: changed to expect the current
/// result, it passes. Never refuses. Not applicable if the failure shows no value or a symbol is
/// missing.
pub(super) async fn certify(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    test: &Path,
    red: &TestRun,
) -> Result<&'static str, RefusedWork> {
    const NOT_APPLICABLE: &str = "not_applicable";
    let path = baseline.suite_relative(test);
    let Some(original) = fs::read_to_string(baseline.files.join(test)).ok() else {
        return Ok(NOT_APPLICABLE);
    };
    let expecting_current_value = |(name, message): (&TestName, &str)| {
        let tests = FalsifiableTests::find(&path, &original, std::slice::from_ref(name))?;
        Some((name.clone(), tests.with_actual_value(message)?))
    };
    let Some((name, text)) = red.failed().find_map(expecting_current_value) else {
        return Ok(NOT_APPLICABLE);
    };
    work.checking("checking that the new test fails for the right reason");
    let suite = baseline
        .suite
        .only(&name)
        .unwrap_or_else(|| baseline.suite.clone());
    let environment = gates.site(baseline.bench(work.site))?;
    let mut project = CallProject(work.site);
    let mut runs = FalsifiedRuns::new(
        &mut project,
        &baseline.root,
        test,
        suite,
        environment,
        work.stop,
    );
    let run = runs.run(text.into()).await;
    let written = runs.write(&original);
    if let Err(why) = written {
        return Err(gates.refuse(
            "certificate",
            Cause::CannotVerify,
            format!("the test file could not be put back: {why}"),
        ));
    }
    gates::ensure_unchanged_by_run(baseline, work, gates, observed, red)?;
    let passes = run.is_ok_and(|run| matches!(run.state(&name), Some(TestState::Passed)));
    Ok(if passes { "behaviour" } else { NOT_APPLICABLE })
}

/// Picks a few tests at random, so that a small change does not cost many runs of a large suite.
pub(super) fn sample(targets: &[TestName], passing_run: &TestRun) -> Vec<TestName> {
    const MAX_SAMPLED: usize = 8;
    const QUICK_RUN: Duration = Duration::from_secs(10);
    let mut passed: Vec<TestName> = passing_run
        .passed()
        .filter(|name| targets.contains(name))
        .cloned()
        .collect();
    fastrand::shuffle(&mut passed);
    passed.truncate(if passing_run.took() < QUICK_RUN {
        MAX_SAMPLED
    } else {
        1
    });
    passed
}

fn report_verdict(
    gates: &mut Gates,
    trial: Falsification,
) -> Result<FalsificationReport, RefusedWork> {
    // Random values go to the log, not into the reply.
    let counts = trial.expectations;
    let details = json!({
        "by_value": trial.by_value,
        "by_assertion": trial.by_assertion,
        "expectations": counts.all,
        "shown": counts.shown,
        "not_tried": counts.left,
    });
    match trial.verdict {
        FalsificationVerdict::Falsified => {
            let sentence = counts.sentence();
            gates.pass("falsified", sentence.clone());
            Ok(FalsificationReport {
                needs_git: false,
                unproven: None,
                sentence,
                details,
            })
        }
        FalsificationVerdict::Survived { sentence, .. } => {
            Err(gates.refuse("falsified", Cause::Tampered, sentence))
        }
        FalsificationVerdict::Unproven { why } => Ok(unproven(gates, why, details)),
    }
}

fn without_case(name: &TestName) -> TestName {
    match name
        .0
        .split_once("::")
        .filter(|_| name.0.ends_with(']'))
        .and_then(|_| name.0.split_once('['))
    {
        Some((test, _)) => TestName(test.to_owned()),
        None => name.clone(),
    }
}

fn unproven(gates: &mut Gates, why: String, details: Value) -> FalsificationReport {
    gates.pass("falsified", format!("unproven: {why}"));
    FalsificationReport {
        needs_git: false,
        unproven: Some(why),
        sentence: String::new(),
        details,
    }
}

fn find_targets(
    baseline: &TestBaseline,
    test: &Path,
    targets: &[TestName],
    passing_run: &TestRun,
) -> Result<(String, FalsifiableTests), String> {
    let original = fs::read(baseline.files.join(test))
        .map_err(|e| format!("the test file cannot be read: {e}"))?;
    let original =
        String::from_utf8(original).map_err(|_| String::from("the test file is not UTF-8"))?;
    let path = baseline.suite_relative(test);
    let tests = match passing_run.tests() {
        Tests::Named(_) => FalsifiableTests::find(&path, &original, targets),
        Tests::Unknown => FalsifiableTests::whole_file(&path, &original),
    };
    let mut tests =
        tests.ok_or_else(|| String::from("tests in this language cannot be falsified yet"))?;
    tests.include_rows(passing_run);
    Ok((original, tests))
}

/// The project of a call, covered by its snapshot.
pub(super) struct CallProject<'a>(pub(super) &'a mut Site);

impl EditedProject for CallProject<'_> {
    fn apply(&mut self, edits: &[Edit]) -> Result<(), String> {
        self.0
            .apply(edits, &|_| Ok(()))
            .map(drop)
            .map_err(|e| e.to_string())
    }

    fn changes(&mut self) -> Result<ChangeSet, String> {
        self.0.changes().map_err(|e| e.to_string())
    }

    fn files_root(&self) -> PathBuf {
        self.0.files_root()
    }

    fn original(&mut self, path: &Path) -> Option<Vec<u8>> {
        self.0.armed().ok()?.original(path)
    }

    fn run_guard(&mut self) -> Result<Option<ProjectGuard>, String> {
        self.0.run_guard().map_err(|e| e.to_string())
    }

    fn discard_run(&mut self) -> Vec<PathBuf> {
        let written = self.0.files_written_by_run();
        self.0.discard_run();
        written
    }
}

impl FalsificationReport {
    /// The message of accepted work: with the count, or first of all that it is not verified and what to do.
    pub(super) fn message(&self, done: &str) -> String {
        match &self.unproven {
            None => format!("{done}; {}", self.sentence),
            Some(why) => format!(
                "not verified, because the tests could not be falsified ({why}); the change is in your files; to have it verified, \
                 compare with literal values in the test; {done}"
            ),
        }
    }

    /// Flags doubts raised by the runs, for the verifier to judge.
    pub(super) fn raise(&self, flags: &mut Flags, test: &Path) {
        if self.needs_git {
            let why = "it passes only where the repository of the project can be read";
            flags.raise("needs_git", test.display().to_string(), why);
        }
    }
}

/// Debug builds only: lets tests measure what passes without this gate.
fn is_switched_off() -> bool {
    cfg!(debug_assertions)
        && std::env::var_os("FALSIFY_OFF_FOR_TESTS").is_some_and(|value| value == "1")
}
