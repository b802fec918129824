//! For each skill, the chain it can really walk at this moment, and why a tier is out.

use super::world::{TierOutage, World};
use supervisor_settings::{CallOverrides, Routing, Tier};

/// A skill and its tiers, cheapest first.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainWalk {
    pub skill: &'static str,
    pub tiers: Vec<ChainWalkStep>,
    /// Who judges what a local tier made; `None`: gates alone decide.
    pub verifier: Option<ChainWalkStep>,
}

/// One tier, as things are.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainWalkStep {
    pub tier: Tier,
    /// In memory now; `None` if unknown.
    pub warm: Option<bool>,
    /// Why it cannot be walked.
    pub out: Option<TierOutage>,
}

impl ChainWalk {
    pub fn usable(&self) -> impl Iterator<Item = &ChainWalkStep> {
        self.tiers.iter().filter(|step| step.out.is_none())
    }

    pub fn can_start(&self) -> bool {
        self.usable().next().is_some()
    }
}

impl World {
    /// Every skill that can be called, with its chain. One that walks exactly as its family does is not listed beside it.
    pub fn walks(&self, routing: &Routing) -> Vec<ChainWalk> {
        let mut walks: Vec<ChainWalk> = Vec::new();
        for skill in Routing::callable_skills() {
            // A skill that is known has a route: the routing was checked as a whole when it was loaded.
            let Ok(route) = routing.route(skill, &CallOverrides::default()) else {
                continue;
            };
            let walk = ChainWalk {
                skill,
                tiers: route.chain.tiers().map(|tier| self.step(tier)).collect(),
                verifier: route.verifier.as_ref().map(|tier| self.step(tier)),
            };
            let alike = |family: &ChainWalk| {
                let member = skill
                    .strip_prefix(family.skill)
                    .is_some_and(|rest| rest.starts_with('_'));
                member && family.tiers == walk.tiers && family.verifier == walk.verifier
            };
            if !walks.iter().any(alike) {
                walks.push(walk);
            }
        }
        walks
    }

    fn step(&self, tier: &Tier) -> ChainWalkStep {
        ChainWalkStep {
            tier: tier.clone(),
            warm: self.is_warm(tier),
            out: self.out(tier),
        }
    }
}
