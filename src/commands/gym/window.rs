//! How many tokens of a question does a model really take in? A word stands at the beginning of a long question, and the
//! model is asked for it at the end. A server that cuts questions silently has cut it off.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use supervisor_models::{Ask, Backends};
use supervisor_settings::{TOKEN_BYTES, Tier};

/// Smaller windows are of no use.
const SMALLEST: u32 = 512;
/// Left for the answer and for what a server puts around a question.
const ROOM: f64 = 0.85;
/// Words that no model mixes up.
const WORDS: [&str; 6] = [
    "walnut", "harbour", "saffron", "granite", "meadow", "lantern",
];

/// The largest window, by halves from the configured one, from whose beginning the word came back. `None` if it never
/// did, which says nothing about the window of a model too small to repeat a word.
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
    while tokens >= SMALLEST && !stop.is_cancelled() {
        let word =
            WORDS[usize::try_from(seed.wrapping_add(u64::from(tokens)) % 6).unwrap_or_default()];
        let filler = "The sky is wide and the road is long. ";
        let room = (f64::from(tokens) * ROOM) as usize * TOKEN_BYTES;
        let prompt = format!(
            "The secret word is {word}.\n{}\nWhat is the secret word that was told at the beginning?",
            filler.repeat(room / filler.len())
        );
        let mut ask = Ask::new("You answer with one word.", prompt, schema.clone(), "/");
        (ask.limit, ask.max_tokens) = (tier.limit, Some(40));
        match backend.ask(&ask, tier, stop, &|_| {}).await {
            Ok(reply)
                if reply.body["word"]
                    .as_str()
                    .is_some_and(|said| said.to_lowercase().contains(word)) =>
            {
                return Some(tokens);
            }
            _ => tokens /= 2,
        }
    }
    None
}
