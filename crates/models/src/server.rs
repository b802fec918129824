//! What the backends `openai` and `anthropic` have in common: a server with an address and a key, how
//! a request is sent to it, and how its refusals are read. The key is used only here and in headers.

pub(crate) mod refusal;
mod retry_after;

use std::time::{Duration, Instant};

use reqwest::Response;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::sync::CancellationToken;

use super::http::{self, Unreachable, Url};
use super::{Ask, AskError, Failure, SharedResources};
use supervisor_settings as routing;
use supervisor_settings::Tier;
use supervisor_text::redact::Redactor;
use supervisor_text::words;

/// Larger responses are rejected.
pub(crate) const MAX_BODY_BYTES: usize = super::extract::MAX_BYTES;
/// Maximum bytes of an answer that are kept.
const MAX_RAW_BYTES: usize = 64 * 1024;
/// The path of Anthropic's API.
pub(crate) const MESSAGES: &str = "/v1/messages";

/// A server, and the facts about it for messages.
pub(crate) struct Server {
    pub(crate) backend: String,
    /// Safe to show.
    pub(crate) address: String,
    pub(crate) url: Url,
    pub(crate) path: &'static str,
    /// The variable that should hold the key.
    pub(crate) var: Option<String>,
    pub(crate) key: Option<SecretString>,
    /// Removes the key from the server's messages: some servers echo it.
    pub(crate) redactor: Redactor,
}

impl Server {
    /// Opens no connection. `default_base` is used if no `base_url` is set.
    pub(crate) fn connect(
        backend: &routing::BackendSettings,
        shared: &SharedResources,
        path: &'static str,
        default_base: &str,
    ) -> Result<Self, AskError> {
        let base = backend.base_url.as_deref().unwrap_or(default_base);
        let url = http::join_url(base, path).map_err(|why| AskError::Misconfigured {
            setting: format!("backends.{}.base_url", backend.name),
            why: why.to_string(),
        })?;
        let var = backend.api_key_env.clone();
        let key = var.as_deref().and_then(|var| shared.env.secret(var));
        Ok(Self {
            backend: backend.name.clone(),
            address: http::displayable(base).unwrap_or_default(),
            url,
            path,
            var,
            redactor: Redactor::with_values(key.iter().map(|key| key.expose_secret())),
            key,
        })
    }

    /// A server that is never asked, for fuzz targets and tests.
    pub(crate) fn unconnected() -> Self {
        Self {
            backend: "gateway".into(),
            address: "http://gateway".into(),
            url: Url::parse("http://gateway").expect("a URL"),
            path: "/",
            var: None,
            key: None,
            redactor: Redactor::default(),
        }
    }

    /// The key as a bearer header.
    pub(crate) fn bearer(&self) -> Result<HeaderMap, Box<Failure>> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.key {
            let bearer = http::bearer(key).map_err(|why| {
                Failure::without_cost(AskError::Misconfigured {
                    setting: self
                        .var
                        .as_ref()
                        .map_or_else(String::new, |var| format!("${var}")),
                    why: why.to_string(),
                })
            })?;
            headers.insert(AUTHORIZATION, bearer);
        }
        Ok(headers)
    }

    /// Posts a body and returns once the headers of the response have arrived.
    pub(crate) async fn send(
        &self,
        headers: HeaderMap,
        body: &serde_json::Value,
        limit: Duration,
    ) -> Result<Response, Box<Failure>> {
        let client = http::pooled_client(&self.url)
            .map_err(|why| Failure::without_cost(self.unreachable(&why)))?;
        let request = client.post(self.url.clone()).headers(headers).json(body);
        request.send().await.map_err(|error| {
            let why = self.unreachable(&http::classify(&error, limit));
            // Without a connection no model was asked.
            if error.is_connect() {
                Failure::without_cost(why)
            } else {
                Failure::with_unknown_cost(why)
            }
        })
    }

    /// Reads a response to its end or to the size limit.
    pub(crate) async fn read(
        &self,
        response: Response,
        began: Instant,
        limit: Duration,
    ) -> Result<ServerResponse, Box<Failure>> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let (body, truncated) = http::read_capped(response, MAX_BODY_BYTES)
            .await
            .map_err(|error| self.broken_off(&error, limit))?;
        Ok(ServerResponse {
            status,
            headers,
            body,
            truncated,
            took: began.elapsed(),
        })
    }

    /// The connection broke while a model may have been working.
    pub(crate) fn broken_off(&self, error: &reqwest::Error, limit: Duration) -> Box<Failure> {
        Failure::with_unknown_cost(self.unreachable(&http::classify(error, limit)))
    }

    fn unreachable(&self, why: &Unreachable) -> AskError {
        AskError::Unreachable {
            backend: self.backend.clone(),
            address: self.address.clone(),
            why: why.to_string(),
        }
    }

    /// An answer as it is kept for the log: shortened, without the key.
    pub(crate) fn keep(&self, text: &str) -> String {
        self.redactor
            .redact(&words::cut_middle(text, MAX_RAW_BYTES))
            .into_owned()
    }

    pub(crate) fn not_json(
        &self,
        body: &[u8],
        malformed: impl Fn(String) -> AskError,
    ) -> Box<Failure> {
        let start = String::from_utf8_lossy(&body[..body.len().min(200)])
            .trim_start()
            .to_lowercase();
        if start.starts_with("<!doctype") || start.starts_with("<html") {
            return Failure::without_cost(AskError::WrongAddress {
                backend: self.backend.clone(),
                address: self.address.clone(),
                detail: "it answers with a web page".into(),
            });
        }
        Failure::with_unknown_cost(malformed(if start.is_empty() {
            "the body is empty".into()
        } else {
            "the body is not JSON".into()
        }))
        .with_answer(self.keep(&String::from_utf8_lossy(body)))
    }
}

/// An HTTP response, read to its end or to the size limit.
pub(crate) struct ServerResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) truncated: bool,
    /// From the request to the end of the response.
    pub(crate) took: Duration,
}

impl ServerResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    /// True if a LiteLLM gateway answered.
    pub(crate) fn is_from_litellm(&self) -> bool {
        self.headers
            .keys()
            .any(|name| name.as_str().starts_with("x-litellm-"))
    }

    /// The cost that a LiteLLM gateway reports. It omits the header when the cost is zero.
    pub(crate) fn gateway_cost(&self) -> Option<f64> {
        let header = |name| {
            self.header(name)?
                .parse::<f64>()
                .ok()
                .filter(|usd| usd.is_finite() && *usd >= 0.0)
        };
        header("x-litellm-response-cost").or_else(|| header("x-litellm-response-cost-original"))
    }
}

/// Asks within the limit of the question. Dropping `answer` closes the connection.
pub(crate) async fn within_limits<T>(
    ask: &Ask,
    tier: &Tier,
    stop: &CancellationToken,
    answer: impl Future<Output = Result<T, Box<Failure>>>,
) -> Result<T, Box<Failure>> {
    if stop.is_cancelled() {
        return Err(Failure::without_cost(AskError::Cancelled));
    }
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(Failure::with_unknown_cost(AskError::Cancelled)),
        answered = tokio::time::timeout(ask.limit, answer) => answered.unwrap_or_else(|_| {
            Err(Failure::with_unknown_cost(AskError::timed_out(tier, ask.limit)))
        }),
    }
}

/// The limit that a gateway gets: a little less than ours.
pub(crate) fn gateway_limit(limit: Duration) -> Duration {
    limit
        .saturating_sub((limit / 20).min(Duration::from_secs(2)))
        .max(Duration::from_millis(100))
}

/// True for far fewer tokens than the text can have, or exactly a full window for a text that needs
/// more. Prose and code take 3 to 5 bytes per token, deeply indented code up to 7.
pub(crate) fn is_prompt_truncated(sent_bytes: usize, seen_tokens: u64) -> bool {
    let sent = sent_bytes as u64;
    let full_window = |n: u64| n >= 2048 && (n.is_power_of_two() || (n + 1).is_power_of_two());
    sent > 4096
        && (sent > seen_tokens.saturating_mul(9)
            || (full_window(seen_tokens) && sent > seen_tokens * 5))
}

/// Builds a response for the tests of other modules.
#[cfg(test)]
pub(crate) fn response(status: u16, headers: &[(&str, &str)], body: &str) -> ServerResponse {
    let headers = headers
        .iter()
        .map(|(name, value)| {
            let name =
                reqwest::header::HeaderName::from_bytes(name.as_bytes()).expect("a header's name");
            (name, value.parse().expect("a header's value"))
        })
        .collect();
    ServerResponse {
        status,
        headers,
        body: body.as_bytes().to_vec(),
        truncated: false,
        took: Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_is_truncated_only_beyond_any_tokenizer() {
        for (sent, seen, cut) in [
            (40_000, 4095, true), // Ollama's default window
            (40_000, 4096, true),
            (24_000, 4096, true),
            (24_000, 4000, false), // six bytes a token: indented code
            (16_000, 4096, false), // fits by chance
            (400_000, 8000, true),
            (3_000, 100, false), // too short to tell
        ] {
            assert_eq!(
                is_prompt_truncated(sent, seen),
                cut,
                "{sent} bytes, {seen} tokens"
            );
        }
    }
}
