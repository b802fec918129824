//! Reads each server's model list: names, which models are loaded, and their context windows.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{ContextWindow, DiscoveredModel, DiscoveredServer, ServerConnection, ServerKind};
use crate::http;
use crate::model_list;
use crate::model_list::ModelListError;

/// Maximum number of models that are asked about one by one.
const MAX_MODELS: usize = 40;
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Models listed by `/v1/models`. vLLM adds the context window.
pub(super) fn listed(list: &Value) -> Vec<DiscoveredModel> {
    let entries = model_list::entries(list)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let read_entry = |entry: &Value| {
        let window = window_tokens(&entry["max_model_len"]).map(|tokens| ContextWindow {
            tokens,
            source: "`max_model_len`",
        });
        keep_text_model(model_list::text(entry, "id")?).map(|id| DiscoveredModel {
            id,
            loaded: false,
            window,
        })
    };
    entries
        .iter()
        .take(MAX_MODELS)
        .filter_map(read_entry)
        .collect()
}

pub(super) fn is_vllm(list: &Value) -> bool {
    let entries = model_list::entries(list)
        .map(Vec::as_slice)
        .unwrap_or_default();
    entries
        .iter()
        .any(|entry| entry["owned_by"] == "vllm" || entry["max_model_len"].is_u64())
}

pub(super) fn is_litellm(info: &Value) -> bool {
    model_list::entries(info).is_some_and(|entries| {
        entries
            .iter()
            .any(|entry| entry["litellm_params"].is_object())
    })
}

pub(super) async fn ollama(
    place: &ServerConnection<'_>,
) -> Result<Vec<DiscoveredModel>, ModelListError> {
    let (tags, running) = tokio::join!(place.json("/api/tags"), place.json("/api/ps"));
    let tags = tags?;
    let names: Vec<String> = model_list::entries(&tags)
        .into_iter()
        .flatten()
        .take(MAX_MODELS)
        .filter_map(|e| model_list::text(e, "name"))
        .collect();
    let find_running = |name: &str| {
        let running = running.as_ref().ok()?;
        model_list::entries(running)?
            .iter()
            .find(|e| model_list::text(e, "name").as_deref() == Some(name))
            .cloned()
    };
    let models = join_all(names.into_iter().map(|name| async {
        let shown = post(place, "/api/show", &json!({"model": name}), place.limit)
            .await
            .unwrap_or_default();
        let can_chat = shown["capabilities"]
            .as_array()
            .is_none_or(|all| all.iter().any(|c| c == "completion"));
        let running = find_running(&name);
        let window = match running
            .as_ref()
            .and_then(|model| window_tokens(&model["context_length"]))
        {
            Some(tokens) => Some(ContextWindow {
                tokens,
                source: "`/api/ps`",
            }),
            None => modelfile_window(&shown).map(|tokens| ContextWindow {
                tokens,
                source: "`num_ctx` of its Modelfile",
            }),
        };
        let id = keep_text_model(name).filter(|_| can_chat)?;
        Some(DiscoveredModel {
            id,
            loaded: running.is_some(),
            window,
        })
    }));
    Ok(models.await.into_iter().flatten().collect())
}

/// Parses `num_ctx    32768` from the Modelfile parameters.
fn modelfile_window(shown: &Value) -> Option<u32> {
    let line = shown["parameters"]
        .as_str()?
        .lines()
        .find_map(|line| line.trim().strip_prefix("num_ctx"))?;
    line.trim().parse().ok()
}

pub(super) async fn llama_swap(
    place: &ServerConnection<'_>,
    running: &Result<Value, ModelListError>,
) -> Result<Vec<DiscoveredModel>, ModelListError> {
    let mut models = listed(&place.json("/v1/models").await?);
    let running: Vec<String> = running
        .iter()
        .flat_map(|r| r["running"].as_array().cloned().unwrap_or_default())
        .filter(|entry| entry["state"] == "ready")
        .filter_map(|entry| model_list::text(&entry, "model"))
        .collect();
    for model in &mut models {
        model.loaded = running.contains(&model.id);
        if model.loaded {
            model.window = upstream_window(place, &model.id).await;
        }
    }
    Ok(models)
}

/// Call this only for a loaded model: the request would load it.
async fn upstream_window(place: &ServerConnection<'_>, id: &str) -> Option<ContextWindow> {
    let props = place.json(&format!("/upstream/{id}/props")).await.ok()?;
    props_window(&props)
}

fn props_window(props: &Value) -> Option<ContextWindow> {
    let tokens = window_tokens(&props["default_generation_settings"]["n_ctx"])?;
    Some(ContextWindow {
        tokens,
        source: "`/props`",
    })
}

pub(super) async fn llama_cpp(
    place: &ServerConnection<'_>,
    props: &Result<Value, ModelListError>,
) -> Result<Vec<DiscoveredModel>, ModelListError> {
    let window = props.as_ref().ok().and_then(props_window);
    let mut models = listed(&place.json("/v1/models").await?);
    for model in &mut models {
        model.loaded = true;
        model.window.clone_from(&window);
    }
    Ok(models)
}

pub(super) fn lm_studio(
    list: &Result<Value, ModelListError>,
) -> Result<Vec<DiscoveredModel>, ModelListError> {
    let list = list.as_ref().map_err(Clone::clone)?;
    let read_entry = |entry: &Value| {
        if entry["type"]
            .as_str()
            .is_some_and(|kind| kind.contains("embed"))
        {
            return None;
        }
        let loaded = entry["state"] == "loaded";
        let window = window_tokens(&entry["loaded_context_length"]).filter(|_| loaded);
        let window = window.map(|tokens| ContextWindow {
            tokens,
            source: "`loaded_context_length`",
        });
        keep_text_model(model_list::text(entry, "id")?).map(|id| DiscoveredModel {
            id,
            loaded,
            window,
        })
    };
    Ok(model_list::entries(list)
        .into_iter()
        .flatten()
        .take(MAX_MODELS)
        .filter_map(read_entry)
        .collect())
}

pub(super) async fn litellm(
    place: &ServerConnection<'_>,
) -> Result<Vec<DiscoveredModel>, ModelListError> {
    let (list, info) = tokio::join!(place.json("/v1/models"), place.json("/model/info"));
    let mut models = listed(&list?);
    let info = info.unwrap_or_default();
    for entry in model_list::entries(&info).into_iter().flatten() {
        let window = window_tokens(&entry["model_info"]["max_input_tokens"]);
        let name = model_list::text(entry, "model_name");
        for model in models
            .iter_mut()
            .filter(|model| Some(&model.id) == name.as_ref())
        {
            model.window = window.map(|tokens| ContextWindow {
                tokens,
                source: "`max_input_tokens`",
            });
        }
    }
    // Skip patterns such as `openai/*`.
    models.retain(|model| !model.id.contains('*'));
    Ok(models)
}

/// Asks one short question, which loads the model, and then reads its context window. An error says
/// why there was no answer.
pub async fn canary(
    server: &DiscoveredServer,
    id: &str,
    env: &crate::Env,
    limit: Duration,
) -> Result<Option<ContextWindow>, String> {
    let key = env
        .secret(super::GATEWAY_KEY_VAR)
        .filter(|_| server.kind == ServerKind::LiteLlm);
    let place = ServerConnection {
        address: &server.address,
        key,
        limit,
    };
    let question = json!({
        "model": id, "max_tokens": 64, "stream": false,
        "messages": [{"role": "user", "content": "Answer with the one word: ready"}],
    });
    let answer = post(&place, "/v1/chat/completions", &question, limit).await?;
    if answer["choices"].as_array().is_none_or(Vec::is_empty) {
        return Err("its answer holds no choice".into());
    }
    Ok(match server.kind {
        ServerKind::Ollama => {
            let running = place.json("/api/ps").await.unwrap_or_default();
            let is_asked = |e: &&Value| model_list::text(e, "name").is_some_and(|name| name == id);
            let entry = model_list::entries(&running).and_then(|list| list.iter().find(is_asked));
            let tokens = entry.and_then(|entry| window_tokens(&entry["context_length"]));
            tokens.map(|tokens| ContextWindow {
                tokens,
                source: "`/api/ps`, after a question",
            })
        }
        ServerKind::LlamaSwap => upstream_window(&place, id).await,
        ServerKind::LmStudio => {
            let models = lm_studio(&place.json("/api/v0/models").await).unwrap_or_default();
            models
                .into_iter()
                .find(|model| model.id == id)
                .and_then(|model| model.window)
        }
        ServerKind::LlamaCpp | ServerKind::Vllm | ServerKind::LiteLlm | ServerKind::Other => None,
    })
}

/// Makes a variant of an Ollama model with another context window. The weights are shared.
pub async fn create_wide(
    server: &DiscoveredServer,
    id: &str,
    name: &str,
    tokens: u32,
    limit: Duration,
) -> Result<(), String> {
    let place = ServerConnection {
        address: &server.address,
        key: None,
        limit,
    };
    let body = json!({
        "model": name, "from": id, "parameters": {"num_ctx": tokens}, "stream": false,
    });
    let answer = post(&place, "/api/create", &body, limit).await?;
    match answer["status"].as_str() {
        Some("success") => Ok(()),
        _ => Err(String::from("`/api/create` did not report success")),
    }
}

async fn post(
    place: &ServerConnection<'_>,
    path: &str,
    body: &Value,
    limit: Duration,
) -> Result<Value, String> {
    let url = http::join_url(place.address, path).map_err(|why| why.to_string())?;
    let answer = http::post(&url, place.key.as_ref(), body, limit, MAX_BODY_BYTES)
        .await
        .map_err(|why| why.to_string())?;
    if answer.status != 200 {
        return Err(format!("`{path}` answered {}", answer.status));
    }
    serde_json::from_slice(&answer.body).map_err(|_| format!("`{path}` did not answer with JSON"))
}

/// Reads a window size. Values too small to be usable or larger than any model's are ignored.
fn window_tokens(value: &Value) -> Option<u32> {
    value
        .as_u64()
        .filter(|n| (256..=100_000_000).contains(n))
        .and_then(|n| u32::try_from(n).ok())
}

/// Filters out models that do not answer in text. On most servers only their names tell.
fn keep_text_model(id: String) -> Option<String> {
    const NON_TEXT: &[&str] = &[
        "embed",
        "rerank",
        "whisper",
        "tts",
        "bge-",
        "stable-diffusion",
        "clip",
    ];
    let lower = id.to_lowercase();
    (!NON_TEXT.iter().any(|word| lower.contains(word))).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_windows_are_read_and_nonsense_ignored() {
        let shown = json!({"parameters": "stop  \"<|im_end|>\"\nnum_ctx                        32768\ntemperature 0.7"});
        assert_eq!(modelfile_window(&shown), Some(32_768));
        assert_eq!(
            modelfile_window(&json!({"parameters": "num_ctx many"})),
            None
        );
        assert_eq!(window_tokens(&json!(-5)), None);
        assert_eq!(window_tokens(&json!(1_u64 << 60)), None);
        let vllm = json!({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 4096}, {"id": "bge-m3"}]});
        assert!(is_vllm(&vllm));
        assert_eq!(listed(&vllm).len(), 1, "what embeds is no worker");
        assert_eq!(
            listed(&vllm)[0].window.as_ref().map(|w| w.tokens),
            Some(4096)
        );
    }
}
