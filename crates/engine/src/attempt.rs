//! The record of one attempt: one model asked once, with the outcome and its cause. The same type
//! is used in the result and in the log.

use serde::{Deserialize, Serialize, Serializer};

use super::evidence::FollowUpKind;
use super::exchange::{ExchangeRecord, TextId};
use super::result::Gate;
use supervisor_models::Usage;
use supervisor_settings::{Billing, Tier, TierKind};
use supervisor_verify::Flags;

/// One model asked once. Field names are part of the log format: new ones may be added, existing
/// ones are never renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Number of the attempt within the call, from 1.
    pub attempt: u32,
    /// In the result of a whole `tdd` call, the phase of the attempt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    pub model: String,
    pub tier: TierKind,
    /// Total time of the attempt, including the verifier.
    pub duration_ms: u64,
    #[serde(default)]
    pub generate_ms: u64,
    #[serde(default)]
    pub verify_ms: u64,
    /// Whether the model was already loaded; `null` if unknown.
    #[serde(default)]
    pub warm_start: Option<bool>,
    /// Whether the attempt was accepted and its work is proven.
    #[serde(default)]
    pub verified: bool,
    /// Whether the server's own checks passed; the verifier may still have refused.
    #[serde(default)]
    pub gates_passed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The model was reached but did not finish its answer in time. The cause is `infra`, as for
    /// everything that is not answered, but it was not an outage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub feedback: String,
    /// `feedback` in words for the caller, if it differs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What the user can do about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output_summary: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub runner_output: String,
    /// `null` means unknown, which is not zero.
    #[serde(default)]
    pub tokens_in: Option<u64>,
    #[serde(default)]
    pub tokens_out: Option<u64>,
    #[serde(default, serialize_with = "serialize_nano_usd")]
    pub cost_usd: Option<f64>,
    /// Paid by a subscription: `cost_usd` is what it would have been by the token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subscription: bool,
    /// The verifier's share of the above; absent if none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier: Option<Opinion>,
    /// The share of the author of hidden tests; absent if none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Opinion>,
    /// Flags raised for the answer, with the verifier's reply to each.
    #[serde(default, skip_serializing_if = "Flags::is_empty")]
    pub flags: Flags,
    /// Each round of an attempt with more than one; otherwise empty. The sums are above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<AskRecord>,
    /// The checks of the answer, in order. The last one says why it was refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// Tests with different results in two runs of the same files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaky: Vec<String>,
    /// Each question that was sent, as far as it was stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchange: Vec<ExchangeRecord>,
    /// The change that was made or tried, as a unified diff, if it was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<TextId>,
}

impl Attempt {
    /// A new attempt without results.
    pub(super) fn of(number: u32, tier: &Tier) -> Self {
        Self {
            attempt: number,
            phase: String::new(),
            model: tier.name.to_string(),
            tier: tier.backend.tier,
            duration_ms: 0,
            generate_ms: 0,
            verify_ms: 0,
            warm_start: None,
            verified: false,
            gates_passed: false,
            verdict: None,
            cause: None,
            unfinished: false,
            feedback: String::new(),
            reason: String::new(),
            hint: String::new(),
            output_summary: String::new(),
            runner_output: String::new(),
            tokens_in: None,
            tokens_out: None,
            cost_usd: None,
            subscription: tier.backend.billing == Some(Billing::Subscription),
            verifier: None,
            author: None,
            flags: Flags::default(),
            asks: Vec::new(),
            gates: Vec::new(),
            flaky: Vec::new(),
            exchange: Vec::new(),
            diff: None,
        }
    }

    /// An attempt that has begun, as it is logged if the server dies.
    pub(super) fn begun(number: u32, tier: &Tier) -> Self {
        let cause = Cause::Crashed;
        let feedback = String::from("the server ended before this attempt did");
        Self {
            cause: Some(cause),
            verdict: Some(cause.verdict()),
            feedback,
            ..Self::of(number, tier)
        }
    }

    /// Both directions together, as far as they are known.
    pub fn tokens(&self) -> u64 {
        let known = [self.tokens_in, self.tokens_out].into_iter().flatten();
        known.fold(0, u64::saturating_add)
    }

    /// Sets the usage of the asks themselves.
    pub(super) fn note_usage(&mut self, usage: &Usage) {
        (self.tokens_in, self.tokens_out, self.cost_usd) =
            (usage.tokens_in, usage.tokens_out, usage.cost_usd);
    }

    /// Adds the verifier's usage.
    pub(super) fn note_opinion(&mut self, verifier: &Tier, usage: &Usage) {
        let before = self.verifier.take();
        let mut opinion = self.add_usage(verifier, usage);
        if let Some(before) = before {
            opinion.add(&before);
        }
        self.verifier = Some(opinion);
    }

    /// Adds the usage of the author of hidden tests.
    pub(super) fn note_author(&mut self, author: &Tier, usage: &Usage) {
        let before = self.author.take();
        let mut opinion = self.add_usage(author, usage);
        if let Some(before) = before {
            opinion.add(&before);
        }
        self.author = Some(opinion);
    }

    /// Number of answers that its first ask brought.
    pub fn samples(&self) -> u32 {
        let numbers = self.asks.iter().filter_map(|ask| ask.sample);
        numbers.max().unwrap_or(1)
    }

    fn add_usage(&mut self, other: &Tier, usage: &Usage) -> Opinion {
        let own = Usage {
            tokens_in: self.tokens_in,
            tokens_out: self.tokens_out,
            cost_usd: self.cost_usd,
        };
        self.note_usage(&own.and(usage));
        let Usage {
            tokens_in,
            tokens_out,
            cost_usd,
        } = *usage;
        Opinion {
            model: other.name.to_string(),
            tokens_in,
            tokens_out,
            cost_usd,
        }
    }

    /// The first line of why it was refused, in words for the caller.
    pub fn reason(&self) -> &str {
        let reason = match self.reason.as_str() {
            "" => &self.feedback,
            reason => reason,
        };
        reason.lines().next().unwrap_or_default()
    }

    /// Whether a question was sent. A `skipped` attempt sent none, unless only a later question was
    /// skipped: then there is usage.
    pub fn was_asked(&self) -> bool {
        self.cause != Some(Cause::Skipped) || self.tokens_in.is_some() || self.cost_usd.is_some()
    }

    /// What the attempt says about its model, if anything.
    pub fn evidence(&self) -> Option<ModelEvidence> {
        if self.is_unsent() {
            None
        } else {
            ModelEvidence::of(self.cause?, self.unfinished)
        }
    }

    /// Whether no question was sent because it does not fit the configured model. Then nothing was
    /// measured.
    pub fn is_unsent(&self) -> bool {
        self.cause == Some(Cause::Incapable) && self.tokens_in.is_none() && self.exchange.is_empty()
    }
}

/// What an attempt says about its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelEvidence {
    For,
    Against,
    /// The model could not give an answer: it did not finish within the limit, was cut off, or the
    /// question was too large. This says nothing about the quality of its answers, but the turn is
    /// lost.
    Unable,
}

impl ModelEvidence {
    /// Outages, exhausted quotas and wrong settings say nothing about a model.
    pub fn of(cause: Cause, unfinished: bool) -> Option<Self> {
        match cause {
            Cause::Accepted => Some(Self::For),
            Cause::Rejected | Cause::Unreadable | Cause::Tampered => Some(Self::Against),
            Cause::Incapable => Some(Self::Unable),
            _ => unfinished.then_some(Self::Unable),
        }
    }
}

/// One round of an attempt: the task itself, or a follow-up on the previous answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskRecord {
    /// Absent for the task itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_up: Option<FollowUpKind>,
    /// Number of this answer, from 1, where one ask brought several. The first one has the time of
    /// all of them, and the tokens if they came in one response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<u32>,
    /// How this answer ended, where one ask brought several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The outcome, in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    pub duration_ms: u64,
    #[serde(default)]
    pub tokens_in: Option<u64>,
    #[serde(default)]
    pub tokens_out: Option<u64>,
    #[serde(default, serialize_with = "serialize_nano_usd")]
    pub cost_usd: Option<f64>,
}

/// Usage of a verifier or test author. It is included in the attempt's own usage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opinion {
    pub model: String,
    #[serde(default)]
    pub tokens_in: Option<u64>,
    #[serde(default)]
    pub tokens_out: Option<u64>,
    #[serde(default, serialize_with = "serialize_nano_usd")]
    pub cost_usd: Option<f64>,
}

impl Opinion {
    /// Adds the usage of an opinion on another candidate of the same attempt.
    fn add(&mut self, other: &Self) {
        let usage = |of: &Self| Usage {
            tokens_in: of.tokens_in,
            tokens_out: of.tokens_out,
            cost_usd: of.cost_usd,
        };
        let all = usage(self).and(&usage(other));
        (self.tokens_in, self.tokens_out, self.cost_usd) =
            (all.tokens_in, all.tokens_out, all.cost_usd);
    }
}

/// Rounds to 1e-9 USD: sums of floats end in meaningless digits.
pub(super) fn serialize_nano_usd<S: Serializer>(
    usd: &Option<f64>,
    to: S,
) -> Result<S::Ok, S::Error> {
    usd.map(|usd| (usd * 1e9).round() / 1e9).serialize(to)
}

/// The outcome of an attempt, in the three values that log readers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Accept,
    Escalate,
    Error,
}

/// Why an attempt ended as it did. `rejected`, `tampered` and `unreadable` are evidence about a
/// model's quality; the others are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Accepted,
    /// A gate or the verifier refused the answer.
    Rejected,
    /// A protected file, configuration, a link, or something outside the root was changed.
    Tampered,
    /// The worker reports that spec and test disagree.
    Contradiction,
    /// The verifier's reply is unusable, or the tests are flaky.
    CannotVerify,
    /// Connection refused, 5xx, timeout, malformed reply or crash.
    Infra,
    /// 429, or the provider's budget is used up.
    Quota,
    /// Context too long, no tools, truncated prompt or answer.
    Incapable,
    /// The model declines.
    Refused,
    /// Not logged in, missing binary or key, or unknown model.
    Setup,
    /// The breaker is open or the gateway is known to be down: not asked at all.
    Skipped,
    /// The answer could not be parsed, even after the repair question.
    Unreadable,
    /// The ask would exceed our own budget.
    Budget,
    Cancelled,
    /// The server died during the attempt.
    Crashed,
    /// Of a whole call: its arguments were refused, so nothing was asked or run.
    Arguments,
}

impl Cause {
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Accepted => Verdict::Accept,
            Self::Rejected | Self::Tampered | Self::Contradiction | Self::CannotVerify => {
                Verdict::Escalate
            }
            Self::Infra
            | Self::Quota
            | Self::Incapable
            | Self::Refused
            | Self::Setup
            | Self::Skipped
            | Self::Unreadable
            | Self::Budget
            | Self::Cancelled
            | Self::Crashed
            | Self::Arguments => Verdict::Error,
        }
    }

    /// Whether the cause says nothing about the model and may be gone the next time.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::Infra
                | Self::Quota
                | Self::Setup
                | Self::Skipped
                | Self::Budget
                | Self::Cancelled
        )
    }

    /// Its name in the log and on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Tampered => "tampered",
            Self::Contradiction => "contradiction",
            Self::CannotVerify => "cannot_verify",
            Self::Infra => "infra",
            Self::Quota => "quota",
            Self::Incapable => "incapable",
            Self::Refused => "refused",
            Self::Setup => "setup",
            Self::Skipped => "skipped",
            Self::Unreadable => "unreadable",
            Self::Budget => "budget",
            Self::Cancelled => "cancelled",
            Self::Crashed => "crashed",
            Self::Arguments => "arguments",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempt_round_trips_through_json() {
        let attempt = Attempt {
            attempt: 2,
            phase: String::new(),
            model: "ollama/x".into(),
            tier: TierKind::Local,
            duration_ms: 12,
            generate_ms: 7,
            verify_ms: 5,
            warm_start: None,
            verified: false,
            gates_passed: true,
            verdict: Some(Verdict::Escalate),
            cause: Some(Cause::CannotVerify),
            unfinished: false,
            feedback: "verifier error: no JSON".into(),
            reason: String::new(),
            hint: String::new(),
            output_summary: String::new(),
            runner_output: "1 failed".into(),
            tokens_in: Some(3),
            tokens_out: None,
            cost_usd: Some(0.0),
            verifier: Some(Opinion {
                model: "judge".into(),
                tokens_in: Some(1),
                tokens_out: None,
                cost_usd: None,
            }),
            subscription: false,
            author: None,
            flags: Flags::default(),
            asks: vec![AskRecord {
                follow_up: Some(FollowUpKind::Repair),
                sample: Some(2),
                cause: Some(Cause::Unreadable),
                said: "no edits in it".into(),
                duration_ms: 3,
                tokens_in: Some(2),
                tokens_out: None,
                cost_usd: None,
            }],
            gates: vec![Gate {
                id: "tests".into(),
                pass: false,
                detail: "flaky".into(),
            }],
            flaky: vec!["a::b".into()],
            exchange: vec![ExchangeRecord {
                answer: Some(TextId::of("x")),
                ..Default::default()
            }],
            diff: None,
        };
        let line = serde_json::to_string(&attempt).expect("plain data");
        assert!(
            line.contains(r#""cause":"cannot_verify""#) && line.contains(r#""warm_start":null"#),
            "{line}"
        );
        assert_eq!(
            serde_json::from_str::<Attempt>(&line).expect("own line"),
            attempt
        );
    }

    #[test]
    fn old_attempts_without_cause_and_cost_parse() {
        let old = r#"{"attempt":1,"model":"m","tier":"local","duration_ms":5,"warm_start":true,"verdict":"accept"}"#;
        let attempt: Attempt = serde_json::from_str(old).expect("old lines parse");
        assert_eq!(
            (attempt.verdict, attempt.cause, attempt.cost_usd),
            (Some(Verdict::Accept), None, None)
        );
    }

    #[test]
    fn costs_are_rounded_when_serialized() {
        let opinion = Opinion {
            model: "judge".into(),
            tokens_in: None,
            tokens_out: None,
            cost_usd: Some(0.1 + 0.2),
        };
        assert_eq!(
            serde_json::to_value(&opinion).expect("plain data")["cost_usd"],
            serde_json::json!(0.3)
        );
    }
}
