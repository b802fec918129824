//! Walks the chain of one call, cheapest tier first, until an answer passes its checks.
//! [`super::decide`] chooses the next step; this module executes it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Cause;
use super::attempt::Attempt;
use super::budget::Budget;
use super::decide::{PastAttempt, PlannedTier, WalkEnd, WalkPlan, WalkStep, decide};
use super::event::{AttemptSummary, ChainPosition, Event, EventReporter};
use super::evidence::{Evidence, FollowUpAllowance, PriorRefusal};
use super::project_access::{Site, SiteError};
use super::services::{OpenRecord, Services};
use super::skill::{PreparedCall, Skill};
use super::tier_attempt::{TierAttempt, TierAttemptReport};
use super::work::{AcceptedWork, FailingTests, RefusedWork};
use supervisor_models::Edits;
use supervisor_settings::{Outage, Repair, Route, Tier};
use supervisor_text::words;
use supervisor_workspace::{RestoreReport, Scope};

/// Context of every step of a walk.
#[derive(Clone, Copy)]
pub(super) struct WalkContext<'a> {
    pub(super) services: &'a Services,
    pub(super) route: &'a Route,
    pub(super) budget: &'a Budget,
    pub(super) reporter: &'a EventReporter<'a>,
    pub(super) stop: &'a CancellationToken,
    /// Notified of each attempt when it begins and when it ends.
    pub(super) record: &'a dyn OpenRecord,
    /// Notes from earlier work about the task; empty if there are none.
    pub(super) recalled: &'a str,
}

impl WalkContext<'_> {
    pub(super) fn edits_of(&self, tier: &Tier) -> Option<Edits> {
        self.services
            .backends
            .of(tier)
            .ok()
            .map(|backend| backend.edits(tier))
    }

    /// What a restore after this tier may undo.
    pub(super) fn restore_scope(&self, tier: &Tier) -> Scope {
        if self.edits_of(tier) == Some(Edits::InPlace) {
            Scope::Everything
        } else {
            Scope::Applied
        }
    }

    fn plan(&self) -> WalkPlan {
        let plan = |tier: &Tier| PlannedTier {
            backend: tier.backend.name.clone(),
            shares_quota_with: tier.backend.shares_quota_with.clone(),
            tries: tier.attempts.max(1),
            is_out: tier.outage.is_some(),
        };
        WalkPlan {
            tiers: self.route.chain.tiers().map(plan).collect(),
            max_attempts: self.route.max_attempts,
        }
    }
}

/// How a walk ended.
#[derive(Debug)]
pub(super) enum WalkEnding {
    /// The work passed all checks and is in place.
    Accepted {
        work: Box<AcceptedWork>,
        model: String,
        /// How the edits were made; decides what a restore may undo.
        edits: Edits,
        diff: String,
        files: Vec<String>,
    },
    /// The last refusal is final: a contradiction, or a refusal that the skill calls final.
    Refused {
        work: Box<RefusedWork>,
        model: String,
    },
    /// Nothing was accepted, and no tier is left or the walk may not go on.
    Exhausted(WalkEnd),
    Cancelled,
    /// The project could not be restored; nothing may change it any further.
    RestoreFailed(SiteError),
}

/// A finished walk.
#[derive(Debug)]
pub(super) struct WalkReport {
    pub(super) ending: WalkEnding,
    pub(super) attempts: Vec<Attempt>,
    /// The most promising refused change.
    pub(super) best: Option<Candidate>,
    pub(super) side_effects: SideEffects,
}

/// Changes by other processes that the walk came across, and files it moved aside.
#[derive(Debug, Clone, Default)]
pub(super) struct SideEffects {
    /// Changed by other processes and left alone.
    pub(super) external_changes: BTreeSet<PathBuf>,
    /// Changed by other processes on top of an attempt and undone with it; copies are kept.
    pub(super) undone_external_changes: BTreeSet<PathBuf>,
    /// Folders with the files of refused attempts.
    pub(super) rejected_files: Vec<PathBuf>,
    /// Metadata that could not be restored: path and kind.
    pub(super) unrestored_metadata: BTreeSet<(PathBuf, &'static str)>,
}

impl SideEffects {
    fn note(&mut self, restored: &RestoreReport) {
        self.external_changes
            .extend(restored.others.iter().map(|change| change.path.clone()));
        self.undone_external_changes
            .extend(restored.overwritten.iter().cloned());
        self.rejected_files.extend(restored.kept_in.clone());
        self.unrestored_metadata
            .extend(restored.lost.iter().cloned());
    }
}

/// A refused answer or undone change that may help the reader of the result.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) model: String,
    /// Empty if the answer is text.
    pub(super) diff: String,
    /// The answer as data, if it is text.
    pub(super) answer: Option<Box<Value>>,
    rank: (u8, bool),
}

/// State of a walk in progress.
#[derive(Default)]
struct WalkState {
    attempts: Vec<Attempt>,
    past: Vec<PastAttempt>,
    evidence: Evidence,
    best: Option<Candidate>,
    last_answer: Option<blake3::Hash>,
    last_failure: Option<blake3::Hash>,
    side_effects: SideEffects,
}

/// Asks tier after tier until an answer passes its checks.
pub(super) async fn walk_chain<S: Skill>(
    context: WalkContext<'_>,
    call: &PreparedCall<S>,
    site: &mut Site,
) -> WalkReport {
    let (plan, mut state) = (context.plan(), WalkState::default());
    let tiers: Vec<&Tier> = context.route.chain.tiers().collect();
    let mut allowances = vec![FollowUpAllowance::default(); tiers.len()];
    let mut last_refusal = None;
    let ending = loop {
        let (n, should_ask) = match decide(&plan, &state.past) {
            WalkStep::Ask(n) => (n, true),
            WalkStep::Skip(n) => (n, false),
            WalkStep::End(WalkEnd::Cancelled) => break WalkEnding::Cancelled,
            WalkStep::End(end) => match last_refusal.take() {
                Some((work, model)) if end == WalkEnd::Refused => {
                    break WalkEnding::Refused { work, model };
                }
                _ => break WalkEnding::Exhausted(end),
            },
        };
        if context.stop.is_cancelled() {
            break WalkEnding::Cancelled;
        }
        let tier = tiers[n];
        let at = ChainPosition {
            tier: n + 1,
            of: tiers.len(),
            model: tier.name.to_string(),
        };
        let number = u32::try_from(state.attempts.len() + 1).unwrap_or(u32::MAX);
        let report = if should_ask {
            let before = state
                .past
                .iter()
                .rev()
                .take_while(|attempt| attempt.tier == n)
                .count();
            let turn = u32::try_from(before + 1).unwrap_or(u32::MAX);
            let trial = TierAttempt {
                context,
                call,
                tier,
                at: &at,
                turn,
            };
            context.record.note(&Attempt::begun(number, tier));
            trial
                .run(
                    number,
                    &state.evidence,
                    state.last_answer,
                    &mut allowances[n],
                    site,
                )
                .await
        } else {
            TierAttemptReport::unasked(number, tier, skipped(tier))
        };
        context.record.note(&report.attempt);
        report
            .restored
            .iter()
            .for_each(|restored| state.side_effects.note(restored));
        if let Some(error) = report.restore_error {
            state.attempts.push(report.attempt);
            break WalkEnding::RestoreFailed(error);
        }
        let TierAttemptReport {
            mut attempt,
            diff,
            files,
            answer,
            repeats,
            verdict,
            ..
        } = report;
        let left = AttemptSummary {
            cost_usd: attempt.cost_usd,
            diff: diff.clone(),
        };
        let refused = match verdict {
            Ok(work) => {
                context.reporter.report(Event::Accepted {
                    at: at.clone(),
                    because: work.message.clone(),
                    left,
                });
                state.attempts.push(attempt);
                let edits = context.edits_of(tier).unwrap_or(Edits::AsData);
                break WalkEnding::Accepted {
                    work,
                    model: at.model,
                    edits,
                    diff,
                    files,
                };
            }
            Err(refused) => refused,
        };
        let because = words::cut_end(refused.reason(), 300).into_owned();
        // A tier that is not set up is in the log; nobody needs to hear of it.
        if tier.outage.is_none() {
            context.reporter.report(Event::Ended {
                at: at.clone(),
                cause: refused.cause,
                because,
                left,
            });
        }
        // First of all: the next tier, or the user, must find the project as it was.
        let restored = site.reject(context.restore_scope(tier)).await;
        if let Ok(restored) = &restored {
            state.side_effects.note(restored);
            if let Some(kept) = &restored.kept_in {
                attempt.output_summary =
                    format!("{}\nkept in {}", attempt.output_summary, kept.display());
            }
        }
        state.attempts.push(attempt);
        if let Err(error) = restored {
            break WalkEnding::RestoreFailed(error);
        }
        state.record_refusal(n, &at.model, context, &refused, diff, answer, repeats);
        last_refusal = Some((refused, at.model));
    };
    WalkReport {
        ending,
        attempts: state.attempts,
        best: state.best,
        side_effects: state.side_effects,
    }
}

/// Why a tier is passed over.
fn skipped(tier: &Tier) -> RefusedWork {
    match &tier.outage {
        Some(Outage { why, hint }) => RefusedWork {
            reason: Some(format!("`{}` was not asked: {why}", tier.name)),
            hint: Some(hint.clone()),
            ..RefusedWork::new(Cause::Skipped, format!("not asked: {why}; {hint}"))
        },
        None => RefusedWork::new(
            Cause::Skipped,
            format!("the quota of `{}` is used up", tier.backend.name),
        ),
    }
}

impl WalkState {
    /// Records a refusal for the next tier and for the next decision.
    #[expect(
        clippy::too_many_arguments,
        reason = "one refused attempt with all that is known of it"
    )]
    fn record_refusal(
        &mut self,
        tier: usize,
        model: &str,
        context: WalkContext<'_>,
        refused: &RefusedWork,
        diff: String,
        answer: Option<blake3::Hash>,
        repeats: bool,
    ) {
        self.update_best(model, refused, &diff);
        let failure = fingerprint(&diff, &refused.feedback);
        let is_same_tier = self.past.last().is_some_and(|past| past.tier == tier);
        let fails_identically = is_same_tier && failure.is_some() && failure == self.last_failure;
        self.last_failure = failure;
        // An answer that could not be judged was not refused: judge it again if another tier gives
        // it.
        if refused.cause != Cause::CannotVerify {
            self.last_answer = answer.or(self.last_answer);
        }
        let (cause, reach) = (refused.cause, refused.reach);
        self.past.push(PastAttempt {
            tier,
            cause,
            reach,
            repeats: repeats || fails_identically,
        });
        let hide = |text: &str| context.services.redactor.hide(text).into_owned();
        self.evidence.add(PriorRefusal {
            model: model.to_owned(),
            cause,
            feedback: hide(&refused.feedback),
            diff,
            output: hide(&refused.runner_output),
            failing: match context.route.repair {
                Repair::Cause => refused.failing.clone().map(|failing| FailingTests {
                    assertion: hide(&failing.assertion),
                    ..failing
                }),
                Repair::Plain => None,
            },
        });
    }

    fn update_best(&mut self, model: &str, refused: &RefusedWork, diff: &str) {
        // A change that failed only because of the verifier or a flaky test is closest to the goal.
        let rank = match refused.cause {
            Cause::CannotVerify => 3,
            Cause::Rejected => 2,
            Cause::Contradiction | Cause::Incapable => 1,
            _ => return,
        };
        let has_passed_gates = self.attempts.last().is_some_and(|last| last.gates_passed);
        let rank = (rank, has_passed_gates);
        let has_work = !diff.is_empty() || refused.answer.is_some();
        if has_work && self.best.as_ref().is_none_or(|best| rank >= best.rank) {
            self.best = Some(Candidate {
                model: model.to_owned(),
                diff: diff.to_owned(),
                answer: refused.answer.clone(),
                rank,
            });
        }
    }
}

/// Hash that is equal for the same change failing for the same reason; `None` if nothing was
/// changed.
fn fingerprint(diff: &str, feedback: &str) -> Option<blake3::Hash> {
    (!diff.is_empty()).then(|| blake3::hash(format!("{diff}\0{feedback}").as_bytes()))
}
