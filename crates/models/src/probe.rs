//! Is anything there? All addresses are asked at once, each for a moment only, and any HTTP answer counts:
//! a server that says "no" is a server.
//! Knows where Claude, the gateways and the model server live. Does not know what they serve.

use std::time::Duration;

use futures_util::future::join_all;

use super::http::{self, Unreachable};
use super::{Env, facts_of};
use supervisor_settings::{Routing, WarmKind};

/// Where `claude` asks, unless its backend's `base_url` or this variable says otherwise.
pub const CLOUD_URL_VAR: &str = "ANTHROPIC_BASE_URL";
pub(super) const CLOUD_URL: &str = "https://api.anthropic.com";

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressRole {
    /// The models of Anthropic.
    Cloud,
    /// An OpenAI-compatible server; the name is the backend's.
    Gateway,
    /// The server which knows the models that are loaded now.
    Warm,
}

/// One address to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub name: String,
    pub role: AddressRole,
    /// As configured, so perhaps with credentials: never shown.
    address: Option<String>,
    path: &'static str,
}

/// What one address said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedAddress {
    pub name: String,
    pub role: AddressRole,
    /// Fit to be shown. `None` if there is no address, or one that cannot be read.
    pub url: Option<String>,
    /// How long the answer took, or why there was none.
    pub answer: Result<Duration, Unreachable>,
}

impl ProbedAddress {
    pub fn is_reachable(&self) -> bool {
        self.answer.is_ok()
    }
}

impl Endpoint {
    pub(super) fn new(
        name: &str,
        role: AddressRole,
        address: Option<String>,
        path: &'static str,
    ) -> Self {
        Self {
            name: name.to_owned(),
            role,
            address,
            path,
        }
    }
}

/// Every address that the routing leads to; one of each name.
pub fn endpoints(routing: &Routing, env: &Env) -> Vec<Endpoint> {
    let mut all: Vec<Endpoint> = Vec::new();
    for endpoint in routing
        .backends
        .values()
        .filter_map(|backend| facts_of(backend.kind).endpoint(backend, env))
    {
        if !all.iter().any(|known| known.name == endpoint.name) {
            all.push(endpoint);
        }
    }
    // How far the world reaches is asked also where no backend leads to the cloud.
    if !all.iter().any(|known| known.role == AddressRole::Cloud) {
        let address = env.get(CLOUD_URL_VAR).unwrap_or_else(|| CLOUD_URL.into());
        all.push(Endpoint::new(
            "anthropic",
            AddressRole::Cloud,
            Some(address),
            "/",
        ));
    }
    all.sort_by_key(|endpoint| endpoint.role != AddressRole::Cloud);
    if let Some(warm) = &routing.warm {
        let (name, path) = match warm.kind {
            WarmKind::LlamaSwap => ("llama-swap", "/health"),
            WarmKind::Ollama => ("ollama", "/api/version"),
        };
        all.push(Endpoint::new(
            name,
            AddressRole::Warm,
            Some(warm.url.clone()),
            path,
        ));
    }
    all
}

/// Asks all addresses at once.
pub async fn probe(endpoints: Vec<Endpoint>, limit: Duration) -> Vec<ProbedAddress> {
    join_all(endpoints.into_iter().map(|endpoint| one(endpoint, limit))).await
}

async fn one(endpoint: Endpoint, limit: Duration) -> ProbedAddress {
    let address = endpoint.address.as_deref().filter(|a| !a.trim().is_empty());
    let answer = match address {
        None => Err(Unreachable::NotConfigured),
        Some(address) => match http::below(address, endpoint.path) {
            Ok(url) => http::knock(&url, limit).await,
            Err(why) => Err(why),
        },
    };
    let url = address.and_then(http::shown);
    ProbedAddress {
        name: endpoint.name,
        role: endpoint.role,
        url,
        answer,
    }
}
