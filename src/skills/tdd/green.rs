//! Green: what is red in one test file passes, and nothing that was true before is lost.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::additions;
use super::baseline::{Ground, refused};
use super::belongs::InFile;
use super::gates::{self, Gates, Seen, Text, named, shown};
use super::memory::Memory;
use super::scope;
use crate::engine::job::{Exhibit, Failed, Held, Keeps, Shown, Work};
use crate::engine::run::Early;
use crate::engine::{Cause, Status};
use crate::verify::{Baseline, Blame, Outcome, Proof, Refusal, TestName, TestRun, Tests, blame};
use crate::words;

/// A red that is worth a model.
pub(super) struct Green {
    test: TestFile,
    /// What is red; empty if it does not build yet, or if the command names no tests.
    targets: Vec<TestName>,
    /// What was true before; `None` if nobody knows.
    before: Option<Baseline>,
    /// The call that usually follows, but for what it is about.
    next: Value,
}

/// The file that holds the tests in question.
#[derive(Debug, Clone)]
pub(super) struct TestFile {
    /// Relative to the root.
    pub(super) path: PathBuf,
    pub(super) only: Option<String>,
    pub(super) source: String,
}

impl TestFile {
    pub(super) fn named_in(&self, ground: &Ground, run: &TestRun) -> Vec<TestName> {
        let path = ground.as_run(&self.path);
        let file =
            InFile { ecosystem: ground.ecosystem(), path: &path, source: &self.source, only: self.only.as_deref() };
        run.named().map(|(name, _)| name).filter(|name| file.has(name)).cloned().collect()
    }
}

impl Green {
    /// Is there a red here that code can mend?
    pub(super) fn of(ground: &Ground, test: TestFile, memory: &Memory, next: Value) -> Result<Self, Early> {
        let run = &ground.run;
        let file = named(&test.path);
        match run.outcome() {
            Outcome::DidNotBuild { errors } => {
                if blame(errors, &ground.as_run(&test.path), &test.source) == Blame::Elsewhere {
                    let why = format!("{}, and not because of {file}; mend that first", run.sentence());
                    return Err(refused(run, why));
                }
                let before = memory.before(&ground.root, &ground.suite.command(), &ground.tests);
                Ok(Self { test, targets: Vec::new(), before, next })
            }
            Outcome::Passed => Err(refused(
                run,
                format!("nothing is red: {}; write a failing test with `tdd_red` first", run.sentence()),
            )),
            Outcome::NoTests => Err(refused(run, format!("nothing is red in {file}: {}", run.sentence()))),
            _ if *run.tests() == Tests::Unknown => {
                let before = Baseline::of(run.clone(), ground.origin).ok();
                Ok(Self { test, targets: Vec::new(), before, next })
            }
            _ => Self::of_failures(ground, test, next),
        }
    }

    fn of_failures(ground: &Ground, test: TestFile, next: Value) -> Result<Self, Early> {
        let run = &ground.run;
        let here = test.named_in(ground, run);
        let (targets, others): (Vec<TestName>, Vec<TestName>) =
            run.failed().map(|(name, _)| name.clone()).partition(|name| here.contains(name));
        let wanted = match &test.only {
            Some(only) => format!("`{}` in {}", words::plain(only), named(&test.path)),
            None => named(&test.path),
        };
        if targets.is_empty() {
            let why = if here.is_empty() {
                format!("nothing is red in {wanted}: no test that ran stands there")
            } else {
                format!("nothing is red in {wanted}: {} there, and none fails", words::count(here.len(), "test"))
            };
            let red = others.first().map(|n| format!("; red elsewhere: {}", list(&others, n))).unwrap_or_default();
            return Err(refused(run, format!("{why}{red}; no model was asked")));
        }
        if let Some(first) = others.first() {
            let why = format!(
                "other tests fail already: {}; mend them first, or name a narrower `test_cmd` that leaves them out{}; \
                 no model was asked",
                list(&others, first),
                narrower(ground, &targets)
            );
            return Err(refused(run, why));
        }
        let before = Baseline::of(run.clone(), ground.origin).ok();
        Ok(Self { test, targets, before, next })
    }

    pub(super) fn target(&self) -> String {
        match self.targets.as_slice() {
            [] => format!("the tests in {}", named(&self.test.path)),
            targets => targets.iter().take(5).map(|t| format!("`{t}`")).collect::<Vec<_>>().join(", "),
        }
    }

    pub(super) async fn judge(&self, ground: &Ground, work: &mut Work<'_>, gates: &mut Gates) -> Result<Held, Failed> {
        let sealed = scope::code_beside(ground, &self.test.path);
        let seen = gates::take(ground, work, gates, &sealed)?;
        if seen.changes.is_empty() {
            return Err(gates.refuse(
                "change",
                Cause::Rejected,
                "nothing was changed, so the test is as red as before",
            ));
        }
        let texts = scope::sealed(ground, work, gates, &seen, &sealed)?;
        self.target_alone(ground, work, gates, &seen).await?;
        let run = gates::run(ground, work, gates, &seen, self.before.as_ref()).await?;
        if let Some(why) = gates::says_nothing(&run) {
            return Err(gates.refuse_with("tests", Cause::Rejected, why, shown(&run)));
        }
        let proof = self.proof(ground, gates, &run)?;
        gates.pass("tests", run.sentence());
        let file = main_file(&texts).map(|p| ground.root.join(p).display().to_string()).unwrap_or_default();
        let pass = if self.targets.len() == 1 { "passes" } else { "pass" };
        let message = format!("green: {} {pass}, {}", self.target(), run.counts());
        Ok(Held {
            shown: Shown::Proven(proof),
            keeps: Keeps::Changes,
            exhibit: Exhibit::Change,
            status: Status::Pass,
            message,
            file_path: file.clone(),
            runner_output: shown(&run),
            gates: Vec::new(),
            details: self.details(ground, &run, &texts),
            next: self.next(&file),
        })
    }

    /// Where one test can be selected, the wrong answer costs one test and not the whole suite.
    async fn target_alone(
        &self,
        ground: &Ground,
        work: &mut Work<'_>,
        gates: &mut Gates,
        seen: &Seen,
    ) -> Result<(), Failed> {
        let [target] = self.targets.as_slice() else { return Ok(()) };
        let Some(alone) = ground.suite.only(target) else { return Ok(()) };
        work.checking(format!("running `{}`", alone.command()));
        let bench = ground.bench(work.site).map_err(|e| gates.broken(&e))?;
        let run = alone.run(&bench, work.stop).await;
        drop(bench);
        gates::untouched_by_run(ground, work, gates, seen, &run)?;
        // Only a plain failure saves the rest; whatever is unclear, the whole suite decides.
        match run.outcome() {
            Outcome::Failed => {
                let said = run.failed().next().map(|(_, m)| first_line(m)).unwrap_or_default();
                let why = format!("`{target}` still fails{said}");
                Err(gates.refuse_with("target", Cause::Rejected, why, shown(&run)))
            }
            Outcome::DidNotBuild { .. } => {
                Err(gates.refuse_with("target", Cause::Rejected, run.sentence(), shown(&run)))
            }
            _ => Ok(()),
        }
    }

    fn proof(&self, ground: &Ground, gates: &mut Gates, run: &TestRun) -> Result<Proof, Failed> {
        let refuse = |gates: &mut Gates, refusal: &Refusal| {
            let id = match refusal {
                Refusal::Vanished(_) | Refusal::Skipped(_) => "inventory",
                Refusal::NotThere(_) | Refusal::StillFails(_) => "target",
                _ => "tests",
            };
            gates.refuse_with(id, Cause::Rejected, with_message(refusal, run), shown(run))
        };
        if *run.tests() != Tests::Unknown {
            let here = if self.targets.is_empty() { self.test.named_in(ground, run) } else { self.targets.clone() };
            if here.is_empty() {
                let why = format!("no test of {} is among those that ran", named(&self.test.path));
                return Err(gates.refuse_with("target", Cause::Rejected, why, shown(run)));
            }
            if let Some(before) = &self.before {
                let proof = Proof::of_green(before, run, &here).map_err(|refusal| refuse(gates, &refusal))?;
                let proof = Proof::of_tests(run).map(|_| proof).map_err(|refusal| refuse(gates, &refusal))?;
                gates.pass("inventory", "no test is gone or newly skipped");
                gates.pass("target", self.target());
                return Ok(proof);
            }
            let proof = Proof::of_tests(run).map_err(|refusal| refuse(gates, &refusal))?;
            if let Some(skipped) = here.iter().find(|name| !run.passed().any(|p| p == *name)) {
                return Err(refuse(gates, &Refusal::StillFails((*skipped).clone())));
            }
            gates.pass(
                "inventory",
                "unknown: the tests did not build before, and this server made no run from before the test was written",
            );
            gates.pass("target", self.target());
            return Ok(proof);
        }
        let proof = Proof::of_tests(run).map_err(|refusal| refuse(gates, &refusal))?;
        gates.pass("inventory", "unknown: the command does not name its tests");
        Ok(proof)
    }

    fn details(&self, ground: &Ground, run: &TestRun, texts: &[Text]) -> Value {
        let counts = |run: &TestRun| match run.tests() {
            Tests::Named(tests) if !tests.is_empty() => json!(tests.len()),
            _ => Value::Null,
        };
        let before = self.before.as_ref().map_or(Value::Null, |b| counts(b.run()));
        let mut details = minimality(ground, texts);
        details["target"] = json!(self.targets);
        details["tests_before"] = before;
        details["tests_after"] = counts(run);
        details["baseline"] = json!(ground.origin);
        details["runner"] = json!(ground.suite.runner());
        details["command"] = json!(run.command());
        details["exit_code"] = json!(run.exit_code());
        if !ground.by_products.is_empty() {
            details["by_products"] = json!(ground.by_products);
        }
        details
    }

    fn next(&self, file: &str) -> Value {
        let mut next = self.next.clone();
        next["tool"] = json!("tdd_refactor");
        next["arguments"]["test_path"] = json!(self.test.path);
        next["arguments"]["impl_path"] = json!(file);
        next
    }
}

/// How small the step was: lines, public items, dependencies.
pub(super) fn minimality(ground: &Ground, texts: &[Text]) -> Value {
    let (mut added, mut removed, mut items) = (0, 0, Vec::new());
    for text in texts {
        let lines = additions::lines(text.was(), text.is());
        added += lines.added.len();
        removed += lines.removed.len();
        let old = additions::public_items(ground.ecosystem(), &text.was().lines().collect::<Vec<_>>());
        let new = additions::public_items(ground.ecosystem(), &lines.text(text.is()));
        items.extend(new.into_iter().filter(|item| !old.contains(item)));
    }
    json!({
        "files_changed": texts.iter().map(|t| &t.path).collect::<Vec<_>>(),
        "lines_added": added,
        "lines_removed": removed,
        "new_public_items": items,
        // Manifests are sealed, so there cannot be one.
        "new_dependencies": [],
    })
}

/// The file with the most new lines.
pub(super) fn main_file(texts: &[Text]) -> Option<&Path> {
    let size = |text: &&Text| additions::lines(text.was(), text.is()).added.len();
    texts.iter().filter(|t| t.after.is_some()).max_by_key(size).map(|t| t.path.as_path())
}

/// The refusal, with what the first of its tests said.
pub(super) fn with_message(refusal: &Refusal, run: &TestRun) -> String {
    let Some((name, message)) = run.failed().next() else { return refusal.to_string() };
    let mut said = refusal.to_string();
    let named = format!("`{name}`");
    if !said.contains(&named) {
        said = format!("{said}: {named}");
    }
    said + &first_line(message)
}

/// `: ` and the line that tells what went wrong, with the two values where they stand on lines of their own.
fn first_line(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|l| !l.is_empty()).peekable();
    // Where a Rust thread panicked is said first, and why only then.
    let is_place = |l: &&str| l.starts_with("thread '") && l.contains(" panicked at ");
    let place = lines.next_if(is_place);
    let Some(first) = lines.next().or(place) else { return String::new() };
    let values = lines.take_while(|l| l.starts_with("left:") || l.starts_with("right:"));
    let said = std::iter::once(first).chain(values).collect::<Vec<_>>().join(", ");
    format!(": {}", words::cut_end(&words::plain(&said), 300))
}

pub(super) fn list(names: &[TestName], first: &TestName) -> String {
    match names.len() {
        1 => format!("`{first}`"),
        n => {
            let shown: Vec<String> = names.iter().take(5).map(|n| format!("`{n}`")).collect();
            let more = if n > 5 { format!(" and {}", words::count(n - 5, "other")) } else { String::new() };
            format!("{}{more}", shown.join(", "))
        }
    }
}

fn narrower(ground: &Ground, targets: &[TestName]) -> String {
    let alone = targets.first().and_then(|target| ground.suite.only(target));
    alone.map(|suite| format!(", such as `{}`", words::plain(&suite.command()))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_by_why_and_not_by_where() {
        let panicked = "\nthread 'nine' (26164) panicked at tests/roman.rs:10:5:\nassertion `left == right` failed\n  \
                        left: \"VIIII\"\n right: \"IX\"\nnote: run with `RUST_BACKTRACE=1`";
        assert_eq!(first_line(panicked), ": assertion `left == right` failed, left: \"VIIII\", right: \"IX\"");
        assert_eq!(first_line("  assert 1 == 2\n +  where 1 = one()"), ": assert 1 == 2");
        assert_eq!(first_line("thread 'a' panicked at src/lib.rs:1:1:"), ": thread 'a' panicked at src/lib.rs:1:1:");
        assert_eq!(first_line("\n"), "");
    }
}
