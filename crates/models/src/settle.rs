//! Decides before a chain is walked which backend serves each tier: its own, or the one named by
//! `instead` if its own is not set up here. Asks no model and takes no noticeable time.

use std::net::ToSocketAddrs as _;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::availability::{TierOutage, reach_hint};
use super::discover::{self, SearchAddresses, ServerKind};
use super::http::{self, Unreachable};
use super::installed::{self, Login};
use super::probe::AddressRole;
use super::{Backends, SharedResources, claude_cli, facts_of};
use supervisor_settings::{BackendKind, BackendSettings, ModelName, Tier, TierKind};

/// How long what was found on this machine stays valid.
const FOUND_AGE: Duration = Duration::from_secs(60);
/// Time limit for each response of a server that is looked for while a call waits.
const SEARCH_TIMEOUT: Duration = Duration::from_millis(500);
/// Time limit for a connection to this machine, which is accepted or refused at once.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(250);

impl Backends {
    /// Replaces the tier's backend if it cannot be used and another can. Returns why neither can.
    pub async fn settle(&self, tier: &mut Tier, stop: &CancellationToken) -> Option<TierOutage> {
        let instead = match tier.instead.take() {
            Some(instead) if self.missing(&instead).await.is_none() => Some(instead),
            _ => None,
        };
        let outage = match self.missing(&tier.backend).await {
            // Whether a user is logged in matters only if there is a choice.
            None if instead.is_some() => self.logged_out(&tier.backend, stop).await,
            missing => missing,
        };
        let Some(outage) = outage else {
            return facts_of(tier.backend.kind).unfit(tier, &self.shared).await;
        };
        match instead {
            Some(instead) => {
                tier.backend = *instead;
                // The program does not know the prefix by which the API is chosen.
                if tier.backend.kind == BackendKind::ClaudeCli
                    && let Some(id) = tier.model.id.strip_prefix("anthropic/")
                {
                    tier.model.id = id.to_owned();
                }
                None
            }
            None => Some(outage),
        }
    }

    /// Replaces the backend and the model of a local tier by the best that is found on this machine, or at an address that
    /// `is_allowed`. Returns whether one was found.
    pub async fn replace_by_found(
        &self,
        tier: &mut Tier,
        is_allowed: impl Fn(&str) -> bool,
    ) -> bool {
        let mut cached = self.found.lock().await;
        let servers = match &*cached {
            Some((at, servers)) if at.elapsed() < FOUND_AGE => servers.clone(),
            _ => {
                let env = &self.shared.env;
                let places = SearchAddresses::defaults(env).within(SEARCH_TIMEOUT);
                let servers = discover::find_servers(&places, env).await;
                *cached = Some((Instant::now(), servers.clone()));
                servers
            }
        };
        let servers: Vec<_> = servers
            .into_iter()
            .filter(|server| is_allowed(&server.address))
            .collect();
        let Some((server, model)) = discover::best_local(&servers) else {
            return false;
        };
        let server = &servers[server];
        let Some(model) = server.models.as_ref().ok().and_then(|all| all.get(model)) else {
            return false;
        };
        let slug = server.kind.slug();
        let is_gateway = server.kind == ServerKind::LiteLlm;
        tier.backend = BackendSettings {
            name: format!("{slug} at {}", server.address),
            kind: BackendKind::Openai,
            tier: TierKind::Local,
            base_url: Some(server.address.clone()),
            api_key_env: is_gateway.then(|| String::from(discover::GATEWAY_KEY_VAR)),
            models: vec![model.id.clone()],
            ..BackendSettings::default()
        };
        tier.name = ModelName(format!("{slug}/{}", model.id));
        tier.model.id.clone_from(&model.id);
        if let Some(window) = &model.window {
            tier.model.context = window.tokens;
        }
        true
    }

    async fn missing(&self, backend: &BackendSettings) -> Option<TierOutage> {
        if self.is_connected(&backend.name) {
            return None;
        }
        facts_of(backend.kind).missing(backend, &self.shared).await
    }

    async fn logged_out(
        &self,
        backend: &BackendSettings,
        stop: &CancellationToken,
    ) -> Option<TierOutage> {
        let SharedResources { env, launcher, .. } = &self.shared;
        if backend.kind != BackendKind::ClaudeCli
            || self.is_connected(&backend.name)
            || claude_cli::has_login_file(backend, env)
        {
            return None;
        }
        let found = installed::query(backend, env, launcher, installed::TIMEOUT, stop).await;
        match found {
            Ok(agent) if agent.login != Login::Out => None,
            _ => Some(TierOutage {
                why: format!("`{}` is not logged in", backend.name),
                hint: super::availability::login_hint(&backend.name),
            }),
        }
    }
}

/// The outage if nothing listens at an address of this machine. Other addresses are not tried: that
/// could take long.
pub(super) async fn refused_here(backend: &BackendSettings) -> Option<TierOutage> {
    let url = http::join_url(backend.base_url.as_deref()?, "/").ok()?;
    if !http::is_loopback(&url) {
        return None;
    }
    let port = url.port_or_known_default()?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    let addresses: Vec<_> = (host, port).to_socket_addrs().ok()?.collect();
    let connect = tokio::net::TcpStream::connect(&*addresses);
    let why = match tokio::time::timeout(CONNECT_TIMEOUT, connect).await {
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            Unreachable::Refused
        }
        _ => return None,
    };
    let name = &backend.name;
    let at = http::displayable(url.as_str()).unwrap_or_default();
    let setting = format!("`backends.{name}.base_url`");
    Some(TierOutage {
        why: format!("`{name}` at {at}: {why}"),
        hint: reach_hint(AddressRole::Gateway, &why, &setting),
    })
}
