//! Asks one tier one question. Checks the breaker and the budget first and reports usage to both.
//! [`super::tier_attempt`] judges the answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Cause;
use super::budget::{ExceededLimit, worst_case};
use super::event::{ChainPosition, Event};
use super::evidence::FollowUp;
use super::exchange::{ExchangeRecord, ExchangeTexts, KEPT_IN};
use super::project_access::{Site, blocking};
use super::services::Recorder;
use super::skill::Question;
use super::walk::WalkContext;
use super::work::{RefusalScope, RefusedWork};
use supervisor_models::{
    Ask, AskError, AskResult, AskStep, Backend, Edits, Failure, FailureBlame, Reply, ToolAccess,
    Usage,
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

/// One answer to the questions of a round.
pub(super) struct Answered {
    pub(super) replies: Result<Vec<Reply>, RefusedWork>,
    /// `None` if no question was sent.
    pub(super) used: Option<Usage>,
    /// The stored prompts and answers.
    pub(super) exchange: Vec<ExchangeRecord>,
}

impl Answered {
    fn unsent(refused: RefusedWork) -> Self {
        Self {
            replies: Err(refused),
            used: None,
            exchange: Vec::new(),
        }
    }
}

impl TierAsker<'_> {
    /// Asks every question in turn, each within `limit`. The first unanswered question ends the
    /// round. A single question may bring several answers; there is always one.
    pub(super) async fn ask_all(
        &self,
        backend: &dyn Backend,
        questions: Vec<Question>,
        limit: Duration,
        samples: u32,
        site: &mut Site,
    ) -> Vec<Answered> {
        let of = questions.len();
        let mut all = Answered {
            replies: Ok(Vec::with_capacity(of)),
            used: None,
            exchange: Vec::new(),
        };
        for (n, question) in questions.into_iter().enumerate() {
            if of > 1 {
                let what = format!("question {} of {of}", n + 1);
                self.context.reporter.report(Event::Working {
                    at: self.at.clone(),
                    what,
                });
            }
            let samples = if of > 1 { 1 } else { samples };
            let mut answered = self.ask_once(backend, question, limit, samples, site).await;
            if of == 1 {
                return answered;
            }
            let one = answered.swap_remove(0);
            all.used = match (all.used, one.used) {
                (Some(so_far), Some(used)) => Some(so_far.and(&used)),
                (so_far, used) => so_far.or(used),
            };
            all.exchange.extend(one.exchange);
            match (&mut all.replies, one.replies) {
                (Ok(replies), Ok(more)) => replies.extend(more),
                (Ok(_), Err(refused)) => {
                    all.replies = Err(refused);
                    break;
                }
                (Err(_), _) => break,
            }
        }
        vec![all]
    }

    /// Asks one question for this many answers. As many fewer are asked for as the budget is short
    /// of.
    async fn ask_once(
        &self,
        backend: &dyn Backend,
        question: Question,
        limit: Duration,
        samples: u32,
        site: &mut Site,
    ) -> Vec<Answered> {
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
        let refuse = |refused| vec![Answered::unsent(refused)];
        let pass = match services
            .breaker
            .admit(endpoint, &tier.model.id, Instant::now())
        {
            Ok(pass) => pass,
            // Better a question that may fail than a call that asks nobody.
            Err(_) if self.is_last_reachable() => {
                services.breaker.admit_anyway(endpoint, &tier.model.id)
            }
            Err(skip) => return refuse(RefusedWork::new(Cause::Skipped, skip.to_string())),
        };
        // Never send secrets to a model, even if a file or an outside text contains them.
        let hide = |text: &str| services.redactor.hide(text).into_owned();
        let mut ask = Ask::new(
            hide(self.discipline),
            hide(&question.prompt),
            question.schema,
            site.root(),
        );
        ask.tool_access = question.tool_access;
        ask.limit = limit;
        ask.attempt = self.turn;
        let edits_project = backend.edits(tier) == Edits::InPlace
            && matches!(ask.tool_access, ToolAccess::Edit { .. });
        if backend.edits(tier) == Edits::InPlace {
            ask.guard = match site.worker_guard() {
                Ok(guard) => guard,
                Err(error) => return refuse(RefusedWork::new(Cause::Infra, error.to_string())),
            };
        }
        let mut reserved = Err(ExceededLimit::Usd);
        for samples in (1..=samples.max(1)).rev() {
            (ask.samples, ask.samples_limit) = (samples, limit.saturating_mul(samples));
            reserved = budget.reserve_shared(worst_case(&ask, tier)).await;
            if reserved.is_ok() {
                break;
            }
        }
        let reserved = match reserved {
            Ok(reserved) => reserved,
            Err(exceeded) => {
                return refuse(RefusedWork::new(Cause::Budget, exceeded.to_string()));
            }
        };
        ask.budget_usd = reserved.granted().usd;
        let began = Instant::now();
        if let Some(time) = reserved.granted().time {
            ask.deadline = began.checked_add(time);
            ask.limit = ask.limit.min(time);
            ask.samples_limit = ask.samples_limit.min(time);
        }
        reporter.report(Event::Asking {
            at: self.at.clone(),
        });
        let progress = |step: AskStep| {
            reporter.report(Event::Working {
                at: self.at.clone(),
                what: step.to_string(),
            });
        };
        let mut answered = match ask.samples {
            1 => vec![backend.ask(&ask, tier, stop, &progress).await],
            _ => backend.ask_samples(&ask, tier, stop, &progress).await,
        };
        // The work of an agent is in the project, where tests judge it; only its report is missing.
        if edits_project && !stop.is_cancelled() {
            answered = answered
                .into_iter()
                .map(|answered| answered.or_else(|failure| without_report(*failure, tier)))
                .collect();
        }
        let usage_of = |answered: &AskResult| match answered {
            Ok(reply) => reply.usage,
            Err(failure) => failure.usage,
        };
        let all = answered.iter().map(usage_of);
        let usage = all.reduce(|all, one| all.and(&one)).unwrap_or_default();
        // If the call had less time than usual, a timeout says nothing about the model.
        let time = reserved.granted().time;
        let is_call_limited = time.is_some_and(|time| time < limit);
        reserved.settle(&usage, began.elapsed());
        let is_excused = |why: &AskError| {
            matches!(why, AskError::TimedOut { .. }) && (is_call_limited || tier.is_shortened)
        };
        let mut failures = answered.iter().filter_map(|one| one.as_ref().err());
        match failures.find(|failure| !is_excused(&failure.why)) {
            _ if answered.iter().any(Result::is_ok) => pass.answered(),
            Some(failure) if !stop.is_cancelled() => pass.failed(&failure.why, Instant::now()),
            _ => drop(pass),
        }
        let mut all = Vec::with_capacity(answered.len());
        for answered in answered {
            let used = Some(usage_of(&answered));
            let kept = self.keep(&ask, &answered, backend.edits(tier)).await;
            let replies = match answered {
                Ok(reply) => Ok(vec![reply]),
                Err(_) if stop.is_cancelled() => Err(RefusedWork::cancelled()),
                Err(failure) => Err(self.refusal_of(&failure, &kept, is_call_limited)),
            };
            all.push(Answered {
                replies,
                used,
                exchange: vec![kept],
            });
        }
        all
    }

    /// Stores a question and its answer.
    async fn keep(&self, ask: &Ask, answered: &AskResult, edits: Edits) -> ExchangeRecord {
        let answer = match answered {
            Ok(reply) => answer_text(reply, edits),
            Err(failure) => failure.answer.clone(),
        };
        let kept = self
            .store_exchange(ExchangeTexts {
                rules: ask.system.clone(),
                prompt: ask.prompt.clone(),
                answer,
            })
            .await;
        ExchangeRecord {
            in_place: answered.is_ok() && edits == Edits::InPlace,
            ..kept
        }
    }

    fn refusal_of(
        &self,
        failure: &Failure,
        kept: &ExchangeRecord,
        is_call_limited: bool,
    ) -> RefusedWork {
        let mut refused = to_refusal(&failure.why);
        refused.unfinished = matches!(failure.why, AskError::TimedOut { .. }) && !is_call_limited;
        if !failure.answer.is_empty() {
            if matches!(failure.why, AskError::Malformed { .. }) {
                // As in skills that read any text themselves.
                refused.cause = Cause::Unreadable;
                let complaint = failure.why.to_string();
                refused.follow_up = Some(FollowUp::repair(&complaint, &failure.answer));
            }
            refused.add_location(&self.answer_location(kept));
        }
        refused
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

/// The answer of an agent that worked, but did not report in the form that was asked for.
fn without_report(failure: Failure, tier: &Tier) -> AskResult {
    if !matches!(failure.why, AskError::Malformed { .. }) {
        return Err(Box::new(failure));
    }
    Ok(Reply {
        body: Value::Null,
        raw: failure.answer,
        model_answered: tier.model.id.clone(),
        usage: failure.usage,
        notes: failure.notes,
    })
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
