//! The gate after green: the targets are made wrong in place, under their own name, and run again. The file is written
//! by the same means as any edit, so that whatever ends this call brings it back; what is written is told to no model.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};

use super::baseline::Ground;
use super::gates::{self, Gates, SeenChanges};
use supervisor_engine::Cause;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_languages::ELIXIR;
use supervisor_process::Scratch;
use supervisor_verify::falsify::{
    FalsifiableTests, Falsification, FalsificationStage, FalsificationVerdict, falsify,
};
use supervisor_verify::{Bench, Flags, Suite, TestName, TestRun, TestState, Tests};
use supervisor_workspace::{ChangeKind, Edit, Thing};

/// A larger by-product is not put back between two states.
const MOST_BYTES: u64 = 1 << 20;

/// What the gate showed about work that it does not refuse.
#[derive(Debug)]
pub(super) struct FalsificationReport {
    /// The targets pass only where the repository of the project can be read.
    pub(super) needs_git: bool,
    /// Why nothing was shown, if so.
    pub(super) unproven: Option<String>,
    pub(super) details: Value,
}

/// Runs the targets falsified. `plain` is the run in which they passed.
pub(super) async fn check(
    ground: &Ground,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    seen: &SeenChanges,
    test: &Path,
    targets: &[TestName],
    plain: &TestRun,
) -> Result<FalsificationReport, RefusedWork> {
    if is_switched_off() {
        return Ok(FalsificationReport {
            needs_git: false,
            unproven: None,
            details: Value::Null,
        });
    }
    let (original, tests) = match find(ground, test, targets, plain) {
        Ok(found) => found,
        Err(why) => return Ok(unproven(gates, why, Value::Null)),
    };
    work.checking("running the tests once more, falsified");
    let alone = match (tests.only_test(plain), targets) {
        (Some(whole), _) => ground.suite.only(&whole),
        // All rows of a test: one that expects something else may have another name.
        (None, [target]) => ground.suite.only(&without_row(target)),
        (None, _) => None,
    };
    let suite = alone.unwrap_or_else(|| ground.suite.clone());
    let seed = fastrand::u64(..);
    let mut stage = InPlaceStage::new(ground, work, gates, test, for_states(&suite))?;
    // The history of the repository holds the tests as they were: who answers from there is not found out by other tests.
    stage.bench.walls.hides_git = true;
    let mut trial = falsify(&tests, plain, seed, &mut stage).await;
    let mut needs_git = false;
    if trial.fails_harmlessly {
        stage.bench.walls.hides_git = false;
        trial = falsify(&tests, plain, seed, &mut stage).await;
        needs_git = !trial.fails_harmlessly;
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
        // The attempt is refused, so that everything is brought back from the snapshot.
        return Err(gates.refuse(
            "falsified",
            Cause::CannotVerify,
            format!("the test file could not be put back: {why}"),
        ));
    }
    gates::untouched_by_run(ground, work, gates, seen, plain)?;
    let report = conclude(gates, trial)?;
    Ok(FalsificationReport {
        needs_git,
        ..report
    })
}

/// Gives the test file the time of now before it is run as it is: a file that is younger than usual betrays nothing when
/// it is so in every run.
pub(super) fn renew(ground: &Ground, test: &Path) {
    let whole = ground.files.join(test);
    if whole.symlink_metadata().is_ok_and(|m| m.is_file()) {
        let file = fs::File::options().append(true).open(whole);
        // Where that is not allowed, the time stays.
        let _ = file.and_then(|file| file.set_modified(std::time::SystemTime::now()));
    }
}

/// Whether a red fails for what the code does: made to expect what the code gives now, it passes. Never a refusal; where
/// the failure names no value, or a symbol is missing, it does not apply.
pub(super) async fn certify(
    ground: &Ground,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    seen: &SeenChanges,
    test: &Path,
    red: &TestRun,
) -> Result<&'static str, RefusedWork> {
    const NOT_APPLICABLE: &str = "not_applicable";
    let path = ground.as_run(test);
    let Some(original) = fs::read_to_string(ground.files.join(test)).ok() else {
        return Ok(NOT_APPLICABLE);
    };
    let of_failure = |(name, said): (&TestName, &str)| {
        let tests = FalsifiableTests::find(&path, &original, std::slice::from_ref(name))?;
        Some((name.clone(), tests.expecting_what_is_given(said)?))
    };
    let Some((name, text)) = red.failed().find_map(of_failure) else {
        return Ok(NOT_APPLICABLE);
    };
    work.checking("running the new test with what the code gives now");
    let suite = ground
        .suite
        .only(&name)
        .unwrap_or_else(|| ground.suite.clone());
    let mut stage = InPlaceStage::new(ground, work, gates, test, suite)?;
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
    gates::untouched_by_run(ground, work, gates, seen, red)?;
    let passes = run.is_ok_and(|run| matches!(run.state(&name), Some(TestState::Passed)));
    Ok(if passes { "behaviour" } else { NOT_APPLICABLE })
}

/// Of many tests a few at random, so that a small change does not cost many runs of a large suite.
pub(super) fn sample(targets: &[TestName], plain: &TestRun) -> Vec<TestName> {
    const MOST: usize = 8;
    const QUICK: Duration = Duration::from_secs(10);
    let mut passed: Vec<TestName> = plain
        .passed()
        .filter(|name| targets.contains(name))
        .cloned()
        .collect();
    fastrand::shuffle(&mut passed);
    passed.truncate(if plain.took() < QUICK { MOST } else { 1 });
    passed
}

fn conclude(gates: &mut Gates, trial: Falsification) -> Result<FalsificationReport, RefusedWork> {
    // What is random stays out of the reply; it is in the log.
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

fn without_row(name: &TestName) -> TestName {
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

fn find(
    ground: &Ground,
    test: &Path,
    targets: &[TestName],
    plain: &TestRun,
) -> Result<(String, FalsifiableTests), String> {
    let original = fs::read(ground.files.join(test))
        .map_err(|e| format!("the test file cannot be read: {e}"))?;
    let original =
        String::from_utf8(original).map_err(|_| String::from("the test file is not UTF-8"))?;
    let path = ground.as_run(test);
    let tests = match plain.tests() {
        Tests::Named(_) => FalsifiableTests::find(&path, &original, targets),
        Tests::Unknown => FalsifiableTests::whole_file(&path, &original),
    };
    let mut tests =
        tests.ok_or_else(|| String::from("tests in this language cannot be falsified yet"))?;
    tests.include_rows(plain);
    Ok((original, tests))
}

/// The test program's own build does not notice that a file was read while it was compiled.
pub(super) fn for_states(suite: &Suite) -> Suite {
    if suite.ecosystem() == Some(&ELIXIR) {
        suite.with_word("--force")
    } else {
        suite.clone()
    }
}

/// Writes in place, under the snapshot of the call.
pub(super) struct InPlaceStage<'a, 'w> {
    ground: &'a Ground,
    pub(super) work: &'a mut SubmittedWork<'w>,
    path: &'a Path,
    suite: Suite,
    pub(super) bench: Bench,
    /// What the tests had written before, so that one state leaves the next no notes.
    before: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

impl FalsificationReport {
    /// What the runs themselves make doubtful, for a reader to judge.
    pub(super) fn raise(&self, flags: &mut Flags, test: &Path) {
        if self.needs_git {
            let why = "it passes only where the repository of the project can be read";
            flags.raise("needs_git", test.display().to_string(), why);
        }
    }
}

impl<'a, 'w> InPlaceStage<'a, 'w> {
    /// `path` is the test file that changes between the runs.
    pub(super) fn new(
        ground: &'a Ground,
        work: &'a mut SubmittedWork<'w>,
        gates: &mut Gates,
        path: &'a Path,
        suite: Suite,
    ) -> Result<Self, RefusedWork> {
        let bench = ground
            .bench(work.site)
            .map_err(|e| gates.refuse_for_site(&e))?;
        let before = by_products(work, &ground.files);
        Ok(Self {
            ground,
            work,
            path,
            suite,
            bench,
            before,
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

    /// Takes away what the last state wrote into the project.
    fn forget_notes(&mut self) {
        let (root, files) = (&self.ground.root, &self.ground.files);
        for path in by_products(self.work, files).into_keys() {
            let whole = files.join(&path);
            // Without links, a view's path is the project's own.
            let is_inside = whole
                .parent()
                .and_then(|dir| dir.canonicalize().ok())
                .is_some_and(|dir| dir.starts_with(root));
            if path == self.path || !is_inside {
                continue;
            }
            match self.before.get(&path) {
                None => drop(fs::remove_file(&whole)),
                Some(Some(bytes)) if fs::read(&whole).ok().as_ref() != Some(bytes) => {
                    drop(fs::write(&whole, bytes))
                }
                Some(_) => {}
            }
        }
    }
}

impl FalsificationStage for InPlaceStage<'_, '_> {
    fn run(&mut self, text: String) -> BoxFuture<'_, Result<TestRun, String>> {
        async move {
            self.write(&text)
                .map_err(|why| format!("the test file cannot be written: {why}"))?;
            let private = Scratch::new("")
                .map_err(|e| format!("there is no place for temporary files: {e}"))?;
            let mut bench = self.bench.clone();
            for name in ["TMPDIR", "TMP", "TEMP"] {
                bench.env.insert(name.into(), private.path().into());
            }
            let run = self.suite.run(&bench, self.work.stop).await;
            self.forget_notes();
            Ok(run)
        }
        .boxed()
    }
}

/// Files that differ from the snapshot and are not what was changed by the worker's edits, with their bytes.
fn by_products(work: &mut SubmittedWork<'_>, root: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let Ok(changes) = work.site.changes() else {
        return BTreeMap::new();
    };
    let new = changes.changes.iter().filter(|c| {
        c.thing == Thing::File && c.kind != ChangeKind::Git && c.kind != ChangeKind::Deleted
    });
    let paths = new
        .map(|c| c.path.clone())
        .chain(changes.by_products.iter().map(|b| b.path.clone()));
    paths
        .map(|path| {
            let whole = root.join(&path);
            let small = whole
                .symlink_metadata()
                .is_ok_and(|m| m.is_file() && m.len() <= MOST_BYTES);
            let bytes = small.then(|| fs::read(whole).ok()).flatten();
            (path, bytes)
        })
        .collect()
}

/// Only in builds for tests: they count what passes without this gate.
fn is_switched_off() -> bool {
    cfg!(debug_assertions)
        && std::env::var_os("FALSIFY_OFF_FOR_TESTS").is_some_and(|value| value == "1")
}
