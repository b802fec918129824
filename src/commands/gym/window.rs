//! Measures how many prompt tokens a model really reads. A long prompt starts with a secret word
//! and ends by asking for it; a server that silently truncates prompts has lost the word.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use supervisor_models::{Ask, Backends};
use supervisor_settings::{TOKEN_BYTES, Tier};

/// Smaller windows are not useful.
const MIN_TOKENS: u32 = 512;
/// Share of the window to fill; the rest is for the answer and the server's prompt template.
const FILL_RATIO: f64 = 0.85;
/// Words that are hard to confuse.
const SECRET_WORDS: [&str; 6] = [
    "walnut", "harbour", "saffron", "granite", "meadow", "lantern",
];

/// Finds the largest window whose first word the model still sees, starting at the configured size
/// and halving. Returns `None` if the word never came back, which says nothing about the window:
/// the model may be too weak to repeat a word.
pub(super) async fn measure_window(
    backends: &Backends,
    tier: &Tier,
    seed: u64,
    stop: &CancellationToken,
) -> Option<u32> {
    let backend = backends.of(tier).ok()?;
    let schema = json!({
        "type": "object", "properties": {"word": {"type": "string", "maxLength": 20}}, "required": ["word"],
        "additionalProperties": false,
    });
    let mut tokens = tier.model.context;
    while tokens >= MIN_TOKENS && !stop.is_cancelled() {
        let word = SECRET_WORDS
            [usize::try_from(seed.wrapping_add(u64::from(tokens)) % 6).unwrap_or_default()];
        let filler = "The sky is wide and the road is long. ";
        let bytes = (f64::from(tokens) * FILL_RATIO) as usize * TOKEN_BYTES;
        let prompt = format!(
            "The secret word is {word}.\n{}\nWhat is the secret word that was told at the beginning?",
            filler.repeat(bytes / filler.len())
        );
        let mut ask = Ask::new("You answer with one word.", prompt, schema.clone(), "/");
        (ask.limit, ask.max_tokens) = (tier.limit, Some(40));
        match backend.ask(&ask, tier, stop, &|_| {}).await {
            Ok(reply)
                if reply.body["word"]
                    .as_str()
                    .is_some_and(|answer| answer.to_lowercase().contains(word)) =>
            {
                return Some(tokens);
            }
            _ => tokens /= 2,
        }
    }
    None
}
