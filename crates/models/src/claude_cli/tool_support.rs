//! Asks a model server whether it offers tools to a model. Without them an agent's run ends well and has
//! done nothing: llama.cpp drops tools that the chat template does not know, and says nothing.

use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};

use crate::http;

/// A server that answers later is asked by the run itself.
const TIMEOUT: Duration = Duration::from_secs(2);
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// `None` if the server does not say.
pub(super) async fn offers_tools(
    base_url: &str,
    key: Option<&SecretString>,
    model: &str,
) -> Option<bool> {
    let (llama_cpp, ollama) = tokio::join!(props(base_url, key), show(base_url, key, model));
    llama_cpp.or(ollama)
}

/// llama.cpp.
async fn props(base_url: &str, key: Option<&SecretString>) -> Option<bool> {
    let url = http::join_url(base_url, "/props").ok()?;
    let answer = http::get(&url, key, TIMEOUT, MAX_BODY_BYTES).await.ok()?;
    let props: Value = serde_json::from_slice(&answer.body).ok()?;
    props["chat_template_caps"]["supports_tools"].as_bool()
}

/// Ollama.
async fn show(base_url: &str, key: Option<&SecretString>, model: &str) -> Option<bool> {
    let url = http::join_url(base_url, "/api/show").ok()?;
    let body = json!({"model": model});
    let answer = http::post(&url, key, &body, TIMEOUT, MAX_BODY_BYTES)
        .await
        .ok()?;
    let shown: Value = serde_json::from_slice(&answer.body).ok()?;
    let capabilities = shown["capabilities"].as_array()?;
    Some(capabilities.iter().any(|can| can == "tools"))
}
