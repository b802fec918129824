//! Hidden tests: another tier than the worker's writes tests from the task, and they run on the
//! accepted work. A failing one raises a flag for the verifier and never refuses the work. They
//! run in the call's overlay, where they replace the test file for one run, so they never reach
//! the project or the worker.
//!
//! A hidden test counts only if it is sound: it can be falsified, its result depends on the work,
//! and it does not fail because of a name that only it uses. A passing test depends on the work if
//! it fails without it. A failing test counts if it fails without the work too, and also if it
//! passes there. All others are dropped and counted.

use std::collections::BTreeMap;
use std::path::Path;

use parking_lot::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::baseline::TestBaseline;
use super::brief::TddBrief;
use super::failures::failure_summary;
use super::falsification::CallProject;
use super::gates::{self, Gates, ObservedChanges, output_excerpt};
use super::green::TestFile;
use super::red::unknown_name;
use super::without_work::{WorkFiles, write_files};
use supervisor_engine::Cause;
use supervisor_engine::test_author::AuthorBrief;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_prove::{FalsifiedRuns, with_forced_rebuild};
use supervisor_text::words;
use supervisor_verify::falsify::{FalsifiableTests, FalsifiedFileRunner as _};
use supervisor_verify::protected::FileRole;
use supervisor_verify::vacuous::{find_vacuous_by_syntax, find_vacuous_line};
use supervisor_verify::{
    BuildBlame, BuildError, Flags, HIDDEN_TEST_FLAG, Outcome, TestName, TestRun, TestState, Tests,
    blame,
};

/// Maximum flags per answer; further failures appear only in the details.
const MAX_FLAGS: usize = 3;
/// Time limit as a multiple of the normal run, and its minimum.
const MAX_SLOWDOWN: u32 = 10;
const MIN_LIMIT: Duration = Duration::from_secs(30);

/// Model and file of the tests written for an earlier answer of the same call.
#[derive(Debug, Default)]
pub(super) struct HiddenTests(Mutex<Option<(String, String)>>);

/// Results of the hidden tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct HiddenTestTally {
    passed: usize,
    /// With the failure message.
    failed: Vec<(TestName, String)>,
    dropped: BTreeMap<&'static str, usize>,
}

/// Has hidden tests written and runs them if the settings ask for it. Returns their part of the
/// details.
#[expect(
    clippy::too_many_arguments,
    reason = "the arguments of every gate, plus the brief and the flags"
)]
pub(super) async fn check(
    baseline: &TestBaseline,
    brief: &TddBrief,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    test: &TestFile,
    passing_run: &TestRun,
    cache: &HiddenTests,
    flags: &mut Flags,
) -> Result<Value, RefusedWork> {
    let Some(author) = work.author else {
        return Ok(Value::Null);
    };
    let requested = author.count();
    let mut skip = |why: String| {
        gates.pass("twins", format!("none: {why}"));
        Ok(json!({"asked": requested, "why": why}))
    };
    if let Some(why) = reason_unsupported(baseline, work, test, passing_run) {
        return skip(why);
    }
    let Some(model) = author.model() else {
        return skip(String::from(
            "the way through the chain has no tier but the worker's",
        ));
    };
    let text = match cache.written_by(&model) {
        Some(text) => text,
        None => {
            let path = test.path.to_string_lossy();
            let written = author
                .write(AuthorBrief {
                    task: &brief.task,
                    path: &path,
                    tests: &test.source,
                })
                .await;
            match written {
                Ok(text) => cache.keep(&model, text),
                Err(why) => return skip(format!("`{model}` gave none: {why}")),
            }
        }
    };
    if let Some(line) = vacuous_line(baseline, &test.path, &text) {
        return skip(format!(
            "`{model}` wrote `{}`, which fails whatever the code does",
            line.trim()
        ));
    }
    work.checking("running further tests, which the worker has not seen");
    let (with, without) =
        run_with_and_without_work(baseline, work, gates, observed, test, passing_run, &text)
            .await?;
    let hidden = TestFile {
        path: test.path.clone(),
        only: None,
        source: text,
    };
    let tally = count_results(baseline, &test.source, &hidden, &with, &without);
    for (name, message) in tally.failed.iter().take(MAX_FLAGS) {
        flags.raise(
            HIDDEN_TEST_FLAG,
            name.to_string(),
            format!(
                "a further test of the task fails{}",
                failure_summary(message)
            ),
        );
    }
    if !tally.failed.is_empty() {
        author.set_verifier_text(format!(
            "{}\n\nWhat they said:\n\n{}",
            hidden.source,
            output_excerpt(&with)
        ));
    }
    let summary = tally.summary(&model);
    gates.pass("twins", summary);
    Ok(tally.details(requested, &model))
}

/// Why hidden tests cannot run here, whichever tier writes them.
fn reason_unsupported(
    baseline: &TestBaseline,
    work: &SubmittedWork<'_>,
    test: &TestFile,
    passing_run: &TestRun,
) -> Option<String> {
    let why = if baseline.check.is_some() {
        "a check decides, not tests"
    } else if work.site.is_in_place() {
        "they are run in a private view alone, and this call works in place"
    } else if baseline.role(&test.path) == FileRole::Source {
        "the tests stand in a file with code, which cannot be exchanged"
    } else if *passing_run.tests() == Tests::Unknown {
        "the command does not name its tests"
    } else {
        return None;
    };
    Some(why.to_owned())
}

fn vacuous_line<'a>(baseline: &TestBaseline, path: &Path, text: &'a str) -> Option<&'a str> {
    let lines: Vec<&str> = text.lines().collect();
    let all = (1..=lines.len()).collect();
    find_vacuous_line(baseline.ecosystem(), &lines)
        .or_else(|| find_vacuous_by_syntax(baseline.ecosystem(), path, text, &all))
}

/// Runs the hidden tests with and without the work, then restores all files.
async fn run_with_and_without_work(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    test: &TestFile,
    passing_run: &TestRun,
    text: &str,
) -> Result<(TestRun, TestRun), RefusedWork> {
    let files = WorkFiles::read(work, observed)
        .map_err(|why| gates.refuse("twins", Cause::CannotVerify, why))?;
    let mut environment = gates.site(baseline.bench(work.site))?;
    let limit = (passing_run.took() * MAX_SLOWDOWN).max(MIN_LIMIT);
    environment.limit = environment.limit.min(limit);
    let mut project = CallProject(work.site);
    let mut stage = FalsifiedRuns::new(
        &mut project,
        &baseline.root,
        &test.path,
        with_forced_rebuild(&baseline.suite),
        environment,
        work.stop,
    );
    let runs = async {
        let with = stage.run(text.to_owned().into()).await?;
        write_files(stage.project, &files.original)?;
        let without = stage.run(text.to_owned().into()).await?;
        Ok::<_, String>((with, without))
    };
    let runs = runs.await;
    let restored =
        write_files(stage.project, &files.current).and_then(|()| stage.write(&test.source));
    // Refusing the attempt restores everything from the snapshot if a file could not be put back.
    let runs = restored
        .and(runs)
        .map_err(|why| gates.refuse("twins", Cause::CannotVerify, why))?;
    gates::ensure_unchanged_by_run(baseline, work, gates, observed, &runs.0)?;
    Ok(runs)
}

/// Counts the results of all sound tests.
fn count_results(
    baseline: &TestBaseline,
    known_source: &str,
    hidden: &TestFile,
    with: &TestRun,
    without: &TestRun,
) -> HiddenTestTally {
    let mut tally = HiddenTestTally::default();
    let path = baseline.suite_relative(&hidden.path);
    let names = hidden.tests_in(baseline, with);
    let fails_for_missing_names = match without.outcome() {
        Outcome::DidNotBuild { errors } => {
            Some(blame(errors, &path, &hidden.source) == BuildBlame::MissingNames)
        }
        _ => None,
    };
    if names.is_empty() {
        // The hidden tests hang with the work but finish without it.
        let hangs = matches!(with.outcome(), Outcome::TimedOut { .. })
            && !matches!(without.outcome(), Outcome::TimedOut { .. });
        if hangs {
            tally
                .failed
                .push((TestName(path.display().to_string()), with.sentence()));
        } else {
            tally.drop_one("no test of it was run");
        }
        return tally;
    }
    for name in names {
        let is_red = match (fails_for_missing_names, without.state(&name)) {
            (Some(missing), _) => missing,
            (None, Some(TestState::Failed(_))) => true,
            (None, Some(_)) => false,
            (None, None) => *without.outcome() != Outcome::Passed,
        };
        let passes_without = without.state(&name) == Some(&TestState::Passed);
        let found = FalsifiableTests::find(&path, &hidden.source, std::slice::from_ref(&name));
        match with.state(&name) {
            _ if !found.is_some_and(|tests| tests.has_all()) => {
                tally.drop_one("cannot be made wrong");
            }
            Some(TestState::Passed) if is_red => tally.passed += 1,
            Some(TestState::Passed) => tally.drop_one("not red without the work"),
            Some(TestState::Failed(_)) if !is_red && !passes_without => {
                tally.drop_one("does not build by itself");
            }
            Some(TestState::Failed(message))
                if fails_on_unknown_name(baseline, known_source, &hidden.source, message) =>
            {
                tally.drop_one("says a name that does not exist");
            }
            Some(TestState::Failed(message)) => tally.failed.push((name.clone(), message.clone())),
            _ => tally.drop_one("skipped"),
        }
    }
    tally
}

/// Whether a test fails because of a name that does not exist. Names in the known tests exist,
/// because those tests pass.
fn fails_on_unknown_name(
    baseline: &TestBaseline,
    known_source: &str,
    hidden: &str,
    message: &str,
) -> bool {
    let has_word = |text: &str, name: &str| {
        text.split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(|word| word == name)
    };
    let is_invented = |name: &String| {
        let last = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
        has_word(hidden, last) && !has_word(known_source, last)
    };
    unknown_name(baseline.ecosystem(), hidden, message).is_some()
        || BuildError::new(message).missing.iter().any(is_invented)
}

impl HiddenTestTally {
    fn drop_one(&mut self, why: &'static str) {
        *self.dropped.entry(why).or_default() += 1;
    }

    fn written(&self) -> usize {
        self.passed + self.failed.len() + self.dropped.values().sum::<usize>()
    }

    fn summary(&self, model: &str) -> String {
        let mut parts = vec![
            format!("{} passed", self.passed),
            format!("{} failed", self.failed.len()),
        ];
        parts.extend(
            self.dropped
                .iter()
                .map(|(why, count)| format!("{count} dropped ({why})")),
        );
        format!(
            "{} by `{model}`: {}",
            words::count(self.written(), "further test"),
            parts.join(", ")
        )
    }

    fn details(&self, requested: u32, model: &str) -> Value {
        json!({
            "asked": requested,
            "author": model,
            "written": self.written(),
            "passed": self.passed,
            "failed": self.failed.len(),
            "dropped": self.dropped,
        })
    }
}

impl HiddenTests {
    fn written_by(&self, author: &str) -> Option<String> {
        let cache = self.0.lock();
        cache
            .as_ref()
            .filter(|(model, _)| model == author)
            .map(|(_, text)| text.clone())
    }

    fn keep(&self, author: &str, text: String) -> String {
        *self.0.lock() = Some((author.to_owned(), text.clone()));
        text
    }
}
