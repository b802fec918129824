//! A command of no known runner: its exit code is all that is believed, and the names of its tests stay unknown.

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::command;
use super::super::outcome::{Outcome, Tests};
use super::super::session::{Judgement, Session};
use super::super::step::SuiteStep;
use super::{Runner, by_command_alone};

pub(super) static RUNNER: Runner = Runner {
    name: "generic",
    ecosystem: None,
    manifests: &[],
    command: &[],
    find: by_command_alone,
    recognises: |_| true,
    run,
    select: |_, _| None,
    names_are_paths: false,
};

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move { by_exit_code(step, session).await }.boxed()
}

/// Runs a command and judges it by its exit code alone.
pub(super) async fn by_exit_code(step: &SuiteStep, session: &Session<'_>) -> Judgement {
    let finished = session.run(&step.with_arguments(&[]), &[]).await;
    let cut_short = session.cut_short(&finished, command::program(&step.argv));
    let outcome = cut_short.unwrap_or(match finished.end {
        supervisor_process::End::Exited(0) => Outcome::Passed,
        _ => Outcome::Failed,
    });
    let mut judgement = Judgement::without_tests(outcome, &finished);
    judgement.tests = Tests::Unknown;
    judgement.notes.push(String::from(
        "the runner is not one we know: judged by its exit code alone, without the number and names of the tests; name a \
         `test_report` if it writes JUnit XML",
    ));
    judgement
}
