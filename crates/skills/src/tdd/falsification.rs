//! Gate after green: changes the target tests so that they must fail, under the same names, and
//! runs them again. Code that detects its tests still passes and is refused. The test file is
//! written like any edit, so every way the call can end restores it. The changed tests are never
//! shown to a model.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};

use super::baseline::TestBaseline;
use super::gates::{self, Gates, ObservedChanges};
use supervisor_engine::Cause;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_languages::ELIXIR;
use supervisor_process::ScratchDir;
use supervisor_verify::falsify::{
    FalsifiableTests, Falsification, FalsificationVerdict, FalsifiedFileRunner, falsify,
};
use supervisor_verify::{Flags, RunEnvironment, Suite, TestName, TestRun, TestState, Tests};
use supervisor_workspace::{ChangeKind, Edit, EntryType};

/// Larger by-products are not restored between two runs.
const MAX_RESTORED_BYTES: u64 = 1 << 20;

/// Result of the gate for work that it accepts.
#[derive(Debug)]
pub(super) struct FalsificationReport {
    /// The targets pass only if the project's git repository can be read.
    pub(super) needs_git: bool,
    /// Why the gate proved nothing, if it did not.
    pub(super) unproven: Option<String>,
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
            details: Value::Null,
        });
    }
    let (original, tests) = match find_targets(baseline, test, targets, passing_run) {
        Ok(found) => found,
        Err(why) => return Ok(unproven(gates, why, Value::Null)),
    };
    work.checking("running the tests once more, falsified");
    let alone = match (tests.single_test(passing_run), targets) {
        (Some(only_test), _) => baseline.suite.only(&only_test),
        // Run all cases of a parametrised test: a changed expectation may change a case's name.
        (None, [target]) => baseline.suite.only(&without_case(target)),
        (None, _) => None,
    };
    let suite = alone.unwrap_or_else(|| baseline.suite.clone());
    let seed = fastrand::u64(..);
    let mut stage = InPlaceStage::new(baseline, work, gates, test, with_forced_rebuild(&suite))?;
    // Git history contains the original tests. Code that reads its answers from there would pass
    // undetected.
    stage.bench.sandbox.hides_git = true;
    let mut trial = falsify(&tests, passing_run, seed, &mut stage).await;
    let mut needs_git = false;
    if trial.fails_neutral_edit {
        stage.bench.sandbox.hides_git = false;
        trial = falsify(&tests, passing_run, seed, &mut stage).await;
        needs_git = !trial.fails_neutral_edit;
    }
    tracing::info!(
        seed,
        order = trial.order.join(", "),
        runs = trial.runs,
        "falsified {}",
        test.display()
    );
    let written = stage.write(&original);
    drop(stage);
    if let Err(why) = written {
        // Refusing the attempt restores everything from the snapshot.
        return Err(gates.refuse(
            "falsified",
            Cause::CannotVerify,
            format!("the test file could not be put back: {why}"),
        ));
    }
    gates::ensure_unchanged_by_run(baseline, work, gates, observed, passing_run)?;
    let report = report_verdict(gates, trial)?;
    Ok(FalsificationReport {
        needs_git,
        ..report
    })
}

/// Sets the mtime of the test file to now before a normal run. Falsified runs rewrite the file, so
/// a recent mtime must not distinguish them.
pub(super) fn touch_test_file(baseline: &TestBaseline, test: &Path) {
    let full_path = baseline.files.join(test);
    if full_path.symlink_metadata().is_ok_and(|m| m.is_file()) {
        let file = fs::File::options().append(true).open(full_path);
        // Ignored if setting the time is not permitted.
        let _ = file.and_then(|file| file.set_modified(std::time::SystemTime::now()));
    }
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
    work.checking("running the new test with what the code gives now");
    let suite = baseline
        .suite
        .only(&name)
        .unwrap_or_else(|| baseline.suite.clone());
    let mut stage = InPlaceStage::new(baseline, work, gates, test, suite)?;
    let run = stage.run(text).await;
    let written = stage.write(&original);
    drop(stage);
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
    let details = json!({"by_value": trial.by_value, "by_assertion": trial.by_assertion});
    match trial.verdict {
        FalsificationVerdict::Falsified => {
            let detail = format!(
                "every target failed when it was made wrong: {} by another value, {} by an added assertion",
                trial.by_value, trial.by_assertion
            );
            gates.pass("falsified", detail);
            Ok(FalsificationReport {
                needs_git: false,
                unproven: None,
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

/// Elixir's build does not notice when a file that was read at compile time changes.
pub(super) fn with_forced_rebuild(suite: &Suite) -> Suite {
    if suite.ecosystem() == Some(&ELIXIR) {
        suite.with_argument("--force")
    } else {
        suite.clone()
    }
}

/// Runs tests with a rewritten test file in the project, covered by the call's snapshot.
pub(super) struct InPlaceStage<'a, 'w> {
    baseline: &'a TestBaseline,
    pub(super) work: &'a mut SubmittedWork<'w>,
    path: &'a Path,
    suite: Suite,
    pub(super) bench: RunEnvironment,
    /// By-products before the first run, so that one run cannot leave information for the next.
    by_products_before: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

impl FalsificationReport {
    /// Flags doubts raised by the runs, for the verifier to judge.
    pub(super) fn raise(&self, flags: &mut Flags, test: &Path) {
        if self.needs_git {
            let why = "it passes only where the repository of the project can be read";
            flags.raise("needs_git", test.display().to_string(), why);
        }
    }
}

impl<'a, 'w> InPlaceStage<'a, 'w> {
    /// `path` is the test file that is rewritten between the runs.
    pub(super) fn new(
        baseline: &'a TestBaseline,
        work: &'a mut SubmittedWork<'w>,
        gates: &mut Gates,
        path: &'a Path,
        suite: Suite,
    ) -> Result<Self, RefusedWork> {
        let bench = gates.site(baseline.bench(work.site))?;
        let by_products_before = by_products(work, &baseline.files);
        Ok(Self {
            baseline,
            work,
            path,
            suite,
            bench,
            by_products_before,
        })
    }

    pub(super) fn write(&mut self, text: &str) -> Result<(), String> {
        let path = self
            .path
            .to_str()
            .ok_or("its name is not UTF-8")?
            .to_owned();
        let edit = Edit::Replace {
            path,
            contents: text.as_bytes().to_vec(),
        };
        self.work
            .site
            .apply(&[edit], &|_| Ok(()))
            .map(drop)
            .map_err(|e| e.to_string())
    }

    /// Removes or restores files that the last run wrote into the project.
    fn restore_by_products(&mut self) {
        let (root, files) = (&self.baseline.root, &self.baseline.files);
        for path in by_products(self.work, files).into_keys() {
            let full_path = files.join(&path);
            // In an overlay, the project keeps its own path unless a link leads elsewhere.
            let is_inside = full_path
                .parent()
                .and_then(|dir| dir.canonicalize().ok())
                .is_some_and(|dir| dir.starts_with(root));
            if path == self.path || !is_inside {
                continue;
            }
            match self.by_products_before.get(&path) {
                None => drop(fs::remove_file(&full_path)),
                Some(Some(bytes)) if fs::read(&full_path).ok().as_ref() != Some(bytes) => {
                    drop(fs::write(&full_path, bytes));
                }
                Some(_) => {}
            }
        }
    }
}

impl FalsifiedFileRunner for InPlaceStage<'_, '_> {
    fn run(&mut self, text: String) -> BoxFuture<'_, Result<TestRun, String>> {
        async move {
            self.write(&text)
                .map_err(|why| format!("the test file cannot be written: {why}"))?;
            let temp_dir = ScratchDir::new("")
                .map_err(|e| format!("there is no place for temporary files: {e}"))?;
            let mut bench = self.bench.clone();
            for name in ["TMPDIR", "TMP", "TEMP"] {
                bench.env.insert(name.into(), temp_dir.path().into());
            }
            let run = self.suite.run(&bench, self.work.stop).await;
            self.restore_by_products();
            Ok(run)
        }
        .boxed()
    }
}

/// Files that differ from the snapshot, with their bytes.
fn by_products(work: &mut SubmittedWork<'_>, root: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let Ok(changes) = work.site.changes() else {
        return BTreeMap::new();
    };
    let changed_files = changes.changes.iter().filter(|c| {
        c.entry_type == EntryType::File
            && c.kind != ChangeKind::Git
            && c.kind != ChangeKind::Deleted
    });
    let paths = changed_files
        .map(|c| c.path.clone())
        .chain(changes.by_products.iter().map(|b| b.path.clone()));
    paths
        .map(|path| {
            let full_path = root.join(&path);
            let is_small = full_path
                .symlink_metadata()
                .is_ok_and(|m| m.is_file() && m.len() <= MAX_RESTORED_BYTES);
            let bytes = is_small.then(|| fs::read(full_path).ok()).flatten();
            (path, bytes)
        })
        .collect()
}

/// Debug builds only: lets tests measure what passes without this gate.
fn is_switched_off() -> bool {
    cfg!(debug_assertions)
        && std::env::var_os("FALSIFY_OFF_FOR_TESTS").is_some_and(|value| value == "1")
}
