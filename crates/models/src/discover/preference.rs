//! Which of the models that were found should be asked first.

use super::{DiscoveredModel, DiscoveredServer};

/// Model families that write code well, best first. A model matches if its name contains an entry.
const PREFERRED: &str = include_str!("preferred.txt");
/// Smaller windows hold a brief and little else.
pub const SMALL_WINDOW: u32 = 8192;

/// Chooses the local model that chains start with. Returns the index of its server and its index
/// there.
pub fn best_local(servers: &[DiscoveredServer]) -> Option<(usize, usize)> {
    let families: Vec<&str> = PREFERRED
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .collect();
    let rank = |model: &DiscoveredModel| {
        let id = model.id.to_lowercase();
        let family = families
            .iter()
            .position(|family| id.contains(family))
            .unwrap_or(families.len());
        // A small window is worse than a weaker model.
        let has_small_window = model
            .window
            .as_ref()
            .is_some_and(|window| window.tokens < SMALL_WINDOW);
        // A loaded model answers at once, and one made for code writes it best. Unknown families
        // come last, loaded or not.
        let is_unknown = family == families.len();
        let is_coder = id.contains("cod") || id.contains("devstral");
        (
            has_small_window,
            is_unknown,
            !model.loaded,
            !is_coder,
            family,
        )
    };
    let all = servers.iter().enumerate().flat_map(|(s, server)| {
        server
            .models
            .iter()
            .flatten()
            .enumerate()
            .map(move |(m, model)| ((s, m), model))
    });
    all.filter(|(_, model)| !is_claude(&model.id))
        .min_by_key(|(_, model)| rank(model))
        .map(|(place, _)| place)
}

/// Whether the built-in Claude backend serves this name. It runs these models as an agent.
pub fn is_claude(id: &str) -> bool {
    id.starts_with("claude-") || ["opus", "sonnet", "haiku"].contains(&id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::{ContextWindow, ServerKind};

    fn model(id: &str, tokens: Option<u32>) -> DiscoveredModel {
        let window = tokens.map(|tokens| ContextWindow {
            tokens,
            source: "a test",
        });
        DiscoveredModel {
            id: id.into(),
            loaded: false,
            window,
        }
    }

    fn server(kind: ServerKind, port: u16, models: Vec<DiscoveredModel>) -> DiscoveredServer {
        DiscoveredServer {
            address: format!("http://localhost:{port}"),
            kind,
            models: Ok(models),
        }
    }

    #[test]
    fn best_coder_with_large_window_is_first() {
        let small_window = model("qwen3.6:27b", Some(4096));
        let servers = [
            server(
                ServerKind::Ollama,
                1,
                vec![model("llama3.2:3b", Some(32_768)), small_window],
            ),
            server(
                ServerKind::Vllm,
                2,
                vec![
                    model("claude-sonnet-4-6", None),
                    model("devstral-small-2", Some(65_536)),
                ],
            ),
        ];
        assert_eq!(best_local(&servers), Some((1, 1)));
        assert_eq!(best_local(&[]), None);
    }
}
