//! One phase as the engine sees it: the question for each tier and the check of each answer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::baseline::Ground;
use super::brief::{EditableFiles, TddBrief};
use super::call::TddCall;
use super::gates::{Gates, path_texts};
use super::green::Green;
use super::red::Red;
use super::refactor::Refactor;
use super::scope;
use supervisor_engine::evidence::Evidence;
use supervisor_engine::skill::{
    Access, Preparation, PreparedCall, Question, RefusedCall, Skill, TaskFacts, TierUnfit,
};
use supervisor_engine::work::{AcceptedWork, RefusedWork, SubmittedWork};
use supervisor_models::Edits;
use supervisor_settings::Tier;
use supervisor_workspace::{Change, ChangeKind, Thing};

/// A phase, ready to be asked.
pub(super) struct Tdd {
    pub(super) ground: Ground,
    pub(super) brief: TddBrief,
    pub(super) phase: Phase,
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
            Phase::Red(_) => scope::tests_only(&self.ground, path).is_ok(),
            Phase::Green(_) | Phase::Refactor(_) => {
                scope::code_beside(&self.ground, &self.brief.test_path)(path).is_ok()
            }
        };
        let rule = match &self.phase {
            Phase::Red(_) => "You may add test files; code and configuration are read-only.",
            Phase::Green(_) | Phase::Refactor(_) => {
                "You may add files of code; tests and configuration are read-only."
            }
        };
        let editable = EditableFiles {
            may_edit: &may_edit,
            rule,
        };
        let (question, shown) = self.brief.question(tier, edits, evidence, &editable)?;
        self.ground.door.note_shown(shown);
        Ok((vec![question], ()))
    }

    fn facts(&self) -> TaskFacts {
        let bytes = self.brief.task.len() + self.brief.test_source.len();
        TaskFacts {
            language: self.ground.ecosystem().map(|language| language.name),
            bytes,
        }
    }

    async fn check(
        &self,
        mut work: SubmittedWork<'_>,
        (): (),
    ) -> Result<AcceptedWork, RefusedWork> {
        let mut gates = Gates::default();
        let judged = match &self.phase {
            Phase::Red(red) => red.judge(&self.ground, &mut work, &mut gates).await,
            Phase::Green(green) => {
                green
                    .judge(&self.ground, &self.brief, &mut work, &mut gates)
                    .await
            }
            Phase::Refactor(refactor) => refactor.judge(&self.ground, &mut work, &mut gates).await,
        };
        let judged = match judged {
            Ok(accepted) => self.name_by_products(accepted, &mut work, &mut gates),
            refused => refused,
        };
        gates.close(judged)
    }
}

impl Tdd {
    /// In place, what any run of the tests wrote stays with accepted work, also if the first run did not write it yet.
    fn name_by_products(
        &self,
        mut accepted: AcceptedWork,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
    ) -> Result<AcceptedWork, RefusedWork> {
        if work.site.is_in_place() {
            let now = work.site.changes().map_err(|e| gates.refuse_for_site(&e))?;
            let of_worker: BTreeSet<&Path> = work
                .changed
                .changes
                .iter()
                .map(|change| change.path.as_path())
                .collect();
            // An agent had ended before the tests ran: what came after it is theirs.
            let is_of_tests = |change: &&Change| {
                work.edits == Edits::InPlace
                    && change.kind != ChangeKind::Git
                    && change.thing != Thing::Directory
                    && !of_worker.contains(change.path.as_path())
            };
            let new = now
                .changes
                .iter()
                .filter(is_of_tests)
                .map(|change| &change.path);
            let marked = now.by_products.iter().map(|by_product| &by_product.path);
            let all: BTreeSet<&PathBuf> = self
                .ground
                .by_products
                .iter()
                .chain(marked)
                .chain(new)
                .collect();
            if !all.is_empty() {
                accepted.details["by_products"] = path_texts(all).into();
            }
        }
        Ok(accepted)
    }
}
