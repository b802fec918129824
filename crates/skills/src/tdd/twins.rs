//! Hidden twins: tests that another tier than the worker's writes from the task, run on work that holds. One that fails is
//! a flag for the verifier, never a refusal. They are run in the private view of the call, where the test file is theirs
//! for the time of a run, so that nothing of them is ever left in the project or shown to the worker.
//!
//! A twin counts if it is a sound test: it can be made wrong, it says something of the work, and if it fails, then not for a
//! name that only it knows. One that passes says something if it is red without the work, as every red is; one that fails
//! does if it is red without the work too, and all the more if it passes there. All others are dropped and counted.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::baseline::Ground;
use super::brief::TddBrief;
use super::failures::first_line;
use super::falsified::{InPlaceStage, for_states};
use super::gates::{self, Gates, SeenChanges, output_excerpt};
use super::green::TestFile;
use super::red::stray_name;
use super::vacuous::{vacuous, vacuous_by_syntax};
use supervisor_engine::Cause;
use supervisor_engine::author::AuthorBrief;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_text::words;
use supervisor_verify::falsify::{FalsifiableTests, FalsificationStage as _};
use supervisor_verify::sealed::{FileRole, role};
use supervisor_verify::{
    BuildBlame, BuildError, Flags, Outcome, TWIN_FLAG, TestName, TestRun, TestState, Tests, blame,
};
use supervisor_workspace::{Edit, Thing};

/// Flags of one answer; further failures are counted in the details.
const MOST_FLAGS: usize = 3;
/// A run with twins may take this many times what the run without took, and this long in any case.
const SLOWER: u32 = 10;
const AT_LEAST: Duration = Duration::from_secs(30);

/// What was written for an earlier answer of the same call: by whom, and the file.
#[derive(Debug, Default)]
pub(super) struct KeptTwins(Mutex<Option<(String, String)>>);

/// What the twins came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct TwinTally {
    passed: usize,
    /// With what each said.
    failed: Vec<(TestName, String)>,
    dropped: BTreeMap<&'static str, usize>,
}

/// A file as it is in one of two states. `None`: not there.
type FileState = (PathBuf, Option<Vec<u8>>);

/// Has twins written and run, where they are wanted. Gives the part of the details that tells of them.
#[expect(
    clippy::too_many_arguments,
    reason = "the same that every gate works with, and the flags"
)]
pub(super) async fn look(
    ground: &Ground,
    brief: &TddBrief,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    seen: &SeenChanges,
    test: &TestFile,
    plain: &TestRun,
    kept: &KeptTwins,
    flags: &mut Flags,
) -> Result<Value, RefusedWork> {
    let Some(author) = work.author else {
        return Ok(Value::Null);
    };
    let asked = author.count();
    let mut none = |why: String| {
        gates.pass("twins", format!("none: {why}"));
        Ok(json!({"asked": asked, "why": why}))
    };
    if let Some(why) = impossible(ground, work, test, plain) {
        return none(why);
    }
    let Some(model) = author.model() else {
        return none(String::from(
            "the way through the chain has no tier but the worker's",
        ));
    };
    let text = match kept.written_by(&model) {
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
                Ok(text) => kept.keep(&model, text),
                Err(why) => return none(format!("`{model}` gave none: {why}")),
            }
        }
    };
    if let Some(line) = vain_line(ground, &test.path, &text) {
        return none(format!(
            "`{model}` wrote `{}`, which fails whatever the code does",
            line.trim()
        ));
    }
    work.checking("running further tests, which the worker has not seen");
    let (with, without) = run_both(ground, work, gates, seen, test, plain, &text).await?;
    let twins = TestFile {
        path: test.path.clone(),
        only: None,
        source: text,
    };
    let tally = tally(ground, &test.source, &twins, &with, &without);
    for (name, said) in tally.failed.iter().take(MOST_FLAGS) {
        flags.raise(
            TWIN_FLAG,
            name.to_string(),
            format!("a further test of the task fails{}", first_line(said)),
        );
    }
    if !tally.failed.is_empty() {
        author.show_verifier(format!(
            "{}\n\nWhat they said:\n\n{}",
            twins.source,
            output_excerpt(&with)
        ));
    }
    let told = tally.tell(&model);
    gates.pass("twins", told);
    Ok(tally.details(asked, &model))
}

/// Why no twin could be run here, whichever tier writes it.
fn impossible(
    ground: &Ground,
    work: &SubmittedWork<'_>,
    test: &TestFile,
    plain: &TestRun,
) -> Option<String> {
    let why = if work.site.is_in_place() {
        "they are run in a private view alone, and this call works in place"
    } else if role(ground.ecosystem(), &test.path) == FileRole::Source {
        "the tests stand in a file with code, which cannot be exchanged"
    } else if *plain.tests() == Tests::Unknown {
        "the command does not name its tests"
    } else {
        return None;
    };
    Some(why.to_owned())
}

fn vain_line<'a>(ground: &Ground, path: &Path, text: &'a str) -> Option<&'a str> {
    let lines: Vec<&str> = text.lines().collect();
    let all = (1..=lines.len()).collect();
    vacuous(ground.ecosystem(), &lines)
        .or_else(|| vacuous_by_syntax(ground.ecosystem(), path, text, &all))
}

/// The twins with the work and without it. Afterwards every file is as it was.
async fn run_both(
    ground: &Ground,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    seen: &SeenChanges,
    test: &TestFile,
    plain: &TestRun,
    text: &str,
) -> Result<(TestRun, TestRun), RefusedWork> {
    let (done, undone) =
        states(work, seen).map_err(|why| gates.refuse("twins", Cause::CannotVerify, why))?;
    let mut stage = InPlaceStage::new(ground, work, gates, &test.path, for_states(&ground.suite))?;
    stage.bench.limit = stage.bench.limit.min((plain.took() * SLOWER).max(AT_LEAST));
    let runs = async {
        let with = stage.run(text.to_owned()).await?;
        put(&mut stage, &undone)?;
        let without = stage.run(text.to_owned()).await?;
        Ok::<_, String>((with, without))
    };
    let runs = runs.await;
    let back = put(&mut stage, &done).and_then(|()| stage.write(&test.source));
    drop(stage);
    // The attempt is refused where a file could not be put back, so that everything is brought back from the snapshot.
    let runs = back
        .and(runs)
        .map_err(|why| gates.refuse("twins", Cause::CannotVerify, why))?;
    gates::untouched_by_run(ground, work, gates, seen, &runs.0)?;
    Ok(runs)
}

/// The files that the worker changed, as they are now and as they were.
fn states(
    work: &mut SubmittedWork<'_>,
    seen: &SeenChanges,
) -> Result<(Vec<FileState>, Vec<FileState>), String> {
    let root = work.site.files_root();
    let armed = work.site.armed().map_err(|error| error.to_string())?;
    let paths = || {
        seen.changes
            .iter()
            .filter(|c| c.thing == Thing::File)
            .map(|c| c.path.clone())
    };
    let done = paths()
        .map(|path| (path.clone(), fs::read(root.join(&path)).ok()))
        .collect();
    let undone = paths()
        .map(|path| (path.clone(), armed.original(&path)))
        .collect();
    Ok((done, undone))
}

fn put(stage: &mut InPlaceStage<'_, '_>, files: &[FileState]) -> Result<(), String> {
    let root = stage.work.site.files_root();
    let edit = |(path, wanted): &FileState| {
        let name = path.to_str()?.to_owned();
        let is_there = root.join(path).symlink_metadata().is_ok();
        match (is_there, wanted.clone()) {
            (true, Some(contents)) => Some(Edit::Replace {
                path: name,
                contents,
            }),
            (false, Some(contents)) => Some(Edit::Create {
                path: name,
                contents,
            }),
            (true, None) => Some(Edit::Delete { path: name }),
            (false, None) => None,
        }
    };
    let edits: Vec<Edit> = files.iter().filter_map(edit).collect();
    stage
        .work
        .site
        .apply(&edits, &|_| Ok(()))
        .map(drop)
        .map_err(|error| error.to_string())
}

/// What each twin did with the work, if it is a sound one.
fn tally(
    ground: &Ground,
    known: &str,
    twins: &TestFile,
    with: &TestRun,
    without: &TestRun,
) -> TwinTally {
    let mut tally = TwinTally::default();
    let path = ground.as_run(&twins.path);
    let names = twins.named_in(ground, with);
    let builds_later = match without.outcome() {
        Outcome::DidNotBuild { errors } => {
            Some(blame(errors, &path, &twins.source) == BuildBlame::MissingNames)
        }
        _ => None,
    };
    if names.is_empty() {
        // Work that hangs where the known tests do not, though the same file ends without it.
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
        let is_red = match (builds_later, without.state(&name)) {
            (Some(missing), _) => missing,
            (None, Some(TestState::Failed(_))) => true,
            (None, Some(_)) => false,
            (None, None) => *without.outcome() != Outcome::Passed,
        };
        let passes_without = without.state(&name) == Some(&TestState::Passed);
        let found = FalsifiableTests::find(&path, &twins.source, std::slice::from_ref(&name));
        match with.state(&name) {
            _ if !found.is_some_and(|tests| tests.has_all()) => {
                tally.drop_one("cannot be made wrong")
            }
            Some(TestState::Passed) if is_red => tally.passed += 1,
            Some(TestState::Passed) => tally.drop_one("not red without the work"),
            Some(TestState::Failed(_)) if !is_red && !passes_without => {
                tally.drop_one("does not build by itself")
            }
            Some(TestState::Failed(said)) if is_stray(ground, known, &twins.source, said) => {
                tally.drop_one("says a name that does not exist");
            }
            Some(TestState::Failed(said)) => tally.failed.push((name.clone(), said.clone())),
            _ => tally.drop_one("skipped"),
        }
    }
    tally
}

/// Does a twin fail for a name that is nowhere? The names in the known tests exist, now that those pass.
fn is_stray(ground: &Ground, known: &str, twins: &str, said: &str) -> bool {
    let has_word = |text: &str, name: &str| {
        text.split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(|word| word == name)
    };
    let is_invented = |name: &String| {
        let last = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
        has_word(twins, last) && !has_word(known, last)
    };
    stray_name(ground.ecosystem(), twins, said).is_some()
        || BuildError::new(said).missing.iter().any(is_invented)
}

impl TwinTally {
    fn drop_one(&mut self, why: &'static str) {
        *self.dropped.entry(why).or_default() += 1;
    }

    fn written(&self) -> usize {
        self.passed + self.failed.len() + self.dropped.values().sum::<usize>()
    }

    /// `3 further tests by `top`: 1 passes, 1 fails, 1 was dropped (not red without the work)`
    fn tell(&self, model: &str) -> String {
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

    fn details(&self, asked: u32, model: &str) -> Value {
        json!({
            "asked": asked,
            "author": model,
            "written": self.written(),
            "passed": self.passed,
            "failed": self.failed.len(),
            "dropped": self.dropped,
        })
    }
}

impl KeptTwins {
    fn written_by(&self, author: &str) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref()
            .filter(|(model, _)| model == author)
            .map(|(_, text)| text.clone())
    }

    fn keep(&self, author: &str, text: String) -> String {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((author.to_owned(), text.clone()));
        text
    }
}
