//! Mutants of accepted work: one operator, constant or statement of the changed lines is changed, and a target should
//! fail. `verify.mutants` says whether they run before the reply, while the server is idle, or not at all.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use supervisor_edits::Edit;
use supervisor_engine::result::CallResult;
use supervisor_engine::session::SessionLog;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_prove::{
    ChangeMutants, ChangedCode, MutantMode, MutantRunner, Mutants, ProveRequest, mutants_since,
};
use supervisor_settings::MutantRuns;
use supervisor_verify::{Suite, TestName, TestRun};
use tokio_util::sync::CancellationToken;

use super::baseline::TestBaseline;
use super::gates::{self, ChangedText, Gates, ObservedChanges};
use super::repeat::suite_for;
use crate::App;
use crate::prove::test_environment;

/// More survivors are not listed.
const MAX_LISTED: usize = 5;

/// With `verify.mutants = "require"`: what the targets say about mutants of the change. The text says why the work is not
/// verified, if it is not.
pub(super) async fn check(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    texts: &[ChangedText],
    targets: &[TestName],
) -> Result<Option<(Value, Option<String>)>, RefusedWork> {
    if baseline.mutants != MutantRuns::Require || targets.is_empty() {
        return Ok(None);
    }
    let mutants = ChangeMutants::of(&changed_code(texts));
    if mutants.is_empty() {
        return Ok(None);
    }
    work.checking("running mutants of the change");
    let suite = suite_for(baseline, targets);
    let mut runs = RunsInCall {
        baseline,
        work,
        gates,
        observed,
    };
    let Some(found) = mutants.run(&suite, &mut runs, None).await? else {
        return Ok(None);
    };
    gates.pass("mutants", found.sentence());
    let why = (!found.survived.is_empty()).then(|| found.sentence());
    Ok(Some((details(&found), why)))
}

/// How many of the changed lines are reached by a test that fails when the line is changed again,
/// and of how many that is known. `None` if it is known of none.
pub(super) async fn reached_lines(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    texts: &[ChangedText],
    targets: &[TestName],
    run: &TestRun,
) -> Result<Option<(usize, usize)>, RefusedWork> {
    const BUDGET: Duration = Duration::from_secs(15);
    let mutants = ChangeMutants::of(&changed_code(texts));
    if mutants.is_empty() {
        return Ok(None);
    }
    work.checking("checking which of the changed lines the tests reach");
    let suite = suite_for(baseline, targets);
    let mut runs = RunsInCall {
        baseline,
        work,
        gates,
        observed,
    };
    let budget = BUDGET.max(run.took());
    let found = mutants.run(&suite, &mut runs, Some(budget)).await?;
    let share = found.map(|found| found.noticed_share());
    Ok(share.filter(|(_, known)| *known > 0))
}

fn changed_code(texts: &[ChangedText]) -> Vec<ChangedCode<'_>> {
    let code = texts.iter().map(|text| ChangedCode {
        path: &text.path,
        old: text.old_text(),
        new: text.new_text(),
    });
    code.collect()
}

/// Runs on the answer, in the call's own copy of the project.
struct RunsInCall<'a, 'w> {
    baseline: &'a TestBaseline,
    work: &'a mut SubmittedWork<'w>,
    gates: &'a mut Gates,
    observed: &'a ObservedChanges,
}

impl RunsInCall<'_, '_> {
    fn apply(&mut self, edits: &[Edit]) -> Result<(), RefusedWork> {
        let applied = self.work.site.apply(edits, &|_| Ok(()));
        self.gates.site(applied).map(drop)
    }
}

impl MutantRunner for RunsInCall<'_, '_> {
    type Error = RefusedWork;

    async fn run(
        &mut self,
        suite: &Suite,
        edits: &[Edit],
        limit: Option<Duration>,
    ) -> Result<TestRun, RefusedWork> {
        let files = self.work.site.files_root();
        let originals: Vec<Edit> = edits
            .iter()
            .filter_map(|edit| {
                Some(Edit::Replace {
                    path: edit.path().to_owned(),
                    contents: std::fs::read(files.join(edit.path())).ok()?,
                })
            })
            .collect();
        self.apply(edits)?;
        let mut bench = self.gates.site(self.baseline.bench(self.work.site))?;
        bench.limit = limit.unwrap_or(bench.limit).min(bench.limit);
        let run = suite.run(&bench, self.work.stop).await;
        drop(bench);
        self.apply(&originals)?;
        gates::ensure_unchanged_by_run(self.baseline, self.work, self.gates, self.observed, &run)?;
        Ok(run)
    }
}

fn details(found: &Mutants) -> Value {
    let listed = || found.survived.iter().take(MAX_LISTED);
    let not_noticed: Vec<String> = listed().map(ToString::to_string).collect();
    let criteria: Vec<String> = listed()
        .map(|mutant| {
            format!(
                "a test fails if `{}` in {} is `{}`",
                mutant.before,
                mutant.file.display(),
                mutant.after
            )
        })
        .collect();
    json!({"summary": found.sentence(), "not_noticed": not_noticed, "suggested_criteria": criteria})
}

/// An accepted change whose mutants can run later.
#[derive(Debug, Clone)]
pub(super) struct AcceptedChange {
    pub(super) root: PathBuf,
    /// The changed files as they were.
    pub(super) before: Vec<(PathBuf, String)>,
    pub(super) targets: Vec<TestName>,
}

/// Mutants that run while no call does.
#[derive(Debug, Default)]
pub struct IdleMutants {
    running: Mutex<Option<CancellationToken>>,
    /// What the next reply about a project says.
    found: Arc<Mutex<Vec<(PathBuf, Value)>>>,
}

impl IdleMutants {
    /// A call is beginning: it needs the project's lock and the processor.
    pub fn stop(&self) {
        if let Some(stop) = self.running.lock().take() {
            stop.cancel();
        }
    }

    /// Adds what was found about this project to a reply, once.
    pub(super) fn report(&self, root: &Path, result: &mut CallResult) {
        let mut found = self.found.lock();
        let Some(at) = found.iter().position(|(of, _)| of == root) else {
            return;
        };
        let (_, value) = found.remove(at);
        if result.more.details.is_null() {
            result.more.details = json!({});
        }
        result.more.details["mutants_of_last_green"] = value;
    }

    pub(super) fn start(
        &self,
        app: &App,
        change: AcceptedChange,
        test_cmd: Option<String>,
        test_report: Option<String>,
        session: String,
    ) {
        let (Ok(settings), Ok(state)) = (app.settings(), app.state()) else {
            return;
        };
        let environment = test_environment(app, &settings.routing);
        let redactor = Arc::new(app.redactor(&settings.routing));
        let found = Arc::clone(&self.found);
        let stop = CancellationToken::new();
        *self.running.lock() = Some(stop.clone());
        tokio::spawn(async move {
            let request = ProveRequest {
                test_cmd: test_cmd.as_deref(),
                test_report: test_report.as_deref(),
                mutants: MutantMode::Never,
                environment,
                ..ProveRequest::new(&change.root, &state)
            };
            let outcome = mutants_since(&request, &change.before, &change.targets, &stop).await;
            match outcome {
                Ok(Some(mutants)) => {
                    let log = SessionLog::to_read(&state).with_redactor(redactor);
                    log_mutants(&log, &session, &change.root, &mutants);
                    if !mutants.survived.is_empty() {
                        let mut found = found.lock();
                        found.retain(|(root, _)| *root != change.root);
                        found.push((change.root, details(&mutants)));
                    }
                }
                Ok(None) => {}
                Err(error) => tracing::info!("mutants of the last green: {error}"),
            }
        });
    }
}

/// One line of the session's log.
fn log_mutants(log: &SessionLog, session: &str, root: &Path, mutants: &Mutants) {
    let Ok(id) = session.parse() else { return };
    let entry = json!({
        "v": supervisor_engine::entry::VERSION,
        "session_id": session,
        "timestamp": jiff::Timestamp::now().to_string(),
        "skill": "prove",
        "tool": "prove",
        "phase": "mutants",
        "final_status": if mutants.survived.is_empty() { "pass" } else { "fail" },
        "project_root": root.display().to_string(),
        "message": mutants.sentence(),
        "attempts": [],
    });
    if let Err(error) = log.append_value(&id, entry) {
        tracing::warn!("mutants of the last green were not logged: {error}");
    }
}
