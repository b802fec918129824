//! The `debug` skill: one question per tier, then the check of each answer. Cheap gates run first,
//! experiments last.

use std::path::{Path, PathBuf};

use super::brief::DebugBrief;
use super::call::DebugRequest;
use super::diagnosis;
use super::diagnosis::{EvidenceSources, Experiment, HypothesisDraft};
use super::files;
use super::params::DebugParams;
use super::report::{DebugReport, WrittenFiles};
use super::visits::VisitNumber;
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
use supervisor_verify::{NamedTestRunner, Repro, RunEnvironment};

/// A prepared `debug` call.
pub(super) struct DebugSkill {
    /// Canonical.
    pub(super) root: PathBuf,
    pub(super) error: String,
    pub(super) brief: DebugBrief,
    pub(super) repro: Option<Repro>,
    /// Files written by the reproduction command.
    pub(super) wrote: WrittenFiles,
    pub(super) lab: NamedTestRunner,
    /// Has no guard; the site provides one when something is run.
    pub(super) bench: RunEnvironment,
    pub(super) visit: VisitNumber,
    pub(super) session: String,
}

impl Skill for DebugSkill {
    type Params = DebugParams;
    type Shown = ();

    fn access(params: &DebugParams) -> Result<Access, RefusedCall> {
        // A bad root is reported when the workspace is opened.
        if let Ok(root) = Path::new(&params.project_root).canonicalize() {
            DebugRequest::of(params, &root, None)?;
        }
        Ok(Access::RunCommands)
    }

    async fn prepare(
        params: &DebugParams,
        call: &mut Preparation<'_>,
    ) -> Result<PreparedCall<Self>, RefusedCall> {
        DebugRequest::of(params, call.root(), Some(call.routing()))?
            .prepare(call)
            .await
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
        let (mut gates, replies) = (Gates::default(), work.replies);
        let judged = self.judge(&mut work, &mut gates).await;
        gates.close_text(judged, replies)
    }
}

impl DebugSkill {
    async fn judge(
        &self,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
    ) -> Result<AcceptedWork, RefusedWork> {
        check_untouched(work, gates)?;
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
        let sources =
            EvidenceSources::of(drafts.iter().flat_map(HypothesisDraft::files), |given| {
                files::read(&self.root, given)
            });
        let examined = diagnosis::examine(&drafts, &self.error, &sources);
        gates.check_all(&examined.checks)?;
        let hypotheses = examined.hypotheses.expect("all checks passed");
        let runs_tests = hypotheses
            .iter()
            .any(|h| matches!(h.experiment, Experiment::RunTest(_)));
        let guard = if runs_tests {
            gates.site(work.site.guard())?
        } else {
            None
        };
        let bench = RunEnvironment {
            guard,
            ..self.bench.clone()
        };
        let mut confirmed = Vec::new();
        for (n, hypothesis) in hypotheses.iter().enumerate() {
            let what = words::short(&hypothesis.experiment.to_string(), 120);
            work.checking(format!(
                "confirming {} of {}: {what}",
                n + 1,
                hypotheses.len()
            ));
            confirmed.push(
                hypothesis
                    .confirm(&self.lab, &sources, &bench, work.stop)
                    .await,
            );
        }
        drop(bench);
        let mut wrote = self.wrote.clone();
        if runs_tests {
            // The tests made these changes; they are reverted with the rest.
            wrote.add(&gates.site(work.site.changes())?);
        }
        if runs_tests && work.edits == Edits::AsData {
            let marked = work
                .site
                .armed()
                .and_then(|armed| Ok(armed.mark_by_products()?));
            gates.site(marked)?;
        }
        let (confirmed, cause) = diagnosis::compare(&hypotheses, confirmed);
        let proof = diagnosis::proof(examined.checks, self.repro.as_ref(), &confirmed, cause);
        let flags = examined.flags;
        Ok(DebugReport {
            job: self,
            hypotheses: &hypotheses,
            confirmed: &confirmed,
            cause,
            sources: &sources,
            flags,
            wrote,
        }
        .accepted_with(proof))
    }
}

/// Fails if the worker changed anything. The project was clean when it started, so every change is
/// its own.
fn check_untouched(work: &SubmittedWork<'_>, gates: &mut Gates) -> Result<(), RefusedWork> {
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
