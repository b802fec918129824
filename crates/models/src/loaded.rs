//! Which models are there? What a gateway offers, which server stands behind each name, and what is loaded now.
//! Knows the answers of LiteLLM, llama-swap and Ollama, and takes them with tolerance. Asks no model anything.

use std::time::Duration;

use secrecy::ExposeSecret;
use secrecy::SecretString;
use serde_json::Value;

use super::Env;
use super::http::{self, Unreachable};
use super::said::said;
use supervisor_settings::{BackendSettings, Warm, WarmKind};
use supervisor_text::redact::Redactor;
use supervisor_text::words;

/// Larger answers are not lists of models.
const CAP: usize = 4 * 1024 * 1024;
/// More names than this are not looked at.
const MOST: usize = 5_000;

/// Why there is no list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookError {
    #[error("{0}")]
    Unreachable(#[from] Unreachable),
    #[error("a key is wanted and {}", match .var { Some(var) => format!("${var} is not set"), None => "no variable is named for it".into() })]
    KeyMissing { var: Option<String> },
    #[error("the key in ${var} was refused")]
    KeyRefused { var: String },
    #[error("`{path}` answered {status}, which leads elsewhere; redirects are not followed")]
    Redirected { path: String, status: u16 },
    #[error("`{path}` answered {status}{}", if .said.is_empty() { String::new() } else { format!(": {}", .said) })]
    Status {
        path: String,
        status: u16,
        said: String,
    },
    #[error("`{path}` answered with more than {} MiB", CAP / 1024 / 1024)]
    TooLarge { path: String },
    #[error("`{path}` answered with {looks}, not with JSON")]
    NotJson { path: String, looks: &'static str },
    #[error("`{path}` answered with JSON in which no models were found")]
    NoModels { path: String },
}

impl LookError {
    /// The server cannot be used as things are, whatever is asked of it.
    pub fn is_setup(&self) -> bool {
        matches!(self, Self::KeyMissing { .. } | Self::KeyRefused { .. })
    }
}

/// A model that a server holds in memory, or is about to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedModel {
    pub id: String,
    /// `ready`, or what else the server calls it.
    pub state: String,
    /// The window that is really allocated, where the server says so.
    pub context: Option<u64>,
}

impl LoadedModel {
    pub fn is_ready(&self) -> bool {
        self.state == "ready"
    }

    /// Is this the model with that id? Ollama adds `:latest` where no tag was given.
    pub fn is(&self, id: &str) -> bool {
        self.id == id || self.id.strip_suffix(":latest") == Some(id)
    }
}

/// Which model stands behind a gateway's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    pub name: String,
    /// The name at the server behind.
    pub id: String,
    pub api_base: Option<String>,
}

/// What is loaded now. Asking loads nothing.
pub async fn loaded(warm: &Warm, limit: Duration) -> Result<Vec<LoadedModel>, LookError> {
    let (path, list) = match warm.kind {
        WarmKind::LlamaSwap => ("/running", "running"),
        WarmKind::Ollama => ("/api/ps", "models"),
    };
    let answer = ask(&warm.url, path, None, None, limit).await?;
    let entries = answer
        .get(list)
        .and_then(Value::as_array)
        .ok_or(LookError::NoModels { path: path.into() })?;
    let one = |entry: &Value| {
        let id = text(entry, "model").or_else(|| text(entry, "name"))?;
        // Ollama lists only what is loaded, and has no word for it.
        let state = match warm.kind {
            WarmKind::LlamaSwap => text(entry, "state").unwrap_or_else(|| "unknown".into()),
            WarmKind::Ollama => "ready".into(),
        };
        Some(LoadedModel {
            id,
            state,
            context: entry.get("context_length").and_then(Value::as_u64),
        })
    };
    Ok(entries.iter().take(MOST).filter_map(one).collect())
}

/// The names that a gateway offers.
pub async fn offered(
    backend: &BackendSettings,
    env: &Env,
    limit: Duration,
) -> Result<Vec<String>, LookError> {
    let path = "/v1/models";
    let answer = ask_backend(backend, env, path, limit).await?;
    let entries = list(&answer).ok_or(LookError::NoModels { path: path.into() })?;
    Ok(entries
        .iter()
        .take(MOST)
        .filter_map(|e| text(e, "id"))
        .collect())
}

/// What stands behind each name. Only LiteLLM knows; elsewhere a name is the model's own.
pub async fn deployments(
    backend: &BackendSettings,
    env: &Env,
    limit: Duration,
) -> Result<Vec<Deployment>, LookError> {
    let path = "/model/info";
    let answer = ask_backend(backend, env, path, limit).await?;
    let entries = list(&answer).ok_or(LookError::NoModels { path: path.into() })?;
    let one = |entry: &Value| {
        let params = entry.get("litellm_params")?;
        let routed = text(params, "model")?;
        // The first segment is the provider; what follows may hold slashes of its own.
        let id = routed
            .split_once('/')
            .map_or(routed.as_str(), |(_, id)| id)
            .to_owned();
        let api_base = text(params, "api_base").and_then(|base| http::shown(&base));
        Some(Deployment {
            name: text(entry, "model_name")?,
            id,
            api_base,
        })
    };
    Ok(entries.iter().take(MOST).filter_map(one).collect())
}

/// Is the model with this name at the gateway loaded and ready? `None` if unknown.
pub fn is_warm(
    loaded: &[LoadedModel],
    behind: &[Deployment],
    warm_url: &str,
    name: &str,
) -> Option<bool> {
    let behind = behind.iter().find(|d| d.name == name);
    let id = behind.map_or(name, |d| d.id.as_str());
    if loaded.iter().any(|model| model.is(id)) {
        return Some(loaded.iter().any(|model| model.is(id) && model.is_ready()));
    }
    // Not there; but a model that is served elsewhere would not be.
    let same = |base: &String| port(base) == port(warm_url);
    behind
        .and_then(|d| d.api_base.as_ref())
        .is_none_or(same)
        .then_some(false)
}

/// Does one of the offered names cover this one? LiteLLM lists patterns such as `openai/*` as they are.
pub fn offers(offered: &[String], name: &str) -> bool {
    offered.iter().any(|o| {
        o == name
            || o.strip_suffix('*')
                .is_some_and(|stem| name.starts_with(stem))
    })
}

async fn ask_backend(
    backend: &BackendSettings,
    env: &Env,
    path: &str,
    limit: Duration,
) -> Result<Value, LookError> {
    let base = backend
        .base_url
        .as_deref()
        .filter(|b| !b.trim().is_empty())
        .ok_or(Unreachable::NotConfigured)?;
    let var = backend.api_key_env.as_deref();
    ask(base, path, var, var.and_then(|v| env.secret(v)), limit).await
}

pub(super) async fn ask(
    base: &str,
    path: &str,
    var: Option<&str>,
    key: Option<SecretString>,
    limit: Duration,
) -> Result<Value, LookError> {
    let answer = http::get(&http::below(base, path)?, key.as_ref(), limit, CAP).await?;
    let path = path.to_owned();
    let wrong_key = || match (&key, var) {
        (Some(_), Some(var)) => LookError::KeyRefused {
            var: var.to_owned(),
        },
        _ => LookError::KeyMissing {
            var: var.map(str::to_owned),
        },
    };
    let json = serde_json::from_slice::<Value>(&answer.body).ok();
    match answer.status {
        200..=299 if answer.cut => Err(LookError::TooLarge { path }),
        200..=299 => json.ok_or_else(|| LookError::NotJson {
            path,
            looks: looks(&answer.body),
        }),
        300..=399 => Err(LookError::Redirected {
            path,
            status: answer.status,
        }),
        401 | 403 => Err(wrong_key()),
        // LiteLLM without a database calls a wrong key a missing database.
        400 if error_field(json.as_ref(), "type") == Some("no_db_connection") => Err(wrong_key()),
        // And without its database package it falls over a missing key.
        500 if key.is_none() && answer.body.starts_with(b"Internal Server Error") => {
            Err(wrong_key())
        }
        status => {
            let secrets = Redactor::knowing(key.iter().map(ExposeSecret::expose_secret));
            let said = said(
                error_field(json.as_ref(), "message").unwrap_or_default(),
                &secrets,
            );
            Err(LookError::Status { path, status, said })
        }
    }
}

/// The entries, under `data` as OpenAI has it, under `models`, or bare.
pub(super) fn list(answer: &Value) -> Option<&Vec<Value>> {
    answer
        .get("data")
        .or_else(|| answer.get("models"))
        .unwrap_or(answer)
        .as_array()
}

/// A name of reasonable length, made safe to show.
pub(super) fn text(entry: &Value, field: &str) -> Option<String> {
    let text = entry.get(field)?.as_str()?.trim();
    if text.is_empty() || text.len() > 300 {
        None
    } else {
        Some(words::plain(text).replace(['\n', '\t'], " "))
    }
}

fn error_field<'a>(answer: Option<&'a Value>, field: &str) -> Option<&'a str> {
    answer?.get("error")?.get(field)?.as_str()
}

fn looks(body: &[u8]) -> &'static str {
    let start = body.trim_ascii_start();
    if start.is_empty() {
        "nothing"
    } else if start.starts_with(b"<") {
        "a web page"
    } else if start.starts_with(b"{") || start.starts_with(b"[") {
        "broken JSON"
    } else {
        "something"
    }
}

fn port(address: &str) -> Option<u16> {
    super::http::Url::parse(address)
        .ok()?
        .port_or_known_default()
}
