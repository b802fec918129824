//! The question for each tier and the check of each answer. Cheap gates first, the tests that were named last.

use std::path::{Path, PathBuf};

use super::answer::{DebugAnswer, WrittenFiles};
use super::brief::DebugBrief;
use super::call::DebugSubject;
use super::files;
use super::params::DebugParams;
use super::visits::Visit;
use crate::answers::diagnosis;
use crate::answers::diagnosis::{EvidenceShelf, Experiment, HypothesisDraft};
use crate::common::{Gates, named};
use supervisor_engine::Cause;
use supervisor_engine::evidence::Evidence;
use supervisor_engine::skill::{
    Access, Preparation, PreparedCall, Question, RefusedCall, Skill, TierUnfit,
};
use supervisor_engine::work::{AcceptedWork, RefusedWork, SubmittedWork};
use supervisor_models::Edits;
use supervisor_settings::Tier;
use supervisor_text::words;
use supervisor_verify::{Bench, Repro, TestLab};

/// An error, ready to be asked about.
pub(super) struct Debug {
    /// Canonical.
    pub(super) root: PathBuf,
    pub(super) error: String,
    pub(super) brief: DebugBrief,
    pub(super) repro: Option<Repro>,
    /// By the command that shows the error.
    pub(super) wrote: WrittenFiles,
    pub(super) lab: TestLab,
    /// Without a guard: the site gives one when something is run.
    pub(super) bench: Bench,
    pub(super) visit: Visit,
    pub(super) session: String,
}

impl Skill for Debug {
    type Params = DebugParams;
    type Shown = ();

    fn access(asked: &DebugParams) -> Result<Access, RefusedCall> {
        // What is wrong with the root itself is said when it is opened.
        if let Ok(root) = Path::new(&asked.project_root).canonicalize() {
            DebugSubject::of(asked, &root)?;
        }
        Ok(Access::RunCommands)
    }

    async fn prepare(
        asked: &DebugParams,
        call: &mut Preparation<'_>,
    ) -> Result<PreparedCall<Self>, RefusedCall> {
        DebugSubject::of(asked, call.root())?.prepare(call).await
    }

    fn ask(
        &self,
        tier: &Tier,
        _: Edits,
        evidence: &Evidence,
    ) -> Result<(Vec<Question>, ()), TierUnfit> {
        Ok((vec![self.brief.question(tier, evidence)], ()))
    }

    async fn check(
        &self,
        mut work: SubmittedWork<'_>,
        (): (),
    ) -> Result<AcceptedWork, RefusedWork> {
        let mut gates = Gates::default();
        let judged = self.judge(&mut work, &mut gates).await;
        gates.close(judged)
    }
}

impl Debug {
    async fn judge(
        &self,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
    ) -> Result<AcceptedWork, RefusedWork> {
        untouched(work, gates)?;
        let drafts = match diagnosis::drafts(&work.reply().body) {
            Ok(drafts) => drafts,
            Err(check) => {
                return Err(gates.refuse_with(
                    check.id(),
                    Cause::Rejected,
                    check.detail(),
                    check.detail(),
                ));
            }
        };
        work.checking("reading what the answer cites");
        let shelf = EvidenceShelf::of(drafts.iter().flat_map(HypothesisDraft::files), |said| {
            files::read(&self.root, said)
        });
        let examined = diagnosis::examine(&drafts, &self.error, &shelf);
        gates.all(&examined.checks)?;
        let found = examined.hypotheses.expect("all checks held");
        let runs = found
            .iter()
            .any(|h| matches!(h.experiment, Experiment::RunTest(_)));
        let guard = if runs {
            work.site.guard().map_err(|e| gates.refuse_for_site(&e))?
        } else {
            None
        };
        let bench = Bench {
            guard,
            ..self.bench.clone()
        };
        let mut confirmed = Vec::new();
        for (n, hypothesis) in found.iter().enumerate() {
            let what =
                words::cut_end(&words::plain(&hypothesis.experiment.to_string()), 120).into_owned();
            work.checking(format!("confirming {} of {}: {what}", n + 1, found.len()));
            confirmed.push(
                hypothesis
                    .confirm(&self.lab, &shelf, &bench, work.stop)
                    .await,
            );
        }
        drop(bench);
        let mut wrote = self.wrote.clone();
        if runs {
            // Whatever differs now, the tests wrote; it is taken back with the rest.
            wrote.add(&work.site.changes().map_err(|e| gates.refuse_for_site(&e))?);
        }
        if runs && work.edits == Edits::AsData {
            let marked = work
                .site
                .armed()
                .and_then(|armed| Ok(armed.mark_by_products()?));
            marked.map_err(|e| gates.refuse_for_site(&e))?;
        }
        let (confirmed, cause) = diagnosis::compare(&found, confirmed);
        let proof = diagnosis::proof(examined.checks, self.repro.as_ref(), &confirmed, cause);
        let flags = examined.flags;
        Ok(DebugAnswer {
            job: self,
            found: &found,
            confirmed: &confirmed,
            cause,
            shelf: &shelf,
            flags,
            wrote,
        }
        .accepted_with(proof))
    }
}

/// A diagnosis changes nothing. The project was as it should be when the worker began, so that whatever differs is its own.
fn untouched(work: &SubmittedWork<'_>, gates: &mut Gates) -> Result<(), RefusedWork> {
    let changed = work.changed.changes.iter().map(|change| &change.path);
    let touched: Vec<&PathBuf> = changed
        .chain(work.changed.by_products.iter().map(|b| &b.path))
        .collect();
    if touched.is_empty() {
        gates.pass("untouched", "no file was changed");
        return Ok(());
    }
    let names: Vec<String> = touched.iter().take(5).map(|path| named(path)).collect();
    let more = touched.len().saturating_sub(names.len());
    let more = if more > 0 {
        format!(" and {}", words::count(more, "other"))
    } else {
        String::new()
    };
    let why = format!(
        "nothing may be changed by a diagnosis, and it was: {}{more}",
        names.join(", ")
    );
    Err(gates.refuse("untouched", Cause::Tampered, why))
}
