//! Fallback for commands of unknown runners. Only the exit code counts, and the names of the tests stay unknown.

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::command;
use super::super::outcome::{Outcome, Tests};
use super::super::session::{RunnerResult, Session};
use super::super::step::SuiteStep;
use super::{Runner, never_detected};
use supervisor_process::{End, FinishedProcess};

pub(super) static RUNNER: Runner = Runner {
    name: "generic",
    ecosystem: None,
    manifests: &[],
    command: &[],
    find: never_detected,
    recognises: |_| true,
    run,
    select: |_, _| None,
    names_are_paths: false,
};

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move { run_by_exit_code(step, session).await }.boxed()
}

/// Runs a command and judges it by its exit code alone.
pub(super) async fn run_by_exit_code(step: &SuiteStep, session: &Session<'_>) -> RunnerResult {
    let finished = session.run(&step.with_arguments(&[]), &[]).await;
    judge(step, session, &finished)
}

pub(super) fn judge(
    step: &SuiteStep,
    session: &Session<'_>,
    finished: &FinishedProcess,
) -> RunnerResult {
    let cut_short = session.abnormal_outcome(finished, command::program(&step.argv));
    let outcome = cut_short.unwrap_or(match finished.end {
        End::Exited(0) => Outcome::Passed,
        _ => Outcome::Failed,
    });
    let mut judgement = RunnerResult::without_tests(outcome, finished);
    judgement.tests = Tests::Unknown;
    judgement.notes.push(String::from(
        "the runner is not one we know: judged by its exit code alone, without the number and names of the tests; name a \
         `test_report` if it writes JUnit XML",
    ));
    judgement
}
