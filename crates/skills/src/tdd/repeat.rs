//! Detects flaky tests. With `verify.repeat`, failing tests are run several times before a model
//! is asked, and passing ones several times before they are trusted. A test with changing results
//! is neither red nor green.

use std::collections::BTreeSet;

use super::baseline::TestBaseline;
use super::gates::{self, Gates, ObservedChanges, output_excerpt};
use supervisor_engine::Cause;
use supervisor_engine::skill::{Preparation, RefusedCall};
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_verify::{Outcome, RunEnvironment, Suite, TestName, TestRun, TestState, Tests};

/// Beyond this number, selecting tests saves little and makes the command long.
pub(super) const MAX_SELECTED: usize = 20;

/// A suite with only these tests where the runner can select them, otherwise the whole suite.
pub(super) fn suite_for(baseline: &TestBaseline, names: &[TestName]) -> Suite {
    let selectable = (!names.is_empty() && names.len() <= MAX_SELECTED).then_some(names);
    selectable
        .and_then(|names| baseline.suite.select(names))
        .unwrap_or_else(|| baseline.suite.clone())
}

/// Failures of the first run that pass in a later run of the same files.
pub(super) async fn find_flaky_failures(
    baseline: &TestBaseline,
    call: &mut Preparation<'_>,
    times: u32,
) -> Result<BTreeSet<TestName>, RefusedCall> {
    let failing: Vec<TestName> = baseline
        .run
        .failed()
        .map(|(name, _)| name.clone())
        .collect();
    let mut flaky = BTreeSet::new();
    if times < 2 || failing.is_empty() || *baseline.run.outcome() != Outcome::Failed {
        return Ok(flaky);
    }
    let suite = suite_for(baseline, &failing);
    for round in 2..=times {
        call.doing(format!(
            "running `{}` for the {round}. time before anything is changed",
            suite.command()
        ));
        let bench = RunEnvironment {
            guard: call.site.guard()?,
            ..baseline.bench_without_guard()
        };
        let run = suite.run(&bench.for_repetition(), call.stop).await;
        drop(bench);
        call.site
            .armed()
            .and_then(|armed| Ok(armed.mark_by_products()?))?;
        flaky.extend(
            failing
                .iter()
                .filter(|name| matches!(run.state(name), Some(TestState::Passed)))
                .cloned(),
        );
    }
    Ok(flaky)
}

/// Runs the targets again, for a total of `times` runs. They must pass in each.
pub(super) async fn ensure_still_green(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    targets: &[TestName],
    times: u32,
) -> Result<(), RefusedWork> {
    let suite = suite_for(baseline, targets);
    for round in 2..=times {
        work.checking(format!(
            "running `{}` for the {round}. time",
            suite.command()
        ));
        let run = gates::run_once(baseline, work, gates, observed, &suite, &[]).await?;
        if let Some(name) = no_longer_passing(&run, targets) {
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

/// The first target that no longer passes, or the command if tests have no names.
fn no_longer_passing(run: &TestRun, targets: &[TestName]) -> Option<String> {
    if *run.tests() == Tests::Unknown || targets.is_empty() {
        return (!run.outcome().is_passed()).then(|| format!("`{}`", run.command()));
    }
    let failed = targets
        .iter()
        .find(|name| !matches!(run.state(name), Some(TestState::Passed)));
    failed.map(|name| format!("`{name}`"))
}
