//! Walks one chain for one call: cheapest tier first, until an answer passes its checks. What comes next is decided in
//! [`super::decide`]; here it is done. Does not know which skill is running, nor that MCP exists.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::Cause;
use super::attempt::Attempt;
use super::budget::Budget;
use super::decide::{PastAttempt, PlannedTier, WalkEnd, WalkPlan, WalkStep, decide};
use super::event::{AttemptTraces, ChainPlace, Event, Teller};
use super::evidence::{Evidence, FollowUpAllowance, PriorRefusal};
use super::means::{Means, OpenRecord};
use super::site::{Site, SiteError};
use super::skill::{PreparedCall, Skill};
use super::trial::{Trial, TrialReport};
use super::work::{AcceptedWork, RefusedWork};
use supervisor_models::Edits;
use supervisor_settings::{Route, Tier};
use supervisor_text::words;
use supervisor_workspace::{RestoreReport, Scope};

/// What every step of a walk works with.
#[derive(Clone, Copy)]
pub(super) struct WalkContext<'a> {
    pub(super) means: &'a Means,
    pub(super) route: &'a Route,
    pub(super) budget: &'a Budget,
    pub(super) teller: &'a Teller<'a>,
    pub(super) stop: &'a CancellationToken,
    /// Hears of each attempt when it begins and when it ends.
    pub(super) open: &'a dyn OpenRecord,
    /// What earlier work says about the task; empty if nothing.
    pub(super) recalled: &'a str,
}

impl WalkContext<'_> {
    pub(super) fn edits_of(&self, tier: &Tier) -> Option<Edits> {
        self.means
            .backends
            .of(tier)
            .ok()
            .map(|backend| backend.edits())
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
    /// The work is in place and holds.
    Accepted {
        work: Box<AcceptedWork>,
        model: String,
        /// How its edits came, which says what a restore may undo.
        edits: Edits,
        diff: String,
        files: Vec<String>,
    },
    /// The last word is a no that stands: a contradiction, or what a skill calls final.
    Refused {
        work: Box<RefusedWork>,
        model: String,
    },
    /// Nothing was accepted, and there is no tier left to ask or no leave to go on.
    Exhausted(WalkEnd),
    Cancelled,
    /// The project could not be brought back; nothing more may happen to it.
    Broken(SiteError),
}

/// A walk and its trail.
#[derive(Debug)]
pub(super) struct WalkReport {
    pub(super) ending: WalkEnding,
    pub(super) attempts: Vec<Attempt>,
    /// The most promising change that was refused.
    pub(super) best: Option<Candidate>,
    pub(super) met: MetWork,
}

/// What a walk met of others, and what it put aside.
#[derive(Debug, Clone, Default)]
pub(super) struct MetWork {
    /// Changed by others, and left as it is.
    pub(super) others: BTreeSet<PathBuf>,
    /// Changed by others on top of an attempt, and undone with it; kept aside.
    pub(super) undone: BTreeSet<PathBuf>,
    /// Where the files of refused attempts are kept.
    pub(super) kept_in: Vec<PathBuf>,
    /// What could not be given back to a file: its path, and what it had.
    pub(super) lost: BTreeSet<(PathBuf, &'static str)>,
}

impl MetWork {
    fn note(&mut self, restored: &RestoreReport) {
        self.others
            .extend(restored.others.iter().map(|change| change.path.clone()));
        self.undone.extend(restored.overwritten.iter().cloned());
        self.kept_in.extend(restored.kept_in.clone());
        self.lost.extend(restored.lost.iter().cloned());
    }
}

/// A change that was refused and taken back, but may help the reader of the result.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) model: String,
    pub(super) diff: String,
    rank: u8,
}

/// What has happened so far.
#[derive(Default)]
struct Trail {
    attempts: Vec<Attempt>,
    past: Vec<PastAttempt>,
    evidence: Evidence,
    best: Option<Candidate>,
    last_answer: Option<blake3::Hash>,
    last_failure: Option<blake3::Hash>,
    met: MetWork,
}

/// Asks tier after tier until there is an answer that holds.
pub(super) async fn walk_chain<S: Skill>(
    context: WalkContext<'_>,
    call: &PreparedCall<S>,
    site: &mut Site,
) -> WalkReport {
    let (plan, mut trail) = (context.plan(), Trail::default());
    let tiers: Vec<&Tier> = context.route.chain.tiers().collect();
    let mut allowances = vec![FollowUpAllowance::default(); tiers.len()];
    let mut last_refusal = None;
    let ending = loop {
        let (n, is_asked) = match decide(&plan, &trail.past) {
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
        let at = ChainPlace {
            tier: n + 1,
            of: tiers.len(),
            model: tier.name.to_string(),
        };
        let number = u32::try_from(trail.attempts.len() + 1).unwrap_or(u32::MAX);
        let report = if is_asked {
            let before = trail
                .past
                .iter()
                .rev()
                .take_while(|attempt| attempt.tier == n)
                .count();
            let turn = u32::try_from(before + 1).unwrap_or(u32::MAX);
            let trial = Trial {
                context,
                call,
                tier,
                at: &at,
                turn,
            };
            context.open.note(&Attempt::begun(number, tier));
            trial
                .run(
                    number,
                    &trail.evidence,
                    trail.last_answer,
                    &mut allowances[n],
                    site,
                )
                .await
        } else {
            let why = format!(
                "not asked: it shares the quota of `{}`, which is used up",
                tier.backend.name
            );
            TrialReport::unasked(number, tier, RefusedWork::new(Cause::Skipped, why))
        };
        context.open.note(&report.attempt);
        if let Some(error) = report.broken {
            trail.attempts.push(report.attempt);
            break WalkEnding::Broken(error);
        }
        let TrialReport {
            mut attempt,
            diff,
            files,
            answer,
            repeats,
            verdict,
            ..
        } = report;
        let left = AttemptTraces {
            cost_usd: attempt.cost_usd,
            diff: diff.clone(),
        };
        let refused = match verdict {
            Ok(work) => {
                context.teller.tell(Event::Accepted {
                    at: at.clone(),
                    because: work.message.clone(),
                    left,
                });
                trail.attempts.push(attempt);
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
        let because = words::cut_end(&refused.feedback, 300).into_owned();
        context.teller.tell(Event::Ended {
            at: at.clone(),
            cause: refused.cause,
            because,
            left,
        });
        // Before anything else: the next tier, or the user, must find the project as it was.
        let restored = site.reject(context.restore_scope(tier)).await;
        if let Ok(restored) = &restored {
            trail.met.note(restored);
            if let Some(kept) = &restored.kept_in {
                attempt.output_summary =
                    format!("{}\nkept in {}", attempt.output_summary, kept.display());
            }
        }
        trail.attempts.push(attempt);
        if let Err(error) = restored {
            break WalkEnding::Broken(error);
        }
        trail.note(n, &at.model, context.means, &refused, diff, answer, repeats);
        last_refusal = Some((refused, at.model));
    };
    WalkReport {
        ending,
        attempts: trail.attempts,
        best: trail.best,
        met: trail.met,
    }
}

impl Trail {
    /// Remembers a refusal, for the next tier and for the next step.
    #[expect(
        clippy::too_many_arguments,
        reason = "one refused attempt with all that is known of it"
    )]
    fn note(
        &mut self,
        tier: usize,
        model: &str,
        means: &Means,
        refused: &RefusedWork,
        diff: String,
        answer: Option<blake3::Hash>,
        repeats: bool,
    ) {
        self.consider(model, refused.cause, &diff);
        let failure = fingerprint(&diff, &refused.feedback);
        let is_same_tier = self.past.last().is_some_and(|past| past.tier == tier);
        let fails_alike = is_same_tier && failure.is_some() && failure == self.last_failure;
        self.last_failure = failure;
        // What could not be judged was not refused: from another tier the same answer is judged again.
        if refused.cause != Cause::CannotVerify {
            self.last_answer = answer.or(self.last_answer);
        }
        let (cause, reach) = (refused.cause, refused.reach);
        self.past.push(PastAttempt {
            tier,
            cause,
            reach,
            repeats: repeats || fails_alike,
        });
        self.evidence.add(PriorRefusal {
            model: model.to_owned(),
            cause,
            feedback: means.redactor.redact(&refused.feedback).into_owned(),
            diff,
            output: means.redactor.redact(&refused.runner_output).into_owned(),
        });
    }

    fn consider(&mut self, model: &str, cause: Cause, diff: &str) {
        // A change that only the verifier or a flaky test spoke against is nearest to the goal.
        let rank = match cause {
            Cause::CannotVerify => 3,
            Cause::Rejected => 2,
            Cause::Contradiction | Cause::Incapable => 1,
            _ => return,
        };
        if !diff.is_empty() && self.best.as_ref().is_none_or(|best| rank >= best.rank) {
            self.best = Some(Candidate {
                model: model.to_owned(),
                diff: diff.to_owned(),
                rank,
            });
        }
    }
}

/// The same change that fails for the same reason; `None` if nothing was changed.
fn fingerprint(diff: &str, feedback: &str) -> Option<blake3::Hash> {
    (!diff.is_empty()).then(|| blake3::hash(format!("{diff}\0{feedback}").as_bytes()))
}
