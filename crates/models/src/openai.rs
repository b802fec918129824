//! Backend `openai`: any server with an OpenAI-compatible `/v1/chat/completions`, such as LiteLLM,
//! llama.cpp, Ollama or vLLM. Asks without streaming, and checks both status and body. The key is
//! used only here and in the header.

mod answer;
pub(super) mod fuzz;
mod refusal;
mod request;
mod retry_after;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt as _};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::sync::CancellationToken;

use super::availability::{
    Availability, BackendStatus, Gateway, ProbeConfig, TierOutage, key_hint,
};
use super::http::{self, Unreachable, Url};
use super::model_list;
use super::probe::{self, AddressRole};
use super::{
    Ask, AskError, AskResult, AskStep, Backend, BackendFacts, BackendLocation, Edits, Env, Failure,
    SharedResources,
};
use supervisor_settings as routing;
use supervisor_settings::Tier;
use supervisor_text::redact::Redactor;

use request::Form;

/// Larger responses are rejected.
const MAX_BODY_BYTES: usize = super::extract::MAX_BYTES;

/// The kind `openai`.
pub(super) struct OpenaiKind;

impl BackendFacts for OpenaiKind {
    fn connect(
        &self,
        backend: &routing::BackendSettings,
        shared: &SharedResources,
    ) -> Result<Arc<dyn Backend>, AskError> {
        connect(backend, shared)
    }

    fn role(&self) -> Option<AddressRole> {
        Some(AddressRole::Gateway)
    }

    fn endpoint(&self, backend: &routing::BackendSettings, _: &Env) -> Option<probe::Endpoint> {
        // LiteLLM's plain `/health` would send a real question to every model.
        Some(probe::Endpoint::new(
            &backend.name,
            AddressRole::Gateway,
            backend.base_url.clone(),
            "/health/liveliness",
        ))
    }

    fn probe<'a>(
        &'a self,
        backend: &'a routing::BackendSettings,
        config: &'a ProbeConfig,
        is_reachable: bool,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, BackendStatus> {
        async move {
            if !is_reachable {
                return BackendStatus::Nothing;
            }
            let (offered, deployments) = tokio::join!(
                model_list::offered(backend, &config.env, config.list_limit),
                model_list::deployments(backend, &config.env, config.list_limit)
            );
            BackendStatus::Gateway(Gateway {
                offered,
                deployments: deployments.unwrap_or_default(),
            })
        }
        .boxed()
    }

    fn outage(&self, availability: &Availability, tier: &Tier) -> Option<TierOutage> {
        let name = &tier.backend.name;
        if let Some(out) = availability.unreachable(
            AddressRole::Gateway,
            name,
            &format!("`backends.{name}.base_url`"),
        ) {
            return Some(out);
        }
        match &availability.gateways.get(name)?.offered {
            Ok(offered) if offered.is_empty() || model_list::offers(offered, &tier.model.id) => {
                None
            }
            Ok(_) => Some(TierOutage {
                why: format!("`{name}` does not offer `{}`", tier.model.id),
                hint: format!(
                    "add it to the gateway, or set `models.\"{}\".id` to its name there",
                    tier.name
                ),
            }),
            Err(error) if error.is_setup() => Some(TierOutage {
                why: format!("`{name}`: {error}"),
                hint: key_hint(name, error),
            }),
            // A missing list does not prove that a question would fail.
            Err(_) => None,
        }
    }

    fn location(&self, backend: &routing::BackendSettings) -> BackendLocation {
        BackendLocation {
            verb: "asks",
            key: "base_url",
            value: backend.base_url.clone(),
        }
    }
}

fn connect(
    backend: &routing::BackendSettings,
    shared: &SharedResources,
) -> Result<Arc<dyn Backend>, AskError> {
    let base = backend.base_url.as_deref().unwrap_or_default();
    let url =
        http::join_url(base, "/v1/chat/completions").map_err(|why| AskError::Misconfigured {
            setting: format!("backends.{}.base_url", backend.name),
            why: why.to_string(),
        })?;
    let key = backend
        .api_key_env
        .as_deref()
        .and_then(|var| shared.env.secret(var));
    Ok(Arc::new(OpenAi {
        endpoint: Endpoint {
            backend: backend.name.clone(),
            address: http::displayable(base).unwrap_or_default(),
            var: backend.api_key_env.clone(),
            redactor: Redactor::with_values(key.iter().map(|key| key.expose_secret())),
            key,
        },
        url,
        forms: Mutex::default(),
    }))
}

struct OpenAi {
    endpoint: Endpoint,
    url: Url,
    /// The request form each model's server accepted, so that a rejected form is tried only once.
    forms: Mutex<HashMap<String, Form>>,
}

/// Facts about a server for messages.
struct Endpoint {
    backend: String,
    /// Safe to show.
    address: String,
    /// The variable that should hold the key.
    var: Option<String>,
    key: Option<SecretString>,
    /// Removes the key from the server's messages: some servers echo it.
    redactor: Redactor,
}

/// An HTTP response, read to its end or to the size limit.
struct ChatResponse {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    truncated: bool,
    /// From the request to the end of the response.
    took: Duration,
}

impl ChatResponse {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    /// True if a LiteLLM gateway answered.
    fn is_from_litellm(&self) -> bool {
        self.headers
            .keys()
            .any(|name| name.as_str().starts_with("x-litellm-"))
    }
}

impl Backend for OpenAi {
    fn edits(&self) -> Edits {
        Edits::AsData
    }

    fn ask<'a>(
        &'a self,
        ask: &'a Ask,
        tier: &'a Tier,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(AskStep) + Send + Sync),
    ) -> BoxFuture<'a, AskResult> {
        async move {
            if stop.is_cancelled() {
                return Err(Failure::without_cost(AskError::Cancelled));
            }
            tokio::select! {
                biased;
                // Dropping the other branch closes the connection.
                () = stop.cancelled() => Err(Failure::with_unknown_cost(AskError::Cancelled)),
                answered = tokio::time::timeout(ask.limit, self.ask_with_fallback_form(ask, tier, progress)) => {
                    answered.unwrap_or_else(|_| {
                        Err(Failure::with_unknown_cost(AskError::timed_out(tier, ask.limit)))
                    })
                }
            }
        }
        .boxed()
    }
}

impl OpenAi {
    async fn ask_with_fallback_form(
        &self,
        ask: &Ask,
        tier: &Tier,
        progress: &(dyn Fn(AskStep) + Send + Sync),
    ) -> AskResult {
        let known = self
            .forms
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&tier.model.id)
            .copied();
        let first = known.unwrap_or_default();
        let (body, sent) = request::body(ask, &tier.model, first);
        progress(AskStep::Asked);
        let response = self.post(&body, ask.limit).await?;
        let Some(simpler_form) = request::simpler_form(&response, first) else {
            return self.read(response, ask, tier, sent);
        };
        let (body, sent) = request::body(ask, &tier.model, simpler_form);
        progress(AskStep::AskedWithoutFormat);
        let response = self.post(&body, ask.limit).await?;
        if response.status == 200 {
            self.forms
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(tier.model.id.clone(), simpler_form);
        }
        self.read(response, ask, tier, sent)
    }

    fn read(&self, response: ChatResponse, ask: &Ask, tier: &Tier, sent: usize) -> AskResult {
        if response.status == 200 {
            answer::read(&self.endpoint, response, ask, tier, sent)
        } else {
            Err(refusal::failure(&self.endpoint, &response, ask, tier))
        }
    }

    async fn post(
        &self,
        body: &serde_json::Value,
        limit: Duration,
    ) -> Result<ChatResponse, Box<Failure>> {
        let unreachable = |why: &Unreachable| AskError::Unreachable {
            backend: self.endpoint.backend.clone(),
            address: self.endpoint.address.clone(),
            why: why.to_string(),
        };
        let client = http::pooled_client(&self.url)
            .map_err(|why| Failure::without_cost(unreachable(&why)))?;
        let mut request = client
            .post(self.url.clone())
            // The gateway must give up a little before we do: only then does it stop the model as
            // well.
            .header(
                "x-litellm-timeout",
                format!("{:.1}", gateway_limit(limit).as_secs_f64()),
            )
            .json(body);
        if let Some(key) = &self.endpoint.key {
            let bearer = http::bearer(key).map_err(|why| {
                Failure::without_cost(AskError::Misconfigured {
                    setting: self
                        .endpoint
                        .var
                        .clone()
                        .map_or_else(String::new, |var| format!("${var}")),
                    why: why.to_string(),
                })
            })?;
            request = request.header(AUTHORIZATION, bearer);
        }
        let began = Instant::now();
        let response = request.send().await.map_err(|error| {
            let why = unreachable(&http::classify(&error, limit));
            // Without a connection no model was asked.
            if error.is_connect() {
                Failure::without_cost(why)
            } else {
                Failure::with_unknown_cost(why)
            }
        })?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let (body, truncated) =
            http::read_capped(response, MAX_BODY_BYTES)
                .await
                .map_err(|error| {
                    Failure::with_unknown_cost(unreachable(&http::classify(&error, limit)))
                })?;
        Ok(ChatResponse {
            status,
            headers,
            body,
            truncated,
            took: began.elapsed(),
        })
    }
}

fn gateway_limit(limit: Duration) -> Duration {
    limit
        .saturating_sub((limit / 20).min(Duration::from_secs(2)))
        .max(Duration::from_millis(100))
}

/// Builds a response for the tests of the submodules.
#[cfg(test)]
fn response(status: u16, headers: &[(&str, &str)], body: &str) -> ChatResponse {
    let headers = headers
        .iter()
        .map(|(name, value)| {
            let name =
                reqwest::header::HeaderName::from_bytes(name.as_bytes()).expect("a header's name");
            (name, value.parse().expect("a header's value"))
        })
        .collect();
    ChatResponse {
        status,
        headers,
        body: body.as_bytes().to_vec(),
        truncated: false,
        took: Duration::ZERO,
    }
}
