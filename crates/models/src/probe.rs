//! Probes all configured addresses concurrently with a short timeout. Any HTTP response counts as
//! reachable, even an error status.

use std::time::Duration;

use futures_util::future::join_all;

use super::http::{self, Unreachable};
use super::{Env, facts_of};
use supervisor_settings::{Routing, WarmKind};

/// Overrides the default URL of `claude`, unless its backend sets `base_url`.
pub const CLOUD_URL_VAR: &str = "ANTHROPIC_BASE_URL";
pub(super) const CLOUD_URL: &str = "https://api.anthropic.com";

/// The role of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressRole {
    /// Anthropic's API.
    Cloud,
    /// An OpenAI-compatible server, named after its backend.
    Gateway,
    /// The server that reports which models are loaded.
    Warm,
}

/// One address to probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub name: String,
    pub role: AddressRole,
    /// As configured, so it may contain credentials: never shown.
    address: Option<String>,
    path: &'static str,
}

/// The result of probing one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedAddress {
    pub name: String,
    pub role: AddressRole,
    /// Safe to show. `None` if there is no address, or an invalid one.
    pub url: Option<String>,
    /// The response time, or why there was no response.
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

/// Every address of the routing, without duplicate names.
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
    // Always probe the cloud URL, to tell "offline" from "not configured".
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

/// Probes all addresses concurrently.
pub async fn probe(endpoints: Vec<Endpoint>, limit: Duration) -> Vec<ProbedAddress> {
    join_all(
        endpoints
            .into_iter()
            .map(|endpoint| probe_one(endpoint, limit)),
    )
    .await
}

async fn probe_one(endpoint: Endpoint, limit: Duration) -> ProbedAddress {
    let address = endpoint.address.as_deref().filter(|a| !a.trim().is_empty());
    let answer = match address {
        None => Err(Unreachable::NotConfigured),
        Some(address) => match http::join_url(address, endpoint.path) {
            Ok(url) => http::probe(&url, limit).await,
            Err(why) => Err(why),
        },
    };
    let url = address.and_then(http::displayable);
    ProbedAddress {
        name: endpoint.name,
        role: endpoint.role,
        url,
        answer,
    }
}
