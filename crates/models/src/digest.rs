//! Finds out which weights a server has under a model's name. A passport is valid only for these
//! weights.

use std::time::Duration;

use serde_json::Value;

use super::{Env, http};
use supervisor_settings::{BackendKind, Tier};

const TIMEOUT: Duration = Duration::from_secs(3);
const MAX_BODY_BYTES: usize = 4 << 20;

/// The digest reported by the server: Ollama by model name, llama.cpp by the loaded file. `None` if
/// the server does not report one.
pub async fn digest_of(tier: &Tier, env: &Env) -> Option<String> {
    if tier.backend.kind != BackendKind::Openai {
        return None;
    }
    let id = tier.model.id.as_str();
    // Gateways put the server's name before their own model names.
    let short = id.rsplit('/').next().unwrap_or(id);
    if let Some(tags) = fetch(tier, env, "/api/tags").await {
        let is_requested = |name: &str| {
            [id, short]
                .iter()
                .any(|known| name == *known || name == format!("{known}:latest"))
        };
        let entry = tags["models"]
            .as_array()?
            .iter()
            .find(|model| model["name"].as_str().is_some_and(is_requested))?;
        return entry["digest"].as_str().map(str::to_owned);
    }
    let props = fetch(tier, env, "/props").await?;
    let path = props["model_path"].as_str()?;
    let name = path.rsplit('/').next().unwrap_or(path);
    Some(format!(
        "{name}@{}",
        &blake3::hash(path.as_bytes()).to_hex()[..8]
    ))
}

async fn fetch(tier: &Tier, env: &Env, path: &str) -> Option<Value> {
    let url = http::join_url(tier.backend.base_url.as_deref()?, path).ok()?;
    let key = tier
        .backend
        .api_key_env
        .as_deref()
        .and_then(|name| env.secret(name));
    let answer = http::get(&url, key.as_ref(), TIMEOUT, MAX_BODY_BYTES)
        .await
        .ok()?;
    (answer.status == 200).then(|| serde_json::from_slice(&answer.body).ok())?
}
