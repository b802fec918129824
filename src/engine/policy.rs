//! Which tiers of a chain are asked for this call, and in which order: a pure function of what is known about each tier,
//! so that it can be simulated before it is believed. Skips and reorders tiers, never invents one.
//!
//! For each tier there is a Beta posterior of "its turn ends accepted", and what a turn costs in money and time, time at
//! the stated price of a minute. One way through the chain costs what its first tier costs, plus, as often as that one
//! fails, what the next one costs, and so on; the cheapest way is taken. Rates are drawn from their posteriors, so that a
//! tier of which little is known still has its turns (Thompson sampling), and a small share of calls walks the chain as
//! it is written whatever is known.

mod odds;
mod turn;
mod way;

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::routing::TierKind;
use crate::words;
pub use odds::{Beta, Interval, rate_interval};
pub use turn::TurnRecord;
pub use way::policy_tiers;
pub(super) use way::{along, choose_way};

/// A tier that fails more than 70 % of what it tries costs more than it saves: behind the top tier it is not asked.
pub const WORTH_ASKING: f64 = 0.3;
/// The share of calls that walk the chain as it is written, so that a model that has become better is noticed.
pub const EXPLORATION_FLOOR: f64 = 0.02;
/// How many turns of other kinds of tasks count as much as they ever may for this kind.
const BORROWED_TURNS: f64 = 6.0;
/// Turns as which the first guess of a turn's cost and time counts.
const GUESSED_TURNS: f64 = 2.0;
/// With more tiers there are too many orders to look at; the chain is walked as it is written.
const MOST_TIERS: usize = 6;

/// What kind of task a call is: what was learned from one is used for others of the same kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskClass {
    pub skill: String,
    /// `any` where the skill does not say.
    pub language: String,
    pub size: TaskSize,
}

/// How much there is to read, by the bytes of the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSize {
    Small,
    Medium,
    Large,
}

impl TaskSize {
    pub fn of_bytes(bytes: usize) -> Self {
        match bytes {
            0..8_000 => Self::Small,
            8_000..32_000 => Self::Medium,
            _ => Self::Large,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

/// One tier as the policy sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyTier {
    pub model: String,
    /// For this kind of task.
    pub cell: TurnRecord,
    /// For all kinds together, this one included.
    pub all: TurnRecord,
    /// Before anything is known.
    pub prior: TierPrior,
}

/// What is believed of a tier before its first turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TierPrior {
    pub acceptance: Beta,
    pub usd: f64,
    pub seconds: f64,
}

impl TierPrior {
    /// By the kind of tier; the prices, where known, make the guess of what a turn costs.
    pub fn of(kind: TierKind, price_in: Option<f64>, price_out: Option<f64>) -> Self {
        let guess = |tokens_in: f64, tokens_out: f64| {
            price_in.zip(price_out).map(|(i, o)| (tokens_in * i + tokens_out * o) / 1e6)
        };
        match kind {
            TierKind::Local => {
                Self { acceptance: Beta::new(1.0, 1.0), usd: guess(6_000.0, 1_500.0).unwrap_or(0.0), seconds: 45.0 }
            }
            TierKind::Subagent | TierKind::Managed => {
                Self { acceptance: Beta::new(4.0, 1.0), usd: guess(60_000.0, 3_000.0).unwrap_or(0.25), seconds: 60.0 }
            }
        }
    }
}

impl PolicyTier {
    /// How often its turn ends accepted, as far as is known: turns of this kind in full, others as a prior.
    pub fn acceptance(&self) -> Beta {
        let (accepted, lost) = (
            self.all.accepted - self.cell.accepted.min(self.all.accepted),
            self.all.lost() - self.cell.lost().min(self.all.lost()),
        );
        let others = f64::from(accepted + lost);
        let weight = if others > 0.0 { others.min(BORROWED_TURNS) / others } else { 0.0 };
        Beta::new(
            self.prior.acceptance.accepted + f64::from(accepted) * weight + f64::from(self.cell.accepted),
            self.prior.acceptance.against + f64::from(lost) * weight + f64::from(self.cell.lost()),
        )
    }

    /// What a turn costs, and how long it takes.
    fn turn(&self) -> (f64, f64) {
        let usd = (self.all.usd + self.prior.usd * GUESSED_TURNS) / (f64::from(self.all.usd_turns) + GUESSED_TURNS);
        let seconds =
            (self.all.seconds + self.prior.seconds * GUESSED_TURNS) / (f64::from(self.all.judged()) + GUESSED_TURNS);
        (usd, seconds)
    }
}

/// What was decided for one call, with the numbers that decided it. Part of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyDecision {
    /// The models in the order in which they are asked.
    pub order: Vec<String>,
    /// Models of the chain that are not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// Walked as it is written although another way looked cheaper, to keep learning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub explored: bool,
    /// Price of a minute.
    pub minute_usd: f64,
    /// What is expected of this way, and of the chain as it is written.
    pub expected: WayCost,
    pub as_written: WayCost,
    /// In the order of the chain.
    pub tiers: Vec<TierOdds>,
    pub class: TaskClass,
    /// All of it in a sentence.
    pub sentence: String,
}

/// What one way through a chain costs on average, until it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WayCost {
    pub usd: f64,
    pub minutes: f64,
}

impl WayCost {
    fn priced(self, minute_usd: f64) -> f64 {
        self.usd + self.minutes * minute_usd
    }
}

/// What was believed of one tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TierOdds {
    pub model: String,
    /// Turns of this kind of task that ended accepted, of those that count.
    pub accepted: u32,
    pub judged: u32,
    /// Of those, the ones that it could not finish or take on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unable: u32,
    /// The posterior's mean, and where it lies with 90 %.
    pub rate: f64,
    pub low: f64,
    pub high: f64,
    /// What was drawn for this call.
    pub drawn: f64,
    pub usd: f64,
    pub seconds: f64,
}

/// How rates are taken from their posteriors.
pub enum Draw<'a> {
    /// At random, as calls do.
    Dice(&'a mut fastrand::Rng),
    /// The means, for telling what is usual.
    Means,
}

/// The way through this chain. `None` where there is nothing to choose: one tier, or too many.
pub fn choose(tiers: &[PolicyTier], class: &TaskClass, minute_usd: f64, draw: Draw<'_>) -> Option<PolicyDecision> {
    if tiers.len() < 2 || tiers.len() > MOST_TIERS {
        return None;
    }
    let (drawn, explored) = match draw {
        Draw::Means => (tiers.iter().map(|tier| tier.acceptance().mean()).collect::<Vec<_>>(), false),
        Draw::Dice(dice) => {
            let explored = dice.f64() < EXPLORATION_FLOOR;
            (tiers.iter().map(|tier| tier.acceptance().sample(dice)).collect(), explored)
        }
    };
    let means: Vec<f64> = tiers.iter().map(|tier| tier.acceptance().mean()).collect();
    let as_written: Vec<usize> = (0..tiers.len()).collect();
    let mut best = as_written.clone();
    if !explored {
        let priced = |way: &[usize]| cost_of(tiers, &drawn, way).priced(minute_usd);
        let mut cheapest = priced(&as_written);
        for_each_order(tiers.len(), &mut |way| {
            let cost = priced(way);
            // Where two cost the same the chain stays as its user wrote it.
            if cost < cheapest * (1.0 - 1e-9) {
                cheapest = cost;
                best = way.to_vec();
            }
        });
        drop_worthless(&mut best, &means);
    }
    let odds: Vec<TierOdds> = tiers.iter().zip(&drawn).map(|(tier, drawn)| TierOdds::of(tier, *drawn)).collect();
    let mut decision = PolicyDecision {
        order: best.iter().map(|n| tiers[*n].model.clone()).collect(),
        skipped: as_written.iter().filter(|n| !best.contains(n)).map(|n| tiers[*n].model.clone()).collect(),
        explored,
        minute_usd,
        expected: cost_of(tiers, &means, &best),
        as_written: cost_of(tiers, &means, &as_written),
        tiers: odds,
        class: class.clone(),
        sentence: String::new(),
    };
    decision.sentence = decision.tell();
    Some(decision)
}

/// Behind the top tier, what is mostly wrong is not worth its minutes.
fn drop_worthless(way: &mut Vec<usize>, means: &[f64]) {
    let top = means.len() - 1;
    let at = way.iter().position(|n| *n == top).unwrap_or_default();
    let mut place = 0;
    way.retain(|n| {
        place += 1;
        place - 1 <= at || means[*n] >= WORTH_ASKING
    });
}

/// What a way costs if each tier is accepted this often.
fn cost_of(tiers: &[PolicyTier], rates: &[f64], way: &[usize]) -> WayCost {
    let (mut cost, mut reached) = (WayCost::default(), 1.0);
    for n in way {
        let (usd, seconds) = tiers[*n].turn();
        cost.usd += reached * usd;
        cost.minutes += reached * seconds / 60.0;
        reached *= 1.0 - rates[*n];
    }
    cost
}

fn for_each_order(tiers: usize, visit: &mut dyn FnMut(&[usize])) {
    fn extend(way: &mut Vec<usize>, tiers: usize, visit: &mut dyn FnMut(&[usize])) {
        if way.len() == tiers {
            return visit(way);
        }
        for n in 0..tiers {
            if !way.contains(&n) {
                way.push(n);
                extend(way, tiers, visit);
                way.pop();
            }
        }
    }
    extend(&mut Vec::with_capacity(tiers), tiers, visit);
}

impl TierOdds {
    fn of(tier: &PolicyTier, drawn: f64) -> Self {
        let (acceptance, (usd, seconds)) = (tier.acceptance(), tier.turn());
        let Interval { low, high } = acceptance.interval();
        Self {
            model: tier.model.clone(),
            accepted: tier.cell.accepted,
            judged: tier.cell.judged(),
            unable: tier.cell.unable,
            rate: rounded(acceptance.mean()),
            low: rounded(low),
            high: rounded(high),
            drawn: rounded(drawn),
            usd: rounded(usd),
            seconds: rounded(seconds),
        }
    }
}

impl PolicyDecision {
    /// Is it the chain as its user wrote it?
    pub fn keeps_the_chain(&self) -> bool {
        self.skipped.is_empty() && self.order.iter().eq(self.tiers.iter().map(|tier| &tier.model))
    }

    fn tell(&self) -> String {
        let kind = self.class.describe();
        if self.explored {
            return format!("the chain is walked as it is written, as in 1 of 50 calls, to keep learning ({kind})");
        }
        if self.keeps_the_chain() {
            return format!("the chain is walked as it is written: no other way looks cheaper for {kind}");
        }
        let first = &self.order[0];
        let mut said = format!("`{first}` is asked first for {kind}");
        let before: Vec<&TierOdds> = self.tiers.iter().take_while(|tier| tier.model != *first).collect();
        for tier in before {
            let what = if self.skipped.contains(&tier.model) { "is skipped" } else { "comes later" };
            let _ = write!(
                said,
                "; `{}` {what}: accepted in {} of {} here{}, and {:.0} % are expected",
                tier.model,
                tier.accepted,
                words::count(tier.judged as usize, "turn"),
                unable_note(tier.unable),
                tier.rate * 100.0
            );
        }
        let _ = write!(
            said,
            "; a call then takes ${:.3} and {:.1} min on average instead of ${:.3} and {:.1} min",
            self.expected.usd, self.expected.minutes, self.as_written.usd, self.as_written.minutes
        );
        said
    }
}

impl TaskClass {
    /// `tdd_green in python (small)`
    pub fn describe(&self) -> String {
        match self.language.as_str() {
            "any" => format!("{} ({})", self.skill, self.size.word()),
            language => format!("{} in {language} ({})", self.skill, self.size.word()),
        }
    }
}

/// Why turns were lost that no check has refused; reads after their number.
pub fn unable_note(unable: u32) -> String {
    if unable == 0 { String::new() } else { format!(", {unable} of them not finished within its limits") }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn rounded(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests;
