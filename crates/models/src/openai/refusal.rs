//! What an answer other than 200 means. LiteLLM's error types mislead (a time-out is an `invalid_request_error`), so
//! the status decides first, then the class named in the message, then known words. Prefixes, not whole texts: with
//! fallbacks configured the messages grow tails.

use jiff::Timestamp;
use serde_json::Value;

use super::{Endpoint, ReceivedAnswer, retry_after};
use crate::said::said;
use crate::{Ask, AskError, Failure, FailureBlame, Usage};
use supervisor_settings::Tier;

pub(super) fn failure(at: &Endpoint, got: &ReceivedAnswer, ask: &Ask, tier: &Tier) -> Box<Failure> {
    let why = error(at, got, ask, tier);
    // What was refused at the door cost nothing; a time-out or a crash may have come late.
    let usage = if got.status < 500 && got.status != 408 {
        Usage::NOTHING
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

pub(super) fn error(at: &Endpoint, got: &ReceivedAnswer, ask: &Ask, tier: &Tier) -> AskError {
    let (backend, model) = (at.backend.clone(), tier.name.0.clone());
    let body = Body::of(got);
    let said = said(&body.message, &at.secrets);
    let retry_after = retry_after::read(&got.headers, Timestamp::now());
    let unknown_model = |said| AskError::UnknownModel {
        backend: backend.clone(),
        model: model.clone(),
        id: tier.model.id.clone(),
        said,
    };
    let key_refused = |said| match &at.key {
        Some(_) => AskError::KeyRefused {
            backend: backend.clone(),
            var: at.var.clone(),
            said,
        },
        None => AskError::NoKey {
            backend: backend.clone(),
            var: at.var.clone(),
            said,
        },
    };
    match got.status {
        300..=399 => {
            let to = got.header("location").and_then(crate::http::shown).unwrap_or_default();
            let said = format!("it redirects to `{to}`, and redirects are not followed");
            AskError::WrongAddress { backend, address: at.address.clone(), said }
        }
        // LiteLLM without a database answers a wrong key with 400.
        _ if body.kind == "no_db_connection" => key_refused(said),
        _ if body.kind == "budget_exceeded" || body.has(&["budget has been exceeded", "ExceededBudget"]) => {
            AskError::NoCredit { backend, said }
        }
        400 | 413 | 422 => {
            if got.status == 413 || body.has(TOO_LONG) {
                AskError::ContextTooLong { model, said }
            } else if body.has(NO_SUCH_MODEL) {
                unknown_model(said)
            } else if body.has(&["credit balance is too low"]) {
                AskError::NoCredit { backend, said }
            } else {
                AskError::Unsupported { model, said }
            }
        }
        // The gateway's own refusal has the type `auth_error`; this one comes from behind it.
        401 if body.kind == "authentication_error" && body.has(&["litellm.AuthenticationError"]) => {
            AskError::UpstreamKeyRefused { backend, said }
        }
        401 | 403 => key_refused(said),
        402 => AskError::NoCredit { backend, said },
        404 if body.is_error => unknown_model(said),
        404 | 405 => AskError::WrongAddress {
            backend,
            address: at.address.clone(),
            said: "there is no `/v1/chat/completions`".into(),
        },
        // LiteLLM ends what takes longer than it was told; a server with a shorter patience is another thing.
        408 if got.took >= super::gateway_limit(ask.limit) / 2 => AskError::timed_out(tier, got.took.max(ask.limit)),
        408 => AskError::GaveUpEarly { backend, model, waited: got.took, said },
        407 => AskError::Unreachable { backend, address: at.address.clone(), why: "the proxy wants a login".into() },
        429 if body.kind == "all_deployments_in_cooldown" || body.code == "concurrency_limit" => {
            AskError::Crowded { model, said, retry_after }
        }
        429 => AskError::RateLimited { backend, said, retry_after },
        // LiteLLM without the `prisma` package answers a missing key like this.
        500 if at.key.is_none() && !body.is_error && !got.is_from_litellm() && body.has(&["Internal Server Error"]) => {
            AskError::NoKey {
                backend,
                var: at.var.clone(),
                said: "it failed with status 500, as LiteLLM without `prisma` does for a request without a key".into(),
            }
        }
        503 if body.has(&["Loading model"]) => AskError::Loading { model, retry_after },
        // Something answered, so its other models may be fine; one that is dead altogether gives no status.
        status => AskError::ServerFailed { backend, status, said, blame: FailureBlame::Model },
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

const NO_SUCH_MODEL: &[&str] = &[
    "no healthy deployments for this model",
    "Invalid model name",
    "model not found",
    "does not exist",
];

/// An error as the common servers write it: `{"error": {…}}`, `{"error": "…"}`, `{"detail": …}`, or text.
#[derive(Default)]
struct Body {
    message: String,
    kind: String,
    code: String,
    /// It is JSON that says what went wrong, so something that knows the path has answered.
    is_error: bool,
}

impl Body {
    fn of(got: &ReceivedAnswer) -> Self {
        let text = String::from_utf8_lossy(&got.body);
        let Ok(body) = serde_json::from_str::<Value>(&text) else {
            return Self {
                message: text.into_owned(),
                ..Self::default()
            };
        };
        let error = &body["error"];
        match error {
            Value::Object(_) => Self {
                message: word(&error["message"]),
                kind: word(&error["type"]),
                code: word(&error["code"]),
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
                    word(detail)
                };
                // FastAPI says `{"detail":"Not Found"}` for a path it does not have.
                Self {
                    is_error: !detail.is_null() && message != "Not Found",
                    message,
                    ..Self::default()
                }
            }
        }
    }

    fn has(&self, words: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        words
            .iter()
            .any(|word| message.contains(&word.to_lowercase()))
    }
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
