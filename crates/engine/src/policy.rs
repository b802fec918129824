//! Which tiers of a chain are asked for this call, in which order and how often: a pure function of what is known about each
//! tier, so that it can be simulated before it is believed. Skips and reorders tiers and leaves out further tries, never
//! invents either.
//!
//! For each tier and each of its tries there is a Beta posterior of "is accepted, if the tries before it were not", and what
//! such a try costs in money and time, time at the stated price of a minute. One way through the chain costs what its first
//! tier costs, plus, as often as that one fails, what the next one costs, and so on; the cheapest way is taken ([`cost`]).
//! Rates are drawn from their posteriors, so that what little is known of still has its turns (Thompson sampling), and a
//! small share of calls walks the chain as it is written whatever is known.

mod cost;
mod odds;
mod tell;
mod tier;
mod turn;
mod way;

use serde::{Deserialize, Serialize};

pub use cost::WayCost;
use cost::{
    PlannedWay, TierOutlook, TurnOutlook, as_written, cheapest_way, cost_of, with_best_tries,
};
pub use odds::{Interval, rate_interval};
pub use tell::unable_note;
pub use tier::{PolicyTier, TierPrior};
pub use turn::{CountedTry, TurnRecord};
pub use way::policy_tiers;
pub(super) use way::{along, choose_way};

/// A tier that fails more than 70 % of what it tries costs more than it saves: behind the top tier it is not asked.
pub const WORTH_ASKING: f64 = 0.3;
/// The share of calls that walk the chain as it is written, so that a model that has become better is noticed.
pub const EXPLORATION_FLOOR: f64 = 0.02;
/// After so many tries of one kind without a single one accepted, a rate is no longer drawn: what is expected decides, and
/// only the floor of exploration asks again.
const DECIDED_AFTER: u32 = 12;
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

/// What was decided for one call, with the numbers that decided it. Part of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyDecision {
    /// The models in the order in which they are asked.
    pub order: Vec<String>,
    /// How often each of these may be asked while its answers are refused.
    #[serde(default)]
    pub tries: Vec<u32>,
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
    /// How often a turn with the tries of this call is expected to end accepted, and where that lies, each try at the ends
    /// of its own 90 %.
    pub rate: f64,
    pub low: f64,
    pub high: f64,
    /// What was drawn for this call.
    pub drawn: f64,
    /// What such a turn takes.
    pub usd: f64,
    pub seconds: f64,
    /// How often the settings allow it to be asked.
    #[serde(default)]
    pub allowed: u32,
    /// Its first try, its second, and all later ones.
    #[serde(default)]
    pub by_try: Vec<TryOdds>,
}

/// What was believed of a try, given that those before it fail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TryOdds {
    /// At this kind of task.
    pub accepted: u32,
    pub judged: u32,
    pub rate: f64,
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
pub fn choose(
    tiers: &[PolicyTier],
    class: &TaskClass,
    minute_usd: f64,
    draw: Draw<'_>,
) -> Option<PolicyDecision> {
    if tiers.len() < 2 || tiers.len() > MOST_TIERS {
        return None;
    }
    let mean = &mut |tier: &PolicyTier, number| tier.acceptance_at(number).mean();
    let usual = outlooks(tiers, mean);
    let (drawn, explored) = match draw {
        Draw::Means => (outlooks(tiers, mean), false),
        Draw::Dice(dice) => {
            let explored = dice.f64() < EXPLORATION_FLOOR;
            (
                outlooks(tiers, &mut |tier, number| draw_rate(tier, number, dice)),
                explored,
            )
        }
    };
    let written = as_written(&usual);
    let way = if explored {
        written.clone()
    } else {
        let mut best = cheapest_way(&drawn, minute_usd);
        if drop_worthless(&mut best, &usual) {
            best = with_best_tries(&drawn, best.tiers, minute_usd);
        }
        best
    };
    let tries_of = |n: usize| match way.tiers.iter().position(|asked| *asked == n) {
        Some(place) => way.tries[place],
        None => tiers[n].tries.max(1),
    };
    let odds = |n: usize| TierOdds::of(&tiers[n], &usual[n], &drawn[n], tries_of(n));
    let mut decision = PolicyDecision {
        order: way.tiers.iter().map(|n| tiers[*n].model.clone()).collect(),
        tries: way.tries.clone(),
        skipped: written
            .tiers
            .iter()
            .filter(|n| !way.tiers.contains(n))
            .map(|n| tiers[*n].model.clone())
            .collect(),
        explored,
        minute_usd,
        expected: cost_of(&usual, &way),
        as_written: cost_of(&usual, &written),
        tiers: (0..tiers.len()).map(odds).collect(),
        class: class.clone(),
        sentence: String::new(),
    };
    decision.sentence = decision.tell();
    Some(decision)
}

/// Each tier with a rate for each of its tries.
fn outlooks(
    tiers: &[PolicyTier],
    rate: &mut dyn FnMut(&PolicyTier, usize) -> f64,
) -> Vec<TierOutlook> {
    let mut outlook = |tier: &PolicyTier| {
        let rates = (0..tier.known_tries())
            .map(|number| rate(tier, number))
            .collect();
        TierOutlook::new(tier, rates)
    };
    tiers.iter().map(&mut outlook).collect()
}

fn draw_rate(tier: &PolicyTier, number: usize, dice: &mut fastrand::Rng) -> f64 {
    let (seen, acceptance) = (tier.cell.tries_at(number), tier.acceptance_at(number));
    // Drawn in any case, so that the dice of later calls do not depend on it.
    let drawn = acceptance.sample(dice);
    if seen.accepted == 0 && seen.lost >= DECIDED_AFTER {
        acceptance.mean()
    } else {
        drawn
    }
}

/// Behind the top tier, what is mostly wrong is not worth its minutes. Was anything dropped?
fn drop_worthless(way: &mut PlannedWay, usual: &[TierOutlook]) -> bool {
    let (top, before) = (usual.len() - 1, way.tiers.len());
    let at = way.tiers.iter().position(|n| *n == top).unwrap_or_default();
    let mut place = 0;
    way.tiers.retain(|n| {
        place += 1;
        place - 1 <= at || usual[*n].full_turn().rate >= WORTH_ASKING
    });
    way.tiers.len() < before
}

impl TierOdds {
    fn of(tier: &PolicyTier, usual: &TierOutlook, drawn: &TierOutlook, tries: u32) -> Self {
        let TurnOutlook { cost, rate } = usual.turn(tries);
        let bound = |end: fn(Interval) -> f64| {
            let ends = (0..tier.known_tries())
                .map(|number| end(tier.acceptance_at(number).interval()))
                .collect();
            rounded(TierOutlook::new(tier, ends).turn(tries).rate)
        };
        let by_try = |number: usize| {
            let (seen, (usd, seconds)) = (tier.cell.tries_at(number), tier.cost_at(number));
            TryOdds {
                accepted: seen.accepted,
                judged: seen.judged(),
                rate: rounded(usual.rate_at(number)),
                drawn: rounded(drawn.rate_at(number)),
                usd: rounded(usd),
                seconds: rounded(seconds),
            }
        };
        Self {
            model: tier.model.clone(),
            accepted: tier.cell.accepted,
            judged: tier.cell.judged(),
            unable: tier.cell.unable,
            rate: rounded(rate),
            low: bound(|interval| interval.low),
            high: bound(|interval| interval.high),
            drawn: rounded(drawn.turn(tries).rate),
            usd: rounded(cost.usd),
            seconds: rounded(cost.minutes * 60.0),
            allowed: tier.tries.max(1),
            by_try: (0..tier.known_tries()).map(by_try).collect(),
        }
    }
}

impl PolicyDecision {
    /// Is it the chain as its user wrote it, each tier with all its tries?
    pub fn keeps_the_chain(&self) -> bool {
        self.keeps_the_order() && self.fewer_tries().next().is_none()
    }

    fn keeps_the_order(&self) -> bool {
        self.skipped.is_empty()
            && self
                .order
                .iter()
                .eq(self.tiers.iter().map(|tier| &tier.model))
    }

    /// Tiers that are asked less often than they may be, and how often they are.
    fn fewer_tries(&self) -> impl Iterator<Item = (&TierOdds, u32)> {
        let asked = self.order.iter().zip(&self.tries);
        let tier = |(model, tries): (&String, &u32)| {
            self.tiers
                .iter()
                .find(|tier| tier.model == *model && *tries < tier.allowed)
                .map(|tier| (tier, *tries))
        };
        asked.filter_map(tier)
    }
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
