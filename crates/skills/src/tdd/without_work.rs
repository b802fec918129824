//! The project as it was without the worker's changes, for runs that the work is compared with.

use std::fs;
use std::path::PathBuf;

use super::baseline::TestBaseline;
use super::falsification::CallProject;
use super::gates::{self, Gates, ObservedChanges};
use supervisor_engine::Cause;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_prove::EditedProject;
use supervisor_verify::{RunEnvironment, Suite, TestRun};
use supervisor_workspace::{Edit, EntryType};

/// Content of a file in one of two states; `None` if it does not exist.
type FileState = (PathBuf, Option<Vec<u8>>);

/// The files that the worker changed, with their current and their original content.
pub(super) struct WorkFiles {
    pub(super) current: Vec<FileState>,
    pub(super) original: Vec<FileState>,
}

impl WorkFiles {
    pub(super) fn read(
        work: &mut SubmittedWork<'_>,
        observed: &ObservedChanges,
    ) -> Result<Self, String> {
        let root = work.site.files_root();
        let armed = work.site.armed().map_err(|error| error.to_string())?;
        let paths = || {
            observed
                .changes
                .iter()
                .filter(|c| c.entry_type == EntryType::File)
                .map(|c| c.path.clone())
        };
        Ok(Self {
            current: paths()
                .map(|path| (path.clone(), fs::read(root.join(&path)).ok()))
                .collect(),
            original: paths()
                .map(|path| (path.clone(), armed.original(&path)))
                .collect(),
        })
    }
}

pub(super) fn write_files(
    project: &mut dyn EditedProject,
    files: &[FileState],
) -> Result<(), String> {
    let root = project.files_root();
    let edit = |(path, wanted): &FileState| {
        let name = path.to_str()?.to_owned();
        let is_there = root.join(path).symlink_metadata().is_ok();
        match (is_there, wanted.clone()) {
            (true, Some(contents)) => Some(Edit::Replace {
                path: name,
                contents,
            }),
            (false, Some(contents)) => Some(Edit::Create {
                path: name,
                contents,
            }),
            (true, None) => Some(Edit::Delete { path: name }),
            (false, None) => None,
        }
    };
    let edits: Vec<Edit> = files.iter().filter_map(edit).collect();
    project.apply(&edits)
}

/// Runs a suite without the worker's changes, which are there again afterwards.
pub(super) async fn run_without_work(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    suite: &Suite,
    limit: Option<std::time::Duration>,
) -> Result<TestRun, RefusedWork> {
    let refuse = |gates: &mut Gates, why| gates.refuse("without_work", Cause::CannotVerify, why);
    let files = WorkFiles::read(work, observed).map_err(|why| refuse(gates, why))?;
    let written = write_files(&mut CallProject(work.site), &files.original);
    let bench = gates.site(baseline.bench_for_run(work.site))?;
    let bench = RunEnvironment {
        limit: limit.unwrap_or(bench.limit).min(bench.limit),
        ..bench
    };
    let run = match &written {
        Ok(()) => Some(suite.run(&bench, work.stop).await),
        Err(_) => None,
    };
    drop(bench);
    work.site.discard_run();
    // Refusing the attempt restores everything from the snapshot if a file could not be put back.
    let restored = write_files(&mut CallProject(work.site), &files.current);
    written.and(restored).map_err(|why| refuse(gates, why))?;
    run.ok_or_else(|| refuse(gates, String::from("nothing was run")))
}

/// The same, once for all attempts of a call.
pub(super) async fn known_run_without_work(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    suite: &Suite,
) -> Result<TestRun, RefusedWork> {
    let known = baseline.without_work.lock().get(&suite.command()).cloned();
    if let Some(run) = known {
        return Ok(run);
    }
    work.checking(format!("running `{}` without the change", suite.command()));
    let run = run_without_work(baseline, work, gates, observed, suite, None).await?;
    gates::ensure_unchanged_by_run(baseline, work, gates, observed, &run)?;
    let mut runs = baseline.without_work.lock();
    runs.insert(suite.command(), run.clone());
    drop(runs);
    Ok(run)
}
