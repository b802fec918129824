//! The red phase: exactly one test is added, and the suite fails because of that test alone. All
//! other failures are refused with a reason.

mod existing_code;
mod unbound_name;

pub(super) use unbound_name::unknown_name;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use self::existing_code::{declared_tests, has_same_code, is_removable};
use super::additions;
use super::baseline::{TestBaseline, refusal_with_output};
use super::checks;
use super::failures::{failure_text, failures, format_names, with_message};
use super::falsification;
use super::gates::{self, ChangedText, Gates, ObservedChanges, named, output_excerpt};
use super::memory::{PendingMemory, select_test_digests};
use super::scope;
use supervisor_engine::skill::RefusedCall;
use supervisor_engine::work::{
    AcceptedWork, KeepPolicy, RefusalScope, RefusedWork, SubmittedWork, Verification,
    VerifierMaterial,
};
use supervisor_engine::{Cause, Status};
use supervisor_text::words;
use supervisor_verify::protected::FileRole;
use supervisor_verify::vacuous::{find_vacuous_by_syntax, find_vacuous_line};
use supervisor_verify::{
    Baseline, BuildBlame, Outcome, Proof, ProofError, TestName, TestRun, Tests, blame, compare,
    distinct_written_tests, rust_regions,
};
use supervisor_workspace::ChangeKind;

/// A project to which a failing test can be added.
#[derive(Clone)]
pub(super) struct Red {
    before: Baseline,
    /// The file that the caller named for the test; empty if none.
    wanted: PathBuf,
    next_call: Value,
    /// Remembered for the next phase if this one is accepted.
    pending: Arc<PendingMemory>,
}

impl Red {
    pub(super) fn new(
        baseline: &TestBaseline,
        wanted: PathBuf,
        next_call: Value,
        pending: Arc<PendingMemory>,
    ) -> Result<Self, RefusedCall> {
        let run = &baseline.run;
        // With only an exit code, a new failure cannot be distinguished from an old one.
        if *run.tests() == Tests::Unknown && *run.outcome() == Outcome::Failed {
            let why = format!(
                "`{}` fails already and does not name its tests, so that a new failure cannot be told from an old one; name \
                 the command of a known runner as `test_cmd`, or a `test_report` that it writes",
                words::plain(run.command())
            );
            return Err(refusal_with_output(run, why));
        }
        // A file that does not load while others run counts as an old failure, like a failing
        // test.
        let before = Baseline::of(run.clone(), baseline.origin)
            .ok()
            .or_else(|| Baseline::of_partial_run(run.clone(), baseline.origin));
        before.map(|before| Self { before, wanted, next_call, pending }).ok_or_else(|| {
            refusal_with_output(
                run,
                format!("{}; it must build before a test is added: fix that, or make it green first", run.sentence()),
            )
        })
    }

    pub(super) async fn judge(
        &self,
        baseline: &TestBaseline,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
    ) -> Result<AcceptedWork, RefusedWork> {
        let ecosystem = baseline.ecosystem();
        let check_editable = |path: &Path| scope::ensure_test_file(baseline, path);
        let observed = gates::apply_or_collect_changes(baseline, work, gates, &check_editable)?;
        let texts = self.check_scope(baseline, work, gates, &observed)?;
        let Some(test) = test_file(baseline, &texts) else {
            return Err(gates.refuse(
                "one_test",
                Cause::Rejected,
                "no test was written: no test file was changed",
            ));
        };
        let added = additions::changed_lines(test.old_text(), test.new_text());
        let vacuous_line = find_vacuous_line(ecosystem, &added.added_text(test.new_text()))
            .or_else(|| {
                find_vacuous_by_syntax(ecosystem, &test.path, test.new_text(), &added.added)
            });
        if let Some(line) = vacuous_line {
            let why = format!(
                "`{}` fails whatever the code does; assert what the specification says",
                line.trim()
            );
            return Err(gates.refuse("assertion", Cause::Rejected, why));
        }
        // New tests may fail. Old tests that fail are run again first.
        let is_new = |name: &TestName| self.before.run().state(name).is_none();
        let run = gates::run_suite(
            baseline,
            work,
            gates,
            &observed,
            Some(&self.before),
            &is_new,
        )
        .await?;
        let this = Self {
            before: self.before.with_stable_names(&baseline.suite),
            ..self.clone()
        };
        let (proof, name) = this.check_red(baseline, gates, test, &run)?;
        this.check_fails_alone(baseline, work, gates, &observed, &name)
            .await?;
        gates.pass("red", run.sentence());
        let certificate =
            falsification::certify(baseline, work, gates, &observed, &test.path, &run).await?;
        checks::ensure_clean(baseline, work, gates, &observed).await?;
        this.remember_inventory(baseline, &observed, &texts);
        if let Ok((key, outcome)) = baseline.outcome_to_remember(work.site, &run) {
            this.pending.set_outcome(key, outcome);
        }
        let file = baseline.root.join(&test.path).display().to_string();
        let because = match run.outcome() {
            // Files that did not load before are unrelated to this test.
            Outcome::DidNotBuild { .. } if !this.before.fails_to_build_as_before(&run) => {
                "does not build yet, because it names what is not written"
            }
            _ => "fails as it should",
        };
        let is_elsewhere = !this.wanted.as_os_str().is_empty() && this.wanted != test.path;
        let elsewhere = if is_elsewhere {
            format!(
                "; it is in {}, not in {}",
                named(&test.path),
                named(&this.wanted)
            )
        } else {
            String::new()
        };
        let new = compare(this.before.run(), &run).newly_failing;
        work.site.set_recheck(baseline.recheck(&run, new));
        Ok(AcceptedWork {
            verification: Verification::Proven(proof),
            keeps: KeepPolicy::Changes,
            exhibit: VerifierMaterial::Change,
            status: Status::Pass,
            message: format!("red: `{}` {because}{elsewhere}", words::plain(&name)),
            file_path: file,
            runner_output: output_excerpt(&run),
            gates: Vec::new(),
            flags: supervisor_verify::Flags::default(),
            details: json!({
                "test_names_added": [name],
                "failure": failure_text(&run, &name),
                "baseline_failures": failures(this.before.run()),
                "new_failures": compare(this.before.run(), &run).newly_failing,
                "inventory": if run.named().next().is_some() { "known" } else { "unknown" },
                "baseline": baseline.origin,
                "runs": baseline.suite.run_counts(),
                "runner": baseline.suite.runner(),
                "command": run.command(),
                "exit_code": run.exit_code(),
                "lines_added": added.added.len(),
                "certificate": certificate,
            }),
            next: {
                let mut next_call = this.next_call.clone();
                next_call["tool"] = json!("tdd_green");
                next_call["arguments"]["test_path"] = test.path.to_string_lossy().into();
                next_call
            },
        })
    }

    /// Refuses a test that fails in the suite but passes alone, because its failure says nothing
    /// about the behaviour.
    async fn check_fails_alone(
        &self,
        baseline: &TestBaseline,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
        observed: &ObservedChanges,
        name: &str,
    ) -> Result<(), RefusedWork> {
        let Some(alone) = baseline.suite.only(&TestName(name.to_owned())) else {
            return Ok(());
        };
        work.checking(format!("running `{}`", alone.command()));
        let run = gates::run_once(baseline, work, gates, observed, &alone, &[]).await?;
        if *run.outcome() == Outcome::Passed {
            let why = format!(
                "`{}` fails in the suite and passes alone: it depends on other tests, or on chance",
                words::plain(name)
            );
            return Err(gates.refuse_with("red", Cause::Rejected, why, output_excerpt(&run)));
        }
        Ok(())
    }

    /// Ensures that only tests were changed, and that existing tests were only added to.
    fn check_scope(
        &self,
        baseline: &TestBaseline,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
        observed: &ObservedChanges,
    ) -> Result<Vec<ChangedText>, RefusedWork> {
        let forbidden: Vec<String> = observed
            .changes
            .iter()
            .filter(|c| c.entry_type == supervisor_workspace::EntryType::File)
            .filter(|c| {
                c.kind == ChangeKind::Deleted || scope::ensure_test_file(baseline, &c.path).is_err()
            })
            .map(|c| named(&c.path))
            .collect();
        if !forbidden.is_empty() {
            let why = format!(
                "only tests may be added in this phase, but these were changed: {}",
                forbidden.join(", ")
            );
            return Err(gates.refuse("scope", Cause::Tampered, why));
        }
        let texts = gates.site(observed.read_texts(work.site))?;
        for text in &texts {
            let is_source = baseline.role(&text.path) == FileRole::Source;
            if is_source
                && rust_regions(text.old_text()).is_some()
                && rust_regions(text.new_text()).is_none()
            {
                let why = format!(
                    "{} can no longer be read as Rust: fix the syntax of the test",
                    named(&text.path)
                );
                return Err(gates.refuse("scope", Cause::Rejected, why));
            }
            if is_source && !has_same_code(text.old_text(), text.new_text()) {
                let why = format!(
                    "{} was changed outside of its tests: the implementation is not written in this phase",
                    named(&text.path)
                );
                return Err(gates.refuse("scope", Cause::Tampered, why));
            }
            let removed = additions::changed_lines(text.old_text(), text.new_text()).removed;
            if let Some(line) = removed.iter().find(|line| !is_removable(line)) {
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

    /// Ensures that the run fails exactly as requested; returns the proof and the name of the new
    /// test.
    fn check_red(
        &self,
        baseline: &TestBaseline,
        gates: &mut Gates,
        test: &ChangedText,
        run: &TestRun,
    ) -> Result<(Proof, String), RefusedWork> {
        let file = named(&test.path);
        let mut refuse = |id: &str, why: String| {
            gates.refuse_with(id, Cause::Rejected, why, output_excerpt(run))
        };
        let added = compare(self.before.run(), run).added;
        match run.outcome() {
            Outcome::Passed | Outcome::Failed => {}
            Outcome::DidNotBuild { .. } if self.before.fails_to_build_as_before(run) => {}
            Outcome::DidNotBuild { .. } => return self.check_unbuilt(baseline, gates, test, run),
            Outcome::NoTests => {
                return Err(refuse(
                    "red",
                    format!("{}: the runner does not see {file}", run.sentence()),
                ));
            }
            Outcome::TimedOut { .. } => {
                return Err(refuse(
                    "red",
                    format!("{}: a test that does not end is not red", run.sentence()),
                ));
            }
            Outcome::CouldNotRun { .. }
            | Outcome::Unclear { .. }
            | Outcome::Killed { .. }
            | Outcome::Cancelled => {
                return Err(refuse("red", format!("not red: {}", run.sentence())));
            }
        }
        if *run.tests() == Tests::Unknown {
            return self.check_unnamed(baseline, gates, test, run);
        }
        let in_source = |source: &str| declared_tests(baseline.ecosystem(), &test.path, source);
        let new: Vec<String> = in_source(test.new_text())
            .difference(&in_source(test.old_text()))
            .cloned()
            .collect();
        let written = if let [one] = new.as_slice() {
            Some(one.as_str())
        } else {
            None
        };
        let outermost = distinct_written_tests(&added, written);
        match outermost.as_slice() {
            [] if run.failed().next().is_some() => {
                return Err(refuse(
                    "one_test",
                    format!("only old tests fail; the runner found no new test in {file}"),
                ));
            }
            [] => {
                return Err(refuse(
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
                return Err(refuse("one_test", why));
            }
        }
        let message = run
            .failed()
            .find(|(name, _)| {
                outermost
                    .first()
                    .is_some_and(|one| one.base() == name.base())
            })
            .map(|(_, message)| message);
        if let Some(name) = message.and_then(|message| {
            unbound_name::unknown_name(baseline.ecosystem(), test.new_text(), message)
        }) {
            let why = format!(
                "the test says `{name}`, which it neither defines nor imports: no code could make it pass"
            );
            return Err(refuse("red", why));
        }
        match Proof::of_red(&self.before, run, written) {
            Ok((proof, name)) => {
                gates.pass("one_test", format!("`{name}` is the only new test"));
                Ok((proof, name.0))
            }
            Err(ProofError::NoNewFailure) if run.skipped().any(|name| outermost.contains(name)) => {
                let name = outermost
                    .first()
                    .map(|n| format!("`{n}`"))
                    .unwrap_or_default();
                Err(refuse(
                    "red",
                    format!(
                        "{name} is skipped: a test that does not run is not red; let it run and fail"
                    ),
                ))
            }
            Err(ProofError::NoNewFailure) => {
                let name = outermost
                    .first()
                    .map(|n| format!("`{n}`"))
                    .unwrap_or_default();
                let old: Vec<TestName> = run.failed().map(|(name, _)| name.clone()).collect();
                let old = old.first().map(|first| {
                    format!(
                        "only what failed before fails: {}; ",
                        format_names(&old, first)
                    )
                });
                let why = format!(
                    "{}{name} passes at once: the behaviour is there already, or the test does not test it; it was taken back",
                    old.unwrap_or_default()
                );
                Err(RefusedWork {
                    reach: RefusalScope::Call,
                    ..refuse("red", why)
                })
            }
            Err(refusal) => Err(refuse("red", with_message(&refusal, run))),
        }
    }

    /// Judges by exit code alone: the command passed before, fails now, and at most one test was
    /// written.
    fn check_unnamed(
        &self,
        baseline: &TestBaseline,
        gates: &mut Gates,
        test: &ChangedText,
        run: &TestRun,
    ) -> Result<(Proof, String), RefusedWork> {
        let in_source = |source: &str| declared_tests(baseline.ecosystem(), &test.path, source);
        let new: Vec<String> = in_source(test.new_text())
            .difference(&in_source(test.old_text()))
            .cloned()
            .collect();
        let proof = Proof::of_unnamed_red(&self.before, run).map_err(|refusal| {
            let reach = if refusal == ProofError::NoNewFailure {
                RefusalScope::Call
            } else {
                RefusalScope::Answer
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

    /// A test may use names that are not written yet. Any other build error is not red.
    fn check_unbuilt(
        &self,
        baseline: &TestBaseline,
        gates: &mut Gates,
        test: &ChangedText,
        run: &TestRun,
    ) -> Result<(Proof, String), RefusedWork> {
        let errors = &self.before.new_errors(run);
        let ecosystem = baseline.ecosystem();
        let path = baseline.suite_relative(&test.path);
        let compiled = ecosystem.is_some_and(|language| language.is_compiled);
        let first = errors.first().map(ToString::to_string).unwrap_or_default();
        let mut refuse = |id: &str, why: String| {
            gates.refuse_with(id, Cause::Rejected, why, output_excerpt(run))
        };
        match blame(errors, &path, test.new_text()) {
            BuildBlame::MissingNames if compiled => {}
            // A new file that cannot be loaded does not affect other tests.
            BuildBlame::MissingNames
                if test.before.is_none() && no_other_test_lost(self.before.run(), run) => {}
            BuildBlame::MissingNames => {
                let why = format!(
                    "the test file does not load: {first}; the tests that stand there are lost with it. Import what is \
                     missing inside the test, or write the test in a file of its own"
                );
                return Err(refuse("red", why));
            }
            BuildBlame::InFile => {
                return Err(refuse(
                    "red",
                    format!("the test itself does not build: {first}"),
                ));
            }
            BuildBlame::Elsewhere => {
                return Err(refuse(
                    "red",
                    format!("the project no longer builds: {first}"),
                ));
            }
        }
        let (old, new) = (
            declared_tests(ecosystem, &test.path, test.old_text()),
            declared_tests(ecosystem, &test.path, test.new_text()),
        );
        let new: Vec<&String> = new.difference(&old).collect();
        let [name] = new.as_slice() else {
            let why = match new.len() {
                0 => format!("no new test was found in {}", named(&test.path)),
                n => format!("{n} tests were added where one is asked for"),
            };
            return Err(refuse("one_test", why));
        };
        let proof = Proof::of_missing_names(&self.before, run, &path, test.new_text())
            .map_err(|refusal| refuse("red", refusal.to_string()))?;
        gates.pass("one_test", format!("`{name}` is the only new test"));
        Ok((proof, (*name).clone()))
    }

    /// Remembers the baseline with the digests of all tests as they will be once this red test is
    /// accepted.
    fn remember_inventory(
        &self,
        baseline: &TestBaseline,
        observed: &ObservedChanges,
        texts: &[ChangedText],
    ) {
        let mut tests = baseline.test_digests.clone();
        let hashes: Vec<(PathBuf, [u8; 32])> = texts
            .iter()
            .filter_map(|t| {
                Some((
                    t.path.clone(),
                    *blake3::hash(t.after.as_ref()?.as_bytes()).as_bytes(),
                ))
            })
            .collect();
        tests.extend(select_test_digests(
            baseline.ecosystem(),
            hashes.iter().map(|(path, hash)| (path.as_path(), *hash)),
        ));
        if observed.concurrent_changes.is_empty() {
            self.pending.set_inventory(
                &baseline.root,
                &baseline.suite.command(),
                self.before.clone(),
                tests,
            );
        }
    }
}

/// The file with the new test: among test and source files, the one with the most new lines.
fn test_file<'a>(baseline: &TestBaseline, texts: &'a [ChangedText]) -> Option<&'a ChangedText> {
    let may_hold_test =
        |t: &&ChangedText| matches!(baseline.role(&t.path), FileRole::Test | FileRole::Source);
    texts.iter().filter(may_hold_test).max_by_key(|t| {
        additions::changed_lines(t.old_text(), t.new_text())
            .added
            .len()
    })
}

/// Whether all tests that ran before have the same result. True if no test could run at all.
fn no_other_test_lost(before: &TestRun, after: &TestRun) -> bool {
    after.named().next().is_none() || compare(before, after).has_no_regression()
}
