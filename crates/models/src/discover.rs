//! Which model servers run here, and what do they offer? Looks at the usual ports and at what the environment names.
//! What answers is told by what it says, not by its port: two programs like the same ones.
//! Asks no model anything; [`canary`] does, and needs leave.

mod servers;

use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use secrecy::SecretString;
use serde_json::Value;

use super::Env;
use super::http;
use super::loaded::{self, LookError};

pub use servers::canary;

/// Addresses to look at instead of the usual ones, with commas between them; `none`: nowhere.
pub const LOOK_AT_VAR: &str = "SUPERVISOR_LOOK_AT";
/// The key of LiteLLM, as the built-in settings name it.
pub const GATEWAY_KEY_VAR: &str = "LITELLM_API_KEY";

/// For one answer of whatever listens on a usual port: it may be something else, which never answers.
const LIMIT: Duration = Duration::from_secs(3);
/// For one answer at an address that was named. It is a model server, which may be busy with loading a model.
const NAMED_LIMIT: Duration = Duration::from_secs(20);
/// For a server to be there at all.
const KNOCK: Duration = Duration::from_millis(1500);

/// What kind of server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerKind {
    Ollama,
    LlamaSwap,
    LlamaCpp,
    LmStudio,
    Vllm,
    LiteLlm,
    /// Speaks as OpenAI does, and says no more.
    Other,
}

impl ServerKind {
    /// The name a backend is given for it.
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
pub struct FoundServer {
    /// Fit to be shown and to be written into settings.
    pub address: String,
    pub kind: ServerKind,
    /// What it offers for text, in its own order; or why that is not known.
    pub models: Result<Vec<FoundModel>, LookError>,
}

/// A model that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundModel {
    /// As the server calls it.
    pub id: String,
    pub loaded: bool,
    pub window: Option<FoundWindow>,
}

/// How many tokens a model is really given, and who says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundWindow {
    pub tokens: u32,
    pub told_by: &'static str,
}

/// Where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookPlaces {
    addresses: Vec<String>,
    limit: Duration,
}

impl LookPlaces {
    /// The usual ports, and what the environment names.
    pub fn usual(env: &Env) -> Self {
        if let Some(named) = env.get(LOOK_AT_VAR) {
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
            limit: LIMIT,
            ..Self::at(named.chain(usual))
        }
    }

    /// The addresses, if they were named.
    pub fn named(&self) -> Option<&[String]> {
        (self.limit == NAMED_LIMIT).then_some(&self.addresses)
    }

    /// These addresses and no others; one that is named twice is looked at once.
    pub fn at(addresses: impl IntoIterator<Item = String>) -> Self {
        let mut places: Vec<String> = Vec::new();
        for address in addresses {
            let address = if address.contains("://") {
                address
            } else {
                format!("http://{address}")
            };
            let address = http::below(&address, "")
                .map_or(address, |url| url.as_str().trim_end_matches('/').to_owned());
            let same = |known: &String| canonical(known) == canonical(&address);
            if !places.iter().any(same) {
                places.push(address);
            }
        }
        Self {
            addresses: places,
            limit: NAMED_LIMIT,
        }
    }
}

/// Looks everywhere at once.
pub async fn look(places: &LookPlaces, env: &Env) -> Vec<FoundServer> {
    let found = join_all(
        places
            .addresses
            .iter()
            .map(|address| look_at(address, places.limit, env)),
    )
    .await;
    found.into_iter().flatten().collect()
}

/// `$OLLAMA_HOST` is written in many ways, and often names the interface to listen on.
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

/// One form for the names of this machine.
fn canonical(address: &str) -> String {
    address
        .trim_end_matches('/')
        .replace("//127.0.0.1", "//localhost")
        .replace("//[::1]", "//localhost")
}

/// An address with its key, if it may have one.
struct ServerPlace<'a> {
    address: &'a str,
    key: Option<SecretString>,
    limit: Duration,
}

impl ServerPlace<'_> {
    async fn json(&self, path: &str) -> Result<Value, LookError> {
        let var = self.key.is_some().then_some(GATEWAY_KEY_VAR);
        loaded::ask(self.address, path, var, self.key.clone(), self.limit).await
    }
}

/// What listens there; `None` if nothing does, or nothing that has models.
async fn look_at(address: &str, limit: Duration, env: &Env) -> Option<FoundServer> {
    let url = http::below(address, "/").ok()?;
    http::knock(&url, KNOCK).await.ok()?;
    let open = ServerPlace {
        address,
        key: None,
        limit,
    };
    let (running, props, version, studio, info, alive, listed) = tokio::join!(
        open.json("/running"),
        open.json("/props"),
        open.json("/api/version"),
        open.json("/api/v0/models"),
        open.json("/model/info"),
        open.json("/health/liveliness"),
        open.json("/v1/models"),
    );
    let has = |answer: &Result<Value, LookError>, field: &str| {
        answer.as_ref().is_ok_and(|a| a.get(field).is_some())
    };
    let is_alive = alive
        .as_ref()
        .is_ok_and(|a| a.as_str().is_some_and(|text| text.contains("alive")));
    let kind = if has(&running, "running") {
        ServerKind::LlamaSwap
    } else if has(&props, "default_generation_settings") {
        ServerKind::LlamaCpp
    } else if has(&version, "version")
        && open
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
        .is_ok_and(|list| loaded::list(list).is_some())
        || matches!(listed, Err(LookError::KeyMissing { .. }))
    {
        ServerKind::Other
    } else {
        return None;
    };
    // Only to what calls itself LiteLLM: a key is not for whatever happens to listen.
    let key = env
        .secret(GATEWAY_KEY_VAR)
        .filter(|_| kind == ServerKind::LiteLlm);
    let place = ServerPlace {
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
        Err(LookError::KeyMissing { var: None }) if kind == ServerKind::LiteLlm => {
            Err(LookError::KeyMissing {
                var: Some(GATEWAY_KEY_VAR.to_owned()),
            })
        }
        other => other,
    };
    Some(FoundServer {
        address: http::shown(address)?,
        kind,
        models,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_in_which_ollamas_host_is_written_lead_to_one_address() {
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
    fn an_address_that_is_named_twice_is_looked_at_once() {
        let env: Env = [
            ("OLLAMA_HOST", "127.0.0.1:8080"),
            ("LLAMA_SWAP_URL", "http://localhost:8080/"),
        ]
        .into_iter()
        .collect();
        let places = LookPlaces::usual(&env).addresses;
        assert_eq!(
            places.iter().filter(|place| place.contains("8080")).count(),
            1,
            "{places:?}"
        );
        let env: Env = [(LOOK_AT_VAR, "none")].into_iter().collect();
        assert_eq!(LookPlaces::usual(&env).named(), Some(&[][..]));
    }
}
