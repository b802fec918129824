//! `samples = "auto"`: how many answers the first ask of a tier brings, by what was measured of each
//! number on the same tasks.

use super::beta::Beta;
use super::cost::{ChainCost, expected_cost, price_of_failing};
use super::{PolicyTier, TurnRecord, configured_plan, outlooks, policy_tiers};
use crate::services::ModelHistory;
use crate::skill::TaskFacts;
use supervisor_settings::{Route, Samples};

/// Fewer turns say too little of a number of answers.
const MIN_TURNS: u32 = 8;

/// What was measured of one number of answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredSamples {
    pub samples: u32,
    pub turns: TurnRecord,
}

/// Replaces `auto` in every tier of a route by the number that pays off most.
pub(crate) fn choose_samples(
    route: &mut Route,
    skill: &str,
    model_history: &dyn ModelHistory,
    minute_usd: f64,
) {
    if route
        .chain
        .tiers()
        .all(|tier| tier.samples != Samples::Auto)
    {
        return;
    }
    let class = super::TaskClass::of(skill, TaskFacts::default());
    let tiers = policy_tiers(route, model_history, &class);
    for (n, tier) in route.chain.tiers_mut().enumerate() {
        if tier.samples == Samples::Auto {
            let (name, worker) = (&tier.name.0, tier.worker());
            let measured = model_history.measured_samples(name, route.repair, worker);
            let behind = price_behind(&tiers, n, minute_usd);
            tier.samples = Samples::Count(best_samples(&measured, behind, minute_usd));
        }
    }
}

/// The number with the lowest price: what a turn takes and, if it is not accepted, what the tiers
/// behind it take. One, if no other is measured well enough or pays off.
fn best_samples(measured: &[MeasuredSamples], behind: f64, minute_usd: f64) -> u32 {
    let price = |turns: &TurnRecord| {
        let judged = f64::from(turns.judged());
        let cost = ChainCost {
            usd: turns.usd / f64::from(turns.usd_turns.max(1)),
            minutes: turns.seconds / 60.0 / judged,
        };
        let accepted = f64::from(turns.accepted);
        let rate = Beta::new(1.0 + accepted, 1.0 + judged - accepted).mean();
        cost.priced(minute_usd) + (1.0 - rate) * behind
    };
    let known = |one: &&MeasuredSamples| one.turns.judged() >= MIN_TURNS;
    // Without a record of one answer there is no gain to measure.
    let Some(single) = measured.iter().filter(known).find(|one| one.samples == 1) else {
        return 1;
    };
    let mut best = (price(&single.turns), 1);
    for one in measured.iter().filter(known) {
        let price = price(&one.turns);
        if price < best.0 * (1.0 - 1e-9) {
            best = (price, one.samples);
        }
    }
    best.1
}

/// Expected price of what follows tier `n` if it fails.
fn price_behind(tiers: &[PolicyTier], n: usize, minute_usd: f64) -> f64 {
    let mean = &mut |tier: &PolicyTier, number| tier.acceptance_at(number).mean();
    let all = outlooks(tiers, mean);
    let mut plan = configured_plan(&all);
    plan.tiers.drain(..=n);
    plan.tries.drain(..=n);
    let (cost, failed) = expected_cost(&all, &plan);
    cost.priced(minute_usd) + failed * price_of_failing(&all, minute_usd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(samples: u32, accepted: u32, of: u32, usd: f64, seconds: f64) -> MeasuredSamples {
        let turns = TurnRecord {
            accepted,
            against: of - accepted,
            usd: usd * f64::from(of),
            usd_turns: of,
            seconds: seconds * f64::from(of),
            ..TurnRecord::default()
        };
        MeasuredSamples { samples, turns }
    }

    #[test]
    fn measured_gain_decides_the_number() {
        let one = measured(1, 20, 48, 0.0, 30.0);
        for (others, behind, number, why) in [
            (vec![], 1.0, 1, "nothing else is measured"),
            (
                vec![measured(4, 36, 48, 0.0, 60.0)],
                1.0,
                4,
                "16 of 48 tasks more save a dollar each",
            ),
            (
                vec![measured(4, 36, 48, 0.0, 60.0)],
                0.1,
                1,
                "half a minute is worth more",
            ),
            (vec![measured(4, 20, 48, 0.0, 60.0)], 9.0, 1, "no gain"),
            (vec![measured(4, 7, 7, 0.0, 30.0)], 9.0, 1, "too few turns"),
            (
                vec![
                    measured(2, 30, 48, 0.0, 40.0),
                    measured(4, 31, 48, 0.0, 90.0),
                ],
                1.0,
                2,
                "two bring nearly all of it",
            ),
            (
                vec![measured(2, 30, 48, 2.0, 40.0)],
                1.0,
                1,
                "costs more than it saves",
            ),
        ] {
            let all: Vec<_> = [one].into_iter().chain(others).collect();
            assert_eq!(best_samples(&all, behind, 0.1), number, "{why}");
        }
        assert_eq!(best_samples(&[measured(4, 48, 48, 0.0, 1.0)], 9.0, 0.1), 1);
    }
}
