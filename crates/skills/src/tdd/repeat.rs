//! Tests that come and go. With `verify.repeat` a red is run several times before a model is asked, and a green several
//! times before it is believed: what does not say the same each time is flaky, and neither red nor green.

use std::collections::BTreeSet;

use super::baseline::Ground;
use super::gates::{self, Gates, SeenChanges, output_excerpt};
use supervisor_engine::Cause;
use supervisor_engine::skill::{Preparation, RefusedCall};
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_verify::{Bench, Outcome, Suite, TestName, TestRun, TestState, Tests};

/// More than these are most of a suite, and a long command.
pub(super) const SELECTED: usize = 20;

/// These tests alone where the runner can select them, else all of them.
pub(super) fn suite_of(ground: &Ground, names: &[TestName]) -> Suite {
    let few = (!names.is_empty() && names.len() <= SELECTED).then_some(names);
    few.and_then(|names| ground.suite.selecting(names))
        .unwrap_or_else(|| ground.suite.clone())
}

/// The failures of the first run that are none in a later one of the very same files.
pub(super) async fn flaky_reds(
    ground: &Ground,
    call: &mut Preparation<'_>,
    times: u32,
) -> Result<BTreeSet<TestName>, RefusedCall> {
    let red: Vec<TestName> = ground.run.failed().map(|(name, _)| name.clone()).collect();
    let mut flaky = BTreeSet::new();
    if times < 2 || red.is_empty() || *ground.run.outcome() != Outcome::Failed {
        return Ok(flaky);
    }
    let suite = suite_of(ground, &red);
    for round in 2..=times {
        call.doing(format!(
            "running `{}` for the {round}. time before anything is changed",
            suite.command()
        ));
        let bench = Bench {
            guard: call.site.guard().map_err(RefusedCall::error)?,
            ..ground.bench_alone()
        };
        let run = suite.run(&bench, call.stop).await;
        drop(bench);
        call.site
            .armed()
            .and_then(|armed| Ok(armed.mark_by_products()?))
            .map_err(RefusedCall::error)?;
        flaky.extend(
            red.iter()
                .filter(|name| matches!(run.state(name), Some(TestState::Passed)))
                .cloned(),
        );
    }
    Ok(flaky)
}

/// Runs the targets again, so that all in all they ran `times` times; each run must say what `first` said.
pub(super) async fn still_green(
    ground: &Ground,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    seen: &SeenChanges,
    targets: &[TestName],
    times: u32,
) -> Result<(), RefusedWork> {
    let suite = suite_of(ground, targets);
    for round in 2..=times {
        work.checking(format!(
            "running `{}` for the {round}. time",
            suite.command()
        ));
        let bench = ground
            .bench(work.site)
            .map_err(|e| gates.refuse_for_site(&e))?;
        let run = suite.run(&bench, work.stop).await;
        drop(bench);
        gates::report_run(work, &run);
        gates::untouched_by_run(ground, work, gates, seen, &run)?;
        if let Some(name) = turned(&run, targets) {
            let why = format!(
                "{name} passed before and does not in run {round} of {times}: flaky, not green"
            );
            return Err(gates.refuse_with("repeat", Cause::Rejected, why, output_excerpt(&run)));
        }
    }
    if times > 1 {
        gates.pass("repeat", format!("passed in each of {times} runs"));
    }
    Ok(())
}

/// What passed before and does not now, in words.
fn turned(run: &TestRun, targets: &[TestName]) -> Option<String> {
    if *run.tests() == Tests::Unknown || targets.is_empty() {
        return (!run.outcome().is_passed()).then(|| format!("`{}`", run.command()));
    }
    let gone = targets
        .iter()
        .find(|name| !matches!(run.state(name), Some(TestState::Passed)));
    gone.map(|name| format!("`{name}`"))
}
