//! What of the outside world is there at this moment, looked at once and all together; and so, which tiers can be
//! walked. Knows endpoints, gateways, agents and loaded models. Asks no model anything.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::installed::{self, InstalledAgent, NotUsable};
use super::loaded::{self, Deployment, LoadedModel, LookError};
use super::probe::{self, AddressRole, ProbedAddress};
use super::{Env, Unreachable, facts_of};
use supervisor_process::Launcher;
use supervisor_settings::{BackendSettings, Routing, Tier};

/// How to look: with which environment, and how patiently.
#[derive(Debug, Clone)]
pub struct Look {
    pub env: Env,
    pub launcher: Launcher,
    /// For a list from a server that is there. A gateway that has just started takes its time.
    pub list_limit: Duration,
    /// For an agent program to speak about itself.
    pub agent_limit: Duration,
}

impl Look {
    pub fn new(env: Env, launcher: Launcher) -> Self {
        let list_limit = Duration::from_secs(5);
        Self {
            env,
            launcher,
            list_limit,
            agent_limit: installed::LIMIT,
        }
    }
}

/// What was seen.
#[derive(Debug, Clone)]
pub struct World {
    pub endpoints: Vec<ProbedAddress>,
    /// By backend, for those that answered.
    pub gateways: BTreeMap<String, Gateway>,
    /// By backend.
    pub agents: BTreeMap<String, Result<InstalledAgent, NotUsable>>,
    /// `None` if no server is configured that would know, or none answered.
    pub loaded: Option<Result<Vec<LoadedModel>, LookError>>,
}

/// What a gateway says about its models.
#[derive(Debug, Clone)]
pub struct Gateway {
    pub offered: Result<Vec<String>, LookError>,
    /// Empty where the gateway does not tell.
    pub deployments: Vec<Deployment>,
}

/// What one backend said about itself.
#[derive(Debug, Clone)]
pub enum BackendSight {
    /// It has nothing to say, or was not there.
    Nothing,
    Gateway(Gateway),
    Agent(Result<InstalledAgent, NotUsable>),
}

/// Why a tier cannot be walked now, and what helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierOutage {
    pub why: String,
    pub hint: String,
}

/// How far the world reaches.
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

impl World {
    /// Looks at everything the routing leads to. Addresses and agents at once; lists where an address answered.
    pub async fn look(routing: &Routing, look: &Look, stop: &CancellationToken) -> Self {
        let endpoints = probe::probe(probe::endpoints(routing, &look.env), routing.limits.probe);
        // A program is asked at once; a server's lists only where its address answered.
        let (early, late): (Vec<_>, Vec<_>) = routing
            .backends
            .values()
            .partition(|backend| facts_of(backend.kind).role() != Some(AddressRole::Gateway));
        let see = |backend: &'_ BackendSettings, is_there: bool| {
            let backend = backend.clone();
            async move {
                let sight = facts_of(backend.kind)
                    .look(&backend, look, is_there, stop)
                    .await;
                (backend.name, sight)
            }
        };
        let servers = async {
            let endpoints = endpoints.await;
            let answers = |role, name: &str| {
                endpoints
                    .iter()
                    .any(|p| p.role == role && p.is_reachable() && p.name == name)
            };
            let lists = join_all(
                late.iter()
                    .map(|backend| see(backend, answers(AddressRole::Gateway, &backend.name))),
            );
            let is_warm_there = endpoints
                .iter()
                .any(|p| p.role == AddressRole::Warm && p.is_reachable());
            let warm = routing.warm.as_ref().filter(|_| is_warm_there);
            let loaded = async {
                match warm {
                    Some(warm) => Some(loaded::loaded(warm, look.list_limit).await),
                    None => None,
                }
            };
            let (lists, loaded) = tokio::join!(lists, loaded);
            (endpoints, lists, loaded)
        };
        let programs = join_all(early.iter().map(|backend| see(backend, false)));
        let ((endpoints, lists, loaded), programs) = tokio::join!(servers, programs);
        let (mut gateways, mut agents) = (BTreeMap::new(), BTreeMap::new());
        for (name, sight) in lists.into_iter().chain(programs) {
            match sight {
                BackendSight::Gateway(gateway) => drop(gateways.insert(name, gateway)),
                BackendSight::Agent(agent) => drop(agents.insert(name, agent)),
                BackendSight::Nothing => {}
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

    /// Why this tier cannot be walked; `None` if nothing speaks against it.
    pub fn out(&self, tier: &Tier) -> Option<TierOutage> {
        facts_of(tier.backend.kind).outage(self, tier)
    }

    /// Is the model in memory? `None` if unknown.
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
        loaded::is_warm(loaded, &gateway.deployments, warm, &tier.model.id)
    }

    /// The model's name at the server behind the gateway; `None` for what no gateway serves.
    pub fn id_behind<'a>(&'a self, tier: &'a Tier) -> Option<&'a str> {
        let gateway = self.gateways.get(&tier.backend.name)?;
        let behind = gateway.deployments.iter().find(|d| d.name == tier.model.id);
        Some(behind.map_or(tier.model.id.as_str(), |d| d.id.as_str()))
    }

    /// Why an address does not answer, and what helps.
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

/// What helps when an address does not answer.
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

/// What helps when a gateway wants another key.
pub fn key_hint(backend: &str, error: &LookError) -> String {
    match error {
        LookError::KeyMissing { var: Some(var) } => {
            format!("set ${var}, which `backends.{backend}.api_key_env` names")
        }
        LookError::KeyRefused { var } => {
            format!("correct ${var}, which `backends.{backend}.api_key_env` names")
        }
        LookError::KeyMissing { var: None } => {
            format!("name its variable in `backends.{backend}.api_key_env`")
        }
        _ => format!("see `backends.{backend}`"),
    }
}

/// What helps when an agent program cannot be used.
pub fn agent_hint(backend: &str, trouble: &NotUsable) -> String {
    match trouble {
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

/// What helps when no user is logged in.
pub fn login_hint(backend: &str) -> String {
    format!("run `claude auth login`, or add ANTHROPIC_API_KEY to `backends.{backend}.env_pass`")
}
