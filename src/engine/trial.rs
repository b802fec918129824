//! One tier asked once: leave of breaker and budget, the question, the gates, the opinion.
//! What it did to the project is noted here and undone by the walk.

use std::time::Instant;

use serde_json::Value;

use super::Cause;
use super::attempt::{Attempt, Opinion};
use super::budget::{Amounts, worst_case};
use super::event::{Event, Place};
use super::evidence::Evidence;
use super::job::{Checked, Failed, Held, Keeps, Question, Shown, Work};
use super::judge::{Judgement, judge};
use super::site::{Site, SiteError};
use super::walk::Walk;
use crate::backend::{Ask, AskError, Backend, Blame, Edits, Reply, Step, Usage};
use crate::routing::{Tier, TierKind};
use crate::words;
use crate::workspace::ChangeSet;

/// Bytes of a change that the log, the next tier and the result get.
const DIFF: usize = 32 * 1024;
/// Bytes of an answer that the log keeps.
const SUMMARY: usize = 400;

/// One ask and what became of it.
pub(super) struct Tried {
    pub(super) attempt: Attempt,
    pub(super) diff: String,
    pub(super) files: Vec<String>,
    /// What the answer amounts to, to tell when two are the same.
    pub(super) answer: Option<blake3::Hash>,
    pub(super) verdict: Judged,
}

pub(super) enum Judged {
    Held(Box<Held>),
    Not(Box<Failed>),
}

impl Walk<'_> {
    /// Why this tier is not even asked.
    pub(super) fn refuse_to_ask(&self, tier: &Tier, dry: &[String]) -> Option<Failed> {
        if dry.contains(&tier.backend.name) {
            let why = format!("not asked: it shares the quota of `{}`, which is used up", tier.backend.name);
            return Some(Failed::new(Cause::Skipped, why));
        }
        None
    }

    pub(super) fn edits_of(&self, tier: &Tier) -> Option<Edits> {
        self.means.backends.of(tier).ok().map(|backend| backend.edits())
    }

    pub(super) async fn attempt(
        &self,
        number: u32,
        tier: &Tier,
        at: &Place,
        evidence: &Evidence,
        last_answer: Option<blake3::Hash>,
        site: &mut Site,
    ) -> Tried {
        let began = Instant::now();
        let mut tried = Tried::unasked(number, tier, Failed::new(Cause::Infra, String::new()));
        let warm = async {
            match tier.backend.tier {
                TierKind::Local => self.means.warmth.of(tier).await,
                TierKind::Subagent | TierKind::Managed => None,
            }
        };
        // Side by side: the probe never delays the question.
        let (asked, warm) = tokio::join!(self.ask(tier, at, evidence, site, &mut tried.attempt), warm);
        tried.attempt.warm_start = warm;
        tried.attempt.generate_ms = millis(began);
        let checking = Instant::now();
        tried.verdict = match asked {
            Err(mut failed) => {
                // An agent may have edited before it failed.
                if self.edits_of(tier) == Some(Edits::InPlace)
                    && tried.look(site).await.is_ok()
                    && !tried.files.is_empty()
                    && !site.comes_back()
                {
                    let files = words::cut_end(&tried.files.join("`, `"), 400).into_owned();
                    failed.feedback += &format!("; meanwhile `{files}` was changed, and this was not undone");
                }
                Judged::Not(Box::new(failed))
            }
            Ok((replies, edits)) => self.examine(&replies, edits, tier, at, last_answer, site, &mut tried).await,
        };
        tried.attempt.verify_ms = millis(checking);
        tried.attempt.duration_ms = millis(began);
        tried.settle(self);
        tried
    }

    /// Every question in turn. The first that is not answered ends the attempt; what was used up to then is noted.
    async fn ask(
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
        let (mut replies, mut used, of) = (Vec::with_capacity(questions.len()), Used::default(), questions.len());
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
        if let Some(usage) = &used.0 {
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
        used: &mut Used,
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
        used.add(&usage);
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

    /// Gates first, opinion last.
    #[expect(clippy::too_many_arguments, reason = "one answer with all that belongs to it")]
    async fn examine(
        &self,
        replies: &[Reply],
        edits: Edits,
        tier: &Tier,
        at: &Place,
        last_answer: Option<blake3::Hash>,
        site: &mut Site,
        tried: &mut Tried,
    ) -> Judged {
        let Some(reply) = replies.first() else {
            return Judged::Not(Box::new(Failed::new(Cause::CannotVerify, "nothing was asked")));
        };
        tried.attempt.output_summary = replies.iter().map(summary).collect::<Vec<_>>().join("\n");
        // Nothing of the worker is left; taken now, before our own tests write anything.
        let changed = match edits {
            Edits::InPlace => match tried.look(site).await {
                Ok(changed) => changed,
                // What cannot be seen cannot be judged.
                Err(error) => return Judged::Not(Box::new(Failed::new(Cause::CannotVerify, error.to_string()))),
            },
            Edits::AsData => ChangeSet::default(),
        };
        let answer = digest(replies.iter().map(|reply| &reply.body), &tried.diff);
        tried.answer = Some(answer);
        if last_answer == Some(answer) {
            let same = "the same answer as the attempt before, which was refused; it was not judged again";
            return Judged::Not(Box::new(Failed::new(Cause::Rejected, same)));
        }
        let work = Work { reply, replies, edits, changed: &changed, site, stop: self.stop, teller: self.teller, at };
        let checked = tokio::select! {
            checked = self.job.check(work) => checked,
            () = self.stop.cancelled() => {
                return Judged::Not(Box::new(Failed::new(Cause::Cancelled, "the call was cancelled")));
            }
        };
        if edits == Edits::AsData
            && let Err(error) = tried.look(site).await
        {
            return Judged::Not(Box::new(Failed::new(Cause::CannotVerify, error.to_string())));
        }
        let held = match checked {
            Checked::Fails(failed) => return Judged::Not(Box::new(failed)),
            Checked::Holds(held) => held,
        };
        // The worker wrote nothing and something stays: the check itself put the answer in place.
        if edits == Edits::InPlace
            && changed.is_empty()
            && held.keeps == Keeps::Changes
            && let Err(error) = tried.look(site).await
        {
            return Judged::Not(Box::new(Failed::new(Cause::CannotVerify, error.to_string())));
        }
        tried.attempt.verified = matches!(held.shown, Shown::Proven(_));
        let verifier = match &self.route.verifier {
            Some(verifier) if tier.backend.tier == TierKind::Local && !self.route.pinned => verifier,
            _ => return Judged::Held(Box::new(held)),
        };
        self.teller.tell(Event::Judging { at: at.clone(), verifier: verifier.name.to_string() });
        let reserved = match self.budget.reserve(Amounts { time: Some(verifier.limit), ..Default::default() }) {
            Ok(reserved) => reserved,
            Err(exceeded) => return Judged::Not(Box::new(Failed::new(Cause::Budget, exceeded.to_string()))),
        };
        let began = Instant::now();
        let (judgement, usage) = judge(self.means, verifier, self.job, &held, &tried.diff, self.stop).await;
        reserved.settle(&usage, began.elapsed());
        tried.attempt.note_opinion(verifier, &usage);
        let failed = match judgement {
            Judgement::Accepted => return Judged::Held(Box::new(held)),
            Judgement::Refused(feedback) => Failed::new(Cause::Rejected, feedback),
            Judgement::Unclear(why) => Failed::new(Cause::CannotVerify, format!("verifier error: {why}")),
            Judgement::Cancelled => Failed::new(Cause::Cancelled, "the call was cancelled"),
        };
        Judged::Not(Box::new(Failed { runner_output: held.runner_output, gates: held.gates, ..failed }))
    }
}

impl Tried {
    pub(super) fn unasked(number: u32, tier: &Tier, failed: Failed) -> Self {
        let attempt = Attempt {
            attempt: number,
            model: tier.name.to_string(),
            tier: tier.backend.tier,
            duration_ms: 0,
            generate_ms: 0,
            verify_ms: 0,
            warm_start: None,
            verified: false,
            verdict: Some(failed.cause.verdict()),
            cause: Some(failed.cause),
            feedback: failed.feedback.clone(),
            output_summary: String::new(),
            runner_output: String::new(),
            tokens_in: None,
            tokens_out: None,
            cost_usd: None,
            verifier: None,
        };
        let verdict = Judged::Not(Box::new(failed));
        Self { attempt, diff: String::new(), files: Vec::new(), answer: None, verdict }
    }

    /// Notes what is different in the project now.
    async fn look(&mut self, site: &mut Site) -> Result<ChangeSet, SiteError> {
        let (changes, diff) = site.review(DIFF).await?;
        self.files = changes.files().map(|change| change.path.display().to_string()).collect();
        self.diff = diff;
        Ok(changes)
    }

    /// Writes the verdict into the attempt, as the log will have it.
    fn settle(&mut self, walk: &Walk<'_>) {
        let (cause, feedback, output) = match &self.verdict {
            Judged::Held(held) => (Cause::Accepted, "", held.runner_output.as_str()),
            Judged::Not(failed) => (failed.cause, failed.feedback.as_str(), failed.runner_output.as_str()),
        };
        let redactor = &walk.means.redactor;
        self.attempt.cause = Some(cause);
        self.attempt.verdict = Some(cause.verdict());
        self.attempt.feedback = redactor.redact(feedback).into_owned();
        self.attempt.runner_output = redactor.redact(output).into_owned();
        self.attempt.output_summary = redactor.redact(&self.attempt.output_summary).into_owned();
        self.diff = redactor.redact(&self.diff).into_owned();
    }
}

impl Attempt {
    /// What the ask itself used.
    fn note(&mut self, usage: &Usage) {
        (self.tokens_in, self.tokens_out, self.cost_usd) = (usage.tokens_in, usage.tokens_out, usage.cost_usd);
    }

    /// Adds what the verifier used. Unknown and known together are unknown.
    fn note_opinion(&mut self, verifier: &Tier, usage: &Usage) {
        self.tokens_in = self.tokens_in.zip(usage.tokens_in).map(|(a, b)| a.saturating_add(b));
        self.tokens_out = self.tokens_out.zip(usage.tokens_out).map(|(a, b)| a.saturating_add(b));
        self.cost_usd = self.cost_usd.zip(usage.cost_usd).map(|(a, b)| a + b);
        let Usage { tokens_in, tokens_out, cost_usd } = *usage;
        self.verifier = Some(Opinion { model: verifier.name.to_string(), tokens_in, tokens_out, cost_usd });
    }
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

/// What the questions of one attempt used together. Unknown and known together are unknown.
#[derive(Default)]
struct Used(Option<Usage>);

impl Used {
    fn add(&mut self, usage: &Usage) {
        let sum = |so_far: &Usage| Usage {
            tokens_in: so_far.tokens_in.zip(usage.tokens_in).map(|(a, b)| a + b),
            tokens_out: so_far.tokens_out.zip(usage.tokens_out).map(|(a, b)| a + b),
            cost_usd: so_far.cost_usd.zip(usage.cost_usd).map(|(a, b)| a + b),
        };
        self.0 = Some(self.0.as_ref().map_or(*usage, sum));
    }
}

fn unanswered(error: &AskError) -> Failed {
    let cause = Cause::from(error.cause());
    let backend_is_dry = cause == Cause::Quota && error.blame() == Blame::Endpoint;
    Failed { backend_is_dry, ..Failed::new(cause, error.message()) }
}

/// What an answer amounts to: white space and key order aside.
fn digest<'a>(bodies: impl IntoIterator<Item = &'a Value>, diff: &str) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for body in bodies {
        hasher.update(canonical(body).as_bytes());
        hasher.update(&[0]);
    }
    hasher.update(diff.as_bytes());
    hasher.finalize()
}

fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            fields.iter().map(|(name, value)| format!("{name}:{};", canonical(value))).collect()
        }
        Value::Array(items) => items.iter().map(|item| canonical(item) + ",").collect(),
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

fn summary(reply: &Reply) -> String {
    let mut summary = words::cut_end(&words::plain(&reply.raw), SUMMARY).into_owned();
    for note in &reply.notes {
        summary += "\n";
        summary += note;
    }
    summary
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn two_answers_are_the_same_whatever_their_order_and_white_space() {
        let one = json!({"a": "x  y\n", "b": [1, {"c": null}]});
        let two = json!({"b": [1, {"c": null}], "a": "x y"});
        assert_eq!(digest([&one], "d"), digest([&two], "d"));
        assert_ne!(digest([&one], "d"), digest([&one], "e"));
        assert_ne!(digest([&json!({"a": "x"})], ""), digest([&json!({"a": "y"})], ""));
    }
}
