//! Refactor: green before, green after, and something is different. Otherwise everything is as it was.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::baseline::{Ground, refused};
use super::gates::{self, Gates, named, shown};
use super::green::{TestFile, main_file, minimality, with_message};
use super::scope;
use crate::engine::job::{Exhibit, Failed, Held, Keeps, Shown, Work};
use crate::engine::run::Early;
use crate::engine::{Cause, Status};
use crate::verify::{Baseline, Outcome, Proof};

/// A project whose tests are green.
pub(super) struct Refactor {
    test: TestFile,
    implementation: PathBuf,
    before: Baseline,
}

impl Refactor {
    pub(super) fn of(ground: &Ground, test: TestFile, implementation: PathBuf) -> Result<Self, Early> {
        let run = &ground.run;
        if *run.outcome() != Outcome::Passed {
            let failing = run.failed().next().map(|(name, _)| format!(" (`{name}`)")).unwrap_or_default();
            let why = format!("not green before: {}{failing}; make it green with `tdd_green` first", run.sentence());
            return Err(refused(run, why));
        }
        if scope::code_only(ground.ecosystem(), &implementation).is_err() {
            let why = format!("impl_path: {} is a test or configuration; name the code", named(&implementation));
            return Err(Early::error(why));
        }
        let before = Baseline::of(run.clone(), ground.origin)
            .map_err(|run| refused(&run, format!("not green before: {}", run.sentence())))?;
        Ok(Self { test, implementation, before })
    }

    pub(super) async fn judge(&self, ground: &Ground, work: &mut Work<'_>, gates: &mut Gates) -> Result<Held, Failed> {
        let last = work.is_last();
        let sealed = scope::code_beside(ground, &self.test.path);
        // From the last tier a no is the answer: nothing was improved, and all is as it was.
        let fail = |failed: Failed| Failed { is_final: last, ..failed };
        let seen = gates::take(ground, work, gates, &sealed)?;
        let texts = scope::sealed(ground, work, gates, &seen, &sealed)?;
        if texts.iter().all(|t| t.before == t.after) {
            let why = format!("no-op: nothing was changed in {} or elsewhere", named(&self.implementation));
            return Err(fail(gates.refuse("change", Cause::Rejected, why)));
        }
        gates.pass("change", texts.iter().map(|t| named(&t.path)).collect::<Vec<_>>().join(", "));
        let run = gates::run(ground, work, gates, &seen, Some(&self.before)).await?;
        if let Some(why) = gates::says_nothing(&run) {
            return Err(fail(gates.refuse_with("tests", Cause::Rejected, format!("{why}; taken back"), shown(&run))));
        }
        let targets = self.test.named_in(ground, self.before.run());
        let proof = Proof::of_green(&self.before, &run, &targets).map_err(|refusal| {
            let why = format!("{}; taken back", with_message(&refusal, &run));
            fail(gates.refuse_with("tests", Cause::Rejected, why, shown(&run)))
        })?;
        gates.pass("tests", run.sentence());
        let file = main_file(&texts).unwrap_or(&self.implementation);
        let mut details: Value = minimality(ground, &texts);
        details["baseline"] = json!(ground.origin);
        details["runner"] = json!(ground.suite.runner());
        details["command"] = json!(run.command());
        details["exit_code"] = json!(run.exit_code());
        Ok(Held {
            shown: Shown::Proven(proof),
            keeps: Keeps::Changes,
            exhibit: Exhibit::Change,
            status: Status::Pass,
            message: format!("refactored {}: {} before and after", named(file), run.counts()),
            file_path: ground.root.join(file).display().to_string(),
            runner_output: shown(&run),
            gates: Vec::new(),
            details,
            next: Value::Null,
        })
    }
}
