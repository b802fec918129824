//! Asks one tier one question. Checks the breaker and the budget first and reports usage to both.
//! [`super::tier_attempt`] judges the answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Cause;
use super::budget::worst_case;
use super::event::{ChainPosition, Event};
use super::evidence::FollowUp;
use super::exchange::{ExchangeRecord, ExchangeTexts, KEPT_IN};
use super::project_access::{Site, blocking};
use super::services::Recorder;
use super::skill::Question;
use super::walk::WalkContext;
use super::work::{RefusalScope, RefusedWork};
use supervisor_models::{
    Ask, AskError, AskStep, Backend, Edits, FailureBlame, Reply, ToolAccess, Usage,
};
use supervisor_settings::Tier;

/// One tier at its position in the chain.
pub(super) struct TierAsker<'a> {
    pub(super) context: WalkContext<'a>,
    pub(super) discipline: &'a str,
    pub(super) tier: &'a Tier,
    pub(super) at: &'a ChainPosition,
    /// Number of this try of the tier, from 1. Later tries ask for a different answer.
    pub(super) turn: u32,
}

/// Result of the questions of one round.
pub(super) struct RoundResult {
    pub(super) replies: Result<Vec<Reply>, RefusedWork>,
    /// `None` if no question was sent.
    pub(super) used: Option<Usage>,
    /// The stored prompts and answers.
    pub(super) exchange: Vec<ExchangeRecord>,
}

impl TierAsker<'_> {
    /// Asks every question in turn, each within `limit`. The first unanswered question ends the
    /// round.
    pub(super) async fn ask_all(
        &self,
        backend: &dyn Backend,
        questions: Vec<Question>,
        limit: Duration,
        site: &mut Site,
    ) -> RoundResult {
        let of = questions.len();
        let (mut replies, mut used, mut exchange) = (Vec::with_capacity(of), None, Vec::new());
        for (n, question) in questions.into_iter().enumerate() {
            if of > 1 {
                let what = format!("question {} of {of}", n + 1);
                self.context.reporter.report(Event::Working {
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
                    return RoundResult {
                        replies: Err(refused),
                        used,
                        exchange,
                    };
                }
            }
        }
        RoundResult {
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
            services,
            budget,
            reporter,
            stop,
            ..
        } = self.context;
        let tier = self.tier;
        let endpoint = tier
            .backend
            .base_url
            .as_deref()
            .unwrap_or(&tier.backend.name);
        let pass = match services
            .breaker
            .admit(endpoint, &tier.model.id, Instant::now())
        {
            Ok(pass) => pass,
            // Better a question that may fail than a call that asks nobody.
            Err(_) if self.is_last_reachable() => {
                services.breaker.admit_anyway(endpoint, &tier.model.id)
            }
            Err(skip) => return Err(RefusedWork::new(Cause::Skipped, skip.to_string())),
        };
        // Never send known keys to a model, even if a file or an outside text contains them.
        let redact_keys = |text: &str| services.redactor.redact_known(text).into_owned();
        let mut ask = Ask::new(
            redact_keys(self.discipline),
            redact_keys(&question.prompt),
            question.schema,
            site.root(),
        );
        ask.tool_access = question.tool_access;
        ask.limit = limit;
        ask.attempt = self.turn;
        let edits_project = backend.edits(tier) == Edits::InPlace
            && matches!(ask.tool_access, ToolAccess::Edit { .. });
        if backend.edits(tier) == Edits::InPlace {
            ask.guard = site
                .worker_guard()
                .map_err(|error| RefusedWork::new(Cause::Infra, error.to_string()))?;
        }
        let reserved = budget
            .reserve(worst_case(&ask, tier))
            .map_err(|exceeded| RefusedWork::new(Cause::Budget, exceeded.to_string()))?;
        ask.budget_usd = reserved.granted().usd;
        // If the caller gave less time than usual, a timeout says nothing about the model.
        let is_call_limited = reserved.granted().time.is_some_and(|time| time < limit);
        if let Some(time) = reserved.granted().time {
            ask.limit = ask.limit.min(time);
        }
        reporter.report(Event::Asking {
            at: self.at.clone(),
        });
        let began = Instant::now();
        let progress = |step: AskStep| {
            reporter.report(Event::Working {
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
            Ok(reply) => answer_text(reply, backend.edits(tier)),
            Err(failure) => failure.answer.clone(),
        };
        let in_place = answered.is_ok() && backend.edits(tier) == Edits::InPlace;
        let kept = self
            .store_exchange(ExchangeTexts {
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
            // The work of an agent is in the project, where tests judge it; only its report is
            // missing.
            Err(failure) if edits_project && matches!(failure.why, AskError::Malformed { .. }) => {
                pass.answered();
                let failure = *failure;
                Ok(Reply {
                    body: Value::Null,
                    raw: failure.answer,
                    model_answered: tier.model.id.clone(),
                    usage: failure.usage,
                    notes: failure.notes,
                })
            }
            Err(failure) => {
                let is_timeout = matches!(failure.why, AskError::TimedOut { .. });
                if is_timeout && (is_call_limited || tier.is_shortened) {
                    drop(pass);
                } else {
                    pass.failed(&failure.why, Instant::now());
                }
                let mut refused = to_refusal(&failure.why);
                refused.unfinished = is_timeout && !is_call_limited;
                if !failure.answer.is_empty() {
                    if matches!(failure.why, AskError::Malformed { .. }) {
                        // As in skills that read any text themselves.
                        refused.cause = Cause::Unreadable;
                        let complaint = failure.why.to_string();
                        refused.follow_up = Some(FollowUp::repair(&complaint, &failure.answer));
                    }
                    refused.add_location(&self.answer_location(&kept));
                }
                Err(refused)
            }
        }
    }

    /// Whether no later tier of the chain can be asked.
    fn is_last_reachable(&self) -> bool {
        let later = self.context.route.chain.tiers().skip(self.at.tier);
        later.into_iter().all(|tier| tier.outage.is_some())
    }

    /// Runs off this thread: the disk may be slow, and other calls must not wait for it.
    async fn store_exchange(&self, texts: ExchangeTexts) -> ExchangeRecord {
        let recorder = Arc::clone(&self.context.services.recorder);
        blocking(move || recorder.keep_exchange(&texts)).await
    }

    fn answer_location(&self, kept: &ExchangeRecord) -> String {
        answer_location(&*self.context.services.recorder, kept)
    }
}

/// Tells where an unusable answer is stored, as a clause that follows the complaint.
pub(super) fn answer_location(recorder: &dyn Recorder, kept: &ExchangeRecord) -> String {
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

/// The answer as a person would read it: the text of a model, or the data of an agent that was
/// asked for data.
fn answer_text(reply: &Reply, edits: Edits) -> String {
    match &reply.body {
        Value::String(text) => text.clone(),
        Value::Null => reply.raw.clone(),
        body if edits == Edits::InPlace || reply.raw.trim().is_empty() => body.to_string(),
        _ => reply.raw.clone(),
    }
}

/// Turns a failed question into a refusal.
pub(super) fn to_refusal(error: &AskError) -> RefusedWork {
    let cause = Cause::from(error.cause());
    let is_quota_used_up = cause == Cause::Quota && error.blame() == FailureBlame::Endpoint;
    let reach = if is_quota_used_up {
        RefusalScope::Backend
    } else {
        RefusalScope::Answer
    };
    RefusedWork {
        reach,
        reason: Some(error.to_string()),
        hint: error.hint(),
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
