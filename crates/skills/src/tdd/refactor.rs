//! Refactor: green before, green after, and something is different. Otherwise everything is as it was.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::baseline::{Ground, refused};
use super::failures::{failures, with_message};
use super::falsified;
use super::gates::{self, Gates, named, output_excerpt, path_texts};
use super::green::TestFile;
use super::scope;
use super::step_size::{main_file, minimality};
use supervisor_engine::skill::RefusedCall;
use supervisor_engine::work::{
    AcceptedWork, Exhibit, KeepPolicy, RefusalReach, RefusedWork, SubmittedWork, Verification,
};
use supervisor_engine::{Cause, Status};
use supervisor_verify::{Baseline, Outcome, Proof, Tests};

/// A project whose tests are green.
pub(super) struct Refactor {
    test: TestFile,
    implementation: PathBuf,
    before: Baseline,
}

impl Refactor {
    pub(super) fn of(
        ground: &Ground,
        test: TestFile,
        implementation: PathBuf,
    ) -> Result<Self, RefusedCall> {
        let run = &ground.run;
        let here = test.named_in(ground, run);
        // What fails elsewhere failed before, and is compared by name.
        let green_here = *run.outcome() == Outcome::Failed
            && *run.tests() != Tests::Unknown
            && !here
                .iter()
                .any(|name| run.failed().any(|(failed, _)| failed == name));
        if *run.outcome() != Outcome::Passed && !green_here {
            let failing = run
                .failed()
                .next()
                .map(|(name, _)| format!(" (`{name}`)"))
                .unwrap_or_default();
            let why = format!(
                "not green before: {}{failing}; make it green with `tdd_green` first",
                run.sentence()
            );
            return Err(refused(run, why));
        }
        if scope::code_only(ground.ecosystem(), &implementation).is_err() {
            let why = format!(
                "impl_path: {} is a test or configuration; name the code",
                named(&implementation)
            );
            return Err(RefusedCall::error(why));
        }
        let before = Baseline::of(run.clone(), ground.origin)
            .map_err(|run| refused(&run, format!("not green before: {}", run.sentence())))?;
        Ok(Self {
            test,
            implementation,
            before,
        })
    }

    pub(super) async fn judge(
        &self,
        ground: &Ground,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
    ) -> Result<AcceptedWork, RefusedWork> {
        let last = work.is_last();
        let sealed = scope::code_beside(ground, &self.test.path);
        // From the last tier a no is the answer: nothing was improved, and all is as it was.
        let reach = if last {
            RefusalReach::Call
        } else {
            RefusalReach::Answer
        };
        let fail = |refused: RefusedWork| RefusedWork { reach, ..refused };
        let seen = gates::take(ground, work, gates, &sealed)?;
        let texts = scope::sealed(ground, work, gates, &seen, &sealed)?;
        if texts.iter().all(|t| t.before == t.after) {
            let why = format!(
                "no-op: nothing was changed in {} or elsewhere",
                named(&self.implementation)
            );
            return Err(fail(gates.refuse("change", Cause::Rejected, why)));
        }
        gates.pass(
            "change",
            texts
                .iter()
                .map(|t| named(&t.path))
                .collect::<Vec<_>>()
                .join(", "),
        );
        falsified::renew(ground, &self.test.path);
        let run = gates::run(ground, work, gates, &seen, Some(&self.before), &|_| false).await?;
        if let Some(why) = gates::says_nothing(&run) {
            return Err(fail(gates.refuse_with(
                "tests",
                Cause::Rejected,
                format!("{why}; taken back"),
                output_excerpt(&run),
            )));
        }
        let targets = self.test.named_in(ground, self.before.run());
        let proof = Proof::of_green(&self.before, &run, &targets).map_err(|refusal| {
            let why = format!("{}; taken back", with_message(&refusal, &run));
            fail(gates.refuse_with("tests", Cause::Rejected, why, output_excerpt(&run)))
        })?;
        gates.pass("tests", run.sentence());
        let near = falsified::sample(&targets, &run);
        let falsified = falsified::check(ground, work, gates, &seen, &self.test.path, &near, &run)
            .await
            .map_err(fail)?;
        let mut flags = scope::flags(ground, &texts, &self.test.path);
        falsified.raise(&mut flags, &self.test.path);
        let file = main_file(&texts).unwrap_or(&self.implementation);
        let mut details: Value = minimality(ground, &texts);
        details["failing_before"] = json!(failures(self.before.run()));
        details["baseline"] = json!(ground.origin);
        details["runner"] = json!(ground.suite.runner());
        details["command"] = json!(run.command());
        details["exit_code"] = json!(run.exit_code());
        details["falsified"] = falsified.details;
        if !seen.left_out.is_empty() {
            details["left_out"] = path_texts(&seen.left_out).into();
        }
        let mut message = format!(
            "refactored {}: {} before and after",
            named(file),
            run.counts()
        );
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
            file_path: ground.root.join(file).display().to_string(),
            runner_output: output_excerpt(&run),
            gates: Vec::new(),
            flags,
            details,
            next: Value::Null,
        })
    }
}
