//! Applies the policy to a call: collects the records of the tiers of its route and builds the
//! chosen route.

use super::{Draw, PolicyDecision, PolicyTier, TaskClass, TaskSize, TierPrior, advice, choose};
use crate::services::{ModelHistory, Services};
use crate::skill::TaskFacts;
use supervisor_settings::{Chain, PolicyMode, Route, Routing, Tier};

/// The tiers of a chain with their records.
pub fn policy_tiers(
    route: &Route,
    model_history: &dyn ModelHistory,
    class: &TaskClass,
) -> Vec<PolicyTier> {
    let tier = |tier: &Tier| {
        let (class_record, all) = model_history.turns(&tier.name.0, class);
        let prior = TierPrior::of(tier.backend.tier, tier.model.price_in, tier.model.price_out);
        PolicyTier {
            model: tier.name.to_string(),
            tries: tier.attempts,
            class_record,
            all,
            prior,
        }
    };
    route.chain.tiers().map(tier).collect()
}

/// Chooses an order of the chain, unless the settings or the caller fix it.
pub(crate) fn choose_route(
    route: &Route,
    services: &Services,
    routing: &Routing,
    class: &TaskClass,
) -> Option<PolicyDecision> {
    if routing.policy.mode == PolicyMode::Static || route.pinned {
        return None;
    }
    let tiers = policy_tiers(&reachable(route), &*services.model_history, class);
    let mut rng = fastrand::Rng::with_seed(getrandom::u64().unwrap_or_else(|_| fastrand::u64(..)));
    choose(
        &tiers,
        class,
        routing.policy.minute_usd,
        Draw::Random(&mut rng),
    )
}

/// Says if this call is not expected to pay for itself.
pub fn advise(
    route: &Route,
    model_history: &dyn ModelHistory,
    routing: &Routing,
    class: &TaskClass,
) -> Option<String> {
    if route.pinned {
        return None;
    }
    let tiers = policy_tiers(&reachable(route), model_history, class);
    let decision = choose(&tiers, class, routing.policy.minute_usd, Draw::Mean)?;
    advice(&decision, routing.policy.mode == PolicyMode::Learned)
}

/// The route without the tiers that cannot be reached now.
fn reachable(route: &Route) -> Route {
    let mut tiers = route.chain.tiers().filter(|tier| tier.outage.is_none());
    let mut route = route.clone();
    if let Some(first) = tiers.next().cloned() {
        let rest = tiers.cloned().collect();
        route.chain = Chain { first, rest };
    }
    route
}

/// The same route, reduced to the chosen tiers in the chosen order and with the chosen tries.
pub(crate) fn apply_decision(route: &Route, decision: &PolicyDecision) -> Route {
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
    /// Classifies a call. Results are learned and used per class.
    pub fn of(skill: &str, facts: TaskFacts) -> Self {
        Self {
            skill: skill.to_owned(),
            language: facts.language.unwrap_or("any").to_owned(),
            size: TaskSize::of_bytes(facts.bytes),
        }
    }
}
