//! Statistics of one model in one skill.

use std::collections::BTreeMap;

use serde::Serialize;

use super::round_to_nano_usd;
use crate::exchange::KEPT_IN;
use crate::{Attempt, Cause, TierKind, Verdict};

/// Maximum number of paths of unreadable answers per model.
const MAX_UNREADABLE_PATHS: usize = 3;

/// One row. `attempts` is the sum of `accepted`, `rejected`, `other` and `errors`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelStats {
    pub model: String,
    /// The lowest tier it was asked at.
    pub tier: TierKind,
    /// How often it was asked.
    pub attempts: usize,
    /// How often it was skipped without being asked.
    pub skipped: usize,
    pub accepted: usize,
    /// Cause `rejected`, `tampered` or `unreadable`: the evidence against a model's quality.
    pub rejected: usize,
    /// Paths of the last unreadable answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable_answers: Vec<String>,
    /// Answers that say nothing about quality: contradiction, cannot_verify, or from a log without
    /// causes.
    pub other: usize,
    /// No answer: verdict `error`, except `unreadable`.
    pub errors: usize,
    /// Count of each cause, by its name in the log, including `skipped`.
    pub causes: BTreeMap<&'static str, usize>,
    /// `accepted` / (`accepted` + `rejected`); null if both are 0.
    pub accept_rate: Option<f64>,
    /// Nearest rank: the smallest duration that at least half of all attempts did not exceed.
    pub median_ms: Option<u64>,
    /// The same for 95 %.
    pub p95_ms: Option<u64>,
    pub warm: usize,
    pub cold: usize,
    pub warm_unknown: usize,
    /// `warm` / (`warm` + `cold`); null if nothing is known.
    pub warm_share: Option<f64>,
    pub tokens_in: u64,
    pub tokens_out: u64,
    /// Attempts for which one of the two is unknown.
    pub tokens_unknown: usize,
    /// Sum over attempts whose cost is known, including the verifier.
    pub cost_usd: f64,
    pub cost_unknown: usize,
    /// Attempts that a subscription paid; they have no part in the cost.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub subscription: usize,
    /// Attempts of unknown cost whose tokens are known: only the price is missing.
    pub price_missing: usize,
}

/// Statistics of one model while they are being collected.
#[derive(Debug, Default)]
pub struct ModelTally {
    tier: Option<TierKind>,
    skipped: usize,
    accepted: usize,
    rejected: usize,
    unreadable_answers: Vec<String>,
    other: usize,
    errors: usize,
    causes: BTreeMap<&'static str, usize>,
    durations: Vec<u64>,
    warm: usize,
    cold: usize,
    tokens_in: u64,
    tokens_out: u64,
    tokens_unknown: usize,
    cost_usd: f64,
    cost_unknown: usize,
    subscription: usize,
    price_missing: usize,
}

impl ModelTally {
    pub fn add(&mut self, attempt: &Attempt) {
        self.tier = self.tier.into_iter().chain([attempt.tier]).min();
        if let Some(cause) = attempt.cause {
            *self.causes.entry(cause.word()).or_default() += 1;
        }
        // A skipped tier took no time and says nothing about its model.
        if !attempt.was_asked() {
            self.skipped += 1;
            return;
        }
        *self.counter(attempt) += 1;
        if attempt.cause == Some(Cause::Unreadable)
            && let Some((_, path)) = attempt.feedback.split_once(KEPT_IN)
        {
            // Keep only the newest few for people to look at.
            self.unreadable_answers.push(path.to_owned());
            if self.unreadable_answers.len() > MAX_UNREADABLE_PATHS {
                self.unreadable_answers.remove(0);
            }
        }
        self.durations.push(attempt.duration_ms);
        match attempt.warm_start {
            Some(true) => self.warm += 1,
            Some(false) => self.cold += 1,
            None => {}
        }
        self.tokens_in = self
            .tokens_in
            .saturating_add(attempt.tokens_in.unwrap_or_default());
        self.tokens_out = self
            .tokens_out
            .saturating_add(attempt.tokens_out.unwrap_or_default());
        let has_token_counts = attempt.tokens_in.is_some() && attempt.tokens_out.is_some();
        self.tokens_unknown += usize::from(!has_token_counts);
        match attempt.cost_usd {
            _ if attempt.subscription => self.subscription += 1,
            Some(usd) => self.cost_usd += usd,
            None => {
                self.cost_unknown += 1;
                self.price_missing += usize::from(has_token_counts);
            }
        }
    }

    fn counter(&mut self, attempt: &Attempt) -> &mut usize {
        match AnswerClass::of(attempt) {
            AnswerClass::Accepted => &mut self.accepted,
            AnswerClass::Rejected => &mut self.rejected,
            AnswerClass::NoAnswer => &mut self.errors,
            AnswerClass::Undecided => &mut self.other,
        }
    }

    pub fn finish(mut self, model: String) -> ModelStats {
        self.durations.sort_unstable();
        let attempts = self.durations.len();
        ModelStats {
            model,
            tier: self.tier.unwrap_or(TierKind::Local),
            attempts,
            skipped: self.skipped,
            accepted: self.accepted,
            rejected: self.rejected,
            unreadable_answers: self.unreadable_answers,
            other: self.other,
            errors: self.errors,
            causes: self.causes,
            accept_rate: share(self.accepted, self.rejected),
            median_ms: nearest_rank(&self.durations, 50),
            p95_ms: nearest_rank(&self.durations, 95),
            warm: self.warm,
            cold: self.cold,
            warm_unknown: attempts - self.warm - self.cold,
            warm_share: share(self.warm, self.cold),
            tokens_in: self.tokens_in,
            tokens_out: self.tokens_out,
            tokens_unknown: self.tokens_unknown,
            cost_usd: round_to_nano_usd(self.cost_usd),
            cost_unknown: self.cost_unknown,
            subscription: self.subscription,
            price_missing: self.price_missing,
        }
    }
}

/// The value at rank ⌈n · percent / 100⌉, counted from 1, of `n` sorted values.
pub fn nearest_rank(sorted: &[u64], percent: usize) -> Option<u64> {
    sorted
        .get((sorted.len() * percent).div_ceil(100).checked_sub(1)?)
        .copied()
}

/// `yes` / (`yes` + `no`); `None` if both are 0.
fn share(yes: usize, no: usize) -> Option<f64> {
    (yes + no > 0).then(|| yes as f64 / (yes + no) as f64)
}

/// What an attempt says about its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerClass {
    Accepted,
    /// Evidence against its quality.
    Rejected,
    /// Not accepted, for a reason that says nothing about quality.
    Undecided,
    NoAnswer,
}

impl AnswerClass {
    /// The cause decides. The verdict is used only for older logs without a cause.
    pub fn of(attempt: &Attempt) -> Self {
        match (
            attempt.cause,
            attempt.cause.map(Cause::verdict).or(attempt.verdict),
        ) {
            (_, Some(Verdict::Accept)) => Self::Accepted,
            (Some(Cause::Rejected | Cause::Tampered | Cause::Unreadable), _) => Self::Rejected,
            (_, Some(Verdict::Error)) => Self::NoAnswer,
            (_, Some(Verdict::Escalate) | None) => Self::Undecided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_use_nearest_rank() {
        assert_eq!(nearest_rank(&[], 50), None);
        assert_eq!(
            (nearest_rank(&[7], 50), nearest_rank(&[7], 95)),
            (Some(7), Some(7))
        );
        assert_eq!(
            (nearest_rank(&[1, 2], 50), nearest_rank(&[1, 2], 95)),
            (Some(1), Some(2))
        );
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(
            (nearest_rank(&hundred, 50), nearest_rank(&hundred, 95)),
            (Some(50), Some(95))
        );
        assert_eq!(nearest_rank(&hundred[..20], 95), Some(19));
        assert_eq!(nearest_rank(&hundred[..21], 95), Some(20));
    }

    fn tally(attempts: &[serde_json::Value]) -> ModelStats {
        let mut tally = ModelTally::default();
        for attempt in attempts {
            let mut whole =
                serde_json::json!({"attempt": 1, "model": "m", "tier": "local", "duration_ms": 5});
            whole
                .as_object_mut()
                .expect("an object")
                .extend(attempt.as_object().expect("an object").clone());
            tally.add(&serde_json::from_value(whole).expect("an attempt"));
        }
        tally.finish("m".into())
    }

    #[test]
    fn every_cause_has_its_class() {
        use serde_json::json;
        let all = tally(&[
            json!({"cause": "accepted", "verdict": "accept"}),
            json!({"cause": "rejected", "verdict": "escalate"}),
            json!({"cause": "tampered", "verdict": "escalate"}),
            json!({"cause": "unreadable", "verdict": "error"}),
            json!({"cause": "contradiction", "verdict": "escalate"}),
            json!({"cause": "cannot_verify", "verdict": "escalate"}),
            json!({"cause": "infra", "verdict": "error"}),
            json!({"cause": "cancelled"}),
            json!({"cause": "skipped", "verdict": "error"}),
            json!({"cause": "skipped", "verdict": "error", "tokens_in": 5}),
            json!({"verdict": "accept"}),
            json!({"verdict": "escalate"}),
            json!({"verdict": "error"}),
            json!({}),
        ]);
        assert_eq!(
            (all.attempts, all.skipped),
            (13, 1),
            "the second skip came after an answer"
        );
        assert_eq!(
            (all.accepted, all.rejected, all.other, all.errors),
            (2, 3, 4, 4)
        );
        assert_eq!(all.accept_rate, Some(2.0 / 5.0));
        assert_eq!(all.causes.values().sum::<usize>(), 10);
    }

    #[test]
    fn only_upheld_flags_count_against_a_model() {
        use serde_json::json;
        let flag = |upheld: Option<bool>| json!([{"id": "vague", "where": "AC-1", "detail": "says `fast`", "upheld": upheld}]);
        let all = tally(&[
            json!({"cause": "accepted", "verdict": "accept", "flags": flag(None)}),
            json!({"cause": "accepted", "verdict": "accept", "flags": flag(Some(false))}),
            // The verifier agreed, and so the attempt was refused.
            json!({"cause": "rejected", "verdict": "escalate", "flags": flag(Some(true))}),
        ]);
        assert_eq!((all.accepted, all.rejected), (2, 1));
    }

    #[test]
    fn unknown_values_are_counted_separately() {
        use serde_json::json;
        let all = tally(&[
            json!({"warm_start": true, "tokens_in": 5, "tokens_out": 1, "cost_usd": 0.1}),
            json!({"warm_start": false, "tokens_in": 7, "cost_usd": 0.2}),
            json!({"tokens_in": 1, "tokens_out": 1}),
            json!({}),
        ]);
        assert_eq!(
            (all.warm, all.cold, all.warm_unknown, all.warm_share),
            (1, 1, 2, Some(0.5))
        );
        assert_eq!(
            (all.tokens_in, all.tokens_out, all.tokens_unknown),
            (13, 2, 2)
        );
        assert_eq!(
            (all.cost_usd, all.cost_unknown, all.price_missing),
            (0.3, 2, 1)
        );
        let none = tally(&[json!({"cause": "skipped"})]);
        assert_eq!(
            (
                none.attempts,
                none.median_ms,
                none.warm_share,
                none.accept_rate
            ),
            (0, None, None, None)
        );
    }
}
