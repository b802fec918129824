//! One tier's turn: its answer, the gates, the opinion.
//! What it did to the project is noted here and undone by the walk.

use std::time::Instant;

use serde_json::Value;

use super::Cause;
use super::attempt::{Attempt, Opinion};
use super::budget::Amounts;
use super::event::{Event, Place};
use super::evidence::Evidence;
use super::job::{Checked, Failed, Held, Keeps, Shown, Work};
use super::judge::{Judgement, judge};
use super::site::{Site, SiteError};
use super::walk::Walk;
use crate::backend::{Edits, Reply, Usage};
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
    pub(super) fn note(&mut self, usage: &Usage) {
        (self.tokens_in, self.tokens_out, self.cost_usd) = (usage.tokens_in, usage.tokens_out, usage.cost_usd);
    }

    /// Adds what the verifier used.
    fn note_opinion(&mut self, verifier: &Tier, usage: &Usage) {
        let own = Usage { tokens_in: self.tokens_in, tokens_out: self.tokens_out, cost_usd: self.cost_usd };
        self.note(&own.and(usage));
        let Usage { tokens_in, tokens_out, cost_usd } = *usage;
        self.verifier = Some(Opinion { model: verifier.name.to_string(), tokens_in, tokens_out, cost_usd });
    }
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
