//! Determines which tiers of a route can be asked now, and by which backend.

use tokio_util::sync::CancellationToken;

use crate::services::Services;
use supervisor_settings::{Outage, Route, Tier};

/// The route with the backends that serve it now. A tier that cannot be reached says why; it is
/// skipped. If none can be reached, all are asked, so that each reports its own error.
pub(crate) async fn settle(route: &Route, services: &Services, stop: &CancellationToken) -> Route {
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
    if route.chain.tiers().all(|tier| tier.outage.is_some()) {
        route.chain.tiers_mut().for_each(|tier| tier.outage = None);
    }
    if let Some(verifier) = &mut route.verifier {
        services.backends.settle(verifier, stop).await;
    }
    route
}
