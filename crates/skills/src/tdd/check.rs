//! `tdd_green` with a `check` in the place of a failing test: which files it needs, and the runs that must fail before
//! work that passes it is believed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::baseline::TestBaseline;
use super::falsification::{CallProject, FalsificationReport};
use super::gates::{self, ChangedText, Gates, ObservedChanges, named};
use super::green::TestFile;
use super::without_work::write_files;
use supervisor_engine::Cause;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_verify::{ResultCheck, Suite, TestRun, Trial};
use supervisor_workspace::EntryType;

/// The argument of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckArgument(pub(super) ResultCheck);

impl schemars::JsonSchema for CheckArgument {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CheckArgument".into()
    }

    fn inline_schema() -> bool {
        true
    }

    // Kept minimal: the schema costs tokens in every conversation.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object"})
    }
}

/// The file that stands for the test.
pub(super) fn test_file(check: &ResultCheck, root: &Path) -> TestFile {
    let path = PathBuf::from(check.main_file());
    let source = fs::read(root.join(&path)).unwrap_or_default();
    TestFile {
        path,
        only: None,
        source: String::from_utf8_lossy(&source).into_owned(),
    }
}

/// Whether work may change this file; the error says why not.
pub(super) fn ensure_editable(
    baseline: &TestBaseline,
    check: &ResultCheck,
    path: &Path,
) -> Option<Result<(), String>> {
    match check.may_change(path) {
        Some(true) => Some(Ok(())),
        Some(false) => Some(Err(
            "the check is about other files; change only those it names".into(),
        )),
        None if baseline.is_test_script(path) => {
            Some(Err("it decides the outcome of the check".into()))
        }
        None => None,
    }
}

/// Refuses a document that meets its check by having lost something.
pub(super) fn ensure_nothing_lost(
    check: &ResultCheck,
    gates: &mut Gates,
    texts: &[ChangedText],
) -> Result<(), RefusedWork> {
    for text in texts {
        if let Some(why) = check.lost(&text.path, text.old_text(), text.new_text()) {
            let why = format!("{}: {why}", named(&text.path));
            return Err(gates.refuse("inventory", Cause::Rejected, why));
        }
    }
    Ok(())
}

/// Runs the check with other expectations and with less data; it must fail.
pub(super) async fn falsify(
    baseline: &TestBaseline,
    check: &ResultCheck,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    passing_run: &TestRun,
) -> Result<FalsificationReport, RefusedWork> {
    work.checking("checking that the result depends on the data");
    let changed: Vec<PathBuf> = observed
        .changes
        .iter()
        .filter(|change| change.entry_type == EntryType::File)
        .map(|change| change.path.clone())
        .collect();
    let trials = check.trials(&baseline.files, &changed, fastrand::u64(..));
    let mut unproven = check.unprovable().map(str::to_owned);
    let (mut failed, mut passed) = (Vec::new(), Vec::new());
    for trial in trials {
        let run = run_trial(baseline, check, &trial, work, gates).await?;
        gates::ensure_unchanged_by_run(baseline, work, gates, observed, passing_run)?;
        if !run.outcome().is_passed() {
            failed.push(trial.name);
        } else if trial.is_decisive {
            let why = format!(
                "the check passes with {} too, so the work does not compute its result",
                trial.name
            );
            return Err(gates.refuse("falsified", Cause::Tampered, why));
        } else {
            passed.push(trial.name);
        }
    }
    if let Some(name) = passed.iter().find(|name| !failed.contains(name)) {
        unproven.get_or_insert_with(|| format!("the check passes with {name} too"));
    }
    let details = json!({"failed_with": failed, "passed_with": passed});
    let detail = match &unproven {
        None => format!("it fails with {}", failed.join(", ")),
        Some(why) => format!("unproven: {why}"),
    };
    gates.pass("falsified", detail.clone());
    Ok(FalsificationReport {
        needs_git: false,
        unproven,
        sentence: detail,
        details,
    })
}

async fn run_trial(
    baseline: &TestBaseline,
    check: &ResultCheck,
    trial: &Trial,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
) -> Result<TestRun, RefusedWork> {
    let read =
        |(path, _): &(PathBuf, Vec<u8>)| (path.clone(), fs::read(baseline.files.join(path)).ok());
    let originals: Vec<_> = trial.edits.iter().map(read).collect();
    let edited: Vec<_> = trial
        .edits
        .iter()
        .map(|(path, bytes)| (path.clone(), Some(bytes.clone())))
        .collect();
    let written = write_files(&mut CallProject(work.site), &edited);
    let environment = gates.site(baseline.bench_for_run(work.site))?;
    let suite = Suite::of_reduced_check(&baseline.root, check, trial.reduction);
    let run = match &written {
        Ok(()) => Some(suite.run(&environment, work.stop).await),
        Err(_) => None,
    };
    drop(environment);
    work.site.discard_run();
    // Refusing the attempt restores everything from the snapshot if a file could not be put back.
    let restored = write_files(&mut CallProject(work.site), &originals);
    let refuse = |gates: &mut Gates, why| gates.refuse("falsified", Cause::CannotVerify, why);
    written
        .and(restored)
        .map_err(|why| refuse(gates, format!("the files of the check: {why}")))?;
    run.ok_or_else(|| refuse(gates, String::from("nothing was run")))
}
