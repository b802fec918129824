//! Lists models: those a gateway offers, the deployment behind each name, and those loaded now.
//! Reads the responses of LiteLLM, llama-swap and Ollama leniently. No model is asked.

use std::time::Duration;

use secrecy::ExposeSecret;
use secrecy::SecretString;
use serde_json::Value;

use super::Env;
use super::http::{self, Unreachable};
use super::remote_text::sanitize;
use supervisor_settings::{BackendSettings, Warm, WarmKind};
use supervisor_text::redact::Redactor;
use supervisor_text::words;

/// Larger responses are not model lists.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
/// Further names are ignored.
const MAX_MODELS: usize = 5_000;

/// Why there is no model list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelListError {
    #[error("{0}")]
    Unreachable(#[from] Unreachable),
    #[error("a key is wanted and {}", match .var { Some(var) => format!("${var} is not set"), None => "no variable is named for it".into() })]
    KeyMissing { var: Option<String> },
    #[error("the key in ${var} was refused")]
    KeyRefused { var: String },
    #[error("`{path}` answered {status}, which leads elsewhere; redirects are not followed")]
    Redirected { path: String, status: u16 },
    #[error("`{path}` answered {status}{}", if .detail.is_empty() { String::new() } else { format!(": {}", .detail) })]
    Status {
        path: String,
        status: u16,
        detail: String,
    },
    #[error("`{path}` answered with more than {} MiB", MAX_BODY_BYTES / 1024 / 1024)]
    TooLarge { path: String },
    #[error("`{path}` answered with {found}, not with JSON")]
    NotJson { path: String, found: &'static str },
    #[error("`{path}` answered with JSON in which no models were found")]
    NoModels { path: String },
}

impl ModelListError {
    /// True if the server cannot be used until its key is fixed.
    pub fn is_setup(&self) -> bool {
        matches!(self, Self::KeyMissing { .. } | Self::KeyRefused { .. })
    }
}

/// A model that a server holds in memory or is loading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedModel {
    pub id: String,
    /// `ready`, or the server's own word for another state.
    pub state: String,
    /// The allocated context window, if reported.
    pub context: Option<u64>,
}

impl LoadedModel {
    pub fn is_ready(&self) -> bool {
        self.state == "ready"
    }

    /// Whether this is the model with that id. Ollama adds `:latest` if no tag was given.
    pub fn is(&self, id: &str) -> bool {
        self.id == id || self.id.strip_suffix(":latest") == Some(id)
    }
}

/// The model behind a gateway's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    pub name: String,
    /// The model's name at the server behind the gateway.
    pub id: String,
    pub api_base: Option<String>,
}

/// Models loaded now. The request itself loads nothing.
pub async fn loaded(warm: &Warm, limit: Duration) -> Result<Vec<LoadedModel>, ModelListError> {
    let (path, list) = match warm.kind {
        WarmKind::LlamaSwap => ("/running", "running"),
        WarmKind::Ollama => ("/api/ps", "models"),
    };
    let answer = get_json(&warm.url, path, None, None, limit).await?;
    let entries = answer
        .get(list)
        .and_then(Value::as_array)
        .ok_or(ModelListError::NoModels { path: path.into() })?;
    let read_entry = |entry: &Value| {
        let id = text(entry, "model").or_else(|| text(entry, "name"))?;
        // Ollama lists only loaded models and reports no state.
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
    Ok(entries
        .iter()
        .take(MAX_MODELS)
        .filter_map(read_entry)
        .collect())
}

/// The names a gateway offers.
pub async fn offered(
    backend: &BackendSettings,
    env: &Env,
    limit: Duration,
) -> Result<Vec<String>, ModelListError> {
    let path = "/v1/models";
    let answer = get_from_backend(backend, env, path, limit).await?;
    let entries = entries(&answer).ok_or(ModelListError::NoModels { path: path.into() })?;
    Ok(entries
        .iter()
        .take(MAX_MODELS)
        .filter_map(|e| text(e, "id"))
        .collect())
}

/// The deployment behind each name. Only LiteLLM reports it; elsewhere the name is the model's own.
pub async fn deployments(
    backend: &BackendSettings,
    env: &Env,
    limit: Duration,
) -> Result<Vec<Deployment>, ModelListError> {
    let path = "/model/info";
    let answer = get_from_backend(backend, env, path, limit).await?;
    let entries = entries(&answer).ok_or(ModelListError::NoModels { path: path.into() })?;
    let read_entry = |entry: &Value| {
        let params = entry.get("litellm_params")?;
        let routed = text(params, "model")?;
        // The first segment is the provider; the rest may contain slashes.
        let id = routed
            .split_once('/')
            .map_or(routed.as_str(), |(_, id)| id)
            .to_owned();
        let api_base = text(params, "api_base").and_then(|base| http::displayable(&base));
        Some(Deployment {
            name: text(entry, "model_name")?,
            id,
            api_base,
        })
    };
    Ok(entries
        .iter()
        .take(MAX_MODELS)
        .filter_map(read_entry)
        .collect())
}

/// Whether the model with this gateway name is loaded and ready. `None` if unknown.
pub fn is_warm(
    loaded: &[LoadedModel],
    behind: &[Deployment],
    warm_url: &str,
    name: &str,
) -> Option<bool> {
    let behind = behind.iter().find(|d| d.name == name);
    // Without deployments a gateway's name may be that of the server with a prefix: `ollama/x`.
    let id = behind.map_or(name, |d| d.id.as_str());
    let mut same = loaded
        .iter()
        .filter(|model| model.is(id) || behind.is_none() && model.is(without_prefix(id)))
        .peekable();
    if same.peek().is_some() {
        return Some(same.any(LoadedModel::is_ready));
    }
    // A gateway that does not tell what is behind this name may use another name for it.
    let behind = match behind {
        None if id.contains('/') => return None,
        None => return Some(false),
        Some(behind) => behind,
    };
    // It is not loaded here, but a model served elsewhere would not be listed either.
    let is_same_server = |base: &String| port(base) == port(warm_url);
    behind
        .api_base
        .as_ref()
        .is_none_or(is_same_server)
        .then_some(false)
}

/// `x` for `ollama/x`.
fn without_prefix(name: &str) -> &str {
    name.split_once('/').map_or(name, |(_, rest)| rest)
}

/// Whether one of the offered names covers this one. LiteLLM lists patterns such as `openai/*`.
pub fn offers(offered: &[String], name: &str) -> bool {
    offered.iter().any(|o| {
        o == name
            || o.strip_suffix('*')
                .is_some_and(|stem| name.starts_with(stem))
    })
}

async fn get_from_backend(
    backend: &BackendSettings,
    env: &Env,
    path: &str,
    limit: Duration,
) -> Result<Value, ModelListError> {
    let base = backend
        .base_url
        .as_deref()
        .filter(|b| !b.trim().is_empty())
        .ok_or(Unreachable::NotConfigured)?;
    let var = backend.api_key_env.as_deref();
    get_json(base, path, var, var.and_then(|v| env.secret(v)), limit).await
}

pub(super) async fn get_json(
    base: &str,
    path: &str,
    var: Option<&str>,
    key: Option<SecretString>,
    limit: Duration,
) -> Result<Value, ModelListError> {
    let answer = http::get(
        &http::join_url(base, path)?,
        key.as_ref(),
        limit,
        MAX_BODY_BYTES,
    )
    .await?;
    let path = path.to_owned();
    let wrong_key = || match (&key, var) {
        (Some(_), Some(var)) => ModelListError::KeyRefused {
            var: var.to_owned(),
        },
        _ => ModelListError::KeyMissing {
            var: var.map(str::to_owned),
        },
    };
    let json = serde_json::from_slice::<Value>(&answer.body).ok();
    match answer.status {
        200..=299 if answer.truncated => Err(ModelListError::TooLarge { path }),
        200..=299 => json.ok_or_else(|| ModelListError::NotJson {
            path,
            found: describe_body(&answer.body),
        }),
        300..=399 => Err(ModelListError::Redirected {
            path,
            status: answer.status,
        }),
        401 | 403 => Err(wrong_key()),
        // LiteLLM without a database reports a wrong key as a missing database.
        400 if error_field(json.as_ref(), "type") == Some("no_db_connection") => Err(wrong_key()),
        // LiteLLM without its database package fails on a missing key.
        500 if key.is_none() && answer.body.starts_with(b"Internal Server Error") => {
            Err(wrong_key())
        }
        status => {
            let secrets = Redactor::with_values(key.iter().map(ExposeSecret::expose_secret));
            let detail = sanitize(
                error_field(json.as_ref(), "message").unwrap_or_default(),
                &secrets,
            );
            Err(ModelListError::Status {
                path,
                status,
                detail,
            })
        }
    }
}

/// The entries of a list: under `data` (OpenAI), under `models`, or at the top level.
pub(super) fn entries(answer: &Value) -> Option<&Vec<Value>> {
    answer
        .get("data")
        .or_else(|| answer.get("models"))
        .unwrap_or(answer)
        .as_array()
}

/// A name of reasonable length, safe to show.
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

fn describe_body(body: &[u8]) -> &'static str {
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
