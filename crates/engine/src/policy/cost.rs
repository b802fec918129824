//! What a way through a chain costs, and how often each tier on it is best asked.

use serde::{Deserialize, Serialize};

use super::tier::PolicyTier;

/// A call that no tier could do is not over for its user: it counts as the top tier asked until it is right, but never as
/// more than this many of its turns.
const MOST_TURNS_AFTER: f64 = 3.0;

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

/// The tiers that are asked, by their place in the chain, and how often each may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedWay {
    pub(super) tiers: Vec<usize>,
    pub(super) tries: Vec<u32>,
}

/// One tier with a rate for each of its tries, drawn or expected.
pub(super) struct TierOutlook {
    allowed: u32,
    rates: Vec<f64>,
    costs: Vec<WayCost>,
}

/// What a turn of a tier comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TurnOutlook {
    pub(super) cost: WayCost,
    /// How often it ends accepted.
    pub(super) rate: f64,
}

impl TierOutlook {
    /// With this rate for each try that is told apart.
    pub(super) fn new(tier: &PolicyTier, rates: Vec<f64>) -> Self {
        let cost = |number| {
            let (usd, seconds) = tier.cost_at(number);
            WayCost {
                usd,
                minutes: seconds / 60.0,
            }
        };
        Self {
            allowed: tier.tries.max(1),
            costs: (0..rates.len()).map(cost).collect(),
            rates,
        }
    }

    /// The turn with up to this many tries.
    pub(super) fn turn(&self, tries: u32) -> TurnOutlook {
        let (mut cost, mut failed) = (WayCost::default(), 1.0);
        let last = self.rates.len() - 1;
        for number in 0..tries as usize {
            let at = number.min(last);
            cost.usd += failed * self.costs[at].usd;
            cost.minutes += failed * self.costs[at].minutes;
            failed *= 1.0 - self.rates[at];
        }
        TurnOutlook {
            cost,
            rate: 1.0 - failed,
        }
    }

    /// How often a try of this number is accepted.
    pub(super) fn rate_at(&self, number: usize) -> f64 {
        self.rates[number.min(self.rates.len() - 1)]
    }

    /// The turn with all tries that are allowed.
    pub(super) fn full_turn(&self) -> TurnOutlook {
        self.turn(self.allowed)
    }
}

/// The chain as it is written.
pub(super) fn as_written(outlooks: &[TierOutlook]) -> PlannedWay {
    PlannedWay {
        tiers: (0..outlooks.len()).collect(),
        tries: outlooks.iter().map(|tier| tier.allowed).collect(),
    }
}

/// The cheapest order of all tiers, with the cheapest number of tries for each.
pub(super) fn cheapest_way(outlooks: &[TierOutlook], minute_usd: f64) -> PlannedWay {
    let mut best = as_written(outlooks);
    let mut lowest = price_of(outlooks, &best, minute_usd);
    for_each_order(outlooks.len(), &mut |order| {
        let way = with_best_tries(outlooks, order.to_vec(), minute_usd);
        let price = price_of(outlooks, &way, minute_usd);
        // Where two cost the same the chain stays as its user wrote it.
        if price < lowest * (1.0 - 1e-9) {
            (lowest, best) = (price, way);
        }
    });
    best
}

/// These tiers in this order. From the last to the first: a further try is worth it where what it saves of the tiers behind
/// is more than it takes. The last one has all its tries, because nothing comes behind it.
pub(super) fn with_best_tries(
    outlooks: &[TierOutlook],
    tiers: Vec<usize>,
    minute_usd: f64,
) -> PlannedWay {
    let mut tries: Vec<u32> = tiers.iter().map(|n| outlooks[*n].allowed).collect();
    let mut behind = price_of_failing(outlooks, minute_usd);
    for place in (0..tiers.len()).rev() {
        let tier = &outlooks[tiers[place]];
        let price = |tries: u32| {
            let turn = tier.turn(tries);
            turn.cost.priced(minute_usd) + (1.0 - turn.rate) * behind
        };
        let mut lowest = price(tier.allowed);
        if place + 1 < tiers.len() {
            // Tries that are not told apart are all worth it or none is.
            for fewer in (1..tier
                .allowed
                .min(u32::try_from(tier.rates.len()).unwrap_or(u32::MAX)))
                .rev()
            {
                if price(fewer) < lowest * (1.0 - 1e-9) {
                    (lowest, tries[place]) = (price(fewer), fewer);
                }
            }
        }
        behind = lowest;
    }
    PlannedWay { tiers, tries }
}

/// What a way costs, whether or not it ends accepted.
pub(super) fn cost_of(outlooks: &[TierOutlook], way: &PlannedWay) -> WayCost {
    walk(outlooks, way).0
}

fn price_of(outlooks: &[TierOutlook], way: &PlannedWay, minute_usd: f64) -> f64 {
    let (cost, failed) = walk(outlooks, way);
    cost.priced(minute_usd) + failed * price_of_failing(outlooks, minute_usd)
}

/// The cost of a way, and how often it does not end accepted.
fn walk(outlooks: &[TierOutlook], way: &PlannedWay) -> (WayCost, f64) {
    let (mut cost, mut reached) = (WayCost::default(), 1.0);
    for (n, tries) in way.tiers.iter().zip(&way.tries) {
        let turn = outlooks[*n].turn(*tries);
        cost.usd += reached * turn.cost.usd;
        cost.minutes += reached * turn.cost.minutes;
        reached *= 1.0 - turn.rate;
    }
    (cost, reached)
}

/// Without it the cheapest number of tries would be the one that gives up soonest.
fn price_of_failing(outlooks: &[TierOutlook], minute_usd: f64) -> f64 {
    let top = outlooks.last().expect("a chain has a tier").full_turn();
    top.cost.priced(minute_usd) / top.rate.max(1.0 / MOST_TURNS_AFTER)
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
