//! Red: exactly one test more, and the suite fails by that test alone. Whatever else makes a run fail is not red, and
//! each way of not being red has its own sentence.

mod old_code;
mod stray;

pub(super) use stray::name as stray_name;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use self::old_code::{declared, may_go, same_code};
use super::additions;
use super::baseline::{Ground, refused};
use super::failures::{failures, list, with_message};
use super::falsified;
use super::gates::{self, Gates, SeenChanges, Text, named, output_excerpt};
use super::memory::{Pending, digests};
use super::scope;
use super::vacuous::{vacuous, vacuous_by_syntax};
use supervisor_engine::skill::RefusedCall;
use supervisor_engine::work::{
    AcceptedWork, Exhibit, KeepPolicy, RefusalReach, RefusedWork, SubmittedWork, Verification,
};
use supervisor_engine::{Cause, Status};
use supervisor_languages::Language;
use supervisor_text::words;
use supervisor_verify::sealed::{FileRole, role};
use supervisor_verify::{
    Baseline, BuildBlame, Outcome, Proof, Refusal, TestName, TestRun, Tests, blame, compare,
    counted_as_written, rust_regions,
};
use supervisor_workspace::ChangeKind;

/// A project to which a failing test can be added.
pub(super) struct Red {
    before: Baseline,
    next: Value,
    /// What the next phase will want to know, if this red stands.
    pending: Arc<Pending>,
}

impl Red {
    pub(super) fn of(
        ground: &Ground,
        next: Value,
        pending: Arc<Pending>,
    ) -> Result<Self, RefusedCall> {
        let run = &ground.run;
        // By its exit code alone a failure can be told only from a pass.
        if *run.tests() == Tests::Unknown && *run.outcome() == Outcome::Failed {
            let why = format!(
                "`{}` fails already and does not name its tests, so that a new failure cannot be told from an old one; name \
                 the command of a known runner as `test_cmd`, or a `test_report` that it writes",
                words::plain(run.command())
            );
            return Err(refused(run, why));
        }
        // A file that does not load beside others that run is as old a failure as a test that fails.
        let before = Baseline::of(run.clone(), ground.origin)
            .ok()
            .or_else(|| Baseline::of_part(run.clone(), ground.origin));
        before.map(|before| Self { before, next, pending }).ok_or_else(|| {
            refused(
                run,
                format!("{}; it must build before a test is added: fix that, or make it green first", run.sentence()),
            )
        })
    }

    pub(super) async fn judge(
        &self,
        ground: &Ground,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
    ) -> Result<AcceptedWork, RefusedWork> {
        let ecosystem = ground.ecosystem();
        let allowed = |path: &Path| scope::tests_only(ground, path);
        let seen = gates::take(ground, work, gates, &allowed)?;
        let texts = self.scope(ground, work, gates, &seen)?;
        let Some(test) = test_file(ecosystem, &texts) else {
            return Err(gates.refuse(
                "one_test",
                Cause::Rejected,
                "no test was written: no test file was changed",
            ));
        };
        let added = additions::lines(test.was(), test.is());
        let vain = vacuous(ecosystem, &added.text(test.is()))
            .or_else(|| vacuous_by_syntax(ecosystem, &test.path, test.is(), &added.added));
        if let Some(line) = vain {
            let why = format!(
                "`{}` fails whatever the code does; assert what the specification says",
                line.trim()
            );
            return Err(gates.refuse("assertion", Cause::Rejected, why));
        }
        // What is new may fail; what was there before may not, without a second look.
        let is_new = |name: &TestName| self.before.run().state(name).is_none();
        let run = gates::run(ground, work, gates, &seen, Some(&self.before), &is_new).await?;
        let (proof, name) = self.red(ground, gates, test, &run)?;
        self.fails_alone(ground, work, gates, &seen, &name).await?;
        gates.pass("red", run.sentence());
        let certificate = falsified::certify(ground, work, gates, &seen, &test.path, &run).await?;
        self.note(ground, &seen, &texts);
        if let Ok((key, outcome)) = ground.to_remember(work.site, &run) {
            self.pending.put_outcome(key, outcome);
        }
        let file = ground.root.join(&test.path).display().to_string();
        let because = match run.outcome() {
            // What did not load before says nothing of this test.
            Outcome::DidNotBuild { .. } if !self.before.is_as_unbuilt_as(&run) => {
                "does not build yet, because it names what is not written"
            }
            _ => "fails as it should",
        };
        let new = compare(self.before.run(), &run).newly_failing;
        work.site.confirm_by(ground.recheck(&run, new));
        Ok(AcceptedWork {
            verification: Verification::Proven(proof),
            keeps: KeepPolicy::Changes,
            exhibit: Exhibit::Change,
            status: Status::Pass,
            message: format!("red: `{}` {because}", words::plain(&name)),
            file_path: file,
            runner_output: output_excerpt(&run),
            gates: Vec::new(),
            flags: supervisor_verify::Flags::default(),
            details: json!({
                "test_names_added": [name],
                "baseline_failures": failures(self.before.run()),
                "new_failures": compare(self.before.run(), &run).newly_failing,
                "inventory": if run.named().next().is_some() { "known" } else { "unknown" },
                "baseline": ground.origin,
                "runner": ground.suite.runner(),
                "command": run.command(),
                "exit_code": run.exit_code(),
                "lines_added": added.added.len(),
                "certificate": certificate,
            }),
            next: {
                let mut next = self.next.clone();
                next["tool"] = json!("tdd_green");
                next["arguments"]["test_path"] = test.path.to_string_lossy().into();
                next
            },
        })
    }

    /// A test that fails in company and passes alone says nothing about the behaviour it is for.
    async fn fails_alone(
        &self,
        ground: &Ground,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
        seen: &SeenChanges,
        name: &str,
    ) -> Result<(), RefusedWork> {
        let Some(alone) = ground.suite.only(&TestName(name.to_owned())) else {
            return Ok(());
        };
        work.checking(format!("running `{}`", alone.command()));
        let bench = ground
            .bench(work.site)
            .map_err(|e| gates.refuse_for_site(&e))?;
        let run = alone.run(&bench, work.stop).await;
        drop(bench);
        gates::report_run(work, &run);
        gates::untouched_by_run(ground, work, gates, seen, &run)?;
        if *run.outcome() == Outcome::Passed {
            let why = format!(
                "`{}` fails in the suite and passes alone: it depends on other tests, or on chance",
                words::plain(name)
            );
            return Err(gates.refuse_with("red", Cause::Rejected, why, output_excerpt(&run)));
        }
        Ok(())
    }

    /// Tests alone were touched, and old ones only added to.
    fn scope(
        &self,
        ground: &Ground,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
        seen: &SeenChanges,
    ) -> Result<Vec<Text>, RefusedWork> {
        let ecosystem = ground.ecosystem();
        let foul: Vec<String> = seen
            .changes
            .iter()
            .filter(|c| c.thing == supervisor_workspace::Thing::File)
            .filter(|c| {
                c.kind == ChangeKind::Deleted || scope::tests_only(ground, &c.path).is_err()
            })
            .map(|c| named(&c.path))
            .collect();
        if !foul.is_empty() {
            let why = format!(
                "only tests may be added in this phase, but these were changed: {}",
                foul.join(", ")
            );
            return Err(gates.refuse("scope", Cause::Tampered, why));
        }
        let texts = seen
            .texts(work.site)
            .map_err(|e| gates.refuse_for_site(&e))?;
        for text in &texts {
            let is_source = role(ecosystem, &text.path) == FileRole::Source;
            if is_source && rust_regions(text.was()).is_some() && rust_regions(text.is()).is_none()
            {
                let why = format!(
                    "{} can no longer be read as Rust: fix the syntax of the test",
                    named(&text.path)
                );
                return Err(gates.refuse("scope", Cause::Rejected, why));
            }
            if is_source && !same_code(text.was(), text.is()) {
                let why = format!(
                    "{} was changed outside of its tests: the implementation is not written in this phase",
                    named(&text.path)
                );
                return Err(gates.refuse("scope", Cause::Tampered, why));
            }
            let gone = additions::lines(text.was(), text.is()).removed;
            if let Some(line) = gone.iter().find(|line| !may_go(line)) {
                let why = format!(
                    "{} had `{}`, which is gone: old tests may only be added to",
                    named(&text.path),
                    line.trim()
                );
                return Err(gates.refuse("scope", Cause::Tampered, why));
            }
        }
        gates.pass(
            "scope",
            format!("{} changed, tests only", words::count(texts.len(), "file")),
        );
        Ok(texts)
    }

    /// Is this the one failure that was asked for?
    fn red(
        &self,
        ground: &Ground,
        gates: &mut Gates,
        test: &Text,
        run: &TestRun,
    ) -> Result<(Proof, String), RefusedWork> {
        let file = named(&test.path);
        let mut no = |id: &str, why: String| {
            gates.refuse_with(id, Cause::Rejected, why, output_excerpt(run))
        };
        let added = compare(self.before.run(), run).added;
        match run.outcome() {
            Outcome::Passed | Outcome::Failed => {}
            Outcome::DidNotBuild { .. } if self.before.is_as_unbuilt_as(run) => {}
            Outcome::DidNotBuild { .. } => return self.unbuilt(ground, gates, test, run),
            Outcome::NoTests => {
                return Err(no(
                    "red",
                    format!("{}: the runner does not see {file}", run.sentence()),
                ));
            }
            Outcome::TimedOut { .. } => {
                return Err(no(
                    "red",
                    format!("{}: a test that does not end is not red", run.sentence()),
                ));
            }
            Outcome::CouldNotRun { .. }
            | Outcome::Unclear { .. }
            | Outcome::Killed { .. }
            | Outcome::Cancelled => {
                return Err(no("red", format!("not red: {}", run.sentence())));
            }
        }
        if *run.tests() == Tests::Unknown {
            return self.unnamed(ground, gates, test, run);
        }
        let in_source = |source: &str| declared(ground.ecosystem(), &test.path, source);
        let new: Vec<String> = in_source(test.is())
            .difference(&in_source(test.was()))
            .cloned()
            .collect();
        let written = if let [one] = new.as_slice() {
            Some(one.as_str())
        } else {
            None
        };
        let outermost = counted_as_written(&added, written);
        match outermost.as_slice() {
            [] if run.failed().next().is_some() => {
                return Err(no(
                    "one_test",
                    format!("only old tests fail; the runner found no new test in {file}"),
                ));
            }
            [] => {
                return Err(no(
                    "one_test",
                    format!("the runner found no new test in {file}"),
                ));
            }
            [_] => {}
            many => {
                let names: Vec<String> = many.iter().take(5).map(|n| format!("`{n}`")).collect();
                let why = format!(
                    "{} tests were added where one is asked for: {}",
                    many.len(),
                    names.join(", ")
                );
                return Err(no("one_test", why));
            }
        }
        let said = run
            .failed()
            .find(|(name, _)| {
                outermost
                    .first()
                    .is_some_and(|one| one.base() == name.base())
            })
            .map(|(_, said)| said);
        if let Some(name) = said.and_then(|said| stray::name(ground.ecosystem(), test.is(), said)) {
            let why = format!(
                "the test says `{name}`, which it neither defines nor imports: no code could make it pass"
            );
            return Err(no("red", why));
        }
        match Proof::of_red(&self.before, run, written) {
            Ok((proof, name)) => {
                gates.pass("one_test", format!("`{name}` is the only new test"));
                Ok((proof, name.0))
            }
            Err(Refusal::PassesAtOnce) if run.skipped().any(|name| outermost.contains(name)) => {
                let name = outermost
                    .first()
                    .map(|n| format!("`{n}`"))
                    .unwrap_or_default();
                Err(no(
                    "red",
                    format!(
                        "{name} is skipped: a test that does not run is not red; let it run and fail"
                    ),
                ))
            }
            Err(Refusal::PassesAtOnce) => {
                let name = outermost
                    .first()
                    .map(|n| format!("`{n}`"))
                    .unwrap_or_default();
                let old: Vec<TestName> = run.failed().map(|(name, _)| name.clone()).collect();
                let old = old
                    .first()
                    .map(|first| format!("only what failed before fails: {}; ", list(&old, first)));
                let why = format!(
                    "{}{name} passes at once: the behaviour is there already, or the test does not test it; it was taken back",
                    old.unwrap_or_default()
                );
                Err(RefusedWork {
                    reach: RefusalReach::Call,
                    ..no("red", why)
                })
            }
            Err(refusal) => Err(no("red", with_message(&refusal, run))),
        }
    }

    /// By exit code and output alone: it passed before, it fails now, and one test was written.
    fn unnamed(
        &self,
        ground: &Ground,
        gates: &mut Gates,
        test: &Text,
        run: &TestRun,
    ) -> Result<(Proof, String), RefusedWork> {
        let declared = |source: &str| declared(ground.ecosystem(), &test.path, source);
        let new: Vec<String> = declared(test.is())
            .difference(&declared(test.was()))
            .cloned()
            .collect();
        let proof = Proof::of_unnamed_red(&self.before, run).map_err(|refusal| {
            let reach = if refusal == Refusal::PassesAtOnce {
                RefusalReach::Call
            } else {
                RefusalReach::Answer
            };
            let why = format!("{refusal} (the command names no tests); it was taken back");
            RefusedWork {
                reach,
                ..gates.refuse_with("red", Cause::Rejected, why, output_excerpt(run))
            }
        })?;
        if new.len() > 1 {
            let why = format!(
                "{} tests were added where one is asked for: {}",
                new.len(),
                new.join(", ")
            );
            return Err(gates.refuse_with("one_test", Cause::Rejected, why, output_excerpt(run)));
        }
        gates.pass("one_test", "not counted: the command names no tests");
        Ok((
            proof,
            new.into_iter()
                .next()
                .unwrap_or_else(|| test.path.display().to_string()),
        ))
    }

    /// A test may name what is not written yet; nothing else that fails to build is red.
    fn unbuilt(
        &self,
        ground: &Ground,
        gates: &mut Gates,
        test: &Text,
        run: &TestRun,
    ) -> Result<(Proof, String), RefusedWork> {
        let errors = &self.before.new_errors(run);
        let ecosystem = ground.ecosystem();
        let path = ground.as_run(&test.path);
        let compiled = ecosystem.is_some_and(|language| language.compiled);
        let first = errors.first().map(ToString::to_string).unwrap_or_default();
        let mut no = |id: &str, why: String| {
            gates.refuse_with(id, Cause::Rejected, why, output_excerpt(run))
        };
        match blame(errors, &path, test.is()) {
            BuildBlame::MissingNames if compiled => {}
            // A new file that alone cannot be loaded takes no other test along.
            BuildBlame::MissingNames
                if test.before.is_none() && nothing_else_lost(self.before.run(), run) => {}
            BuildBlame::MissingNames => {
                let why = format!(
                    "the test file does not load: {first}; the tests that stand there are lost with it. Import what is \
                     missing inside the test, or write the test in a file of its own"
                );
                return Err(no("red", why));
            }
            BuildBlame::InFile => {
                return Err(no(
                    "red",
                    format!("the test itself does not build: {first}"),
                ));
            }
            BuildBlame::Elsewhere => {
                return Err(no("red", format!("the project no longer builds: {first}")));
            }
        }
        let (was, is) = (
            declared(ecosystem, &test.path, test.was()),
            declared(ecosystem, &test.path, test.is()),
        );
        let new: Vec<&String> = is.difference(&was).collect();
        let [name] = new.as_slice() else {
            let why = match new.len() {
                0 => format!("no new test was found in {}", named(&test.path)),
                n => format!("{n} tests were added where one is asked for"),
            };
            return Err(no("one_test", why));
        };
        let proof = Proof::of_unwritten(&self.before, run, &path, test.is())
            .map_err(|refusal| no("red", refusal.to_string()))?;
        gates.pass("one_test", format!("`{name}` is the only new test"));
        Ok((proof, (*name).clone()))
    }

    /// The digests of all tests as they will be when this red is accepted.
    fn note(&self, ground: &Ground, seen: &SeenChanges, texts: &[Text]) {
        let mut tests = ground.tests.clone();
        let hashes: Vec<(PathBuf, [u8; 32])> = texts
            .iter()
            .filter_map(|t| {
                Some((
                    t.path.clone(),
                    *blake3::hash(t.after.as_ref()?.as_bytes()).as_bytes(),
                ))
            })
            .collect();
        tests.extend(digests(
            ground.ecosystem(),
            hashes.iter().map(|(path, hash)| (path.as_path(), *hash)),
        ));
        if seen.others.is_empty() {
            self.pending.put(
                &ground.root,
                &ground.suite.command(),
                self.before.clone(),
                tests,
            );
        }
    }
}

/// The file with the new test: the one test file, or the one with the most new lines.
fn test_file<'a>(ecosystem: Option<&'static Language>, texts: &'a [Text]) -> Option<&'a Text> {
    let holds = |t: &&Text| {
        role(ecosystem, &t.path) == FileRole::Test || role(ecosystem, &t.path) == FileRole::Source
    };
    texts
        .iter()
        .filter(holds)
        .max_by_key(|t| additions::lines(t.was(), t.is()).added.len())
}

/// The tests that ran before still do what they did; where none could be run at all, nothing is known of them.
fn nothing_else_lost(before: &TestRun, after: &TestRun) -> bool {
    after.named().next().is_none() || compare(before, after).nothing_lost()
}
