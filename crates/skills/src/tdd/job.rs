//! Implements the engine's `Skill` trait for one TDD phase: builds the question for each tier and
//! checks each answer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::baseline::TestBaseline;
use super::brief::{EditableFiles, TddBrief};
use super::call::TddCall;
use super::gates::{self, Gates, first_paths};
use super::green::Green;
use super::red::Red;
use super::refactor::Refactor;
use super::scope;
use serde_json::Value;
use supervisor_engine::evidence::Evidence;
use supervisor_engine::skill::{
    Access, Preparation, PreparedCall, Question, RefusedCall, Skill, TaskFacts, TierUnfit,
};
use supervisor_engine::work::{AcceptedWork, RefusedWork, Screening, SeenEdits, SubmittedWork};
use supervisor_models::Edits;
use supervisor_settings::Tier;
use supervisor_workspace::{Change, ChangeKind, EntryType};

/// A prepared phase.
pub(super) struct Tdd {
    pub(super) baseline: TestBaseline,
    pub(super) brief: TddBrief,
    pub(super) phase: Phase,
    /// The call of `prove` for a caller who changes the code without a model.
    pub(super) by_hand: Value,
}

pub(super) enum Phase {
    Red(Red),
    Green(Green),
    Refactor(Refactor),
}

impl Skill for Tdd {
    type Params = TddCall;
    type Shown = ();

    fn access(params: &TddCall) -> Result<Access, RefusedCall> {
        params.check_paths().map(|()| Access::Edit)
    }

    async fn prepare(
        params: &TddCall,
        call: &mut Preparation<'_>,
    ) -> Result<PreparedCall<Self>, RefusedCall> {
        params.prepare(call).await
    }

    fn ask(
        &self,
        tier: &Tier,
        edits: Edits,
        evidence: &Evidence,
    ) -> Result<(Vec<Question>, ()), TierUnfit> {
        let may_edit = |path: &Path| match &self.phase {
            Phase::Red(_) => scope::ensure_test_file(&self.baseline, path).is_ok(),
            Phase::Green(_) | Phase::Refactor(_) => {
                scope::code_edit_rule(&self.baseline, &self.brief.test_path)(path).is_ok()
            }
        };
        let rule = match &self.phase {
            Phase::Red(_) => "You may add test files; code and configuration are read-only.",
            Phase::Green(_) if self.baseline.check.is_some() => {
                "Data, expectations and what checks them are read-only."
            }
            Phase::Green(_) | Phase::Refactor(_) => {
                "You may add files of code; tests and configuration are read-only."
            }
        };
        let editable = EditableFiles {
            may_edit: &may_edit,
            rule,
        };
        let (question, shown) = self.brief.question(tier, edits, evidence, &editable)?;
        self.baseline.answer_reader.note_shown(shown);
        Ok((vec![question], ()))
    }

    fn by_hand(&self) -> Value {
        self.by_hand.clone()
    }

    fn facts(&self) -> TaskFacts {
        let bytes = self.brief.task.len() + self.brief.test_source.len();
        TaskFacts {
            language: match &self.baseline.check {
                Some(check) => Some(check.work_kind()),
                None => self.baseline.ecosystem().map(|language| language.name),
            },
            bytes,
        }
    }

    async fn screen(
        &self,
        mut work: SubmittedWork<'_>,
        (): (),
        seen: &mut SeenEdits,
    ) -> Result<Screening, RefusedWork> {
        let mut gates = Gates::default();
        let (baseline, work) = (&self.baseline, &mut work);
        let screened = match &self.phase {
            Phase::Green(green) => green.screen(baseline, work, &mut gates, seen).await,
            Phase::Red(_) => {
                let editable = |path: &Path| scope::ensure_test_file(baseline, path);
                gates::apply_candidate(baseline, work, &mut gates, seen, &editable)
                    .map(Screening::of)
            }
            Phase::Refactor(_) => {
                let editable = scope::code_edit_rule(baseline, &self.brief.test_path);
                gates::apply_candidate(baseline, work, &mut gates, seen, &editable)
                    .map(Screening::of)
            }
        };
        screened.map_err(|refused| RefusedWork {
            gates: gates.0,
            ..refused
        })
    }

    async fn check(
        &self,
        mut work: SubmittedWork<'_>,
        (): (),
    ) -> Result<AcceptedWork, RefusedWork> {
        let mut gates = Gates::default();
        let result = match &self.phase {
            Phase::Red(red) => red.judge(&self.baseline, &mut work, &mut gates).await,
            Phase::Green(green) => {
                green
                    .judge(&self.baseline, &self.brief, &mut work, &mut gates)
                    .await
            }
            Phase::Refactor(refactor) => {
                refactor.judge(&self.baseline, &mut work, &mut gates).await
            }
        };
        let result = match result {
            Ok(accepted) => self.report_by_products(accepted, &mut work, &mut gates),
            refused => refused,
        };
        gates.close(result)
    }
}

impl Tdd {
    /// In place, files written by any test run are kept with accepted work, even if the first run
    /// did not write them. They are listed in the details.
    fn report_by_products(
        &self,
        mut accepted: AcceptedWork,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
    ) -> Result<AcceptedWork, RefusedWork> {
        if work.site.is_in_place() {
            let now = gates.site(work.site.changes())?;
            let worker_paths: BTreeSet<&Path> = work
                .changed
                .changes
                .iter()
                .map(|change| change.path.as_path())
                .collect();
            // An agent has finished before the tests run, so later changes come from the tests.
            let is_from_tests = |change: &&Change| {
                work.edits == Edits::InPlace
                    && change.kind != ChangeKind::Git
                    && change.entry_type != EntryType::Directory
                    && !worker_paths.contains(change.path.as_path())
            };
            let from_tests = now
                .changes
                .iter()
                .filter(is_from_tests)
                .map(|change| &change.path);
            let marked = now.by_products.iter().map(|by_product| &by_product.path);
            let all: BTreeSet<&PathBuf> = self
                .baseline
                .by_products
                .iter()
                .chain(marked)
                .chain(from_tests)
                .collect();
            if !all.is_empty() {
                accepted.details["by_products"] = first_paths(all).into();
            }
        }
        Ok(accepted)
    }
}
