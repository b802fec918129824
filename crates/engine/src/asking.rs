//! One tier asked one question: with leave of breaker and budget first, and what it used told to both afterwards.
//! What the answer is worth is said in [`super::trial`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Cause;
use super::budget::worst_case;
use super::event::{ChainPlace, Event};
use super::exchange::{ExchangeRecord, ExchangeTexts, KEPT_IN};
use super::means::Recorder;
use super::site::{Site, blocking};
use super::skill::Question;
use super::walk::WalkContext;
use super::work::{RefusalReach, RefusedWork};
use supervisor_models::{Ask, AskError, AskStep, Backend, Edits, FailureBlame, Reply, Usage};
use supervisor_settings::Tier;

/// One tier at its place in the chain.
pub(super) struct TierAsker<'a> {
    pub(super) context: WalkContext<'a>,
    pub(super) discipline: &'a str,
    pub(super) tier: &'a Tier,
    pub(super) at: &'a ChainPlace,
    /// Which try of this tier it is, from 1: a further one is asked for another answer.
    pub(super) turn: u32,
}

/// What the questions of one round came to.
pub(super) struct AskedRound {
    pub(super) replies: Result<Vec<Reply>, RefusedWork>,
    /// `None` if no question went out.
    pub(super) used: Option<Usage>,
    /// What was kept of it.
    pub(super) exchange: Vec<ExchangeRecord>,
}

impl TierAsker<'_> {
    /// Every question in turn, each within `limit`. The first that is not answered ends the round.
    pub(super) async fn ask_all(
        &self,
        backend: &dyn Backend,
        questions: Vec<Question>,
        limit: Duration,
        site: &mut Site,
    ) -> AskedRound {
        let of = questions.len();
        let (mut replies, mut used, mut exchange) = (Vec::with_capacity(of), None, Vec::new());
        for (n, question) in questions.into_iter().enumerate() {
            if of > 1 {
                let what = format!("question {} of {of}", n + 1);
                self.context.teller.tell(Event::Working {
                    at: self.at.clone(),
                    what,
                });
            }
            match self
                .ask_once(backend, question, limit, site, &mut used, &mut exchange)
                .await
            {
                Ok(reply) => replies.push(reply),
                Err(refused) => {
                    return AskedRound {
                        replies: Err(refused),
                        used,
                        exchange,
                    };
                }
            }
        }
        AskedRound {
            replies: Ok(replies),
            used,
            exchange,
        }
    }

    async fn ask_once(
        &self,
        backend: &dyn Backend,
        question: Question,
        limit: Duration,
        site: &mut Site,
        used: &mut Option<Usage>,
        exchange: &mut Vec<ExchangeRecord>,
    ) -> Result<Reply, RefusedWork> {
        let WalkContext {
            means,
            budget,
            teller,
            stop,
            ..
        } = self.context;
        let tier = self.tier;
        let endpoint = tier
            .backend
            .base_url
            .as_deref()
            .unwrap_or(&tier.backend.name);
        let pass = means
            .breaker
            .admit(endpoint, &tier.model.id, Instant::now())
            .map_err(|skip| RefusedWork::new(Cause::Skipped, skip.to_string()))?;
        // A key of ours that stands in a file or in a text from outside goes no further.
        let known = |text: &str| means.redactor.redact_known(text).into_owned();
        let mut ask = Ask::new(
            known(self.discipline),
            known(&question.prompt),
            question.schema,
            site.root(),
        );
        ask.power = question.power;
        ask.limit = limit;
        ask.attempt = self.turn;
        if backend.edits() == Edits::InPlace {
            ask.guard = site
                .worker_guard()
                .map_err(|error| RefusedWork::new(Cause::Infra, error.to_string()))?;
        }
        let reserved = budget
            .reserve(worst_case(&ask, tier))
            .map_err(|exceeded| RefusedWork::new(Cause::Budget, exceeded.to_string()))?;
        ask.budget_usd = reserved.granted().usd;
        // Where the time of the whole call runs out first, a time-out says nothing about the model.
        let shortened = reserved.granted().time.is_some_and(|time| time < limit);
        if let Some(time) = reserved.granted().time {
            ask.limit = ask.limit.min(time);
        }
        teller.tell(Event::Asking {
            at: self.at.clone(),
        });
        let began = Instant::now();
        let progress = |step: AskStep| {
            teller.tell(Event::Working {
                at: self.at.clone(),
                what: step.to_string(),
            });
        };
        let answered = backend.ask(&ask, tier, stop, &progress).await;
        let usage = match &answered {
            Ok(reply) => reply.usage,
            Err(failure) => failure.usage,
        };
        *used = Some(used.map_or(usage, |so_far| so_far.and(&usage)));
        reserved.settle(&usage, began.elapsed());
        let answer = match &answered {
            Ok(reply) => answer_text(reply, backend.edits()),
            Err(failure) => failure.answer.clone(),
        };
        let in_place = answered.is_ok() && backend.edits() == Edits::InPlace;
        let kept = self
            .keep(ExchangeTexts {
                rules: ask.system,
                prompt: ask.prompt,
                answer,
            })
            .await;
        let kept = ExchangeRecord { in_place, ..kept };
        exchange.push(kept.clone());
        match answered {
            Ok(reply) => {
                pass.answered();
                Ok(reply)
            }
            Err(_) if stop.is_cancelled() => Err(RefusedWork::cancelled()),
            Err(failure) => {
                pass.failed(&failure.why, Instant::now());
                let mut refused = unanswered(&failure.why);
                refused.unfinished = matches!(failure.why, AskError::TimedOut { .. }) && !shortened;
                if !failure.answer.is_empty() {
                    refused.feedback += &self.say_where(&kept);
                }
                Err(refused)
            }
        }
    }

    /// The disk may be slow, and other calls must not wait for it.
    async fn keep(&self, texts: ExchangeTexts) -> ExchangeRecord {
        let recorder = Arc::clone(&self.context.means.recorder);
        blocking(move || recorder.keep_exchange(&texts)).await
    }

    fn say_where(&self, kept: &ExchangeRecord) -> String {
        say_where(&*self.context.means.recorder, kept)
    }
}

/// Where a person finds an answer that could not be used; reads after the complaint.
pub(super) fn say_where(recorder: &dyn Recorder, kept: &ExchangeRecord) -> String {
    match kept
        .answer
        .as_ref()
        .and_then(|answer| recorder.locate(answer))
    {
        Some(path) => format!("; {KEPT_IN}{}", path.display()),
        None => {
            String::from("; what it wrote was not kept: set `exchange` under [log] to \"answers\"")
        }
    }
}

/// What a person would call the answer: the words of a model, the data of an agent that was asked for some.
fn answer_text(reply: &Reply, edits: Edits) -> String {
    match &reply.body {
        Value::String(text) => text.clone(),
        Value::Null => reply.raw.clone(),
        body if edits == Edits::InPlace || reply.raw.trim().is_empty() => body.to_string(),
        _ => reply.raw.clone(),
    }
}

/// A question without an answer, as the walk sees it.
pub(super) fn unanswered(error: &AskError) -> RefusedWork {
    let cause = Cause::from(error.cause());
    let is_dry = cause == Cause::Quota && error.blame() == FailureBlame::Endpoint;
    let reach = if is_dry {
        RefusalReach::Backend
    } else {
        RefusalReach::Answer
    };
    RefusedWork {
        reach,
        ..RefusedWork::new(cause, error.message())
    }
}

impl From<supervisor_models::FailureCause> for Cause {
    fn from(cause: supervisor_models::FailureCause) -> Self {
        use supervisor_models::FailureCause as Asked;
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
