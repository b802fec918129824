//! Backend `openai`: any server with an OpenAI-compatible `/v1/chat/completions`, such as LiteLLM,
//! llama.cpp, Ollama or vLLM. Asks without streaming, and checks both status and body.

mod answer;
pub(super) mod fuzz;
mod request;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt as _};
use reqwest::header::HeaderName;
use tokio_util::sync::CancellationToken;

use super::availability::{
    Availability, BackendStatus, Gateway, ProbeConfig, TierOutage, key_hint,
};
use super::model_list;
use super::probe::{self, AddressRole};
use super::server::{self, Server, ServerResponse, refusal};
use super::settle;
use super::{
    Ask, AskError, AskResult, AskStep, Backend, BackendFacts, BackendLocation, Edits, Env, Failure,
    SharedResources,
};
use supervisor_settings as routing;
use supervisor_settings::Tier;

use request::Form;

/// The kind `openai`.
pub(super) struct OpenaiKind;

impl BackendFacts for OpenaiKind {
    fn connect(
        &self,
        backend: &routing::BackendSettings,
        shared: &SharedResources,
    ) -> Result<Arc<dyn Backend>, AskError> {
        Ok(Arc::new(OpenAi {
            server: Server::connect(backend, shared, "/v1/chat/completions", "")?,
            forms: Mutex::default(),
        }))
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

    fn missing<'a>(
        &'a self,
        backend: &'a routing::BackendSettings,
        _: &'a SharedResources,
    ) -> BoxFuture<'a, Option<TierOutage>> {
        settle::refused_here(backend).boxed()
    }

    fn location(&self, backend: &routing::BackendSettings) -> BackendLocation {
        BackendLocation {
            verb: "asks",
            key: "base_url",
            value: backend.base_url.clone(),
        }
    }
}

struct OpenAi {
    server: Server,
    /// The request form each model's server accepted, so that a rejected form is tried only once.
    forms: Mutex<HashMap<String, Form>>,
}

impl Backend for OpenAi {
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
        async move {
            server::within_limits(
                ask,
                tier,
                stop,
                self.ask_with_fallback_form(ask, tier, progress),
            )
            .await
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

    fn read(&self, response: ServerResponse, ask: &Ask, tier: &Tier, sent: usize) -> AskResult {
        if response.status == 200 {
            answer::read(&self.server, response, ask, tier, sent)
        } else {
            Err(refusal::failure(&self.server, &response, ask, tier))
        }
    }

    async fn post(
        &self,
        body: &serde_json::Value,
        limit: Duration,
    ) -> Result<ServerResponse, Box<Failure>> {
        let began = Instant::now();
        let mut headers = self.server.bearer()?;
        // The gateway must give up a little before we do: only then does it stop the model as well.
        let gateway_limit = format!("{:.1}", server::gateway_limit(limit).as_secs_f64());
        headers.extend(
            gateway_limit
                .parse()
                .map(|value| (HeaderName::from_static("x-litellm-timeout"), value)),
        );
        let response = self.server.send(headers, body, limit).await?;
        self.server.read(response, began, limit).await
    }
}
