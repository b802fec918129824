//! The user's own checks as a gate of every phase, such as linters and type checkers: what is clean
//! without the work must be clean with it. A check that is not clean with the work runs without it,
//! once for all attempts of a call.

use super::baseline::TestBaseline;
use super::gates::{self, Gates, ObservedChanges, output_excerpt};
use super::without_work::known_run_without_work;
use supervisor_engine::Cause;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_prove::{check_suite, is_clean};
use supervisor_text::words;

/// Refuses work that a check finds fault with, if it does not without the work.
pub(super) async fn ensure_clean(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
) -> Result<(), RefusedWork> {
    let mut told = Vec::new();
    for check in &baseline.checks {
        let suite = match check_suite(&baseline.root, check) {
            Ok(suite) => suite,
            Err(why) => {
                let why = format!("the check `{check}` cannot be run: {why}");
                return Err(gates.refuse("checks", Cause::CannotVerify, why));
            }
        };
        work.checking(format!("running `{check}`"));
        let run = gates::run_once(baseline, work, gates, observed, &suite, &[]).await?;
        if is_clean(&run) {
            told.push(format!("`{check}` is clean"));
            continue;
        }
        let before = known_run_without_work(baseline, work, gates, observed, &suite).await?;
        if is_clean(&before) {
            let said = run.output().lines().find(|line| !line.trim().is_empty());
            let said = words::cut_end(said.unwrap_or("it printed nothing").trim(), 200);
            let why = format!("`{check}` was clean before and is not clean now: {said}");
            return Err(gates.refuse_with("checks", Cause::Rejected, why, output_excerpt(&run)));
        }
        told.push(format!("`{check}` was not clean before either"));
    }
    if !told.is_empty() {
        gates.pass("checks", told.join(", "));
    }
    Ok(())
}
