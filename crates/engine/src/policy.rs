//! Chooses which tiers of a chain are asked for a call, in which order and how often. It is a pure
//! function of the record of each tier, so it can be simulated. It may skip and reorder tiers and
//! reduce tries, but never adds either.
//!
//! Each try of each tier has a Beta posterior for "accepted, given that the earlier tries failed"
//! and an expected cost in money and time, with a fixed price per minute. An order of the chain
//! costs what its first tier costs plus, weighted with the probability that it fails, the cost of
//! the next, and so on; the cheapest order is chosen (`cost`). Rates are sampled from their
//! posteriors, so that tiers with little data still get turns (Thompson sampling). A small share of
//! calls uses the configured chain regardless of the data.

mod advice;
mod beta;
mod chosen_route;
mod cost;
mod samples;
mod sentence;
mod tier;
mod turn;

use serde::{Deserialize, Serialize};

pub use advice::advice;
pub use beta::{Interval, rate_interval};
pub use chosen_route::{advise, policy_tiers};
pub(super) use chosen_route::{apply_decision, choose_route};
pub use cost::ChainCost;
use cost::{
    ChainPlan, TierOutlook, TurnOutlook, cheapest_plan, configured_plan, cost_of, with_best_tries,
};
pub use samples::MeasuredSamples;
pub(super) use samples::choose_samples;
pub use sentence::unable_note;
pub use tier::{PolicyTier, TierPrior};
pub use turn::{CountedTry, TurnRecord};

/// A tier that fails more than 70 % of the time costs more than it saves. It is not asked after the
/// top tier.
pub const WORTH_ASKING: f64 = 0.3;
/// Share of calls that use the configured chain, so that an improved model is noticed.
pub const EXPLORATION_FLOOR: f64 = 0.02;
/// After this many tries of one kind without an accepted one, the rate is no longer sampled: the
/// mean decides, and only exploration asks again.
const DECIDED_AFTER: u32 = 12;
/// With more tiers there are too many orders to compare; the configured chain is used.
const MAX_TIERS: usize = 6;

/// Kind of task. Results are learned and used per class.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskClass {
    pub skill: String,
    /// `any` if the skill does not know.
    pub language: String,
    pub size: TaskSize,
}

/// Size of a task, by the bytes of the question.
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

/// The decision for one call, with the numbers behind it. Part of the log.
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
    /// The configured chain was used although another order looked cheaper, to keep learning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub explored: bool,
    /// Price of a minute.
    pub minute_usd: f64,
    /// Expected cost of the chosen order, and of the configured chain.
    pub expected: ChainCost,
    pub as_written: ChainCost,
    /// In the order of the chain.
    pub tiers: Vec<TierEstimate>,
    pub class: TaskClass,
    /// The decision in one sentence.
    pub sentence: String,
}

/// Estimates for one tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TierEstimate {
    pub model: String,
    /// Turns at this kind of task that were accepted, out of `judged`.
    pub accepted: u32,
    pub judged: u32,
    /// Turns that the model could not finish or take on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unable: u32,
    /// Expected acceptance rate of a turn with the tries of this call, with bounds from the 90 %
    /// interval of each try.
    pub rate: f64,
    pub low: f64,
    pub high: f64,
    /// The rate sampled for this call.
    pub drawn: f64,
    /// Expected cost and time of such a turn.
    pub usd: f64,
    pub seconds: f64,
    /// How often the settings allow it to be asked.
    #[serde(default)]
    pub allowed: u32,
    /// The first try, the second, and all later ones.
    #[serde(default)]
    pub by_try: Vec<TryEstimate>,
}

/// Estimates for one try, given that the earlier ones fail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TryEstimate {
    /// Tries at this kind of task.
    pub accepted: u32,
    pub judged: u32,
    pub rate: f64,
    pub drawn: f64,
    pub usd: f64,
    pub seconds: f64,
}

/// How rates are taken from their posteriors.
pub enum Draw<'a> {
    /// Sampled at random, as calls do.
    Random(&'a mut fastrand::Rng),
    /// The means, to show what is expected.
    Mean,
}

/// Chooses an order for this chain. `None` if there is nothing to choose: one tier, or too many.
pub fn choose(
    tiers: &[PolicyTier],
    class: &TaskClass,
    minute_usd: f64,
    draw: Draw<'_>,
) -> Option<PolicyDecision> {
    if tiers.len() < 2 || tiers.len() > MAX_TIERS {
        return None;
    }
    let mean = &mut |tier: &PolicyTier, number| tier.acceptance_at(number).mean();
    let usual = outlooks(tiers, mean);
    let (drawn, explored) = match draw {
        Draw::Mean => (outlooks(tiers, mean), false),
        Draw::Random(rng) => {
            let explored = rng.f64() < EXPLORATION_FLOOR;
            (
                outlooks(tiers, &mut |tier, number| draw_rate(tier, number, rng)),
                explored,
            )
        }
    };
    let configured = configured_plan(&usual);
    let plan = if explored {
        configured.clone()
    } else {
        let mut best = cheapest_plan(&drawn, minute_usd);
        if drop_failing_tiers(&mut best, &usual) {
            best = with_best_tries(&drawn, best.tiers, minute_usd);
        }
        best
    };
    let tries_of = |n: usize| match plan.tiers.iter().position(|asked| *asked == n) {
        Some(place) => plan.tries[place],
        None => tiers[n].tries.max(1),
    };
    let odds = |n: usize| TierEstimate::of(&tiers[n], &usual[n], &drawn[n], tries_of(n));
    let mut decision = PolicyDecision {
        order: plan.tiers.iter().map(|n| tiers[*n].model.clone()).collect(),
        tries: plan.tries.clone(),
        skipped: configured
            .tiers
            .iter()
            .filter(|n| !plan.tiers.contains(n))
            .map(|n| tiers[*n].model.clone())
            .collect(),
        explored,
        minute_usd,
        expected: cost_of(&usual, &plan),
        as_written: cost_of(&usual, &configured),
        tiers: (0..tiers.len()).map(odds).collect(),
        class: class.clone(),
        sentence: String::new(),
    };
    decision.sentence = decision.to_sentence();
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

fn draw_rate(tier: &PolicyTier, number: usize, rng: &mut fastrand::Rng) -> f64 {
    let (seen, acceptance) = (
        tier.class_record.tries_at(number),
        tier.acceptance_at(number),
    );
    // Always sample, so that the random numbers of later calls do not depend on it.
    let drawn = acceptance.sample(rng);
    if seen.accepted == 0 && seen.lost >= DECIDED_AFTER {
        acceptance.mean()
    } else {
        drawn
    }
}

/// Drops tiers after the top tier that mostly fail. Returns whether any was dropped.
fn drop_failing_tiers(plan: &mut ChainPlan, usual: &[TierOutlook]) -> bool {
    let (top, before) = (usual.len() - 1, plan.tiers.len());
    let at = plan
        .tiers
        .iter()
        .position(|n| *n == top)
        .unwrap_or_default();
    let mut place = 0;
    plan.tiers.retain(|n| {
        place += 1;
        place - 1 <= at || usual[*n].full_turn().rate >= WORTH_ASKING
    });
    plan.tiers.len() < before
}

impl TierEstimate {
    fn of(tier: &PolicyTier, usual: &TierOutlook, drawn: &TierOutlook, tries: u32) -> Self {
        let TurnOutlook { cost, rate } = usual.turn(tries);
        let bound = |end: fn(Interval) -> f64| {
            let ends = (0..tier.known_tries())
                .map(|number| end(tier.acceptance_at(number).interval()))
                .collect();
            rounded(TierOutlook::new(tier, ends).turn(tries).rate)
        };
        let by_try = |number: usize| {
            let (seen, (usd, seconds)) = (tier.class_record.tries_at(number), tier.cost_at(number));
            TryEstimate {
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
            accepted: tier.class_record.accepted,
            judged: tier.class_record.judged(),
            unable: tier.class_record.unable,
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
    /// Whether it is the configured chain, with all tries of each tier.
    pub fn is_configured_chain(&self) -> bool {
        self.is_configured_order() && self.fewer_tries().next().is_none()
    }

    fn is_configured_order(&self) -> bool {
        self.skipped.is_empty()
            && self
                .order
                .iter()
                .eq(self.tiers.iter().map(|tier| &tier.model))
    }

    /// Tiers that are asked less often than allowed, with their number of tries.
    fn fewer_tries(&self) -> impl Iterator<Item = (&TierEstimate, u32)> {
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
