//! Tells the tests that the change of the tests made red from those that failed before it. Only the
//! former are what a model is asked for.

use std::collections::BTreeSet;

use super::baseline::{TestBaseline, refusal_with_output};
use super::failures::format_names;
use super::falsification::CallProject;
use super::gates::named;
use super::green::TestFile;
use super::memory::TddMemory;
use super::repeat::suite_for;
use super::without_work::write_files;
use supervisor_engine::skill::{Preparation, RefusedCall};
use supervisor_prove::files_at_commit;
use supervisor_verify::{
    Outcome, RunEnvironment, TestName, TestRun, TestState, without_varying_parts,
};

/// The failing tests of the file that fail with the same message without the change of the tests: before the red call that
/// wrote it, or at `HEAD`. Ends the call if that is true of all of them and the file was changed.
pub(super) async fn find(
    baseline: &TestBaseline,
    call: &mut Preparation<'_>,
    test: &TestFile,
    memory: &TddMemory,
) -> Result<BTreeSet<TestName>, RefusedCall> {
    // A test that the caller names is what is asked for.
    if test.only.is_some() || *baseline.run.outcome() != Outcome::Failed {
        return Ok(BTreeSet::new());
    }
    let in_file = test.tests_in(baseline, &baseline.run);
    let failing: Vec<TestName> = baseline
        .run
        .failed()
        .map(|(name, _)| name)
        .filter(|name| in_file.contains(name) && !baseline.flaky.contains(name))
        .cloned()
        .collect();
    let known = memory.baseline_before(
        &baseline.root,
        &baseline.suite.command(),
        &baseline.test_digests,
    );
    let before = match known {
        Some(before) => Some((before.run().clone(), true)),
        None => run_with_committed_tests(baseline, call, test, &failing).await?,
    };
    let Some((before, is_file_changed)) = before else {
        return Ok(BTreeSet::new());
    };
    let old: Vec<TestName> = failing
        .iter()
        .filter(|name| fails_alike(name, &before, &baseline.run))
        .cloned()
        .collect();
    if let Some(first) = old.first()
        && old.len() == failing.len()
    {
        if !is_file_changed {
            return Ok(BTreeSet::new());
        }
        let why = format!(
            "nothing is red in {} by the change of the tests: {} failed in the same way before it; no model was asked. To have \
             that fixed, give one of these tests as `test_path`, or the file as it was committed",
            named(&test.path),
            format_names(&old, first)
        );
        return Err(refusal_with_output(&baseline.run, why));
    }
    if !old.is_empty() {
        call.noted(format!(
            "{} of {} failing tests failed in the same way before the tests were changed",
            old.len(),
            failing.len()
        ));
    }
    Ok(old.into_iter().collect())
}

/// Runs those of the failing tests that are not new with the test files of `HEAD`, and tells whether the tests' own file was
/// changed. `None` if all of them are new, if no test file was changed, or if that is unknown.
async fn run_with_committed_tests(
    baseline: &TestBaseline,
    call: &mut Preparation<'_>,
    test: &TestFile,
    failing: &[TestName],
) -> Result<Option<(TestRun, bool)>, RefusedCall> {
    // In place, the user's own test files would be exchanged.
    if call.site.is_in_place() || failing.is_empty() {
        return Ok(None);
    }
    let launcher = &call.environment.launcher;
    let bench = baseline.bench_without_guard();
    let committed = files_at_commit(launcher, &bench.env, &baseline.root, "HEAD", call.stop).await;
    let Some(mut committed) = committed else {
        return Ok(None);
    };
    committed.retain(|path, _| baseline.belongs_to_tests(path));
    let own_text = committed.get(&test.path);
    // Rows can come from data files, whose change makes a test red as well.
    if committed.is_empty() || matches!(own_text, Some(None)) {
        return Ok(None);
    }
    let is_file_changed = own_text.is_some();
    let own_text =
        own_text.map(|text| String::from_utf8_lossy(text.as_deref().unwrap_or_default()));
    let is_new = |name: &TestName| {
        let title = own_title(name);
        test.source.contains(title) && own_text.as_ref().is_some_and(|text| !text.contains(title))
    };
    let tests: Vec<TestName> = failing
        .iter()
        .filter(|name| !is_new(name))
        .cloned()
        .collect();
    if tests.is_empty() {
        return Ok(None);
    }
    let current = committed
        .keys()
        .map(|path| (path.clone(), std::fs::read(baseline.files.join(path)).ok()))
        .collect::<Vec<_>>();
    let committed: Vec<_> = committed.into_iter().collect();
    let suite = suite_for(baseline, &tests);
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
    Ok(Some((run, is_file_changed)))
}

/// What the source of a test calls it, as far as its name tells: `adds` of `a.test.js > sum > adds` or `demo::sum adds`.
fn own_title(name: &TestName) -> &str {
    let base = name.base();
    let start = [" > ", "::", "#", ".", "/"]
        .iter()
        .filter_map(|separator| Some(base.rfind(separator)? + separator.len()))
        .max()
        .unwrap_or_default();
    let title = &base[start..];
    // A crate or a class comes before the name of a function.
    match title.rsplit_once(' ') {
        Some((_, last)) if last.contains('_') => last,
        _ => title,
    }
}

/// Whether a test fails in both runs with the same message, apart from what varies by itself.
fn fails_alike(name: &TestName, before: &TestRun, now: &TestRun) -> bool {
    let message = |run: &TestRun| match run.state(name) {
        Some(TestState::Failed(message)) => Some(without_varying_parts(message)),
        _ => None,
    };
    message(before).is_some_and(|before| message(now) == Some(before))
}
