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
use super::samples;
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
            let one = async {
                let mut answers = self.ask_with_fallback_form(ask, tier, progress).await?;
                answers.swap_remove(0)
            };
            server::within_limits(ask, tier, stop, one).await
        }
        .boxed()
    }

    /// All in one request where the server can: it then reads the prompt once. What is missing is
    /// asked for one after another.
    fn ask_samples<'a>(
        &'a self,
        ask: &'a Ask,
        tier: &'a Tier,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(AskStep) + Send + Sync),
    ) -> BoxFuture<'a, Vec<AskResult>> {
        async move {
            let began = Instant::now();
            let mut answered = Vec::new();
            if ask.samples > 1 && self.form_of(&tier.model.id).several {
                let together = Ask {
                    limit: ask.samples_limit,
                    ..ask.clone()
                };
                let all = self.ask_with_fallback_form(&together, tier, progress);
                answered = match server::within_limits(&together, tier, stop, all).await {
                    Ok(answers) => answers,
                    Err(failure) => return vec![Err(failure)],
                };
            }
            let left = ask.samples_limit.saturating_sub(began.elapsed());
            let rest = Ask {
                samples_limit: left,
                ..ask.clone()
            };
            samples::one_by_one(self, &rest, tier, stop, progress, answered).await
        }
        .boxed()
    }
}

impl OpenAi {
    /// Asks in one request. Returns the answers it brought, at least one.
    async fn ask_with_fallback_form(
        &self,
        ask: &Ask,
        tier: &Tier,
        progress: &(dyn Fn(AskStep) + Send + Sync),
    ) -> Result<Vec<AskResult>, Box<Failure>> {
        let first = self.form_of(&tier.model.id);
        let mut form = first;
        progress(AskStep::Asked);
        let (mut response, mut sent) = self.post_in(form, ask, tier).await?;
        // Each simpler form leaves out one part more.
        while let Some(simpler) = request::simpler_form(&response, form, ask.samples) {
            if form.several == simpler.several {
                progress(AskStep::AskedWithoutFormat);
            }
            form = simpler;
            (response, sent) = self.post_in(form, ask, tier).await?;
        }
        if response.status != 200 {
            return Err(refusal::failure(&self.server, &response, ask, tier));
        }
        let answers = answer::read_all(&self.server, response, ask, tier, sent)?;
        // Some servers ignore the number that is asked for.
        form.several &= ask.samples <= 1 || answers.len() > 1;
        if form != first {
            self.forms
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(tier.model.id.clone(), form);
        }
        Ok(answers)
    }

    fn form_of(&self, model: &str) -> Form {
        let forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        forms.get(model).copied().unwrap_or_default()
    }

    async fn post_in(
        &self,
        form: Form,
        ask: &Ask,
        tier: &Tier,
    ) -> Result<(ServerResponse, usize), Box<Failure>> {
        let (body, sent) = request::body(ask, &tier.model, form);
        Ok((self.post(&body, ask.limit).await?, sent))
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
