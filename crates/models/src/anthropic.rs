//! Backend `anthropic`: Anthropic's Messages API, or any server with `/v1/messages`, such as
//! llama.cpp, Ollama, vLLM or LiteLLM. Asks with streaming; also reads an answer that is not streamed.

mod message;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt as _};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::availability::{
    Availability, BackendStatus, Gateway, ProbeConfig, TierOutage, key_hint,
};
use super::http;
use super::model_list::ModelListError;
use super::probe::{self, AddressRole, CLOUD_URL, CLOUD_URL_VAR};
use super::samples;
use super::server::{self, MAX_BODY_BYTES, MESSAGES, Server, ServerResponse, refusal};
use super::settle;
use super::{
    Ask, AskError, AskResult, AskStep, Backend, BackendFacts, BackendLocation, Edits, Env, Failure,
    SharedResources,
};
use supervisor_settings as routing;
use supervisor_settings::{Model, Tier};

use message::Message;

const API_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");
/// Maximum length of an answer in tokens, if nothing is configured. The API requires a value and
/// reserves it from the rate limit.
const MAX_TOKENS: u32 = 16_000;
/// Names that `claude` knows and the API does not: the newest model of each family.
const ALIASES: [&str; 3] = ["haiku", "sonnet", "opus"];

/// The kind `anthropic`.
pub(super) struct AnthropicKind;

impl BackendFacts for AnthropicKind {
    fn connect(
        &self,
        backend: &routing::BackendSettings,
        shared: &SharedResources,
    ) -> Result<Arc<dyn Backend>, AskError> {
        if let Some(ModelListError::KeyMissing { var }) = missing_key(backend, &shared.env) {
            return Err(AskError::NoKey {
                backend: backend.name.clone(),
                var,
                detail: String::new(),
            });
        }
        let base = address(backend, &shared.env);
        Ok(Arc::new(Anthropic {
            server: Server::connect(backend, shared, MESSAGES, &base)?,
            aliases: Mutex::default(),
        }))
    }

    fn role(&self) -> Option<AddressRole> {
        Some(AddressRole::Cloud)
    }

    fn endpoint(&self, backend: &routing::BackendSettings, env: &Env) -> Option<probe::Endpoint> {
        let (name, role) = match &backend.base_url {
            Some(_) => (backend.name.as_str(), AddressRole::Gateway),
            None => ("anthropic", AddressRole::Cloud),
        };
        let address = Some(address(backend, env));
        Some(probe::Endpoint::new(name, role, address, "/"))
    }

    fn probe<'a>(
        &'a self,
        backend: &'a routing::BackendSettings,
        config: &'a ProbeConfig,
        _: bool,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, BackendStatus> {
        async move {
            match missing_key(backend, &config.env) {
                Some(error) => BackendStatus::Gateway(Gateway {
                    offered: Err(error),
                    deployments: Vec::new(),
                }),
                None => BackendStatus::Nothing,
            }
        }
        .boxed()
    }

    fn outage(&self, availability: &Availability, tier: &Tier) -> Option<TierOutage> {
        let name = &tier.backend.name;
        if let Some(Err(error)) = availability.gateways.get(name).map(|g| &g.offered) {
            return Some(key_outage(name, error));
        }
        let setting = format!("`backends.{name}.base_url`");
        match tier.backend.base_url {
            Some(_) => availability.unreachable(AddressRole::Gateway, name, &setting),
            None => availability.unreachable(AddressRole::Cloud, "anthropic", &setting),
        }
    }

    fn missing<'a>(
        &'a self,
        backend: &'a routing::BackendSettings,
        shared: &'a SharedResources,
    ) -> BoxFuture<'a, Option<TierOutage>> {
        async move {
            match missing_key(backend, &shared.env) {
                Some(error) => Some(key_outage(&backend.name, &error)),
                None => settle::refused_here(backend).await,
            }
        }
        .boxed()
    }

    fn location(&self, backend: &routing::BackendSettings) -> BackendLocation {
        BackendLocation {
            verb: "asks",
            key: "base_url",
            value: Some(backend.base_url.clone().unwrap_or_else(|| CLOUD_URL.into())),
        }
    }
}

fn key_outage(name: &str, error: &ModelListError) -> TierOutage {
    TierOutage {
        why: format!("`{name}`: {error}"),
        hint: key_hint(name, error),
    }
}

fn address(backend: &routing::BackendSettings, env: &Env) -> String {
    let url = backend.base_url.clone().or_else(|| env.get(CLOUD_URL_VAR));
    url.unwrap_or_else(|| CLOUD_URL.into())
}

/// Anthropic's own address needs a key; another server may do without.
fn missing_key(backend: &routing::BackendSettings, env: &Env) -> Option<ModelListError> {
    let var = backend.api_key_env.clone();
    let has_key = var.as_deref().is_some_and(|var| env.get(var).is_some());
    (backend.base_url.is_none() && !has_key).then_some(ModelListError::KeyMissing { var })
}

struct Anthropic {
    server: Server,
    /// The model behind each alias, asked once.
    aliases: Mutex<HashMap<String, String>>,
}

impl Backend for Anthropic {
    fn edits(&self, _: &Tier) -> Edits {
        Edits::AsData
    }

    fn ask<'a>(
        &'a self,
        ask: &'a Ask,
        tier: &'a Tier,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(AskStep) + Send + Sync),
    ) -> BoxFuture<'a, AskResult> {
        server::within_limits(ask, tier, stop, self.ask_once(ask, tier, progress)).boxed()
    }

    fn ask_samples<'a>(
        &'a self,
        ask: &'a Ask,
        tier: &'a Tier,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(AskStep) + Send + Sync),
    ) -> BoxFuture<'a, Vec<AskResult>> {
        samples::as_its_tier_allows(self, ask, tier, stop, progress).boxed()
    }
}

impl Anthropic {
    async fn ask_once(
        &self,
        ask: &Ask,
        tier: &Tier,
        progress: &(dyn Fn(AskStep) + Send + Sync),
    ) -> AskResult {
        let headers = self.headers()?;
        let id = self.id_of(&tier.model.id, &headers, ask.limit).await;
        let (body, sent) = body(ask, &tier.model, &id);
        progress(AskStep::Asked);
        let began = Instant::now();
        let mut response = self.server.send(headers, &body, ask.limit).await?;
        if response.status() != 200 {
            let response = self.server.read(response, began, ask.limit).await?;
            return Err(refusal::failure(&self.server, &response, ask, tier));
        }
        let mut message = Message::default();
        let (mut read, mut has_begun) = (0, false);
        // A finished answer is taken at once: some servers keep the connection open.
        while !message.is_finished() {
            let chunk = response.chunk().await;
            let Some(chunk) = chunk.map_err(|error| self.server.broken_off(&error, ask.limit))?
            else {
                break;
            };
            read += chunk.len();
            if !has_begun && ask.is_sampled() {
                has_begun = true;
                progress(AskStep::Answering);
            }
            if read > MAX_BODY_BYTES {
                break;
            }
            if message.feed(&chunk) {
                progress(AskStep::Thinking);
            }
        }
        let response = ServerResponse {
            status: 200,
            headers: response.headers().clone(),
            body: Vec::new(),
            truncated: read > MAX_BODY_BYTES,
            took: began.elapsed(),
        };
        message.into_reply(&self.server, response, ask, tier, sent)
    }

    /// Anthropic reads the key from `x-api-key` only, some other servers from `authorization` only.
    fn headers(&self) -> Result<HeaderMap, Box<Failure>> {
        let mut headers = self.server.bearer()?;
        let own = self.server.url.host_str().unwrap_or_default();
        if own == "anthropic.com" || own.ends_with(".anthropic.com") {
            headers.clear();
        }
        let key = self.server.key.as_ref();
        // A key that no header can carry was refused above.
        if let Some(Ok(mut value)) = key.map(|key| HeaderValue::from_str(key.expose_secret())) {
            value.set_sensitive(true);
            headers.insert("x-api-key", value);
        }
        headers.insert(HeaderName::from_static("anthropic-version"), API_VERSION);
        Ok(headers)
    }

    /// The id of a model: for an alias the newest one of its family that the server lists. If there is
    /// no list, the name is sent as it is, and the server's answer tells what is wrong.
    async fn id_of(&self, name: &str, headers: &HeaderMap, limit: Duration) -> String {
        let name = name.strip_prefix("anthropic/").unwrap_or(name);
        if !ALIASES.contains(&name) {
            return name.to_owned();
        }
        let aliases = || self.aliases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = aliases().get(name) {
            return id.clone();
        }
        let mut url = self.server.url.clone();
        url.set_path(&url.path().replace(MESSAGES, "/v1/models"));
        url.set_query(Some("limit=1000"));
        let found = http::get_with(&url, headers.clone(), limit, MAX_BODY_BYTES).await;
        let list = found.ok().filter(|response| response.status == 200);
        let list: Option<Value> = list.and_then(|r| serde_json::from_slice(&r.body).ok());
        let Some(id) = list.as_ref().and_then(|list| newest(list, name)) else {
            return name.to_owned();
        };
        aliases().insert(name.to_owned(), id.clone());
        id
    }
}

/// The newest model of a family: the list begins with the newest, but gateways sort by name.
fn newest(list: &Value, family: &str) -> Option<String> {
    let models = list["data"].as_array()?;
    let of_family = models.iter().filter(|model| {
        let id = model["id"].as_str().unwrap_or_default();
        id.split(['-', '/', '.']).any(|part| part == family)
    });
    let created = |model: &Value| model["created_at"].as_str().unwrap_or_default().to_owned();
    // The first of equals.
    of_family
        .reduce(|best, model| {
            if created(model) > created(best) {
                model
            } else {
                best
            }
        })
        .and_then(|model| Some(model["id"].as_str()?.to_owned()))
}

/// The body, and the number of bytes of text shown to the model. The rules come first and are marked
/// for the cache. Sampling parameters are sent only if they are set: newer models reject them.
fn body(ask: &Ask, model: &Model, id: &str) -> (Value, usize) {
    let system = ask.rules_with_schema();
    let sent = system.len() + ask.prompt.len();
    let window_share = (model.context / 4).clamp(1024, MAX_TOKENS);
    let mut body = json!({
        "model": id,
        "max_tokens": ask.max_answer_tokens(model).unwrap_or(window_share),
        "stream": true,
        "messages": [{"role": "user", "content": [{"type": "text", "text": ask.prompt}]}],
    });
    if !system.trim().is_empty() {
        body["system"] =
            json!([{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]);
    }
    if let Some(temperature) = model.temperature {
        body["temperature"] = json!(temperature.min(1.0));
    }
    (body, sent)
}
