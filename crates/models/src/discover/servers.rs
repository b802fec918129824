//! What each kind of server says about its models: names, which are loaded, and the window they are really given.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{FoundModel, FoundServer, FoundWindow, ServerKind, ServerPlace};
use crate::http;
use crate::loaded;
use crate::loaded::LookError;

/// More models than this are not asked about one by one.
const MOST: usize = 40;
const CAP: usize = 1024 * 1024;

/// Names as `/v1/models` lists them; vLLM adds the window.
pub(super) fn listed(list: &Value) -> Vec<FoundModel> {
    let entries = loaded::list(list).map(Vec::as_slice).unwrap_or_default();
    let one = |entry: &Value| {
        let window = tokens(&entry["max_model_len"]).map(|tokens| FoundWindow {
            tokens,
            told_by: "`max_model_len`",
        });
        text_model(loaded::text(entry, "id")?).map(|id| FoundModel {
            id,
            loaded: false,
            window,
        })
    };
    entries.iter().take(MOST).filter_map(one).collect()
}

pub(super) fn is_vllm(list: &Value) -> bool {
    let entries = loaded::list(list).map(Vec::as_slice).unwrap_or_default();
    entries
        .iter()
        .any(|entry| entry["owned_by"] == "vllm" || entry["max_model_len"].is_u64())
}

pub(super) fn is_litellm(info: &Value) -> bool {
    loaded::list(info).is_some_and(|entries| {
        entries
            .iter()
            .any(|entry| entry["litellm_params"].is_object())
    })
}

pub(super) async fn ollama(place: &ServerPlace<'_>) -> Result<Vec<FoundModel>, LookError> {
    let (tags, running) = tokio::join!(place.json("/api/tags"), place.json("/api/ps"));
    let tags = tags?;
    let names: Vec<String> = loaded::list(&tags)
        .into_iter()
        .flatten()
        .take(MOST)
        .filter_map(|e| loaded::text(e, "name"))
        .collect();
    let now = |name: &str| {
        let running = running.as_ref().ok()?;
        loaded::list(running)?
            .iter()
            .find(|e| loaded::text(e, "name").as_deref() == Some(name))
            .cloned()
    };
    let models = join_all(names.into_iter().map(|name| async {
        let shown = post(place, "/api/show", &json!({"model": name}), place.limit)
            .await
            .unwrap_or_default();
        let can_chat = shown["capabilities"]
            .as_array()
            .is_none_or(|all| all.iter().any(|c| c == "completion"));
        let running = now(&name);
        let window = match running
            .as_ref()
            .and_then(|model| tokens(&model["context_length"]))
        {
            Some(tokens) => Some(FoundWindow {
                tokens,
                told_by: "`/api/ps`: so it is loaded now",
            }),
            None => modelfile_window(&shown).map(|tokens| FoundWindow {
                tokens,
                told_by: "`num_ctx` of its Modelfile",
            }),
        };
        let id = text_model(name).filter(|_| can_chat)?;
        Some(FoundModel {
            id,
            loaded: running.is_some(),
            window,
        })
    }));
    Ok(models.await.into_iter().flatten().collect())
}

/// `num_ctx    32768`, among other parameters.
fn modelfile_window(shown: &Value) -> Option<u32> {
    let line = shown["parameters"]
        .as_str()?
        .lines()
        .find_map(|line| line.trim().strip_prefix("num_ctx"))?;
    line.trim().parse().ok()
}

pub(super) async fn llama_swap(
    place: &ServerPlace<'_>,
    running: &Result<Value, LookError>,
) -> Result<Vec<FoundModel>, LookError> {
    let mut models = listed(&place.json("/v1/models").await?);
    let running: Vec<String> = running
        .iter()
        .flat_map(|r| r["running"].as_array().cloned().unwrap_or_default())
        .filter(|entry| entry["state"] == "ready")
        .filter_map(|entry| loaded::text(&entry, "model"))
        .collect();
    for model in &mut models {
        model.loaded = running.contains(&model.id);
        if model.loaded {
            model.window = upstream_window(place, &model.id).await;
        }
    }
    Ok(models)
}

/// Only for a model that is loaded: the question would load it.
async fn upstream_window(place: &ServerPlace<'_>, id: &str) -> Option<FoundWindow> {
    let props = place.json(&format!("/upstream/{id}/props")).await.ok()?;
    props_window(&props)
}

fn props_window(props: &Value) -> Option<FoundWindow> {
    let tokens = tokens(&props["default_generation_settings"]["n_ctx"])?;
    Some(FoundWindow {
        tokens,
        told_by: "`/props`",
    })
}

pub(super) async fn llama_cpp(
    place: &ServerPlace<'_>,
    props: &Result<Value, LookError>,
) -> Result<Vec<FoundModel>, LookError> {
    let window = props.as_ref().ok().and_then(props_window);
    let mut models = listed(&place.json("/v1/models").await?);
    for model in &mut models {
        model.loaded = true;
        model.window.clone_from(&window);
    }
    Ok(models)
}

pub(super) fn lm_studio(list: &Result<Value, LookError>) -> Result<Vec<FoundModel>, LookError> {
    let list = list.as_ref().map_err(Clone::clone)?;
    let one = |entry: &Value| {
        if entry["type"]
            .as_str()
            .is_some_and(|kind| kind.contains("embed"))
        {
            return None;
        }
        let loaded = entry["state"] == "loaded";
        let window = tokens(&entry["loaded_context_length"]).filter(|_| loaded);
        let window = window.map(|tokens| FoundWindow {
            tokens,
            told_by: "`loaded_context_length`",
        });
        text_model(loaded::text(entry, "id")?).map(|id| FoundModel { id, loaded, window })
    };
    Ok(loaded::list(list)
        .into_iter()
        .flatten()
        .take(MOST)
        .filter_map(one)
        .collect())
}

pub(super) async fn litellm(place: &ServerPlace<'_>) -> Result<Vec<FoundModel>, LookError> {
    let (list, info) = tokio::join!(place.json("/v1/models"), place.json("/model/info"));
    let mut models = listed(&list?);
    let info = info.unwrap_or_default();
    for entry in loaded::list(&info).into_iter().flatten() {
        let window = tokens(&entry["model_info"]["max_input_tokens"]);
        let name = loaded::text(entry, "model_name");
        for model in models
            .iter_mut()
            .filter(|model| Some(&model.id) == name.as_ref())
        {
            model.window = window.map(|tokens| FoundWindow {
                tokens,
                told_by: "`max_input_tokens`",
            });
        }
    }
    // Patterns are no models.
    models.retain(|model| !model.id.contains('*'));
    Ok(models)
}

/// Asks one short question, which loads the model, and looks again at its window. An error says why there was no answer.
pub async fn canary(
    server: &FoundServer,
    id: &str,
    env: &crate::Env,
    limit: Duration,
) -> Result<Option<FoundWindow>, String> {
    let key = env
        .secret(super::GATEWAY_KEY_VAR)
        .filter(|_| server.kind == ServerKind::LiteLlm);
    let place = ServerPlace {
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
            let mine = |e: &&Value| loaded::text(e, "name").is_some_and(|name| name == id);
            let entry = loaded::list(&running).and_then(|list| list.iter().find(mine));
            let tokens = entry.and_then(|entry| tokens(&entry["context_length"]));
            tokens.map(|tokens| FoundWindow {
                tokens,
                told_by: "`/api/ps`, after a question",
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

async fn post(
    place: &ServerPlace<'_>,
    path: &str,
    body: &Value,
    limit: Duration,
) -> Result<Value, String> {
    let url = http::below(place.address, path).map_err(|why| why.to_string())?;
    let answer = http::post(&url, place.key.as_ref(), body, limit, CAP)
        .await
        .map_err(|why| why.to_string())?;
    if answer.status != 200 {
        return Err(format!("`{path}` answered {}", answer.status));
    }
    serde_json::from_slice(&answer.body).map_err(|_| format!("`{path}` did not answer with JSON"))
}

/// What a server may call a window; nothing below what any use has, nothing beyond what any model has.
fn tokens(value: &Value) -> Option<u32> {
    value
        .as_u64()
        .filter(|n| (256..=100_000_000).contains(n))
        .and_then(|n| u32::try_from(n).ok())
}

/// Models that do not answer in text are known by their names alone on most servers.
fn text_model(id: String) -> Option<String> {
    const OTHERS: &[&str] = &[
        "embed",
        "rerank",
        "whisper",
        "tts",
        "bge-",
        "stable-diffusion",
        "clip",
    ];
    let lower = id.to_lowercase();
    (!OTHERS.iter().any(|word| lower.contains(word))).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_where_servers_write_them_and_nonsense_is_none() {
        let shown = json!({"parameters": "stop  \"<|im_end|>\"\nnum_ctx                        32768\ntemperature 0.7"});
        assert_eq!(modelfile_window(&shown), Some(32_768));
        assert_eq!(
            modelfile_window(&json!({"parameters": "num_ctx many"})),
            None
        );
        assert_eq!(tokens(&json!(-5)), None);
        assert_eq!(tokens(&json!(1_u64 << 60)), None);
        let vllm = json!({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 4096}, {"id": "bge-m3"}]});
        assert!(is_vllm(&vllm));
        assert_eq!(listed(&vllm).len(), 1, "what embeds is no worker");
        assert_eq!(
            listed(&vllm)[0].window.as_ref().map(|w| w.tokens),
            Some(4096)
        );
    }
}
