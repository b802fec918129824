//! Any server with an OpenAI-compatible `/v1/chat/completions`: LiteLLM, llama.cpp, Ollama, vLLM.
//! Asks once, without streaming, and believes neither status nor body alone. The key lives here and in the header only.

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

use super::http::{self, Unreachable, Url};
use super::loaded;
use super::probe::{self, AddressRole};
use super::world::{BackendSight, Gateway, Look, TierOutage, World, key_hint};
use super::{
    Ask, AskError, AskResult, AskStep, Backend, BackendFacts, BackendPlace, Edits, Env, Failure,
    SharedResources,
};
use supervisor_settings as routing;
use supervisor_settings::Tier;
use supervisor_text::redact::Redactor;

use request::Form;

/// Longer answers are refused.
const BODY_CAP: usize = super::extract::MAX_BYTES;

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
        // LiteLLM's plain `/health` would send a real question to every model it knows.
        Some(probe::Endpoint::new(
            &backend.name,
            AddressRole::Gateway,
            backend.base_url.clone(),
            "/health/liveliness",
        ))
    }

    fn look<'a>(
        &'a self,
        backend: &'a routing::BackendSettings,
        look: &'a Look,
        is_there: bool,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, BackendSight> {
        async move {
            if !is_there {
                return BackendSight::Nothing;
            }
            let (offered, deployments) = tokio::join!(
                loaded::offered(backend, &look.env, look.list_limit),
                loaded::deployments(backend, &look.env, look.list_limit)
            );
            BackendSight::Gateway(Gateway {
                offered,
                deployments: deployments.unwrap_or_default(),
            })
        }
        .boxed()
    }

    fn outage(&self, world: &World, tier: &Tier) -> Option<TierOutage> {
        let name = &tier.backend.name;
        if let Some(out) = world.unreachable(
            AddressRole::Gateway,
            name,
            &format!("`backends.{name}.base_url`"),
        ) {
            return Some(out);
        }
        match &world.gateways.get(name)?.offered {
            Ok(offered) if offered.is_empty() || loaded::offers(offered, &tier.model.id) => None,
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
            // No list is no proof that a question would fail.
            Err(_) => None,
        }
    }

    fn place(&self, backend: &routing::BackendSettings) -> BackendPlace {
        BackendPlace {
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
    let url = http::below(base, "/v1/chat/completions").map_err(|why| AskError::Misconfigured {
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
            address: http::shown(base).unwrap_or_default(),
            var: backend.api_key_env.clone(),
            secrets: Redactor::knowing(key.iter().map(|key| key.expose_secret())),
            key,
        },
        url,
        forms: Mutex::default(),
    }))
}

struct OpenAi {
    endpoint: Endpoint,
    url: Url,
    /// The form that each model's server was seen to take, so that a refusal is paid for once.
    forms: Mutex<HashMap<String, Form>>,
}

/// What messages about a server are made from.
struct Endpoint {
    backend: String,
    /// As it may be shown.
    address: String,
    /// The variable that should hold the key.
    var: Option<String>,
    key: Option<SecretString>,
    /// Takes the key out of what the server says: some echo it.
    secrets: Redactor,
}

/// An HTTP answer, read to its end or to the cap.
struct ReceivedAnswer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    cut: bool,
    /// From the question to the end of the answer.
    took: Duration,
}

impl ReceivedAnswer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    /// A LiteLLM gateway answered, not whatever else listens there.
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
                return Err(Failure::free(AskError::Cancelled));
            }
            tokio::select! {
                biased;
                // Dropping the other branch closes the connection.
                () = stop.cancelled() => Err(Failure::unknown(AskError::Cancelled)),
                answered = tokio::time::timeout(ask.limit, self.converse(ask, tier, progress)) => {
                    answered.unwrap_or_else(|_| {
                        Err(Failure::unknown(AskError::timed_out(tier, ask.limit)))
                    })
                }
            }
        }
        .boxed()
    }
}

impl OpenAi {
    async fn converse(
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
        let got = self.post(&body, ask.limit).await?;
        let Some(plainer) = request::plainer(&got, first) else {
            return self.read(got, ask, tier, sent);
        };
        let (body, sent) = request::body(ask, &tier.model, plainer);
        progress(AskStep::AskedPlainly);
        let got = self.post(&body, ask.limit).await?;
        if got.status == 200 {
            self.forms
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(tier.model.id.clone(), plainer);
        }
        self.read(got, ask, tier, sent)
    }

    fn read(&self, got: ReceivedAnswer, ask: &Ask, tier: &Tier, sent: usize) -> AskResult {
        if got.status == 200 {
            answer::read(&self.endpoint, got, ask, tier, sent)
        } else {
            Err(refusal::failure(&self.endpoint, &got, ask, tier))
        }
    }

    async fn post(
        &self,
        body: &serde_json::Value,
        limit: Duration,
    ) -> Result<ReceivedAnswer, Box<Failure>> {
        let unreachable = |why: &Unreachable| AskError::Unreachable {
            backend: self.endpoint.backend.clone(),
            address: self.endpoint.address.clone(),
            why: why.to_string(),
        };
        let client = http::asking(&self.url).map_err(|why| Failure::free(unreachable(&why)))?;
        let mut request = client
            .post(self.url.clone())
            // The gateway gives up a little before we do: only then does it stop the model, too.
            .header(
                "x-litellm-timeout",
                format!("{:.1}", gateway_limit(limit).as_secs_f64()),
            )
            .json(body);
        if let Some(key) = &self.endpoint.key {
            let bearer = http::bearer(key).map_err(|why| {
                Failure::free(AskError::Misconfigured {
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
            let why = unreachable(&http::why(&error, limit));
            // Without a connection no model was asked.
            if error.is_connect() {
                Failure::free(why)
            } else {
                Failure::unknown(why)
            }
        })?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let (body, cut) = http::read(response, BODY_CAP)
            .await
            .map_err(|error| Failure::unknown(unreachable(&http::why(&error, limit))))?;
        Ok(ReceivedAnswer {
            status,
            headers,
            body,
            cut,
            took: began.elapsed(),
        })
    }
}

fn gateway_limit(limit: Duration) -> Duration {
    limit
        .saturating_sub((limit / 20).min(Duration::from_secs(2)))
        .max(Duration::from_millis(100))
}

/// The parts that the tests of the files below are made with.
#[cfg(test)]
fn got(status: u16, headers: &[(&str, &str)], body: &str) -> ReceivedAnswer {
    let headers = headers
        .iter()
        .map(|(name, value)| {
            let name =
                reqwest::header::HeaderName::from_bytes(name.as_bytes()).expect("a header's name");
            (name, value.parse().expect("a header's value"))
        })
        .collect();
    ReceivedAnswer {
        status,
        headers,
        body: body.as_bytes().to_vec(),
        cut: false,
        took: Duration::ZERO,
    }
}
