//! With `verify.other_build`, runs the targets once more in the production build and flags
//! failures there, to find code that is right only in the test build. Nothing is refused:
//! behaviour may legitimately differ, for example an overflow that panics in debug builds only.

use super::baseline::TestBaseline;
use super::gates::{self, Gates, ObservedChanges};
use super::repeat::suite_for;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_verify::{Flags, TestName, TestState};

pub(super) async fn check(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    targets: &[TestName],
    flags: &mut Flags,
) -> Result<(), RefusedWork> {
    let variables = baseline
        .ecosystem()
        .map_or(&[][..], |language| language.production_env);
    if !baseline.other_build || variables.is_empty() || targets.is_empty() {
        return Ok(());
    }
    let build: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let build = build.join(" ");
    let suite = suite_for(baseline, targets);
    work.checking(format!("running `{build} {}`", suite.command()));
    let run = gates::run_once(baseline, work, gates, observed, &suite, variables).await?;
    let states: Vec<_> = targets
        .iter()
        .filter_map(|name| Some((name, run.state(name)?)))
        .collect();
    let failing = states
        .iter()
        .find(|(_, state)| matches!(state, TestState::Failed(_)));
    let detail = match failing {
        Some((name, _)) => {
            let why = format!("`{name}` fails with `{build}`, though it passes without");
            flags.raise("other_build", name.to_string(), why.clone());
            why
        }
        None if states
            .iter()
            .all(|(_, state)| matches!(state, TestState::Passed))
            && !states.is_empty() =>
        {
            format!("the targets pass with `{build}` too")
        }
        None => format!("nothing was shown with `{build}`: {}", run.sentence()),
    };
    gates.pass("other_build", detail);
    Ok(())
}
