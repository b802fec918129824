//! The refactor phase: green before, green after, and something changed. Otherwise all changes are
//! undone.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::baseline::{TestBaseline, refusal_with_output};
use super::checks;
use super::failures::{failures, with_message};
use super::falsification;
use super::gates::{self, Gates, named, output_excerpt, path_texts};
use super::green::TestFile;
use super::mutants;
use super::scope;
use super::step_size::{main_file, size_details};
use supervisor_engine::skill::RefusedCall;
use supervisor_engine::work::{
    AcceptedWork, KeepPolicy, RefusalScope, RefusedWork, SubmittedWork, Verification,
    VerifierMaterial,
};
use supervisor_engine::{Cause, Status};
use supervisor_text::words;
use supervisor_verify::{Baseline, Outcome, Proof, Tests};

/// A project whose tests are green.
pub(super) struct Refactor {
    test: TestFile,
    implementation: PathBuf,
    before: Baseline,
}

impl Refactor {
    pub(super) fn new(
        baseline: &TestBaseline,
        test: TestFile,
        implementation: PathBuf,
    ) -> Result<Self, RefusedCall> {
        let run = &baseline.run;
        let in_file = test.tests_in(baseline, run);
        // Failures elsewhere are compared by name with those after the change.
        let is_green_in_file = *run.outcome() == Outcome::Failed
            && *run.tests() != Tests::Unknown
            && !in_file
                .iter()
                .any(|name| run.failed().any(|(failed, _)| failed == name));
        if *run.outcome() != Outcome::Passed && !is_green_in_file {
            let failing = run
                .failed()
                .next()
                .map(|(name, _)| format!(" (`{name}`)"))
                .unwrap_or_default();
            let why = format!(
                "not green before: {}{failing}; make it green with `tdd_green` first",
                run.sentence()
            );
            return Err(refusal_with_output(run, why));
        }
        if scope::ensure_code_file(baseline, &implementation).is_err() {
            let why = format!(
                "impl_path: {} is a test or configuration; name the code",
                named(&implementation)
            );
            return Err(RefusedCall::error(why));
        }
        let before = Baseline::of(run.clone(), baseline.origin).map_err(|run| {
            refusal_with_output(&run, format!("not green before: {}", run.sentence()))
        })?;
        Ok(Self {
            test,
            implementation,
            before,
        })
    }

    pub(super) async fn judge(
        &self,
        baseline: &TestBaseline,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
    ) -> Result<AcceptedWork, RefusedWork> {
        let is_last = work.is_last();
        let check_editable = scope::code_edit_rule(baseline, &self.test.path);
        // A refusal of the last tier's answer ends the call: nothing was improved, and everything
        // is restored.
        let reach = if is_last {
            RefusalScope::Call
        } else {
            RefusalScope::Answer
        };
        let with_reach = |refused: RefusedWork| RefusedWork { reach, ..refused };
        let observed = gates::apply_or_collect_changes(baseline, work, gates, &check_editable)?;
        let texts =
            scope::check_protected_files(baseline, work, gates, &observed, &check_editable)?;
        if texts.iter().all(|t| t.before == t.after) {
            let why = format!(
                "no-op: nothing was changed in {} or elsewhere",
                named(&self.implementation)
            );
            return Err(with_reach(gates.refuse("change", Cause::Rejected, why)));
        }
        gates.pass(
            "change",
            texts
                .iter()
                .map(|t| named(&t.path))
                .collect::<Vec<_>>()
                .join(", "),
        );
        supervisor_prove::touch_test_file(&baseline.files.join(&self.test.path));
        let run = gates::run_suite(
            baseline,
            work,
            gates,
            &observed,
            Some(&self.before),
            &|_| false,
        )
        .await?;
        if let Some(why) = gates::inconclusive_reason(&run) {
            return Err(with_reach(gates.refuse_with(
                "tests",
                Cause::Rejected,
                format!("{why}; taken back"),
                output_excerpt(&run),
            )));
        }
        let before = self.before.with_stable_names(&baseline.suite);
        let targets = self.test.tests_in(baseline, before.run());
        let proof = Proof::of_green(&before, &run, &targets).map_err(|refusal| {
            let why = format!("{}; taken back", with_message(&refusal, &run));
            with_reach(gates.refuse_with("tests", Cause::Rejected, why, output_excerpt(&run)))
        })?;
        gates.pass("tests", run.sentence());
        let sampled = falsification::sample(&targets, &run);
        let falsified = falsification::check(
            baseline,
            work,
            gates,
            &observed,
            &self.test.path,
            &sampled,
            &run,
        )
        .await
        .map_err(with_reach)?;
        checks::ensure_clean(baseline, work, gates, &observed)
            .await
            .map_err(with_reach)?;
        let reached =
            mutants::reached_lines(baseline, work, gates, &observed, &texts, &targets, &run)
                .await
                .map_err(with_reach)?;
        let mut flags = scope::collect_flags(baseline, &texts, &self.test.path);
        falsified.raise(&mut flags, &self.test.path);
        let file = main_file(&texts).unwrap_or(&self.implementation);
        let mut details: Value = size_details(baseline, &texts);
        details["failing_before"] = json!(failures(before.run()));
        details["baseline"] = json!(baseline.origin);
        details["runner"] = json!(baseline.suite.runner());
        details["command"] = json!(run.command());
        details["exit_code"] = json!(run.exit_code());
        details["falsified"] = falsified.details.clone();
        if !observed.left_out.is_empty() {
            details["left_out"] = path_texts(&observed.left_out).into();
        }
        let mut done = format!(
            "refactored {}: {} before and after",
            named(file),
            run.counts()
        );
        let mut not_reached = None;
        if let Some((noticed, known)) = reached {
            details["lines_reached"] = json!({"reached": noticed, "of": known});
            let share = format!(
                "{noticed} of {} reached by a test that was seen failing",
                words::count(known, "changed line")
            );
            gates.pass("reached", share.clone());
            done = format!("{done}; {share}");
            not_reached = (noticed == 0)
                .then(|| String::from("no test fails when the changed lines do something else"));
        }
        let mut message = falsified.message(&done);
        let verification = match (falsified.unproven, not_reached) {
            (Some(why), _) => Verification::Unproven { why },
            (None, Some(why)) => {
                message = format!(
                    "not verified, because {why}; the change is in your files; write a test of these lines with `tdd_red`; {message}"
                );
                Verification::Unproven { why }
            }
            (None, None) => Verification::Proven(proof),
        };
        work.site.set_recheck(baseline.recheck(&run, Vec::new()));
        Ok(AcceptedWork {
            verification,
            keeps: KeepPolicy::Changes,
            exhibit: VerifierMaterial::Change,
            status: Status::Pass,
            message,
            file_path: baseline.root.join(file).display().to_string(),
            runner_output: output_excerpt(&run),
            gates: Vec::new(),
            flags,
            details,
            next: Value::Null,
        })
    }
}
