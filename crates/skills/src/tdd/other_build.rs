//! Right only in the build for tests: with `verify.other_build` the targets run once more in the build that users get,
//! and what fails there is flagged. Nothing is refused for it: an overflow that panics in one build only is honest.

use super::baseline::Ground;
use super::gates::{self, Gates, SeenChanges};
use super::repeat::suite_of;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_verify::{Flags, TestName, TestState};

pub(super) async fn look(
    ground: &Ground,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    seen: &SeenChanges,
    targets: &[TestName],
    flags: &mut Flags,
) -> Result<(), RefusedWork> {
    let variables = ground
        .ecosystem()
        .map_or(&[][..], |language| language.production);
    if !ground.other_build || variables.is_empty() || targets.is_empty() {
        return Ok(());
    }
    let build: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let build = build.join(" ");
    let suite = suite_of(ground, targets);
    work.checking(format!("running `{build} {}`", suite.command()));
    let mut bench = ground
        .bench(work.site)
        .map_err(|e| gates.refuse_for_site(&e))?;
    bench.env.extend(
        variables
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    let run = suite.run(&bench, work.stop).await;
    drop(bench);
    gates::report_run(work, &run);
    gates::untouched_by_run(ground, work, gates, seen, &run)?;
    let states: Vec<_> = targets
        .iter()
        .filter_map(|name| Some((name, run.state(name)?)))
        .collect();
    let failing = states
        .iter()
        .find(|(_, state)| matches!(state, TestState::Failed(_)));
    let said = match failing {
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
    gates.pass("other_build", said);
    Ok(())
}
