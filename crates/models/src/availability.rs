//! Takes one snapshot of what is available: endpoints, gateways, agent programs and loaded models.
//! From it follows which tiers can be used. No model is asked.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::installed::{self, InstalledAgent, NotUsable};
use super::model_list::{self, Deployment, LoadedModel, ModelListError};
use super::probe::{self, AddressRole, ProbedAddress};
use super::{Env, Unreachable, facts_of};
use supervisor_process::Launcher;
use supervisor_settings::{BackendSettings, Routing, Tier};

/// Settings for taking the snapshot.
#[derive(Debug, Clone)]
pub struct ProbeConfig {
    pub env: Env,
    pub launcher: Launcher,
    /// Time limit for a list from a reachable server. A gateway that has just started is slow.
    pub list_limit: Duration,
    /// Time limit for an agent program's version and login.
    pub agent_limit: Duration,
}

impl ProbeConfig {
    pub fn new(env: Env, launcher: Launcher) -> Self {
        let list_limit = Duration::from_secs(5);
        Self {
            env,
            launcher,
            list_limit,
            agent_limit: installed::TIMEOUT,
        }
    }
}

/// The snapshot.
#[derive(Debug, Clone)]
pub struct Availability {
    pub endpoints: Vec<ProbedAddress>,
    /// By backend; only those that answered.
    pub gateways: BTreeMap<String, Gateway>,
    /// By backend.
    pub agents: BTreeMap<String, Result<InstalledAgent, NotUsable>>,
    /// `None` if no server that would know is configured, or none answered.
    pub loaded: Option<Result<Vec<LoadedModel>, ModelListError>>,
}

/// A gateway's models.
#[derive(Debug, Clone)]
pub struct Gateway {
    pub offered: Result<Vec<String>, ModelListError>,
    /// Empty if the gateway does not report them.
    pub deployments: Vec<Deployment>,
}

/// The self-reported status of one backend.
#[derive(Debug, Clone)]
pub enum BackendStatus {
    /// Nothing to report, or not reachable.
    Nothing,
    Gateway(Gateway),
    Agent(Result<InstalledAgent, NotUsable>),
}

/// Why a tier cannot be used now, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierOutage {
    pub why: String,
    pub hint: String,
}

/// How much of the network is reachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connectivity {
    Cloud = 1,
    LocalNetwork = 2,
    Offline = 3,
}

impl fmt::Display for Connectivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cloud => "cloud",
            Self::LocalNetwork => "local network",
            Self::Offline => "offline",
        })
    }
}

impl Availability {
    /// Probes everything the routing refers to. Addresses and agents are probed concurrently; lists
    /// are fetched where an address answered.
    pub async fn probe(routing: &Routing, config: &ProbeConfig, stop: &CancellationToken) -> Self {
        let endpoints = probe::probe(probe::endpoints(routing, &config.env), routing.limits.probe);
        // Programs are asked at once, servers only after their address answered.
        let (immediate, after_probe): (Vec<_>, Vec<_>) = routing
            .backends
            .values()
            .partition(|backend| facts_of(backend.kind).role() != Some(AddressRole::Gateway));
        let probe_backend = |backend: &'_ BackendSettings, is_reachable: bool| {
            let backend = backend.clone();
            async move {
                let status = facts_of(backend.kind)
                    .probe(&backend, config, is_reachable, stop)
                    .await;
                (backend.name, status)
            }
        };
        let servers = async {
            let endpoints = endpoints.await;
            let answers = |role, name: &str| {
                endpoints
                    .iter()
                    .any(|p| p.role == role && p.is_reachable() && p.name == name)
            };
            let lists = join_all(after_probe.iter().map(|backend| {
                probe_backend(backend, answers(AddressRole::Gateway, &backend.name))
            }));
            let is_warm_server_reachable = endpoints
                .iter()
                .any(|p| p.role == AddressRole::Warm && p.is_reachable());
            let warm = routing.warm.as_ref().filter(|_| is_warm_server_reachable);
            let loaded = async {
                match warm {
                    Some(warm) => Some(model_list::loaded(warm, config.list_limit).await),
                    None => None,
                }
            };
            let (lists, loaded) = tokio::join!(lists, loaded);
            (endpoints, lists, loaded)
        };
        let programs = join_all(
            immediate
                .iter()
                .map(|backend| probe_backend(backend, false)),
        );
        let ((endpoints, lists, loaded), programs) = tokio::join!(servers, programs);
        let (mut gateways, mut agents) = (BTreeMap::new(), BTreeMap::new());
        for (name, status) in lists.into_iter().chain(programs) {
            match status {
                BackendStatus::Gateway(gateway) => drop(gateways.insert(name, gateway)),
                BackendStatus::Agent(agent) => drop(agents.insert(name, agent)),
                BackendStatus::Nothing => {}
            }
        }
        Self {
            endpoints,
            gateways,
            agents,
            loaded,
        }
    }

    pub fn connectivity(&self) -> Connectivity {
        let any = |cloud| {
            self.endpoints
                .iter()
                .any(|p| (p.role == AddressRole::Cloud) == cloud && p.is_reachable())
        };
        match (any(true), any(false)) {
            (true, _) => Connectivity::Cloud,
            (false, true) => Connectivity::LocalNetwork,
            (false, false) => Connectivity::Offline,
        }
    }

    /// Why this tier cannot be used; `None` if nothing is known against it.
    pub fn outage(&self, tier: &Tier) -> Option<TierOutage> {
        let outage = facts_of(tier.backend.kind).outage(self, tier)?;
        let instead = tier.instead.as_deref().map(|backend| Tier {
            backend: backend.clone(),
            instead: None,
            ..tier.clone()
        });
        match instead {
            Some(tier) if facts_of(tier.backend.kind).outage(self, &tier).is_none() => None,
            _ => Some(outage),
        }
    }

    /// Whether the model is loaded; `None` if unknown.
    pub fn is_warm(&self, tier: &Tier) -> Option<bool> {
        let Some(Ok(loaded)) = &self.loaded else {
            return None;
        };
        let gateway = self.gateways.get(&tier.backend.name)?;
        let warm = self
            .endpoints
            .iter()
            .find(|p| p.role == AddressRole::Warm)?
            .url
            .as_deref()?;
        model_list::is_warm(loaded, &gateway.deployments, warm, &tier.model.id)
    }

    /// The model's name at the server behind the gateway; `None` if no gateway serves it.
    pub fn upstream_id<'a>(&'a self, tier: &'a Tier) -> Option<&'a str> {
        let gateway = self.gateways.get(&tier.backend.name)?;
        let behind = gateway.deployments.iter().find(|d| d.name == tier.model.id);
        Some(behind.map_or(tier.model.id.as_str(), |d| d.id.as_str()))
    }

    /// The outage if this address did not answer.
    pub(super) fn unreachable(
        &self,
        role: AddressRole,
        name: &str,
        setting: &str,
    ) -> Option<TierOutage> {
        let probed = self
            .endpoints
            .iter()
            .find(|p| p.role == role && p.name == name)?;
        let why = probed.answer.as_ref().err()?;
        let at = probed
            .url
            .as_ref()
            .map(|url| format!(" at {url}"))
            .unwrap_or_default();
        Some(TierOutage {
            why: format!("`{name}`{at}: {why}"),
            hint: reach_hint(role, why, setting),
        })
    }
}

/// How to fix an address that does not answer.
pub fn reach_hint(role: AddressRole, why: &Unreachable, setting: &str) -> String {
    match (why, role) {
        (Unreachable::NotConfigured, _) => format!("set {setting}"),
        (Unreachable::BadUrl, _) => {
            format!("correct {setting}; it begins with http:// or https://")
        }
        (Unreachable::Tls(_), _) => {
            format!("correct {setting}, or name your certificates in $SSL_CERT_FILE")
        }
        (_, AddressRole::Cloud) => {
            format!("check the network, the proxy in $HTTPS_PROXY, and {setting}")
        }
        (Unreachable::Dns, AddressRole::Gateway | AddressRole::Warm) => {
            format!("correct {setting}, or check the network")
        }
        (_, AddressRole::Gateway | AddressRole::Warm) => format!("start it, or correct {setting}"),
    }
}

/// How to fix a missing or rejected key.
pub fn key_hint(backend: &str, error: &ModelListError) -> String {
    match error {
        ModelListError::KeyMissing { var: Some(var) } => {
            format!("set ${var}, which `backends.{backend}.api_key_env` names")
        }
        ModelListError::KeyRefused { var } => {
            format!("correct ${var}, which `backends.{backend}.api_key_env` names")
        }
        ModelListError::KeyMissing { var: None } => {
            format!("name its variable in `backends.{backend}.api_key_env`")
        }
        _ => format!("see `backends.{backend}`"),
    }
}

/// How to fix an unusable agent program.
pub fn agent_hint(backend: &str, error: &NotUsable) -> String {
    match error {
        NotUsable::NotFound(program) => {
            format!("install `{program}`, or give its path in `backends.{backend}.program`")
        }
        NotUsable::NotExecutable(path) => {
            format!("run `chmod +x {path}`, or correct `backends.{backend}.program`")
        }
        NotUsable::Hangs { program, asked, .. } => format!("run `{program} {asked}` in a terminal"),
        NotUsable::Broken { program, .. } => {
            format!("run `{program} --version` in a terminal, or install it again")
        }
        NotUsable::Cancelled => "ask again".into(),
    }
}

/// How to log in.
pub fn login_hint(backend: &str) -> String {
    format!("run `claude auth login`, or add ANTHROPIC_API_KEY to `backends.{backend}.env_pass`")
}
