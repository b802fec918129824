//! A command of no known runner: its exit code is all that is believed, and the names of its tests stay unknown.

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::command;
use super::super::outcome::{Outcome, Tests};
use super::super::session::{Judgement, Session};
use super::super::suite::Suite;
use super::Runner;

pub(super) static RUNNER: Runner = Runner {
    name: "generic",
    ecosystem: None,
    manifests: &[],
    command: &[],
    recognises: |_| true,
    run,
    only: |_, _| None,
};

fn run<'a>(suite: &'a Suite, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move { by_exit_code(suite, session).await }.boxed()
}

/// Runs a command and judges it by its exit code alone.
pub(super) async fn by_exit_code(suite: &Suite, session: &Session<'_>) -> Judgement {
    let finished = session.run(suite.argv(), &[]).await;
    let cut_short = session.cut_short(&finished, command::program(suite.argv()));
    let outcome = cut_short.unwrap_or(match finished.end {
        crate::process::End::Exited(0) => Outcome::Passed,
        _ => Outcome::Failed,
    });
    let mut judgement = Judgement::without_tests(outcome, &finished);
    judgement.tests = Tests::Unknown;
    judgement.notes.push(String::from(
        "the runner is none we know: judged by its exit code alone, without the number and names of the tests",
    ));
    judgement
}
