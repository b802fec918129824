//! Walks one chain for one job: cheapest tier first, until an answer passes its checks.
//! Knows tiers and verdicts. Does not know which skill is running, nor that MCP exists.

use tokio_util::sync::CancellationToken;

use super::Cause;
use super::attempt::{Attempt, Next};
use super::budget::Budget;
use super::event::{Event, Place, Teller};
use super::evidence::{Evidence, Refusal};
use super::job::{Failed, Held, Job};
use super::means::Means;
use super::site::{Site, SiteError};
use super::trial::{Judged, Tried};
use crate::backend::Edits;
use crate::routing::{Route, Tier};
use crate::words;
use crate::workspace::Scope;

/// How a walk ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// The work is in place and holds.
    Accepted {
        held: Box<Held>,
        model: String,
        /// How its edits came, which says what a restore may undo.
        edits: Edits,
        diff: String,
        files: Vec<String>,
    },
    /// The last word is a no that stands: a contradiction, or what a skill calls final.
    Refused {
        failed: Box<Failed>,
        model: String,
    },
    /// Every tier was tried, or there was no leave to go on.
    Exhausted,
    Cancelled,
    /// The project could not be brought back; nothing more may happen to it.
    Broken(SiteError),
}

/// A walk and its trail.
#[derive(Debug)]
pub(super) struct Walked {
    pub(super) ending: Ending,
    pub(super) attempts: Vec<Attempt>,
    /// The most promising change that was refused.
    pub(super) best: Option<Candidate>,
}

/// A change that was refused and taken back, but may help whoever reads the result.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) model: String,
    pub(super) diff: String,
    rank: u8,
}

pub(super) struct Walk<'a> {
    pub(super) means: &'a Means,
    pub(super) job: &'a dyn Job,
    pub(super) route: &'a Route,
    pub(super) budget: &'a Budget,
    pub(super) teller: &'a Teller<'a>,
    pub(super) stop: &'a CancellationToken,
}

impl Walk<'_> {
    pub(super) async fn run(self, site: &mut Site) -> Walked {
        let mut walked = Walked { ending: Ending::Exhausted, attempts: Vec::new(), best: None };
        let mut evidence = Evidence::default();
        let mut last_answer: Option<blake3::Hash> = None;
        let mut dry: Vec<String> = Vec::new();
        let tiers: Vec<&Tier> = self.route.chain.tiers().collect();
        let mut asked = 0;
        for (n, tier) in tiers.iter().enumerate() {
            let at = Place { tier: n + 1, of: tiers.len(), model: tier.name.to_string() };
            for _ in 0..self.route.attempts_per_tier.max(1) {
                if asked >= self.route.max_attempts {
                    return walked;
                }
                if self.stop.is_cancelled() {
                    walked.ending = Ending::Cancelled;
                    return walked;
                }
                let number = u32::try_from(walked.attempts.len() + 1).unwrap_or(u32::MAX);
                let tried = match self.refuse_to_ask(tier, &dry) {
                    Some(failed) => Tried::unasked(number, tier, failed),
                    None => {
                        asked += 1;
                        self.attempt(number, tier, &at, &evidence, last_answer, site).await
                    }
                };
                let Tried { mut attempt, diff, files, answer, verdict } = tried;
                let failed = match verdict {
                    Judged::Held(held) => {
                        self.teller.tell(Event::Accepted { at: at.clone(), because: held.message.clone() });
                        walked.attempts.push(attempt);
                        let edits = self.edits_of(tier).unwrap_or(Edits::AsData);
                        walked.ending = Ending::Accepted { held, model: at.model, edits, diff, files };
                        return walked;
                    }
                    Judged::Not(failed) => failed,
                };
                let because = words::cut_end(&failed.feedback, 300).into_owned();
                self.teller.tell(Event::Ended { at: at.clone(), cause: failed.cause, because });
                // Before anything else: the next tier, or the user, must find the project as it was.
                let scope =
                    if self.edits_of(tier) == Some(Edits::InPlace) { Scope::Everything } else { Scope::Applied };
                let restored = site.reject(scope).await;
                if let Ok(restored) = &restored
                    && let Some(kept) = &restored.kept_in
                {
                    attempt.output_summary = format!("{}\nkept in {}", attempt.output_summary, kept.display());
                }
                walked.consider(&at.model, failed.cause, &diff);
                walked.attempts.push(attempt);
                if let Err(error) = restored {
                    walked.ending = Ending::Broken(error);
                    return walked;
                }
                evidence.add(Refusal {
                    model: at.model.clone(),
                    cause: failed.cause,
                    feedback: self.means.redactor.redact(&failed.feedback).into_owned(),
                    diff,
                    output: self.means.redactor.redact(&failed.runner_output).into_owned(),
                });
                last_answer = answer.or(last_answer);
                if failed.backend_is_dry {
                    dry.push(tier.backend.name.clone());
                    dry.extend(tier.backend.shares_quota_with.iter().cloned());
                }
                let is_last = n + 1 == tiers.len();
                if failed.is_final || (failed.cause == Cause::Contradiction && is_last) {
                    walked.ending = Ending::Refused { failed, model: at.model };
                    return walked;
                }
                match failed.cause.next() {
                    Next::Stop if failed.cause == Cause::Cancelled => {
                        walked.ending = Ending::Cancelled;
                        return walked;
                    }
                    Next::Stop => {
                        walked.ending = Ending::Exhausted;
                        return walked;
                    }
                    Next::Done | Next::NextTier => walked.ending = Ending::Exhausted,
                }
                // Asking the same model again helps only where it was heard and refused.
                if failed.cause != Cause::Rejected {
                    break;
                }
            }
        }
        walked
    }
}

impl Walked {
    fn consider(&mut self, model: &str, cause: Cause, diff: &str) {
        // A change that only the verifier or a flaky test spoke against is nearest to the goal.
        let rank = match cause {
            Cause::CannotVerify => 3,
            Cause::Rejected => 2,
            Cause::Contradiction | Cause::Incapable => 1,
            _ => return,
        };
        if !diff.is_empty() && self.best.as_ref().is_none_or(|best| rank >= best.rank) {
            self.best = Some(Candidate { model: model.to_owned(), diff: diff.to_owned(), rank });
        }
    }
}
