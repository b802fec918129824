//! One model asked once: what came of it and why. The same type goes into the result and into the log,
//! so what a reader of either sees is what happened.

use serde::{Deserialize, Serialize, Serializer};

use super::evidence::FollowUpKind;
use super::exchange::{ExchangeRecord, TextId};
use super::result::Gate;
use supervisor_models::Usage;
use supervisor_settings::{Tier, TierKind};
use supervisor_verify::Flags;

/// One model asked once. Field names are part of the log's format: they are added to, never renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Counted from 1 over the whole call.
    pub attempt: u32,
    pub model: String,
    pub tier: TierKind,
    /// Everything this attempt took, the verifier included.
    pub duration_ms: u64,
    #[serde(default)]
    pub generate_ms: u64,
    #[serde(default)]
    pub verify_ms: u64,
    /// Was the model loaded already? `null` is unknown.
    #[serde(default)]
    pub warm_start: Option<bool>,
    /// True only if the server's own gates held.
    #[serde(default)]
    pub verified: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// It was reached, and had not ended its answer when the time of an ask was over. The cause is `infra`, as for all that
    /// is not answered, but it was no outage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub feedback: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output_summary: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub runner_output: String,
    /// `null` is unknown, which is not zero.
    #[serde(default)]
    pub tokens_in: Option<u64>,
    #[serde(default)]
    pub tokens_out: Option<u64>,
    #[serde(default, serialize_with = "to_the_nano")]
    pub cost_usd: Option<f64>,
    /// What the verifier took of these; absent if none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier: Option<Opinion>,
    /// What the author of further tests took of these; absent if none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Opinion>,
    /// What was noticed about its answer, with what the verifier said of each.
    #[serde(default, skip_serializing_if = "Flags::is_empty")]
    pub flags: Flags,
    /// Each question of an attempt that took more than one round; empty otherwise. Their sums are above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<AskRecord>,
    /// The checks that the server made of its answer, in their order; the last one says why it was refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// Tests that ended differently in two runs of the same files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaky: Vec<String>,
    /// Each question that went out, as far as it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchange: Vec<ExchangeRecord>,
    /// The change that was made or tried, as a unified diff, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<TextId>,
}

impl Attempt {
    /// A tier's turn, of which nothing is known yet.
    pub(super) fn of(number: u32, tier: &Tier) -> Self {
        Self {
            attempt: number,
            model: tier.name.to_string(),
            tier: tier.backend.tier,
            duration_ms: 0,
            generate_ms: 0,
            verify_ms: 0,
            warm_start: None,
            verified: false,
            verdict: None,
            cause: None,
            unfinished: false,
            feedback: String::new(),
            output_summary: String::new(),
            runner_output: String::new(),
            tokens_in: None,
            tokens_out: None,
            cost_usd: None,
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

    /// A turn that has begun: what is known of it, should nothing more be heard.
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

    /// What the asks themselves used.
    pub(super) fn note_usage(&mut self, usage: &Usage) {
        (self.tokens_in, self.tokens_out, self.cost_usd) =
            (usage.tokens_in, usage.tokens_out, usage.cost_usd);
    }

    /// Adds what the verifier used.
    pub(super) fn note_opinion(&mut self, verifier: &Tier, usage: &Usage) {
        self.verifier = Some(self.add_usage(verifier, usage));
    }

    /// Adds what the author of further tests used.
    pub(super) fn note_author(&mut self, author: &Tier, usage: &Usage) {
        self.author = Some(self.add_usage(author, usage));
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

    /// Did a question go out? One that is `skipped` had none, unless its first questions were answered and only a later
    /// one was skipped: then something was used.
    pub fn was_asked(&self) -> bool {
        self.cause != Some(Cause::Skipped) || self.tokens_in.is_some() || self.cost_usd.is_some()
    }

    /// What it says about its model, if anything.
    pub fn evidence(&self) -> Option<ModelEvidence> {
        if self.is_unsent() {
            None
        } else {
            ModelEvidence::of(self.cause?, self.unfinished)
        }
    }

    /// The question does not fit into what the settings say of the model, so none went out: nothing was measured.
    pub fn is_unsent(&self) -> bool {
        self.cause == Some(Cause::Incapable) && self.tokens_in.is_none() && self.exchange.is_empty()
    }
}

/// What an attempt says about its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelEvidence {
    For,
    Against,
    /// Nothing about the quality of its answers: it could not give one. Its answer had no end within the limit or was cut
    /// off, or the question was too much for it. The turn is lost all the same.
    Unable,
}

impl ModelEvidence {
    /// An outage, an empty purse or a wrong setting says nothing.
    pub fn of(cause: Cause, unfinished: bool) -> Option<Self> {
        match cause {
            Cause::Accepted => Some(Self::For),
            Cause::Rejected | Cause::Unreadable | Cause::Tampered => Some(Self::Against),
            Cause::Incapable => Some(Self::Unable),
            _ => unfinished.then_some(Self::Unable),
        }
    }
}

/// One round of an attempt: the task itself, or a follow-up to the answer before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskRecord {
    /// Absent for the task itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_up: Option<FollowUpKind>,
    /// What came of it, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    pub duration_ms: u64,
    #[serde(default)]
    pub tokens_in: Option<u64>,
    #[serde(default)]
    pub tokens_out: Option<u64>,
    #[serde(default, serialize_with = "to_the_nano")]
    pub cost_usd: Option<f64>,
}

/// A verifier asked once. Its tokens and cost are part of the attempt's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opinion {
    pub model: String,
    #[serde(default)]
    pub tokens_in: Option<u64>,
    #[serde(default)]
    pub tokens_out: Option<u64>,
    #[serde(default, serialize_with = "to_the_nano")]
    pub cost_usd: Option<f64>,
}

/// Money as people write it down: sums of floats end in digits that mean nothing.
pub(super) fn to_the_nano<S: Serializer>(usd: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    usd.map(|usd| (usd * 1e9).round() / 1e9).serialize(to)
}

/// The three values a log reader counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Accept,
    Escalate,
    Error,
}

/// Why. `rejected`, `tampered` and `unreadable` are evidence about a model's quality; the others are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Accepted,
    /// A gate or the verifier said no.
    Rejected,
    /// A sealed file, configuration, a link, or something outside the root was touched.
    Tampered,
    /// The worker says that spec and test disagree.
    Contradiction,
    /// The verifier spoke garbage, or the tests are flaky.
    CannotVerify,
    /// Refused, 5xx, timed out, malformed, crashed.
    Infra,
    /// 429, or the provider's budget.
    Quota,
    /// Context too long, no tools, truncated prompt or answer.
    Incapable,
    /// The model declines.
    Refused,
    /// No login, binary or key missing, unknown model.
    Setup,
    /// Breaker open or gateway known dead: not asked at all.
    Skipped,
    /// Nothing in the answer could be read as one, also after the repair question.
    Unreadable,
    /// Our own cap would be crossed.
    Budget,
    Cancelled,
    /// The server itself died meanwhile.
    Crashed,
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
            | Self::Crashed => Verdict::Error,
        }
    }

    /// Says nothing about the model, and may be otherwise the next time.
    pub fn is_passing(self) -> bool {
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

    /// The word for it in the log and on the screen.
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_survives_the_trip_through_json() {
        let attempt = Attempt {
            attempt: 2,
            model: "ollama/x".into(),
            tier: TierKind::Local,
            duration_ms: 12,
            generate_ms: 7,
            verify_ms: 5,
            warm_start: None,
            verified: false,
            verdict: Some(Verdict::Escalate),
            cause: Some(Cause::CannotVerify),
            unfinished: false,
            feedback: "verifier error: no JSON".into(),
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
            author: None,
            flags: Flags::default(),
            asks: vec![AskRecord {
                follow_up: Some(FollowUpKind::Repair),
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
    fn a_line_from_before_causes_and_costs_still_reads() {
        let old = r#"{"attempt":1,"model":"m","tier":"local","duration_ms":5,"warm_start":true,"verdict":"accept"}"#;
        let attempt: Attempt = serde_json::from_str(old).expect("old lines parse");
        assert_eq!(
            (attempt.verdict, attempt.cause, attempt.cost_usd),
            (Some(Verdict::Accept), None, None)
        );
    }

    #[test]
    fn money_is_written_without_digits_that_mean_nothing() {
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
