//! The `review` skill: the questions for each tier and the check of their answers.

use std::path::PathBuf;

use serde_json::Value;

use super::brief::ReviewBrief;
use super::call::ReviewRequest;
use super::judgement;
use super::judgement::{DroppedFinding, JudgedReview, ScopePart};
use super::material::ReviewMaterial;
use super::params::ReviewParams;
use super::report::ReviewReport;
use crate::common::Gates;
use supervisor_engine::Cause;
use supervisor_engine::evidence::Evidence;
use supervisor_engine::skill::{
    Access, Preparation, PreparedCall, Question, RefusedCall, Skill, TierUnfit,
};
use supervisor_engine::work::{AcceptedWork, RefusedWork, SubmittedWork};
use supervisor_models::Edits;
use supervisor_settings::Tier;
use supervisor_text::words;
use supervisor_verify::Proof;
use supervisor_workspace::ChangeSet;

/// A prepared `review` call.
pub(super) struct ReviewSkill {
    pub(super) brief: ReviewBrief,
    pub(super) material: ReviewMaterial,
}

impl Skill for ReviewSkill {
    type Params = ReviewParams;
    /// The lines that each question showed. Only those may be cited.
    type Shown = Vec<ScopePart>;

    fn access(params: &ReviewParams) -> Result<Access, RefusedCall> {
        ReviewRequest::of(params).map(|_| Access::Read)
    }

    async fn prepare(
        params: &ReviewParams,
        call: &mut Preparation<'_>,
    ) -> Result<PreparedCall<Self>, RefusedCall> {
        ReviewRequest::of(params)?.prepare(call).await
    }

    fn ask(
        &self,
        tier: &Tier,
        _: Edits,
        evidence: &Evidence,
    ) -> Result<(Vec<Question>, Vec<ScopePart>), TierUnfit> {
        self.brief.questions(&self.material, tier, evidence)
    }

    async fn check(
        &self,
        work: SubmittedWork<'_>,
        shown: Vec<ScopePart>,
    ) -> Result<AcceptedWork, RefusedWork> {
        let (mut gates, replies) = (Gates::default(), work.replies);
        let judged = self.judge(work, &shown, &mut gates).await;
        gates.close_text(judged, replies)
    }
}

impl ReviewSkill {
    async fn judge(
        &self,
        work: SubmittedWork<'_>,
        parts: &[ScopePart],
        gates: &mut Gates,
    ) -> Result<AcceptedWork, RefusedWork> {
        let paths = |changed: &ChangeSet| {
            changed
                .changes
                .iter()
                .map(|change| change.path.clone())
                .collect()
        };
        let (by_worker, by_others): (Vec<PathBuf>, Vec<PathBuf>) = match work.edits {
            Edits::InPlace => (paths(work.changed), Vec::new()),
            // A model without tools cannot write, so another process made the change. The result
            // says so.
            Edits::AsData => {
                let (changed, _) = gates.site(work.site.review(0).await)?;
                (Vec::new(), paths(&changed))
            }
        };
        let untouched = judgement::check_untouched(&by_worker);
        if !untouched.passed() {
            return Err(gates.refuse(untouched.id(), Cause::Tampered, untouched.detail()));
        }
        gates.pass(untouched.id(), untouched.detail());
        if !by_others.is_empty() {
            let names = words::list(by_others.iter().map(|path| path.to_string_lossy()), 10);
            gates.pass(
                "meanwhile",
                format!("changed by another process during the review: {names}"),
            );
        }
        let replies: Vec<&Value> = work.replies.iter().map(|reply| &reply.body).collect();
        let mut judged = judgement::judge(
            &self.material.scope,
            parts,
            &self.brief.requirements,
            &replies,
        );
        for check in &judged.checks {
            gates.check(check).map_err(|failed| RefusedWork {
                runner_output: list_dropped(&judged),
                ..failed
            })?;
        }
        let mut checks = std::mem::take(&mut judged.checks);
        checks.insert(0, untouched);
        let proof = Proof::of_checks(checks)
            .map_err(|e| gates.refuse("proof", Cause::Rejected, e.to_string()))?;
        Ok(ReviewReport {
            material: &self.material,
            judged,
            questions: parts.len(),
            by_others,
        }
        .accepted_with(proof))
    }
}

/// Lists the findings of a refused reply that were dropped.
fn list_dropped(judged: &JudgedReview) -> String {
    let line =
        |dropped: &DroppedFinding| format!("finding {}: {}\n", dropped.finding, dropped.because);
    words::cut_middle(&judged.dropped.iter().map(line).collect::<String>(), 4000).into_owned()
}
