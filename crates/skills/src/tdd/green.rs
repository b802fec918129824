//! Green: what is red in one test file passes, and nothing that was true before is lost.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::baseline::{Ground, refused};
use super::belongs::InFile;
use super::brief::TddBrief;
use super::failures::{failures, failures_but, first_line, list, with_message};
use super::falsified;
use super::gates::{self, Gates, SeenChanges, Text, named, output_excerpt, path_texts};
use super::memory::{Memory, Pending};
use super::other_build;
use super::product;
use super::repeat::{self, SELECTED};
use super::scope;
use super::step_size::{main_file, minimality};
use super::twins::{self, KeptTwins};
use supervisor_engine::skill::RefusedCall;
use supervisor_engine::work::{
    AcceptedWork, Exhibit, KeepPolicy, RefusedWork, SubmittedWork, Verification,
};
use supervisor_engine::{Cause, Status};
use supervisor_text::words;
use supervisor_verify::falsify::FalsifiableTests;
use supervisor_verify::{Baseline, Outcome, Proof, Refusal, TestName, TestRun, TestState, Tests};

/// A red that is worth a model.
pub(super) struct Green {
    test: TestFile,
    /// What is red; empty if it does not build yet, or if the command names no tests.
    targets: Vec<TestName>,
    /// What was true before; `None` if unknown.
    before: Option<Baseline>,
    /// The call that usually follows, but for what it is about.
    next: Value,
    /// What the next phase will want to know, if this green stands.
    pending: Arc<Pending>,
    twins: KeptTwins,
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
        let file = InFile {
            ecosystem: ground.ecosystem(),
            path: &path,
            source: &self.source,
            only: self.only.as_deref(),
        };
        run.named()
            .map(|(name, _)| name)
            .filter(|name| file.has(name))
            .cloned()
            .collect()
    }
}

impl Green {
    /// Is there a red here that code can fix?
    pub(super) fn of(
        ground: &Ground,
        test: TestFile,
        memory: &Memory,
        next: Value,
        pending: Arc<Pending>,
    ) -> Result<Self, RefusedCall> {
        let run = &ground.run;
        let file = named(&test.path);
        match run.outcome() {
            // Tests of this file were run all the same: what does not build is somewhere else.
            Outcome::DidNotBuild { .. } if !test.named_in(ground, run).is_empty() => {
                Self::of_failures(ground, test, next, pending)
            }
            // Nothing of it can run before this builds, wherever the errors are.
            Outcome::DidNotBuild { .. } => {
                let before = memory.before(&ground.root, &ground.suite.command(), &ground.tests);
                let before = before.or_else(|| Baseline::of_part(run.clone(), ground.origin));
                Ok(Self {
                    test,
                    targets: Vec::new(),
                    before,
                    next,
                    pending,
                    twins: KeptTwins::default(),
                })
            }
            Outcome::Passed => Err(refused(
                run,
                format!(
                    "nothing is red: {}; write a failing test with `tdd_red` first",
                    run.sentence()
                ),
            )),
            Outcome::NoTests => Err(refused(
                run,
                format!("nothing is red in {file}: {}", run.sentence()),
            )),
            _ if *run.tests() == Tests::Unknown => {
                let before = Baseline::of(run.clone(), ground.origin).ok();
                Ok(Self {
                    test,
                    targets: Vec::new(),
                    before,
                    next,
                    pending,
                    twins: KeptTwins::default(),
                })
            }
            _ => Self::of_failures(ground, test, next, pending),
        }
    }

    fn of_failures(
        ground: &Ground,
        test: TestFile,
        next: Value,
        pending: Arc<Pending>,
    ) -> Result<Self, RefusedCall> {
        let run = &ground.run;
        let here = test.named_in(ground, run);
        let is_target = |name: &TestName| here.contains(name) && !ground.flaky.contains(name);
        let (targets, others): (Vec<TestName>, Vec<TestName>) = run
            .failed()
            .map(|(name, _)| name.clone())
            .partition(is_target);
        let wanted = match &test.only {
            Some(only) => format!("`{}` in {}", words::plain(only), named(&test.path)),
            None => named(&test.path),
        };
        if targets.is_empty() {
            let flaky: Vec<TestName> = here
                .iter()
                .filter(|name| ground.flaky.contains(name))
                .cloned()
                .collect();
            if let Some(first) = flaky.first() {
                let why = format!(
                    "nothing is red in {wanted} each time: {} failed in one run and passed in another of the same files, \
                     which is flaky and not red; no model was asked",
                    list(&flaky, first)
                );
                return Err(refused(run, why));
            }
            let why = if here.is_empty() {
                format!("nothing is red in {wanted}: no test that ran stands there")
            } else {
                format!(
                    "nothing is red in {wanted}: {} there, and none fails",
                    words::count(here.len(), "test")
                )
            };
            let red = others
                .first()
                .map(|n| format!("; red elsewhere: {}", list(&others, n)))
                .unwrap_or_default();
            return Err(refused(run, format!("{why}{red}; no model was asked")));
        }
        let before = Baseline::of(run.clone(), ground.origin).ok();
        let before = before.or_else(|| Baseline::of_part(run.clone(), ground.origin));
        Ok(Self {
            test,
            targets,
            before,
            next,
            pending,
            twins: KeptTwins::default(),
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

    /// What the tests said, the ones in question first: in a long output others may come before them.
    pub(super) fn told_by(&self, run: &TestRun) -> String {
        let (mine, others): (Vec<_>, Vec<_>) = run
            .failed()
            .partition(|(name, _)| self.targets.contains(name));
        // In a long output the middle is cut, and with it what matters.
        let is_told = |said: &str| {
            said.lines()
                .map(str::trim)
                .all(|line| run.output().contains(line))
        };
        if mine.is_empty() || (others.is_empty() && mine.iter().all(|(_, said)| is_told(said))) {
            return run.output().to_owned();
        }
        let mine: String = mine
            .iter()
            .take(20)
            .map(|(name, said)| format!("{name} fails:\n{said}\n\n"))
            .collect();
        let others = match others.len() {
            0 => String::new(),
            n => format!(
                "{} fail besides and need not pass. ",
                words::count(n, "other test")
            ),
        };
        format!("{mine}{others}All that was printed:\n\n{}", run.output())
    }

    pub(super) async fn judge(
        &self,
        ground: &Ground,
        brief: &TddBrief,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
    ) -> Result<AcceptedWork, RefusedWork> {
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
        falsified::renew(ground, &self.test.path);
        self.target_alone(ground, work, gates, &seen).await?;
        let run = gates::run(ground, work, gates, &seen, self.before.as_ref(), &|name| {
            self.expects(name)
        })
        .await?;
        let still_unbuilt = self
            .before
            .as_ref()
            .is_some_and(|before| before.is_as_unbuilt_as(&run));
        if let Some(why) = gates::says_nothing(&run).filter(|_| !still_unbuilt) {
            return Err(gates.refuse_with("tests", Cause::Rejected, why, output_excerpt(&run)));
        }
        let proof = self.proof(ground, gates, &run)?;
        gates.pass("tests", run.sentence());
        if let Ok((key, outcome)) = ground.to_remember(work.site, &run) {
            self.pending.put_outcome(key, outcome);
        }
        product::check(ground, work, gates, &seen, &texts, &run).await?;
        let targets = if self.targets.is_empty() {
            self.test.named_in(ground, &run)
        } else {
            self.targets.clone()
        };
        let targets: Vec<TestName> = targets
            .into_iter()
            .filter(|name| run.passed().any(|p| p == name))
            .collect();
        repeat::still_green(ground, work, gates, &seen, &targets, ground.repeat).await?;
        let falsified =
            falsified::check(ground, work, gates, &seen, &self.test.path, &targets, &run).await?;
        let mut flags = scope::flags(ground, &texts, &self.test.path);
        falsified.raise(&mut flags, &self.test.path);
        other_build::look(ground, work, gates, &seen, &targets, &mut flags).await?;
        let twins = twins::look(
            ground,
            brief,
            work,
            gates,
            &seen,
            &self.test,
            &run,
            &self.twins,
            &mut flags,
        )
        .await?;
        let file = main_file(&texts)
            .map(|p| ground.root.join(p).display().to_string())
            .unwrap_or_default();
        let pass = if self.targets.len() == 1 {
            "passes"
        } else {
            "pass"
        };
        let mut message = format!("green: {} {pass}, {}", self.target(), run.counts());
        let mut details = self.details(ground, &run, &texts);
        details["falsified"] = falsified.details;
        if !twins.is_null() {
            details["twins"] = twins;
        }
        if !seen.left_out.is_empty() {
            details["left_out"] = path_texts(&seen.left_out).into();
        }
        let verification = match falsified.unproven {
            None => Verification::Proven(proof),
            Some(why) => {
                message = format!(
                    "not verified, because the tests could not be falsified ({why}); {message}"
                );
                Verification::Unproven { why }
            }
        };
        work.site.confirm_by(ground.recheck(&run, Vec::new()));
        Ok(AcceptedWork {
            verification,
            keeps: KeepPolicy::Changes,
            exhibit: Exhibit::Change,
            status: Status::Pass,
            message,
            file_path: file.clone(),
            runner_output: output_excerpt(&run),
            gates: Vec::new(),
            flags,
            details,
            next: self.next(&file),
        })
    }

    /// Where nothing is known of before, what fails beside the targets is no news either.
    fn expects(&self, name: &TestName) -> bool {
        self.before.is_none() && !self.targets.contains(name)
    }

    /// Where tests can be selected, the wrong answer costs one test and not the whole suite.
    async fn target_alone(
        &self,
        ground: &Ground,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
        seen: &SeenChanges,
    ) -> Result<(), RefusedWork> {
        if self.targets.len() > SELECTED {
            return Ok(());
        }
        let Some(alone) = ground.suite.selecting(&self.targets) else {
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
        // Only a plain failure saves the rest; whatever is unclear, the whole suite decides.
        let failing = run.failed().find(|(name, _)| self.targets.contains(name));
        let is_as_before = self
            .before
            .as_ref()
            .is_some_and(|before| before.is_as_unbuilt_as(&run));
        match (run.outcome(), failing) {
            (Outcome::Failed, Some((target, said))) => {
                let why = format!("`{target}` still fails{}", first_line(said));
                Err(gates.refuse_with("target", Cause::Rejected, why, output_excerpt(&run)))
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

    fn proof(
        &self,
        ground: &Ground,
        gates: &mut Gates,
        run: &TestRun,
    ) -> Result<Proof, RefusedWork> {
        let refuse = |gates: &mut Gates, refusal: &Refusal| {
            let id = match refusal {
                Refusal::Vanished(_) | Refusal::Skipped(_) => "inventory",
                Refusal::CheckFails(_) => "checks",
                Refusal::NotThere(_) | Refusal::StillFails(_) => "target",
                _ => "tests",
            };
            gates.refuse_with(
                id,
                Cause::Rejected,
                with_message(refusal, run),
                output_excerpt(run),
            )
        };
        if *run.tests() != Tests::Unknown {
            let here = if self.targets.is_empty() {
                self.wanted_of(ground, run)
            } else {
                self.targets.clone()
            };
            if here.is_empty() {
                let why = format!(
                    "no test of {} is among those that ran",
                    named(&self.test.path)
                );
                return Err(gates.refuse_with("target", Cause::Rejected, why, output_excerpt(run)));
            }
            let proof = match &self.before {
                Some(before) => Proof::of_green(before, run, &here),
                None => Proof::of_first_green(run, &here),
            };
            let proof = proof.map_err(|refusal| refuse(gates, &refusal))?;
            let inventory = match &self.before {
                Some(before) if before.is_whole() => "no test is gone or newly skipped",
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

    /// What must pass where nothing could be run before: the tests of the file, but for those that skip themselves.
    fn wanted_of(&self, ground: &Ground, run: &TestRun) -> Vec<TestName> {
        let named = self.test.named_in(ground, run);
        let path = ground.as_run(&self.test.path);
        let source = FalsifiableTests::whole_file(&path, &self.test.source);
        let skips = |name: &TestName| {
            matches!(run.state(name), Some(TestState::Skipped))
                && source.as_ref().is_some_and(|tests| tests.may_skip(name))
        };
        named.into_iter().filter(|name| !skips(name)).collect()
    }

    fn details(&self, ground: &Ground, run: &TestRun, texts: &[Text]) -> Value {
        let counts = |run: &TestRun| match run.tests() {
            Tests::Named(tests) if !tests.is_empty() => json!(tests.len()),
            _ => Value::Null,
        };
        let before = self
            .before
            .as_ref()
            .map_or(Value::Null, |b| counts(b.run()));
        let mut details = minimality(ground, texts);
        details["target"] = json!(self.targets);
        details["tests_before"] = before;
        details["tests_after"] = counts(run);
        let known =
            self.before.as_ref().is_some_and(Baseline::is_whole) && *run.tests() != Tests::Unknown;
        details["inventory"] = json!(if known { "known" } else { "unknown" });
        let before = self
            .before
            .as_ref()
            .map(|b| failures_but(b.run(), &self.targets))
            .unwrap_or_default();
        if !before.is_empty() {
            details["failing_before"] = json!(before);
        }
        if ground.repeat > 1 {
            details["repeat"] = json!(ground.repeat);
        }
        if !ground.flaky.is_empty() {
            details["flaky"] = json!(ground.flaky);
        }
        let others = failures(run);
        if !others.is_empty() {
            details["other_failures"] = json!(others);
        }
        details["baseline"] = json!(ground.origin);
        details["runner"] = json!(ground.suite.runner());
        details["command"] = json!(run.command());
        details["exit_code"] = json!(run.exit_code());
        if !ground.by_products.is_empty() {
            details["by_products"] = path_texts(&ground.by_products).into();
        }
        details
    }

    fn next(&self, file: &str) -> Value {
        let mut next = self.next.clone();
        next["tool"] = json!("tdd_refactor");
        next["arguments"]["test_path"] = self.test.path.to_string_lossy().into();
        next["arguments"]["impl_path"] = json!(file);
        next
    }
}
