//! Determines which tiers of a route can be asked now, and by which backend.

use tokio_util::sync::CancellationToken;

use crate::policy::{TaskClass, WORTH_ASKING};
use crate::services::{ModelHistory, Services};
use crate::skill::TaskFacts;
use supervisor_settings::{EnabledBy, Outage, Route, Routing, Tier, TierKind};

/// Fewer turns do not switch a model on.
const ENOUGH_TURNS: u32 = 8;

/// The route with the backends that serve it now. A tier that cannot be reached says why; it is
/// skipped. If none can be reached, all are asked, so that each reports its own error.
///
/// Where nothing is set up, a local server that is found takes the place of the built-in local tier.
pub(crate) async fn settle(
    route: &Route,
    routing: &Routing,
    services: &Services,
    stop: &CancellationToken,
) -> Route {
    let mut route = route.clone();
    let mut seen = Vec::new();
    let identity = |tier: &Tier| {
        let id = tier.model.id.clone();
        (tier.backend.name.clone(), id, tier.worker())
    };
    let (skill, is_pinned) = (route.skill.clone(), route.pinned);
    for tier in route.chain.tiers_mut() {
        // A model that the caller names is always asked.
        if !is_pinned && let Some(off) = switched_off(tier, &skill, &*services.model_history) {
            tier.outage = Some(off);
            continue;
        }
        let outage = services.backends.settle(tier, stop).await;
        tier.outage = outage.map(|outage| Outage {
            why: outage.why,
            hint: outage.hint,
        });
        // An agent's tier may have become a text worker that was asked already.
        if tier.outage.is_none() && seen.contains(&identity(tier)) {
            tier.outage = Some(Outage {
                why: String::from("the same model was asked in the same way"),
                hint: String::new(),
            });
        }
        seen.push(identity(tier));
    }
    let is_local = |tier: &Tier| tier.backend.tier == TierKind::Local;
    let is_unset = route
        .chain
        .tiers()
        .filter(|tier| is_local(tier))
        .all(|tier| tier.outage.is_some() && routing.is_built_in(tier));
    let mut is_found = false;
    if !route.pinned && is_unset {
        let stay_local = route.stay_local;
        let is_allowed = |address: &str| !stay_local || routing.is_local_address(address);
        if let Some(tier) = route.chain.tiers_mut().find(|tier| is_local(tier))
            && services.backends.replace_by_found(tier, is_allowed).await
        {
            tier.outage = None;
            is_found = true;
        }
    }
    if route.chain.tiers().all(|tier| tier.outage.is_some()) {
        route.chain.tiers_mut().for_each(|tier| tier.outage = None);
    }
    if let Some(verifier) = &mut route.verifier {
        let outage = services.backends.settle(verifier, stop).await;
        // With nothing but a local server, tests and the other gates decide alone.
        if is_found && outage.is_some() {
            route.verifier = None;
        }
    }
    route
}

/// Why a tier is off whose backend is switched on by what was measured.
pub fn switched_off(tier: &Tier, skill: &str, history: &dyn ModelHistory) -> Option<Outage> {
    if tier.backend.enabled_by != Some(EnabledBy::Passport) {
        return None;
    }
    let class = TaskClass::of(skill, TaskFacts::default());
    let (_, all) = history.turns(&tier.name.0, &class);
    let judged = all.judged();
    if judged >= ENOUGH_TURNS && f64::from(all.accepted) >= WORTH_ASKING * f64::from(judged) {
        return None;
    }
    Some(Outage {
        why: format!(
            "`{}` is off until it has proven its worth: accepted in {} of {judged} turns, and {:.0} % of at least \
             {ENOUGH_TURNS} switch it on",
            tier.name,
            all.accepted,
            WORTH_ASKING * 100.0
        ),
        hint: format!(
            "run `supervisor gym --model {}`, or set `{}` to \"user\"",
            tier.name,
            tier.backend.key("enabled_by")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attempt;
    use crate::policy::TurnRecord;
    use crate::services::TierHints;
    use supervisor_settings::BackendKind;
    use supervisor_test_support::tiers::tier;

    struct Record(TurnRecord);

    impl ModelHistory for Record {
        fn turns(&self, _: &str, _: &TaskClass) -> (TurnRecord, TurnRecord) {
            (TurnRecord::default(), self.0)
        }

        fn hints(&self, _: &str) -> TierHints {
            TierHints::default()
        }

        fn note(&self, _: &TaskClass, _: &[Attempt]) -> Result<(), String> {
            Ok(())
        }
    }

    #[test]
    fn measured_worth_switches_a_backend_on() {
        for (by, accepted, against, is_off) in [
            (None, 0, 0, false),
            (Some(EnabledBy::User), 0, 9, false),
            (Some(EnabledBy::Passport), 0, 0, true),
            (Some(EnabledBy::Passport), 7, 0, true),
            (Some(EnabledBy::Passport), 2, 6, true),
            (Some(EnabledBy::Passport), 3, 5, false),
        ] {
            let mut tier = tier("own", BackendKind::ClaudeCli, "m");
            tier.backend.enabled_by = by;
            let record = Record(TurnRecord {
                accepted,
                against,
                ..TurnRecord::default()
            });
            let off = switched_off(&tier, "tdd_green", &record);
            assert_eq!(off.is_some(), is_off, "{by:?} {accepted} {against}");
            if let Some(off) = off {
                assert!(off.hint.contains("`backends.own.enabled_by`"), "{off:?}");
            }
        }
    }
}
