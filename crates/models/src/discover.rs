//! Finds model servers on this machine: on the usual ports and at addresses named in the
//! environment. A server is identified by its responses, not by its port, because different
//! programs share default ports. Nothing here asks a model a question except [`canary`], which
//! needs the user's permission.

mod preference;
mod servers;

use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use secrecy::SecretString;
use serde_json::Value;

use super::Env;
use super::http;
use super::model_list::{self, ModelListError};

pub use preference::{SMALL_WINDOW, best_local, is_claude};
pub use servers::{canary, create_wide};

/// Addresses to search instead of the usual ones, separated by commas. `none` searches nowhere.
pub const ADDRESSES_VAR: &str = "SUPERVISOR_LOOK_AT";
/// The LiteLLM key variable, as in the built-in settings.
pub const GATEWAY_KEY_VAR: &str = "LITELLM_API_KEY";

/// Time limit per response on a usual port. Something else may be listening there that never
/// answers.
const PORT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time limit per response at a named address. A model server may be busy loading a model.
const NAMED_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit for the first sign of an HTTP server.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1500);

/// The server software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerKind {
    Ollama,
    LlamaSwap,
    LlamaCpp,
    LmStudio,
    Vllm,
    LiteLlm,
    /// Speaks the OpenAI protocol, but cannot be identified further.
    Other,
}

impl ServerKind {
    /// Name of the backend created for it.
    pub fn slug(self) -> &'static str {
        match self {
            Self::Ollama => "ollama",
            Self::LlamaSwap => "llama-swap",
            Self::LlamaCpp => "llama-cpp",
            Self::LmStudio => "lm-studio",
            Self::Vllm => "vllm",
            Self::LiteLlm => "litellm",
            Self::Other => "server",
        }
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ollama => "Ollama",
            Self::LlamaSwap => "llama-swap",
            Self::LlamaCpp => "llama.cpp",
            Self::LmStudio => "LM Studio",
            Self::Vllm => "vLLM",
            Self::LiteLlm => "LiteLLM",
            Self::Other => "an OpenAI-compatible server",
        })
    }
}

/// A server that answered.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoveredServer {
    /// Safe to show and to write into settings.
    pub address: String,
    pub kind: ServerKind,
    /// Text models in the server's own order, or why they could not be listed.
    pub models: Result<Vec<DiscoveredModel>, ModelListError>,
}

/// A model that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveredModel {
    /// The server's name for it.
    pub id: String,
    pub loaded: bool,
    pub window: Option<ContextWindow>,
}

/// The context window in tokens, and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextWindow {
    pub tokens: u32,
    pub source: &'static str,
}

/// Addresses to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchAddresses {
    addresses: Vec<String>,
    limit: Duration,
}

impl SearchAddresses {
    /// The usual ports, and addresses named in the environment.
    pub fn defaults(env: &Env) -> Self {
        if let Some(named) = env.get(ADDRESSES_VAR) {
            let named = named
                .split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty() && *word != "none");
            return Self::at(named.map(str::to_owned));
        }
        let ollama = env.get("OLLAMA_HOST").map(|host| ollama_address(&host));
        let swap = env.get("LLAMA_SWAP_URL");
        let gateway = env.get("LITELLM_BASE_URL");
        let named = [ollama, swap, gateway].into_iter().flatten();
        let usual = [11434, 8080, 1234, 8000, 4000].map(|port| format!("http://localhost:{port}"));
        Self {
            limit: PORT_TIMEOUT,
            ..Self::at(named.chain(usual))
        }
    }

    /// With a time limit for each response.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// The addresses, if they were named explicitly.
    pub fn named(&self) -> Option<&[String]> {
        (self.limit == NAMED_TIMEOUT).then_some(&self.addresses)
    }

    /// Only these addresses, without duplicates.
    pub fn at(addresses: impl IntoIterator<Item = String>) -> Self {
        let mut places: Vec<String> = Vec::new();
        for address in addresses {
            let address = if address.contains("://") {
                address
            } else {
                format!("http://{address}")
            };
            let address = http::join_url(&address, "")
                .map_or(address, |url| url.as_str().trim_end_matches('/').to_owned());
            let is_duplicate = |known: &String| canonical(known) == canonical(&address);
            if !places.iter().any(is_duplicate) {
                places.push(address);
            }
        }
        Self {
            addresses: places,
            limit: NAMED_TIMEOUT,
        }
    }
}

/// Searches all addresses concurrently.
pub async fn find_servers(places: &SearchAddresses, env: &Env) -> Vec<DiscoveredServer> {
    let found = join_all(
        places
            .addresses
            .iter()
            .map(|address| inspect_address(address, places.limit, env)),
    )
    .await;
    found.into_iter().flatten().collect()
}

/// `$OLLAMA_HOST` has many forms, and often names the interface to listen on.
fn ollama_address(host: &str) -> String {
    let (scheme, rest) = host
        .trim()
        .split_once("://")
        .unwrap_or(("http", host.trim()));
    let rest = rest.trim_end_matches('/');
    let (name, port) = match rest.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) && !port.is_empty() => {
            (name, port)
        }
        _ => (rest, "11434"),
    };
    let name = match name {
        "" | "0.0.0.0" | "[::]" | "::" => "localhost",
        other => other,
    };
    format!("{scheme}://{name}:{port}")
}

/// Normalizes the names of this machine for comparison.
fn canonical(address: &str) -> String {
    address
        .trim_end_matches('/')
        .replace("//127.0.0.1", "//localhost")
        .replace("//[::1]", "//localhost")
}

/// An address with its key, if one may be sent there.
struct ServerConnection<'a> {
    address: &'a str,
    key: Option<SecretString>,
    limit: Duration,
}

impl ServerConnection<'_> {
    async fn json(&self, path: &str) -> Result<Value, ModelListError> {
        let var = self.key.is_some().then_some(GATEWAY_KEY_VAR);
        model_list::get_json(self.address, path, var, self.key.clone(), self.limit).await
    }
}

/// Identifies the server at an address. `None` if nothing answers, or nothing that has models.
async fn inspect_address(address: &str, limit: Duration, env: &Env) -> Option<DiscoveredServer> {
    let url = http::join_url(address, "/").ok()?;
    http::probe(&url, PROBE_TIMEOUT.min(limit)).await.ok()?;
    let without_key = ServerConnection {
        address,
        key: None,
        limit,
    };
    let (running, props, version, studio, info, liveliness, listed) = tokio::join!(
        without_key.json("/running"),
        without_key.json("/props"),
        without_key.json("/api/version"),
        without_key.json("/api/v0/models"),
        without_key.json("/model/info"),
        without_key.json("/health/liveliness"),
        without_key.json("/v1/models"),
    );
    let has = |answer: &Result<Value, ModelListError>, field: &str| {
        answer.as_ref().is_ok_and(|a| a.get(field).is_some())
    };
    let is_alive = liveliness
        .as_ref()
        .is_ok_and(|a| a.as_str().is_some_and(|text| text.contains("alive")));
    let kind = if has(&running, "running") {
        ServerKind::LlamaSwap
    } else if has(&props, "default_generation_settings") {
        ServerKind::LlamaCpp
    } else if has(&version, "version")
        && without_key
            .json("/api/tags")
            .await
            .is_ok_and(|tags| tags.get("models").is_some())
    {
        ServerKind::Ollama
    } else if has(&studio, "data") {
        ServerKind::LmStudio
    } else if is_alive || info.as_ref().is_ok_and(servers::is_litellm) {
        ServerKind::LiteLlm
    } else if listed.as_ref().is_ok_and(servers::is_vllm) {
        ServerKind::Vllm
    } else if listed
        .as_ref()
        .is_ok_and(|list| model_list::entries(list).is_some())
        || matches!(listed, Err(ModelListError::KeyMissing { .. }))
    {
        ServerKind::Other
    } else {
        return None;
    };
    // Send the key only to a server that identifies itself as LiteLLM, not to whatever happens to
    // listen.
    let key = env
        .secret(GATEWAY_KEY_VAR)
        .filter(|_| kind == ServerKind::LiteLlm);
    let place = ServerConnection {
        address,
        key,
        limit,
    };
    let models = match kind {
        ServerKind::Ollama => servers::ollama(&place).await,
        ServerKind::LlamaSwap => servers::llama_swap(&place, &running).await,
        ServerKind::LlamaCpp => servers::llama_cpp(&place, &props).await,
        ServerKind::LmStudio => servers::lm_studio(&studio),
        ServerKind::LiteLlm => servers::litellm(&place).await,
        ServerKind::Vllm | ServerKind::Other => listed.map(|list| servers::listed(&list)),
    };
    let models = match models {
        Err(ModelListError::KeyMissing { var: None }) if kind == ServerKind::LiteLlm => {
            Err(ModelListError::KeyMissing {
                var: Some(GATEWAY_KEY_VAR.to_owned()),
            })
        }
        other => other,
    };
    Some(DiscoveredServer {
        address: http::displayable(address)?,
        kind,
        models,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollama_host_forms_give_one_address() {
        for (written, address) in [
            ("0.0.0.0", "http://localhost:11434"),
            ("0.0.0.0:8000", "http://localhost:8000"),
            (":11500", "http://localhost:11500"),
            ("gpu.lan", "http://gpu.lan:11434"),
            ("http://gpu.lan:80/", "http://gpu.lan:80"),
            ("https://gpu.lan", "https://gpu.lan:11434"),
            ("[::]:11434", "http://localhost:11434"),
        ] {
            assert_eq!(ollama_address(written), address, "{written}");
        }
    }

    #[test]
    fn duplicate_addresses_are_searched_once() {
        let env: Env = [
            ("OLLAMA_HOST", "127.0.0.1:8080"),
            ("LLAMA_SWAP_URL", "http://localhost:8080/"),
        ]
        .into_iter()
        .collect();
        let places = SearchAddresses::defaults(&env).addresses;
        assert_eq!(
            places.iter().filter(|place| place.contains("8080")).count(),
            1,
            "{places:?}"
        );
        let env: Env = [(ADDRESSES_VAR, "none")].into_iter().collect();
        assert_eq!(SearchAddresses::defaults(&env).named(), Some(&[][..]));
    }
}
