//! Whether delegation pays: what the calls cost in money and minutes against the same work by the top tier alone, with
//! intervals, and the advice that follows. Every figure comes from the log; what is assumed is said in
//! [`Worth::assumptions`].

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Attempt;
use crate::policy::{Interval, rate_interval};
use crate::session::{CallRecord, RecordedOutcome};
use supervisor_verify::HIDDEN_TEST_FLAG;

/// Fewer compared calls say nothing.
pub const ENOUGH_CALLS: usize = 20;
/// Kinds of task with fewer calls are not judged by themselves.
const ENOUGH_OF_A_KIND: usize = 10;
/// If it takes more calls than this to decide, there is no difference worth deciding.
const MAX_MORE_CALLS: f64 = 1_000.0;
/// Where fewer calls are done without the top tier, waiting is not what is wrong.
const ENOUGH_BELOW_TOP: f64 = 0.3;
/// Standard deviations that contain 95 % of a normal distribution.
const Z_95: f64 = 1.96;

/// The answer, with its reasons.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Worth {
    /// Calls that asked a model and of which both costs are known.
    pub compared: usize,
    /// Calls that asked a model.
    pub calls: usize,
    pub usd_saved: Estimate,
    /// Minutes saved, if it is known how long the top tier takes. Negative: the calls took longer.
    pub minutes_saved: Option<Estimate>,
    /// Money and minutes together.
    pub value_usd: Estimate,
    pub minute_usd: f64,
    /// Minutes that the calls took, and the part of them that somebody waited for.
    pub minutes: f64,
    pub foreground_minutes: f64,
    pub kinds: Vec<KindWorth>,
    pub false_accepts: FalseAccepts,
    pub advice: WorthAdvice,
    pub assumptions: Vec<String>,
}

/// A sum over calls with its 95 % interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Estimate {
    pub sum: f64,
    pub low: f64,
    pub high: f64,
}

/// One kind of task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KindWorth {
    pub skill: String,
    pub language: String,
    pub size: String,
    pub calls: usize,
    pub accepted: usize,
    /// Accepted without asking the top tier.
    pub accepted_below_top: usize,
    pub rate: Interval,
    pub value_usd: Estimate,
}

/// Accepted answers that failed tests which their author never saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FalseAccepts {
    /// Accepted answers on which hidden tests ran.
    pub tested: usize,
    pub failed: usize,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum WorthAdvice {
    Pays,
    /// The interval contains zero, or there are too few calls. `more` calls are likely to decide it.
    TooEarly {
        more: usize,
    },
    /// The sum is so close to zero that more calls would hardly decide it.
    NoDifference,
    /// It costs more than it saves.
    DoesNotPay {
        change: Change,
    },
}

/// The setting that would change it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub enum Change {
    /// Money is saved, and waiting costs more than that.
    LessWaiting,
    /// These kinds pay.
    OnlyKinds { kinds: Vec<String> },
    /// Nothing that is delegated pays.
    ProveAlone,
}

/// Collects calls.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct WorthTally {
    calls: usize,
    minutes: f64,
    foreground_minutes: f64,
    compared: Vec<ComparedCall>,
    /// Sum and number of the durations of the top tiers' attempts, by tool.
    top_tier_ms: BTreeMap<String, (u64, usize)>,
    false_accepts: FalseAccepts,
    kinds: BTreeMap<[String; 3], (usize, usize, usize)>,
}

#[derive(Debug, Clone, PartialEq)]
struct ComparedCall {
    tool: String,
    kind: [String; 3],
    saved_usd: f64,
    waited_ms: u64,
}

impl WorthTally {
    pub fn add(&mut self, record: &CallRecord) {
        let entry = &record.entry;
        let asked: Vec<&Attempt> = entry.attempts.iter().filter(|a| a.was_asked()).collect();
        if asked.is_empty() {
            return;
        }
        self.calls += 1;
        self.minutes += minutes(entry.duration_ms);
        let waited_ms = entry.foreground_ms.unwrap_or(entry.duration_ms);
        self.foreground_minutes += minutes(waited_ms);
        for attempt in &asked {
            self.false_accepts.add(attempt);
        }
        let top = entry.top_tier.as_ref();
        let top_attempts = asked
            .iter()
            .filter(|a| Some(&a.model) == top.map(|top| &top.model));
        for attempt in top_attempts.clone() {
            let (sum, times) = self.top_tier_ms.entry(entry.tool.clone()).or_default();
            *sum = sum.saturating_add(attempt.duration_ms);
            *times += 1;
        }
        let kind = match &entry.class {
            Some(class) => [
                class.skill.clone(),
                class.language.clone(),
                class.size.word().to_owned(),
            ],
            None => [entry.tool.clone(), String::from("any"), String::from("any")],
        };
        let is_accepted = record.outcome == RecordedOutcome::Pass;
        let is_below_top = is_accepted && top.is_some() && top_attempts.count() == 0;
        let counts = self.kinds.entry(kind.clone()).or_default();
        counts.0 += 1;
        counts.1 += usize::from(is_accepted);
        counts.2 += usize::from(is_below_top);
        let spent: Option<f64> = asked.iter().map(|attempt| attempt.cost_usd).sum();
        if let (Some(spent), Some(alone)) = (spent, top.and_then(|top| top.cost_usd)) {
            self.compared.push(ComparedCall {
                tool: entry.tool.clone(),
                kind,
                saved_usd: alone - spent,
                waited_ms,
            });
        }
    }

    /// `minute_usd` is what a minute of waiting is worth.
    pub fn finish(&self, minute_usd: f64) -> Worth {
        let top_minutes = |tool: &str| {
            let (sum, times) = self.top_tier_ms.get(tool)?;
            Some(minutes(*sum) / *times as f64)
        };
        let saved_minutes =
            |call: &ComparedCall| Some(top_minutes(&call.tool)? - minutes(call.waited_ms));
        let value = |call: &ComparedCall| {
            call.saved_usd + saved_minutes(call).unwrap_or_default() * minute_usd
        };
        let usd_saved = Estimate::of(self.compared.iter().map(|call| call.saved_usd));
        let timed: Vec<f64> = self.compared.iter().filter_map(saved_minutes).collect();
        let minutes_saved = (!timed.is_empty()).then(|| Estimate::of(timed.iter().copied()));
        let value_usd = Estimate::of(self.compared.iter().map(value));
        let kinds: Vec<KindWorth> = self
            .kinds
            .iter()
            .map(|(kind, (calls, accepted, below))| {
                let [skill, language, size] = kind.clone();
                let of_kind = self.compared.iter().filter(|call| call.kind == *kind);
                KindWorth {
                    skill,
                    language,
                    size,
                    calls: *calls,
                    accepted: *accepted,
                    accepted_below_top: *below,
                    rate: rate_interval(*accepted, *calls),
                    value_usd: Estimate::of(of_kind.map(value)),
                }
            })
            .collect();
        Worth {
            compared: self.compared.len(),
            calls: self.calls,
            advice: advise(self.compared.len(), usd_saved, value_usd, &kinds),
            assumptions: self.assumptions(timed.len(), minute_usd),
            usd_saved,
            minutes_saved,
            value_usd,
            minute_usd,
            minutes: self.minutes,
            foreground_minutes: self.foreground_minutes,
            kinds,
            false_accepts: self.false_accepts,
        }
    }

    fn assumptions(&self, timed: usize, minute_usd: f64) -> Vec<String> {
        let mut said = vec![
            String::from(
                "Without delegation the top tier of each chain does the work at its first try; where it was not asked, its \
                 price for the tokens of the last answer is taken.",
            ),
            format!(
                "Somebody waits for each call until it ends or goes on in the background, and a minute of that is worth \
                 ${minute_usd:.2} (`policy.minute_usd`).",
            ),
        ];
        said.push(match timed {
            0 => String::from(
                "How long the top tier takes is not known, because it was not asked; minutes are not compared.",
            ),
            n => format!(
                "The top tier takes as long as its attempts took on average; that is known for {n} of {} calls.",
                self.compared.len()
            ),
        });
        said.push(String::from(
            "An accepted answer is as good from a cheap tier as from the top tier; hidden tests show how far that is true.",
        ));
        said.push(String::from(
            "Intervals hold 95 %, from how much calls differ; calls to come are like those that were.",
        ));
        said
    }
}

impl FalseAccepts {
    fn add(&mut self, attempt: &Attempt) {
        let ran = attempt
            .gates
            .iter()
            .any(|gate| gate.id == "twins" && !gate.detail.starts_with("none"));
        if ran && attempt.cause == Some(crate::Cause::Accepted) {
            self.tested += 1;
            // The id of a flag is its kind, numbered from the second on.
            let failed = attempt
                .flags
                .iter()
                .any(|flag| flag.id.starts_with(HIDDEN_TEST_FLAG));
            self.failed += usize::from(failed);
        }
    }
}

impl Estimate {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.collect();
        let n = values.len() as f64;
        let sum: f64 = values.iter().sum();
        if values.len() < 2 {
            return Self {
                sum,
                low: f64::NEG_INFINITY,
                high: f64::INFINITY,
            };
        }
        let mean = sum / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let spread = Z_95 * (variance * n).sqrt();
        Self {
            sum,
            low: sum - spread,
            high: sum + spread,
        }
    }

    /// Whether the interval is known at all.
    pub fn is_known(&self) -> bool {
        self.low.is_finite()
    }
}

impl KindWorth {
    /// `tdd_green in python, small`.
    pub fn name(&self) -> String {
        match self.language.as_str() {
            "any" => self.skill.clone(),
            language => format!("{} in {language}, {}", self.skill, self.size),
        }
    }
}

fn advise(calls: usize, usd: Estimate, value: Estimate, kinds: &[KindWorth]) -> WorthAdvice {
    if calls < ENOUGH_CALLS {
        return WorthAdvice::TooEarly {
            more: ENOUGH_CALLS - calls,
        };
    }
    if value.low > 0.0 {
        return WorthAdvice::Pays;
    }
    if value.high >= 0.0 {
        // The interval shrinks with the root of the number of calls.
        let needed = ((value.high - value.low) / 2.0 / value.sum.abs().max(1e-9)).powi(2);
        let more = (calls as f64 * (needed - 1.0)).max(1.0).ceil();
        return match more > MAX_MORE_CALLS {
            true => WorthAdvice::NoDifference,
            false => WorthAdvice::TooEarly {
                more: more as usize,
            },
        };
    }
    let paying: Vec<String> = kinds
        .iter()
        .filter(|kind| kind.calls >= ENOUGH_OF_A_KIND && kind.value_usd.low > 0.0)
        .map(KindWorth::name)
        .collect();
    let change = if !paying.is_empty() {
        Change::OnlyKinds { kinds: paying }
    } else if usd.low > 0.0 && share_below_top(kinds) >= ENOUGH_BELOW_TOP {
        Change::LessWaiting
    } else {
        Change::ProveAlone
    };
    WorthAdvice::DoesNotPay { change }
}

/// The share of calls that were done without the top tier.
fn share_below_top(kinds: &[KindWorth]) -> f64 {
    let calls: usize = kinds.iter().map(|kind| kind.calls).sum();
    let below: usize = kinds.iter().map(|kind| kind.accepted_below_top).sum();
    below as f64 / calls.max(1) as f64
}

impl WorthAdvice {
    /// What happened and what to do, for a reader who knows no settings.
    pub fn sentences(&self) -> Vec<String> {
        match self {
            Self::Pays => vec![
                String::from("Yes: delegation pays here."),
                String::from("Keep your settings; look again when you change models."),
            ],
            Self::TooEarly { more } => vec![
                String::from("Too early to tell."),
                format!(
                    "About {more} more {} decide it. Until then nothing speaks for or against a change.",
                    if *more == 1 { "call" } else { "calls" }
                ),
            ],
            Self::NoDifference => vec![
                String::from("No difference seen."),
                String::from(
                    "The calls cost about as much as they save. Nothing speaks for or against a change.",
                ),
            ],
            Self::DoesNotPay { change } => {
                let mut said = vec![String::from(
                    "No: delegation costs more than it saves here.",
                )];
                said.push(match change {
                    Change::LessWaiting => String::from(
                        "It saves money and loses more time than that is worth. Let calls run in the background \
                         (`foreground_s = 0`), ask a faster model first, or set `policy.mode = \"learned\"`, which leaves \
                         slow tiers out.",
                    ),
                    Change::OnlyKinds { kinds } => format!(
                        "It pays for {}: delegate only that, or set `policy.mode = \"learned\"`, which leaves out tiers that do \
                         not pay for a kind of task.",
                        kinds.join("; ")
                    ),
                    Change::ProveAlone => String::from(
                        "Use `prove` alone: it asks no model and shows whether a change is proven. Run `supervisor prove`, or \
                         start Claude Code with `SUPERVISOR_STOP_GATE=prove`.",
                    ),
                });
                said
            }
        }
    }
}

fn minutes(ms: u64) -> f64 {
    ms as f64 / 60_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(calls: usize, value: Estimate) -> KindWorth {
        KindWorth {
            skill: "tdd_green".into(),
            language: "python".into(),
            size: "small".into(),
            calls,
            accepted: calls,
            accepted_below_top: calls,
            rate: rate_interval(calls, calls),
            value_usd: value,
        }
    }

    fn estimate(low: f64, high: f64) -> Estimate {
        Estimate {
            sum: f64::midpoint(low, high),
            low,
            high,
        }
    }

    #[test]
    fn advice_follows_from_the_interval() {
        let (gain, loss, open) = (
            estimate(1.0, 2.0),
            estimate(-2.0, -1.0),
            estimate(-1.0, 2.0),
        );
        let advice = |calls, usd, value, kinds: &[KindWorth]| advise(calls, usd, value, kinds);
        assert_eq!(
            advice(19, gain, gain, &[]),
            WorthAdvice::TooEarly { more: 1 }
        );
        assert_eq!(advice(20, gain, gain, &[]), WorthAdvice::Pays);
        assert!(matches!(
            advice(20, gain, open, &[]),
            WorthAdvice::TooEarly { more: 160 }
        ));
        let zero = estimate(-1.0, 1.01);
        assert_eq!(advice(20, gain, zero, &[]), WorthAdvice::NoDifference);
        let change = |usd, kinds: &[KindWorth]| match advice(20, usd, loss, kinds) {
            WorthAdvice::DoesNotPay { change } => change,
            other => panic!("{other:?}"),
        };
        assert_eq!(change(gain, &[kind(5, loss)]), Change::LessWaiting);
        assert_eq!(change(open, &[kind(5, loss)]), Change::ProveAlone);
        let mostly_wrong = KindWorth {
            accepted_below_top: 1,
            ..kind(5, loss)
        };
        assert_eq!(change(gain, &[mostly_wrong]), Change::ProveAlone);
        assert_eq!(
            change(open, &[kind(10, gain), kind(9, gain), kind(30, open)]),
            Change::OnlyKinds {
                kinds: vec!["tdd_green in python, small".into()]
            }
        );
    }

    #[test]
    fn interval_shrinks_with_more_calls() {
        let of = |times: usize| Estimate::of([0.1, 0.3].iter().copied().cycle().take(times));
        let (few, many) = (of(4), of(400));
        assert!((few.sum / 4.0 - many.sum / 400.0).abs() < 1e-9);
        assert!((few.high - few.low) / few.sum > (many.high - many.low) / many.sum);
        assert!(!Estimate::of([1.0].into_iter()).is_known());
    }
}
