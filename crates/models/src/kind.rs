//! The interface of a backend kind: how it is connected, probed, priced and described. Code outside
//! `backend` never checks which kind a backend is.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio_util::sync::CancellationToken;

use super::availability::{Availability, BackendStatus, ProbeConfig, TierOutage};
use super::cost::CostForecast;
use super::probe::{AddressRole, Endpoint};
use super::{Ask, AskError, Backend, Env, SharedResources};
use supervisor_settings as routing;
use supervisor_settings::Tier;

/// One kind of backend.
pub trait BackendFacts: Sync {
    /// Creates a backend from its settings. Opens no connection and starts no program.
    fn connect(
        &self,
        backend: &routing::BackendSettings,
        shared: &SharedResources,
    ) -> Result<Arc<dyn Backend>, AskError>;

    /// The role of its address; `None` if it has no address.
    fn role(&self) -> Option<AddressRole>;

    /// The address to probe, if any.
    fn endpoint(&self, backend: &routing::BackendSettings, env: &Env) -> Option<Endpoint>;

    /// Queries the backend's status. `is_reachable` tells whether its address answered.
    fn probe<'a>(
        &'a self,
        backend: &'a routing::BackendSettings,
        config: &'a ProbeConfig,
        is_reachable: bool,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, BackendStatus>;

    /// Why a tier of this backend cannot be used now; `None` if nothing is known against it.
    fn outage(&self, availability: &Availability, tier: &Tier) -> Option<TierOutage>;

    /// What is missing on this machine to use it, found out at once; `None` if nothing is.
    fn missing<'a>(
        &'a self,
        backend: &'a routing::BackendSettings,
        shared: &'a SharedResources,
    ) -> BoxFuture<'a, Option<TierOutage>> {
        let _ = (backend, shared);
        std::future::ready(None).boxed()
    }

    /// Why its server cannot serve this tier's model in this way, asked of the server at once.
    fn unfit<'a>(
        &'a self,
        tier: &'a Tier,
        shared: &'a SharedResources,
    ) -> BoxFuture<'a, Option<TierOutage>> {
        let _ = (tier, shared);
        std::future::ready(None).boxed()
    }

    /// Estimates the cost of one question.
    fn forecast(&self, ask: &Ask, tier: &Tier) -> CostForecast {
        CostForecast::of_one_answer(ask, tier)
    }

    /// Where it is reached, for `explain` and `doctor`.
    fn location(&self, backend: &routing::BackendSettings) -> BackendLocation;
}

/// For example `asks http://localhost:4000`, and the setting that holds the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendLocation {
    pub verb: &'static str,
    /// The backend's setting that holds the value.
    pub key: &'static str,
    pub value: Option<String>,
}
