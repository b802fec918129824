//! Cost of an order of a chain, and the best number of tries for each of its tiers.

use serde::{Deserialize, Serialize};

use super::tier::PolicyTier;

/// A call that every tier failed is not finished for its user: it is priced as asking the top tier
/// until it succeeds, but at most this many turns.
const MAX_TURNS_AFTER_FAILURE: f64 = 3.0;

/// Average cost of one order of a chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainCost {
    pub usd: f64,
    pub minutes: f64,
}

impl ChainCost {
    pub(super) fn priced(self, minute_usd: f64) -> f64 {
        self.usd + self.minutes * minute_usd
    }
}

/// The tiers to ask, as indices into the chain, and the maximum tries of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChainPlan {
    pub(super) tiers: Vec<usize>,
    pub(super) tries: Vec<u32>,
}

/// One tier with a rate for each of its tries, sampled or expected.
pub(super) struct TierOutlook {
    allowed: u32,
    rates: Vec<f64>,
    costs: Vec<ChainCost>,
}

/// Expected cost and result of a turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TurnOutlook {
    pub(super) cost: ChainCost,
    /// Probability that it ends accepted.
    pub(super) rate: f64,
}

impl TierOutlook {
    /// `rates` has one entry for each try that is modelled separately.
    pub(super) fn new(tier: &PolicyTier, rates: Vec<f64>) -> Self {
        let cost = |number| {
            let (usd, seconds) = tier.cost_at(number);
            ChainCost {
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

    /// A turn with up to this many tries.
    pub(super) fn turn(&self, tries: u32) -> TurnOutlook {
        let (mut cost, mut failed) = (ChainCost::default(), 1.0);
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

    /// Acceptance rate of try `number`.
    pub(super) fn rate_at(&self, number: usize) -> f64 {
        self.rates[number.min(self.rates.len() - 1)]
    }

    /// A turn with all allowed tries.
    pub(super) fn full_turn(&self) -> TurnOutlook {
        self.turn(self.allowed)
    }
}

/// The configured chain.
pub(super) fn configured_plan(outlooks: &[TierOutlook]) -> ChainPlan {
    ChainPlan {
        tiers: (0..outlooks.len()).collect(),
        tries: outlooks.iter().map(|tier| tier.allowed).collect(),
    }
}

/// The cheapest order of all tiers, with the cheapest number of tries for each.
pub(super) fn cheapest_plan(outlooks: &[TierOutlook], minute_usd: f64) -> ChainPlan {
    let mut best = configured_plan(outlooks);
    let mut lowest = price_of(outlooks, &best, minute_usd);
    for_each_order(outlooks.len(), &mut |order| {
        let plan = with_best_tries(outlooks, order.to_vec(), minute_usd);
        let price = price_of(outlooks, &plan, minute_usd);
        // On a tie, keep the configured chain.
        if price < lowest * (1.0 - 1e-9) {
            (lowest, best) = (price, plan);
        }
    });
    best
}

/// Chooses the tries of these tiers, in this order. Works from the last to the first: a further try
/// pays off if it costs less than it saves on the later tiers. The last tier gets all its tries,
/// because nothing follows it.
pub(super) fn with_best_tries(
    outlooks: &[TierOutlook],
    tiers: Vec<usize>,
    minute_usd: f64,
) -> ChainPlan {
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
            // Tries that share a rate either all pay off or none does.
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
    ChainPlan { tiers, tries }
}

/// Cost of an order, whether or not it ends accepted.
pub(super) fn cost_of(outlooks: &[TierOutlook], plan: &ChainPlan) -> ChainCost {
    expected_cost(outlooks, plan).0
}

fn price_of(outlooks: &[TierOutlook], plan: &ChainPlan, minute_usd: f64) -> f64 {
    let (cost, failed) = expected_cost(outlooks, plan);
    cost.priced(minute_usd) + failed * price_of_failing(outlooks, minute_usd)
}

/// Cost of an order, and the probability that it does not end accepted.
pub(super) fn expected_cost(outlooks: &[TierOutlook], plan: &ChainPlan) -> (ChainCost, f64) {
    let (mut cost, mut reached) = (ChainCost::default(), 1.0);
    for (n, tries) in plan.tiers.iter().zip(&plan.tries) {
        let turn = outlooks[*n].turn(*tries);
        cost.usd += reached * turn.cost.usd;
        cost.minutes += reached * turn.cost.minutes;
        reached *= 1.0 - turn.rate;
    }
    (cost, reached)
}

/// Price of a failed call. Without it, giving up early would always be cheapest.
pub(super) fn price_of_failing(outlooks: &[TierOutlook], minute_usd: f64) -> f64 {
    let top = outlooks.last().expect("a chain has a tier").full_turn();
    top.cost.priced(minute_usd) / top.rate.max(1.0 / MAX_TURNS_AFTER_FAILURE)
}

fn for_each_order(tiers: usize, visit: &mut dyn FnMut(&[usize])) {
    fn extend(plan: &mut Vec<usize>, tiers: usize, visit: &mut dyn FnMut(&[usize])) {
        if plan.len() == tiers {
            return visit(plan);
        }
        for n in 0..tiers {
            if !plan.contains(&n) {
                plan.push(n);
                extend(plan, tiers, visit);
                plan.pop();
            }
        }
    }
    extend(&mut Vec::with_capacity(tiers), tiers, visit);
}
