//! What is known about one kind of backend: how it is connected, probed, priced and described. Each kind's own file
//! answers these questions; nothing outside of `backend` asks which kind it is.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::cost::CostForecast;
use super::probe::{AddressRole, Endpoint};
use super::world::{BackendSight, Look, TierOutage, World};
use super::{Ask, AskError, Backend, Env, SharedResources};
use supervisor_settings as routing;
use supervisor_settings::Tier;

/// One kind of backend.
pub trait BackendFacts: Sync {
    /// Makes a backend from its settings. Opens no connection and starts no program.
    fn connect(
        &self,
        backend: &routing::BackendSettings,
        shared: &SharedResources,
    ) -> Result<Arc<dyn Backend>, AskError>;

    /// What its address is for; `None`: it has none.
    fn role(&self) -> Option<AddressRole>;

    /// The address to knock at; `None`: there is none.
    fn endpoint(&self, backend: &routing::BackendSettings, env: &Env) -> Option<Endpoint>;

    /// What it says about itself. `is_there`: its address answered.
    fn look<'a>(
        &'a self,
        backend: &'a routing::BackendSettings,
        look: &'a Look,
        is_there: bool,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, BackendSight>;

    /// Why a tier of it cannot be walked as things are; `None` if nothing speaks against it.
    fn outage(&self, world: &World, tier: &Tier) -> Option<TierOutage>;

    /// What one ask can cost.
    fn forecast(&self, ask: &Ask, tier: &Tier) -> CostForecast {
        CostForecast::of_one_answer(ask, tier)
    }

    /// Where it is reached, for `explain` and `doctor`.
    fn place(&self, backend: &routing::BackendSettings) -> BackendPlace;
}

/// `asks http://localhost:4000`, and the key that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendPlace {
    pub verb: &'static str,
    /// The key of the backend that holds it.
    pub key: &'static str,
    pub value: Option<String>,
}
