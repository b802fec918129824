//! Tells the tests that the change of the tests made red from those that failed before it. Only the
//! former are what a model is asked for.

use std::collections::BTreeSet;

use super::baseline::TestBaseline;
use super::falsification::CallProject;
use super::green::TestFile;
use super::memory::TddMemory;
use super::repeat::suite_for;
use super::without_work::write_files;
use supervisor_engine::skill::{Preparation, RefusedCall};
use supervisor_prove::files_at_commit;
use supervisor_verify::{Outcome, RunEnvironment, TestName, TestRun, TestState};

/// The failing tests of the file that fail with the same message without the change of the tests:
/// before the red call that wrote it, or at `HEAD`. Empty if that is true of all of them.
pub(super) async fn find(
    baseline: &TestBaseline,
    call: &mut Preparation<'_>,
    test: &TestFile,
    memory: &TddMemory,
) -> Result<BTreeSet<TestName>, RefusedCall> {
    let in_file = test.tests_in(baseline, &baseline.run);
    let failing: Vec<TestName> = baseline
        .run
        .failed()
        .map(|(name, _)| name)
        .filter(|name| in_file.contains(name))
        .cloned()
        .collect();
    // The only failing test, or one that the caller names, is what is asked for.
    if failing.len() < 2 || test.only.is_some() || *baseline.run.outcome() != Outcome::Failed {
        return Ok(BTreeSet::new());
    }
    let known = memory.baseline_before(
        &baseline.root,
        &baseline.suite.command(),
        &baseline.test_digests,
    );
    let before = match known {
        Some(before) => Some(before.run().clone()),
        None => run_with_committed_tests(baseline, call, &failing).await?,
    };
    let old: BTreeSet<TestName> = before
        .map(|before| {
            let fails_alike = |name: &&TestName| fails_alike(name, &before, &baseline.run);
            failing.iter().filter(fails_alike).cloned().collect()
        })
        .unwrap_or_default();
    if old.len() == failing.len() {
        return Ok(BTreeSet::new());
    }
    if !old.is_empty() {
        call.noted(format!(
            "{} of {} failing tests failed in the same way before the tests were changed",
            old.len(),
            failing.len()
        ));
    }
    Ok(old)
}

/// Runs these tests with the test files of `HEAD`. `None` if nothing of them was changed, or if that
/// is unknown.
async fn run_with_committed_tests(
    baseline: &TestBaseline,
    call: &mut Preparation<'_>,
    tests: &[TestName],
) -> Result<Option<TestRun>, RefusedCall> {
    // In place, the user's own test files would be exchanged.
    if call.site.is_in_place() {
        return Ok(None);
    }
    let launcher = &call.environment.launcher;
    let bench = baseline.bench_without_guard();
    let committed = files_at_commit(launcher, &bench.env, &baseline.root, "HEAD", call.stop).await;
    let Some(mut committed) = committed else {
        return Ok(None);
    };
    committed.retain(|path, _| baseline.belongs_to_tests(path));
    if committed.is_empty() {
        return Ok(None);
    }
    let current = committed
        .keys()
        .map(|path| (path.clone(), std::fs::read(baseline.files.join(path)).ok()))
        .collect::<Vec<_>>();
    let committed: Vec<_> = committed.into_iter().collect();
    let suite = suite_for(baseline, tests);
    call.doing(format!(
        "running `{}` with the tests of `HEAD`, to tell old failures from new ones",
        suite.command()
    ));
    write_files(&mut CallProject(call.site), &committed).map_err(RefusedCall::error)?;
    let bench = RunEnvironment {
        guard: call.site.guard()?,
        ..bench
    };
    let run = suite.run(&bench, call.stop).await;
    drop(bench);
    write_files(&mut CallProject(call.site), &current).map_err(RefusedCall::error)?;
    call.site
        .armed()
        .and_then(|armed| Ok(armed.mark_by_products()?))?;
    Ok(Some(run))
}

/// Whether a test fails in both runs with the same message, apart from numbers.
fn fails_alike(name: &TestName, before: &TestRun, now: &TestRun) -> bool {
    let message = |run: &TestRun| match run.state(name) {
        Some(TestState::Failed(message)) => Some(message.replace(|c: char| c.is_ascii_digit(), "")),
        _ => None,
    };
    message(before).is_some_and(|before| message(now) == Some(before))
}
