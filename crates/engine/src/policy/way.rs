//! The policy in a call: what is known of the tiers of its route, and the route along the way that was chosen.

use super::{Draw, PolicyDecision, PolicyTier, TaskClass, TaskSize, TierPrior, choose};
use crate::means::{Experience, Means};
use crate::skill::TaskFacts;
use supervisor_settings::{Chain, PolicyMode, Route, Routing, Tier};

/// The tiers of a chain with what is known of each.
pub fn policy_tiers(
    route: &Route,
    experience: &dyn Experience,
    class: &TaskClass,
) -> Vec<PolicyTier> {
    let tier = |tier: &Tier| {
        let (cell, all) = experience.turns(&tier.name.0, class);
        let prior = TierPrior::of(tier.backend.tier, tier.model.price_in, tier.model.price_out);
        PolicyTier {
            model: tier.name.to_string(),
            tries: tier.attempts,
            cell,
            all,
            prior,
        }
    };
    route.chain.tiers().map(tier).collect()
}

/// The way through the chain, where the settings let it be chosen.
pub fn choose_way(
    route: &Route,
    means: &Means,
    routing: &Routing,
    class: &TaskClass,
) -> Option<PolicyDecision> {
    if routing.policy.mode == PolicyMode::Static || route.pinned {
        return None;
    }
    let tiers = policy_tiers(route, &*means.experience, class);
    let mut dice = fastrand::Rng::with_seed(getrandom::u64().unwrap_or_else(|_| fastrand::u64(..)));
    choose(
        &tiers,
        class,
        routing.policy.minute_usd,
        Draw::Dice(&mut dice),
    )
}

/// The same route with the tiers of its chain that were chosen, in their order and with their tries.
pub fn along(route: &Route, decision: &PolicyDecision) -> Route {
    let chosen = decision.order.iter().zip(&decision.tries);
    let mut tiers = chosen.filter_map(|(model, tries)| {
        let tier = route.chain.tiers().find(|tier| tier.name.0 == *model)?;
        Some(Tier {
            attempts: *tries,
            ..tier.clone()
        })
    });
    let Some(first) = tiers.next() else {
        return route.clone();
    };
    let chain = Chain {
        first,
        rest: tiers.collect(),
    };
    Route {
        chain,
        ..route.clone()
    }
}

impl TaskClass {
    /// What kind of task a call is: what is learned from it is used for others of its kind.
    pub fn of(skill: &str, facts: TaskFacts) -> Self {
        Self {
            skill: skill.to_owned(),
            language: facts.language.unwrap_or("any").to_owned(),
            size: TaskSize::of_bytes(facts.bytes),
        }
    }
}
