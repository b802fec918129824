//! The questions of one attempt, each with leave of breaker and budget.
//! Knows how a tier is asked. What the answers are worth is said in [`super::trial`].

use std::time::Instant;

use super::Cause;
use super::attempt::Attempt;
use super::budget::worst_case;
use super::event::{Event, Place};
use super::evidence::Evidence;
use super::job::{Failed, Question};
use super::site::Site;
use super::walk::Walk;
use crate::backend::{Ask, AskError, Backend, Blame, Edits, Reply, Step, Usage};
use crate::routing::Tier;

impl Walk<'_> {
    /// Every question in turn. The first that is not answered ends the attempt; what was used up to then is noted.
    pub(super) async fn ask(
        &self,
        tier: &Tier,
        at: &Place,
        evidence: &Evidence,
        site: &mut Site,
        attempt: &mut Attempt,
    ) -> Result<(Vec<Reply>, Edits), Failed> {
        let backend = self.means.backends.of(tier).map_err(|error| unanswered(&error))?;
        let edits = backend.edits();
        let questions = self.job.questions(tier, edits, evidence).map_err(|why| Failed::new(Cause::Incapable, why))?;
        let (mut replies, mut used, of) = (Vec::with_capacity(questions.len()), None, questions.len());
        let mut failed = None;
        for (n, question) in questions.into_iter().enumerate() {
            if of > 1 {
                let what = format!("question {} of {of}", n + 1);
                self.teller.tell(Event::Working { at: at.clone(), what });
            }
            match self.ask_once(&*backend, question, tier, at, site, &mut used).await {
                Ok(reply) => replies.push(reply),
                Err(why) => {
                    failed = Some(why);
                    break;
                }
            }
        }
        if let Some(usage) = &used {
            attempt.note(usage);
        }
        match failed {
            Some(failed) => Err(failed),
            None => Ok((replies, edits)),
        }
    }

    /// One question: leave of the breaker and the budget first.
    async fn ask_once(
        &self,
        backend: &dyn Backend,
        question: Question,
        tier: &Tier,
        at: &Place,
        site: &mut Site,
        used: &mut Option<Usage>,
    ) -> Result<Reply, Failed> {
        let endpoint = tier.backend.base_url.as_deref().unwrap_or(&tier.backend.name);
        let pass = self
            .means
            .breaker
            .admit(endpoint, &tier.model.id, Instant::now())
            .map_err(|skip| Failed::new(Cause::Skipped, skip.to_string()))?;
        // A key of ours that stands in a file or in somebody's words goes no further.
        let known = |text: &str| self.means.redactor.redact_known(text).into_owned();
        let mut ask = Ask::new(known(self.job.discipline()), known(&question.prompt), question.schema, site.root());
        ask.power = question.power;
        ask.limit = tier.limit;
        if backend.edits() == Edits::InPlace {
            ask.guard = site.guard().map_err(|error| Failed::new(Cause::Infra, error.to_string()))?;
        }
        let reserved = self
            .budget
            .reserve(worst_case(&ask, tier))
            .map_err(|exceeded| Failed::new(Cause::Budget, exceeded.to_string()))?;
        ask.budget_usd = reserved.granted().usd;
        if let Some(time) = reserved.granted().time {
            ask.limit = ask.limit.min(time);
        }
        self.teller.tell(Event::Asking { at: at.clone() });
        let began = Instant::now();
        let progress = |step: Step| {
            self.teller.tell(Event::Working { at: at.clone(), what: step.to_string() });
        };
        let answered = backend.ask(&ask, tier, self.stop, &progress).await;
        let usage = match &answered {
            Ok(reply) => reply.usage,
            Err(failure) => failure.usage,
        };
        *used = Some(used.map_or(usage, |so_far| so_far.and(&usage)));
        reserved.settle(&usage, began.elapsed());
        match answered {
            Ok(reply) => {
                pass.answered();
                Ok(reply)
            }
            Err(_) if self.stop.is_cancelled() => Err(Failed::new(Cause::Cancelled, "the call was cancelled")),
            Err(failure) => {
                pass.failed(&failure.why, Instant::now());
                Err(unanswered(&failure.why))
            }
        }
    }
}

fn unanswered(error: &AskError) -> Failed {
    let cause = Cause::from(error.cause());
    let backend_is_dry = cause == Cause::Quota && error.blame() == Blame::Endpoint;
    Failed { backend_is_dry, ..Failed::new(cause, error.message()) }
}

impl From<crate::backend::Cause> for Cause {
    fn from(cause: crate::backend::Cause) -> Self {
        use crate::backend::Cause as Asked;
        match cause {
            Asked::Infra => Self::Infra,
            Asked::Quota => Self::Quota,
            Asked::Incapable => Self::Incapable,
            Asked::Refused => Self::Refused,
            Asked::Setup => Self::Setup,
            Asked::Budget => Self::Budget,
            Asked::Cancelled => Self::Cancelled,
        }
    }
}
