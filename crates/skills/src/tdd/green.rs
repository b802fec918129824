//! The green phase: the failing tests of one file pass, and no other test is lost.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::baseline::{TestBaseline, refusal_with_output};
use super::brief::TddBrief;
use super::check;
use super::checks;
use super::failures::{
    failure_summary, failure_text, failures, failures_except, format_names, with_message,
};
use super::falsification;
use super::gates::{
    self, ChangedText, Gates, ObservedChanges, first_paths, named, output_excerpt, path_texts,
};
use super::hidden_tests::{self, HiddenTests};
use super::memory::{PendingMemory, TddMemory};
use super::mutants::{self, AcceptedChange};
use super::other_build;
use super::production_build;
use super::repeat::{self, MAX_SELECTED};
use super::scope;
use super::step_size::{main_file, size_details};
use super::tests_in_file::TestFileMatcher;
use supervisor_engine::skill::RefusedCall;
use supervisor_engine::work::{
    AcceptedWork, FailingTests, KeepPolicy, RefusedWork, Screening, SeenEdits, SubmittedWork,
    Verification, VerifierMaterial,
};
use supervisor_engine::{Cause, Status};
use supervisor_settings::FlagRule;
use supervisor_text::words;
use supervisor_verify::falsify::FalsifiableTests;
use supervisor_verify::{
    Baseline, Outcome, Proof, ProofError, TestName, TestRun, TestState, Tests,
};

/// A failing test that a model can be asked to fix.
#[derive(Clone)]
pub(super) struct Green {
    test: TestFile,
    /// The failing tests; empty if the tests do not build yet or the command lists no tests.
    targets: Vec<TestName>,
    /// The state before; `None` if unknown.
    before: Option<Baseline>,
    /// The suggested next call, without its specific arguments.
    next_call: Value,
    /// Remembered for the next phase if this one is accepted.
    pending: Arc<PendingMemory>,
    hidden_tests: Arc<HiddenTests>,
}

/// The file that holds the tests in question.
#[derive(Debug, Clone)]
pub(super) struct TestFile {
    /// Relative to the root.
    pub(super) path: PathBuf,
    pub(super) only: Option<String>,
    pub(super) source: String,
}

/// Failed tests whose message names a line of this file.
fn failures_located_in(path: &Path, run: &TestRun) -> Vec<TestName> {
    let path = path.to_string_lossy();
    let names_line = |message: &str| {
        message.match_indices(&*path).any(|(at, _)| {
            let before = message[..at].chars().next_back();
            let after = &message[at + path.len()..];
            before.is_none_or(|c| !c.is_alphanumeric())
                && after
                    .strip_prefix([':', '('])
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    run.failed()
        .filter(|(_, message)| names_line(message))
        .map(|(name, _)| name.clone())
        .collect()
}

impl TestFile {
    pub(super) fn tests_in(&self, baseline: &TestBaseline, run: &TestRun) -> Vec<TestName> {
        if let Some(check) = &baseline.check {
            let name = check.test_name();
            return run.state(&name).map(|_| name).into_iter().collect();
        }
        let path = baseline.suite_relative(&self.path);
        let file = TestFileMatcher {
            ecosystem: baseline.ecosystem(),
            path: &path,
            source: &self.source,
            only: self.only.as_deref(),
        };
        run.named()
            .map(|(name, _)| name)
            .filter(|name| file.contains(name))
            .cloned()
            .collect()
    }
}

impl Green {
    /// Fails if there is no failing test here that code can fix.
    pub(super) fn new(
        baseline: &TestBaseline,
        test: TestFile,
        memory: &TddMemory,
        next_call: Value,
        pending: Arc<PendingMemory>,
    ) -> Result<Self, RefusedCall> {
        let run = &baseline.run;
        let file = named(&test.path);
        let without_targets = |test, before| Self {
            test,
            targets: Vec::new(),
            before,
            next_call: next_call.clone(),
            pending: Arc::clone(&pending),
            hidden_tests: Arc::default(),
        };
        match run.outcome() {
            // Tests of this file ran, so the build error is elsewhere.
            Outcome::DidNotBuild { .. } if !test.tests_in(baseline, run).is_empty() => {
                Self::from_failures(baseline, test, next_call, pending)
            }
            // No test of this file can run until the build error is fixed, wherever it is.
            Outcome::DidNotBuild { .. } => {
                let before = memory.baseline_before(
                    &baseline.root,
                    &baseline.suite.command(),
                    &baseline.test_digests,
                );
                let before =
                    before.or_else(|| Baseline::of_partial_run(run.clone(), baseline.origin));
                Ok(without_targets(test, before))
            }
            Outcome::Passed => Err(refusal_with_output(
                run,
                format!(
                    "nothing is red: {}; write a failing test with `tdd_red` first",
                    run.sentence()
                ),
            )),
            Outcome::NoTests => Err(refusal_with_output(
                run,
                format!("nothing is red in {file}: {}", run.sentence()),
            )),
            _ if *run.tests() == Tests::Unknown => {
                let named_files = baseline.test_files_in_output();
                if !named_files.is_empty() && !named_files.contains(&test.path) {
                    let names: Vec<String> =
                        named_files.iter().take(5).map(|path| named(path)).collect();
                    let why = format!(
                        "what fails does not name {file}, but {}; give the file of the failing test as `test_path`; no model was asked",
                        names.join(", ")
                    );
                    return Err(refusal_with_output(run, why));
                }
                let before = Baseline::of(run.clone(), baseline.origin).ok();
                Ok(without_targets(test, before))
            }
            _ => Self::from_failures(baseline, test, next_call, pending),
        }
    }

    fn from_failures(
        baseline: &TestBaseline,
        test: TestFile,
        next_call: Value,
        pending: Arc<PendingMemory>,
    ) -> Result<Self, RefusedCall> {
        let run = &baseline.run;
        let in_file = test.tests_in(baseline, run);
        // A whole program can be one test, which is then named after neither the file nor what is in it.
        let in_file = if in_file.is_empty() && test.only.is_none() {
            failures_located_in(&baseline.suite_relative(&test.path), run)
        } else {
            in_file
        };
        let is_target = |name: &TestName| {
            in_file.contains(name)
                && !baseline.flaky.contains(name)
                && !baseline.old_failures.contains(name)
        };
        let (targets, others): (Vec<TestName>, Vec<TestName>) = run
            .failed()
            .map(|(name, _)| name.clone())
            .partition(is_target);
        let wanted = match &test.only {
            Some(only) => format!("`{}` in {}", words::plain(only), named(&test.path)),
            None => named(&test.path),
        };
        if targets.is_empty() {
            let flaky: Vec<TestName> = in_file
                .iter()
                .filter(|name| baseline.flaky.contains(name))
                .cloned()
                .collect();
            if let Some(first) = flaky.first() {
                let why = format!(
                    "nothing is red in {wanted} each time: {} failed in one run and passed in another of the same files, \
                     which is flaky and not red; no model was asked",
                    format_names(&flaky, first)
                );
                return Err(refusal_with_output(run, why));
            }
            let why = if in_file.is_empty() {
                format!("nothing is red in {wanted}: no test that ran is there")
            } else {
                format!(
                    "nothing is red in {wanted}: {} there, and none fails",
                    words::count(in_file.len(), "test")
                )
            };
            let failing_elsewhere = others
                .first()
                .map(|n| {
                    format!(
                        "; red elsewhere, to be given as `test_path`: {}",
                        format_names(&others, n)
                    )
                })
                .unwrap_or_default();
            return Err(refusal_with_output(
                run,
                format!("{why}{failing_elsewhere}; no model was asked"),
            ));
        }
        let before = Baseline::of(run.clone(), baseline.origin).ok();
        let before = before.or_else(|| Baseline::of_partial_run(run.clone(), baseline.origin));
        Ok(Self {
            test,
            targets,
            before,
            next_call,
            pending,
            hidden_tests: Arc::default(),
        })
    }

    pub(super) fn target(&self) -> String {
        match self.targets.as_slice() {
            [] => format!("the tests in {}", named(&self.test.path)),
            targets => {
                let named = targets
                    .iter()
                    .take(20)
                    .map(|t| format!("`{t}`"))
                    .collect::<Vec<_>>()
                    .join(", ");
                let more = targets.len().saturating_sub(20);
                if more > 0 {
                    format!(
                        "{named} and {more} more in {}",
                        self::named(&self.test.path)
                    )
                } else {
                    named
                }
            }
        }
    }

    pub(super) fn target_names(&self) -> Vec<String> {
        self.targets.iter().map(|name| name.0.clone()).collect()
    }

    /// The test output for the prompt, with the targets first. In a long output, other failures
    /// may come before them.
    pub(super) fn failure_output(&self, run: &TestRun) -> String {
        let (target_failures, others): (Vec<_>, Vec<_>) = run
            .failed()
            .partition(|(name, _)| self.targets.contains(name));
        // Long output is cut in the middle, possibly where a target's message is.
        let is_in_output = |message: &str| {
            message
                .lines()
                .map(str::trim)
                .all(|line| run.output().contains(line))
        };
        if target_failures.is_empty()
            || (others.is_empty()
                && target_failures
                    .iter()
                    .all(|(_, message)| is_in_output(message)))
        {
            return run.output().to_owned();
        }
        let target_failures: String = target_failures
            .iter()
            .take(20)
            .map(|(name, message)| format!("{name} fails:\n{message}\n\n"))
            .collect();
        let others = match others.len() {
            0 => String::new(),
            n => format!(
                "{} fail besides and need not pass. ",
                words::count(n, "other test")
            ),
        };
        format!(
            "{target_failures}{others}All that was printed:\n\n{}",
            run.output()
        )
    }

    /// The checks of one of several candidates that cost little: it can be applied, and the targets
    /// pass alone.
    pub(super) async fn screen(
        &self,
        baseline: &TestBaseline,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
        seen: &mut SeenEdits,
    ) -> Result<Screening, RefusedWork> {
        let check_editable = scope::code_edit_rule(baseline, &self.test.path);
        let observed = gates::apply_candidate(baseline, work, gates, seen, &check_editable)?;
        // An answer without a change is refused when it is judged.
        if let Ok(observed) = &observed
            && !observed.changes.is_empty()
        {
            scope::check_protected_files(baseline, work, gates, observed, &check_editable)?;
            supervisor_prove::touch_test_file(&baseline.files.join(&self.test.path));
            self.with_stable_names(baseline)
                .run_targets_alone(baseline, work, gates, observed)
                .await?;
        }
        Ok(Screening::of(observed))
    }

    pub(super) async fn judge(
        &self,
        baseline: &TestBaseline,
        brief: &TddBrief,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
    ) -> Result<AcceptedWork, RefusedWork> {
        let check_editable = scope::code_edit_rule(baseline, &self.test.path);
        let observed = gates::apply_or_collect_changes(baseline, work, gates, &check_editable)?;
        if observed.changes.is_empty() {
            return Err(gates.refuse(
                "change",
                Cause::Rejected,
                "nothing was changed, so the test is as red as before",
            ));
        }
        let texts =
            scope::check_protected_files(baseline, work, gates, &observed, &check_editable)?;
        supervisor_prove::touch_test_file(&baseline.files.join(&self.test.path));
        // The targets of a candidate ran when it was screened.
        if work.candidate.is_none() {
            self.with_stable_names(baseline)
                .run_targets_alone(baseline, work, gates, &observed)
                .await?;
        }
        let run = gates::run_suite(
            baseline,
            work,
            gates,
            &observed,
            self.before.as_ref(),
            &|name| self.expects_failure(name),
        )
        .await?;
        gates::refuse_new_snapshots(baseline, work, gates, &observed)?;
        let this = self.with_stable_names(baseline);
        let still_unbuilt = this
            .before
            .as_ref()
            .is_some_and(|before| before.fails_to_build_as_before(&run));
        if let Some(why) = gates::inconclusive_reason(&run).filter(|_| !still_unbuilt) {
            return Err(gates.refuse_with("tests", Cause::Rejected, why, output_excerpt(&run)));
        }
        let proof = this.proof(baseline, gates, &run)?;
        gates.pass("tests", run.sentence());
        if let Ok((key, outcome)) = baseline.outcome_to_remember(work.site, &run) {
            this.pending.set_outcome(key, outcome);
        }
        if let Some(check) = &baseline.check {
            check::ensure_nothing_lost(check, gates, &texts)?;
        }
        production_build::check(baseline, work, gates, &observed, &texts, &run).await?;
        let targets = if this.targets.is_empty() {
            this.test.tests_in(baseline, &run)
        } else {
            this.targets.clone()
        };
        let targets: Vec<TestName> = targets
            .into_iter()
            .filter(|name| run.passed().any(|p| p == name))
            .collect();
        repeat::ensure_still_green(baseline, work, gates, &observed, &targets, baseline.repeat)
            .await?;
        let falsified = falsification::check(
            baseline,
            work,
            gates,
            &observed,
            &this.test.path,
            &targets,
            &run,
        )
        .await?;
        let mut flags = scope::collect_flags(baseline, &texts, &this.test.path);
        falsified.raise(&mut flags, &this.test.path);
        if baseline.flags == FlagRule::Refuse
            && let Some(first) = flags.iter().next()
        {
            let why = format!(
                "{}: {} (`verify.flags` is `refuse`)",
                first.place, first.detail
            );
            return Err(gates.refuse("flags", Cause::Rejected, why));
        }
        other_build::check(baseline, work, gates, &observed, &targets, &mut flags).await?;
        let mutants = mutants::check(baseline, work, gates, &observed, &texts, &targets).await?;
        self.pending.set_change(AcceptedChange {
            root: baseline.root.clone(),
            before: texts
                .iter()
                .filter(|text| text.after.is_some())
                .map(|text| (text.path.clone(), text.old_text().to_owned()))
                .collect(),
            targets: targets.clone(),
        });
        let hidden_tests = hidden_tests::check(
            baseline,
            brief,
            work,
            gates,
            &observed,
            &this.test,
            &run,
            &this.hidden_tests,
            &mut flags,
        )
        .await?;
        checks::ensure_clean(baseline, work, gates, &observed).await?;
        let file = main_file(&texts)
            .map(|p| baseline.root.join(p).display().to_string())
            .unwrap_or_default();
        let verb = if this.targets.len() == 1 {
            "passes"
        } else {
            "pass"
        };
        let mut message = format!("green: {} {verb}, {}", this.target(), run.counts());
        let mut details = this.details(baseline, &run, &texts);
        details["falsified"] = falsified.details.clone();
        if !hidden_tests.is_null() {
            details["twins"] = hidden_tests;
        }
        if !observed.left_out.is_empty() {
            details["left_out"] = path_texts(&observed.left_out).into();
        }
        let mut survivors = None;
        if let Some((found, why)) = mutants {
            details["mutants"] = found;
            survivors = why;
        }
        message = falsified.message(&message);
        let verification = match falsified.unproven {
            None if let Some(why) = survivors => {
                message = format!("not verified, because a mutant survives ({why}); {message}");
                Verification::Unproven { why }
            }
            None => Verification::Proven(proof),
            Some(why) => Verification::Unproven { why },
        };
        work.site.set_recheck(baseline.recheck(&run, Vec::new()));
        Ok(AcceptedWork {
            verification,
            keeps: KeepPolicy::Changes,
            exhibit: VerifierMaterial::Change,
            status: Status::Pass,
            message,
            file_path: file.clone(),
            runner_output: output_excerpt(&run),
            gates: Vec::new(),
            flags,
            details,
            next: match baseline.check {
                // There is no test to refactor under.
                Some(_) => Value::Null,
                None => this.next_call(&file),
            },
        })
    }

    /// With the names of tests that later runs have.
    fn with_stable_names(&self, baseline: &TestBaseline) -> Self {
        let mut stable = self.clone();
        if let (Some(varying), Some(before)) = (baseline.suite.varying_names(), &self.before) {
            let folded = varying.folded_names(before.run());
            for target in &mut stable.targets {
                if let Some(name) = folded.get(target) {
                    target.clone_from(name);
                }
            }
            let mut seen = BTreeSet::new();
            stable.targets.retain(|target| seen.insert(target.clone()));
            stable.before = Some(before.with_stable_names(&baseline.suite));
        }
        stable
    }

    /// Without a known state before, failures other than the targets are expected.
    fn expects_failure(&self, name: &TestName) -> bool {
        self.before.is_none() && !self.targets.contains(name)
    }

    /// Runs the targets alone where the runner can select them, so that a wrong answer does not
    /// cost a run of the whole suite.
    async fn run_targets_alone(
        &self,
        baseline: &TestBaseline,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
        observed: &ObservedChanges,
    ) -> Result<(), RefusedWork> {
        if self.targets.len() > MAX_SELECTED {
            return Ok(());
        }
        let Some(alone) = baseline.suite.select(&self.targets) else {
            return Ok(());
        };
        work.checking(format!("running `{}`", alone.command()));
        let run = gates::run_once(baseline, work, gates, observed, &alone, &[]).await?;
        // Refuse only on a clear failure. Everything else is decided by the whole suite.
        let failing = run.failed().find(|(name, _)| self.targets.contains(name));
        let is_as_before = self
            .before
            .as_ref()
            .is_some_and(|before| before.fails_to_build_as_before(&run));
        match (run.outcome(), failing) {
            (Outcome::Failed, Some((target, message))) => {
                let why = format!("`{target}` still fails{}", failure_summary(message));
                let refused =
                    gates.refuse_with("target", Cause::Rejected, why, output_excerpt(&run));
                Err(RefusedWork {
                    failing: Some(self.failing_tests(&run)),
                    ..refused
                })
            }
            (Outcome::DidNotBuild { .. }, _) if !is_as_before => Err(gates.refuse_with(
                "target",
                Cause::Rejected,
                run.sentence(),
                output_excerpt(&run),
            )),
            _ => Ok(()),
        }
    }

    /// What the answer did to the failing tests, as far as they ran.
    fn failing_tests(&self, run: &TestRun) -> FailingTests {
        let passed_before = |name: &TestName| matches!(&self.before, Some(before) if before.run().passed().any(|p| p == name));
        let texts =
            |names: Vec<&TestName>| names.iter().take(20).map(ToString::to_string).collect();
        let is_target = |name: &&TestName| self.targets.contains(name);
        let failed: Vec<&TestName> = run.failed().map(|(name, _)| name).collect();
        let (still, others): (Vec<&TestName>, Vec<&TestName>) =
            failed.into_iter().partition(is_target);
        let broken: Vec<&TestName> = others
            .into_iter()
            .filter(|name| passed_before(name))
            .collect();
        let assertion = match still.first().or(broken.first()) {
            Some(first) => failure_text(run, &first.0),
            None => String::new(),
        };
        FailingTests {
            fixed: texts(run.passed().filter(is_target).collect()),
            still: texts(still),
            broken: texts(broken),
            assertion,
        }
    }

    fn proof(
        &self,
        baseline: &TestBaseline,
        gates: &mut Gates,
        run: &TestRun,
    ) -> Result<Proof, RefusedWork> {
        let refuse = |gates: &mut Gates, refusal: &ProofError| {
            let id = match refusal {
                ProofError::TestsMissing { .. } | ProofError::TestsSkipped(_) => "inventory",
                ProofError::ChecksBroken(_) => "checks",
                ProofError::TargetMissing(_) | ProofError::TargetFails(_) => "target",
                _ => "tests",
            };
            let refused = gates.refuse_with(
                id,
                Cause::Rejected,
                with_message(refusal, run),
                output_excerpt(run),
            );
            RefusedWork {
                failing: Some(self.failing_tests(run)),
                ..refused
            }
        };
        if *run.tests() != Tests::Unknown {
            let in_file = if self.targets.is_empty() {
                self.required_tests(baseline, run)
            } else {
                self.targets.clone()
            };
            if in_file.is_empty() {
                let why = format!(
                    "no test of {} is among those that ran",
                    named(&self.test.path)
                );
                return Err(gates.refuse_with("target", Cause::Rejected, why, output_excerpt(run)));
            }
            let proof = match &self.before {
                Some(before) => Proof::of_green(before, run, &in_file),
                None => Proof::of_first_green(run, &in_file),
            };
            let proof = proof.map_err(|refusal| refuse(gates, &refusal))?;
            let inventory = match &self.before {
                Some(before) if before.is_complete() => "no test is gone or newly skipped",
                Some(_) => {
                    "no test that was run before is gone or newly skipped; the rest is unknown, because it did not build"
                }
                None => {
                    "unknown: the tests did not build before, and this server made no run from before the test was written"
                }
            };
            gates.pass("inventory", inventory);
            gates.pass("target", self.target());
            return Ok(proof);
        }
        let proof = Proof::of_tests(run).map_err(|refusal| refuse(gates, &refusal))?;
        gates.pass("inventory", "unknown: the command does not name its tests");
        Ok(proof)
    }

    /// Tests that must pass if nothing could run before: all tests of the file except those that
    /// may skip themselves.
    fn required_tests(&self, baseline: &TestBaseline, run: &TestRun) -> Vec<TestName> {
        let named = self.test.tests_in(baseline, run);
        let path = baseline.suite_relative(&self.test.path);
        let source = FalsifiableTests::whole_file(&path, &self.test.source);
        let may_skip = |name: &TestName| {
            matches!(run.state(name), Some(TestState::Skipped))
                && source.as_ref().is_some_and(|tests| tests.may_skip(name))
        };
        named.into_iter().filter(|name| !may_skip(name)).collect()
    }

    fn details(&self, baseline: &TestBaseline, run: &TestRun, texts: &[ChangedText]) -> Value {
        let counts = |run: &TestRun| match run.tests() {
            Tests::Named(tests) if !tests.is_empty() => json!(tests.len()),
            _ => Value::Null,
        };
        let before = self
            .before
            .as_ref()
            .map_or(Value::Null, |b| counts(b.run()));
        let mut details = size_details(baseline, texts);
        details["target"] = json!(self.targets);
        details["tests_before"] = before;
        details["tests_after"] = counts(run);
        let known = self.before.as_ref().is_some_and(Baseline::is_complete)
            && *run.tests() != Tests::Unknown;
        details["inventory"] = json!(if known { "known" } else { "unknown" });
        let before = self
            .before
            .as_ref()
            .map(|b| failures_except(b.run(), &self.targets))
            .unwrap_or_default();
        if !before.is_empty() {
            details["failing_before"] = json!(before);
        }
        if baseline.repeat > 1 {
            details["repeat"] = json!(baseline.repeat);
        }
        if !baseline.flaky.is_empty() {
            details["flaky"] = json!(baseline.flaky);
        }
        let others = failures(run);
        if !others.is_empty() {
            details["other_failures"] = json!(others);
        }
        details["baseline"] = json!(baseline.origin);
        details["runs"] = json!(baseline.suite.run_counts());
        details["runner"] = json!(baseline.suite.runner());
        details["command"] = json!(run.command());
        details["exit_code"] = json!(run.exit_code());
        if !baseline.by_products.is_empty() {
            details["by_products"] = first_paths(&baseline.by_products).into();
        }
        details
    }

    fn next_call(&self, file: &str) -> Value {
        let mut next_call = self.next_call.clone();
        next_call["tool"] = json!("tdd_refactor");
        next_call["arguments"]["test_path"] = self.test.path.to_string_lossy().into();
        next_call["arguments"]["impl_path"] = json!(file);
        next_call
    }
}
