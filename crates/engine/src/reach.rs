//! Determines which tiers of a route can be asked now, and by which backend.

use tokio_util::sync::CancellationToken;

use crate::services::Services;
use supervisor_settings::{Outage, Route, Routing, Tier, TierKind};

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
    for tier in route.chain.tiers_mut() {
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
