//! Classifies responses with a status other than 200. LiteLLM's error types are misleading (a
//! timeout is an `invalid_request_error`), so the status decides first, then the class named in the
//! message, then known phrases. Phrases are matched as parts, because messages grow longer when
//! fallbacks are configured.

use jiff::Timestamp;
use serde_json::Value;

use super::{MESSAGES, Server, ServerResponse, retry_after};
use crate::remote_text::sanitize;
use crate::{Ask, AskError, Failure, FailureBlame, Usage};
use supervisor_settings::Tier;

pub(crate) fn failure(
    server: &Server,
    response: &ServerResponse,
    ask: &Ask,
    tier: &Tier,
) -> Box<Failure> {
    let why = error(server, response, ask, tier);
    // A rejected request cost nothing; a timeout or crash may have happened late.
    let usage = if response.status < 500 && response.status != 408 {
        Usage::ZERO
    } else {
        Usage::default()
    };
    Box::new(Failure {
        why,
        usage,
        notes: Vec::new(),
        answer: String::new(),
    })
}

pub(crate) fn error(
    server: &Server,
    response: &ServerResponse,
    ask: &Ask,
    tier: &Tier,
) -> AskError {
    let (backend, model) = (server.backend.clone(), tier.name.0.clone());
    let body = Body::of(response);
    let detail = sanitize(&body.message, &server.redactor);
    let retry_after = retry_after::read(&response.headers, Timestamp::now());
    let unknown_model = |detail| AskError::UnknownModel {
        backend: backend.clone(),
        model: model.clone(),
        id: tier.model.id.clone(),
        detail,
    };
    let key_refused = |detail| match &server.key {
        Some(_) => AskError::KeyRefused {
            backend: backend.clone(),
            var: server.var.clone(),
            detail,
        },
        None => AskError::NoKey {
            backend: backend.clone(),
            var: server.var.clone(),
            detail,
        },
    };
    match response.status {
        300..=399 => {
            let to = response.header("location").and_then(crate::http::displayable).unwrap_or_default();
            let detail = format!("it redirects to `{to}`, and redirects are not followed");
            AskError::WrongAddress { backend, address: server.address.clone(), detail }
        }
        // LiteLLM without a database answers a wrong key with 400.
        _ if body.kind == "no_db_connection" => key_refused(detail),
        _ if body.kind == "budget_exceeded" || body.mentions(&["budget has been exceeded", "ExceededBudget"]) => {
            AskError::NoCredit { backend, detail }
        }
        400 | 413 | 422 => {
            if response.status == 413 || body.mentions(TOO_LONG) {
                AskError::ContextTooLong { model, detail }
            } else if body.mentions(NO_SUCH_MODEL) {
                unknown_model(detail)
            } else if body.mentions(SPENT) {
                AskError::NoCredit { backend, detail }
            } else {
                AskError::Unsupported { model, detail }
            }
        }
        // The gateway's own rejection has the type `auth_error`; this one comes from the server
        // behind it.
        401 if body.kind == "authentication_error" && body.mentions(&["litellm.AuthenticationError"]) => {
            AskError::UpstreamKeyRefused { backend, detail }
        }
        401 | 403 => key_refused(detail),
        402 => AskError::NoCredit { backend, detail },
        404 if body.is_error => unknown_model(detail),
        404 | 405 => AskError::WrongAddress {
            backend,
            address: server.address.clone(),
            detail: format!("there is no `{}`", server.path),
        },
        // LiteLLM enforces the limit we sent. A server that gives up much earlier has its own,
        // shorter limit.
        408 if response.took >= super::gateway_limit(ask.limit) / 2 => AskError::timed_out(tier, response.took.max(ask.limit)),
        408 => AskError::GaveUpEarly { backend, model, waited: response.took, detail },
        407 => AskError::Unreachable { backend, address: server.address.clone(), why: "the proxy wants a login".into() },
        429 if body.kind == "all_deployments_in_cooldown" || body.code == "concurrency_limit" => {
            AskError::Crowded { model, detail, retry_after }
        }
        // The Messages API names a time to wait, or the limit that is used up, unless the spending cap of
        // the month is reached.
        429 if retry_after.is_none() && body.kind == "rate_limit_error" && server.path == MESSAGES => {
            AskError::NoCredit { backend, detail }
        }
        429 => AskError::RateLimited { backend, detail, retry_after },
        // LiteLLM without the `prisma` package answers a missing key this way.
        500 if server.key.is_none() && !body.is_error && !response.is_from_litellm() && body.mentions(&["Internal Server Error"]) => {
            AskError::NoKey {
                backend,
                var: server.var.clone(),
                detail: "it failed with status 500, as LiteLLM without `prisma` does for a request without a key".into(),
            }
        }
        503 if body.mentions(&["Loading model"]) => AskError::Loading { model, retry_after },
        // Something answered, so its other models may be fine. A dead server returns no status.
        status => AskError::ServerFailed { backend, status, detail, blame: FailureBlame::Model },
    }
}

const TOO_LONG: &[&str] = &[
    "ContextWindowExceededError",
    "exceed_context_size",
    "context length",
    "context_length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "exceeds the available context",
];

const SPENT: &[&str] = &[
    "credit balance is too low",
    "spend limit",
    "spending limit",
    "usage limits",
    "monthly limit",
];

const NO_SUCH_MODEL: &[&str] = &[
    "no healthy deployments for this model",
    "Invalid model name",
    "model not found",
    "does not exist",
];

/// An error in one of the common formats: `{"error": {…}}`, `{"error": "…"}`, `{"detail": …}`, or
/// text.
#[derive(Default)]
struct Body {
    message: String,
    kind: String,
    code: String,
    /// True if the body is JSON with an error, so something that knows the path has answered.
    is_error: bool,
}

impl Body {
    fn of(response: &ServerResponse) -> Self {
        let text = String::from_utf8_lossy(&response.body);
        let Ok(body) = serde_json::from_str::<Value>(&text) else {
            return Self {
                message: text.into_owned(),
                ..Self::default()
            };
        };
        let error = &body["error"];
        match error {
            Value::Object(_) => Self {
                message: as_text(&error["message"]),
                kind: as_text(&error["type"]),
                code: as_text(&error["code"]),
                is_error: true,
            },
            Value::String(message) => Self {
                message: message.clone(),
                is_error: true,
                ..Self::default()
            },
            _ => {
                let detail = &body["detail"];
                let message = if detail.is_null() {
                    text.into_owned()
                } else {
                    as_text(detail)
                };
                // FastAPI returns `{"detail":"Not Found"}` for an unknown path.
                Self {
                    is_error: !detail.is_null() && message != "Not Found",
                    message,
                    ..Self::default()
                }
            }
        }
    }

    fn mentions(&self, words: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        words
            .iter()
            .any(|word| message.contains(&word.to_lowercase()))
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
