//! For each skill, the tiers of its chain that are usable now, and why others are not.

use super::availability::{Availability, TierOutage};
use supervisor_settings::{CallOverrides, Routing, Tier};

/// A skill and its tiers, cheapest first.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainStatus {
    pub skill: &'static str,
    pub tiers: Vec<TierStatus>,
    /// The tier that judges a local tier's work. `None` if only gates decide.
    pub verifier: Option<TierStatus>,
}

/// One tier and its current state.
#[derive(Debug, Clone, PartialEq)]
pub struct TierStatus {
    pub tier: Tier,
    /// Whether the model is loaded; `None` if unknown.
    pub warm: Option<bool>,
    /// Why it cannot be used.
    pub outage: Option<TierOutage>,
}

impl ChainStatus {
    pub fn usable(&self) -> impl Iterator<Item = &TierStatus> {
        self.tiers.iter().filter(|step| step.outage.is_none())
    }

    pub fn can_start(&self) -> bool {
        self.usable().next().is_some()
    }
}

impl Availability {
    /// Every callable skill with its chain. A skill with the same chain as its family is not listed
    /// separately.
    pub fn chain_statuses(&self, routing: &Routing) -> Vec<ChainStatus> {
        let mut walks: Vec<ChainStatus> = Vec::new();
        for skill in Routing::callable_skills() {
            // A known skill has a route: the routing was checked as a whole when it was loaded.
            let Ok(route) = routing.route(skill, &CallOverrides::default()) else {
                continue;
            };
            let walk = ChainStatus {
                skill,
                tiers: route.chain.tiers().map(|tier| self.step(tier)).collect(),
                verifier: route.verifier.as_ref().map(|tier| self.step(tier)),
            };
            let is_same_as_family = |family: &ChainStatus| {
                let member = skill
                    .strip_prefix(family.skill)
                    .is_some_and(|rest| rest.starts_with('_'));
                member && family.tiers == walk.tiers && family.verifier == walk.verifier
            };
            if !walks.iter().any(is_same_as_family) {
                walks.push(walk);
            }
        }
        walks
    }

    fn step(&self, tier: &Tier) -> TierStatus {
        TierStatus {
            tier: tier.clone(),
            warm: self.is_warm(tier),
            outage: self.outage(tier),
        }
    }
}
