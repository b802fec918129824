//! What the host's transcript says about a task: the last request of the user, and the tokens since then. The format is
//! not documented, so whatever is missing is left out.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use serde_json::Value;

use crate::store::HostUsage;

/// The end of a transcript.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript {
    pub request: String,
    /// Since that request.
    pub usage: Option<HostUsage>,
}

/// Tokens written to the cache and read from it cost this many times the price of tokens in.
const CACHE_WRITE: f64 = 1.25;
const CACHE_READ: f64 = 0.1;

/// Reads a transcript, a JSON object in each line. `None` if there is none. Where it names no costs, they
/// follow from `price_of` a model: USD for a million tokens, in and out.
pub fn read_transcript(
    path: &Path,
    price_of: &dyn Fn(&str) -> Option<(f64, f64)>,
) -> Option<Transcript> {
    let mut found = Transcript::default();
    for line in BufReader::new(File::open(path).ok()?).lines() {
        let Ok(line) = serde_json::from_str::<Value>(&line.ok()?) else {
            continue;
        };
        match line["type"].as_str() {
            Some("user") => {
                if let Some(request) = request_of(&line["message"]["content"]) {
                    found = Transcript {
                        request,
                        usage: None,
                    };
                }
            }
            Some("assistant") => {
                let tokens = &line["message"]["usage"];
                if tokens.is_object() {
                    let count = |name: &str| tokens[name].as_u64().unwrap_or_default();
                    let (new, written) =
                        (count("input_tokens"), count("cache_creation_input_tokens"));
                    let (cached, out) = (count("cache_read_input_tokens"), count("output_tokens"));
                    let priced = || {
                        let (price_in, price_out) = price_of(line["message"]["model"].as_str()?)?;
                        let weighted =
                            new as f64 + CACHE_WRITE * written as f64 + CACHE_READ * cached as f64;
                        Some((weighted * price_in + out as f64 * price_out) / 1e6)
                    };
                    let sum = found.usage.get_or_insert(HostUsage {
                        cost_usd: Some(0.0),
                        ..HostUsage::default()
                    });
                    sum.tokens_in += new + written;
                    sum.tokens_out += out;
                    sum.tokens_cached += cached;
                    let usd = line["costUSD"].as_f64().or_else(priced);
                    sum.cost_usd = sum.cost_usd.zip(usd).map(|(sum, usd)| sum + usd);
                }
            }
            _ => {}
        }
    }
    Some(found)
}

/// What the user typed. Results of tools come in messages of the user, too.
fn request_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter(|part| part["type"] == "text")
                .filter_map(|part| part["text"].as_str())
                .collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_since_the_last_request_are_counted() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("t.jsonl");
        let text = r#"{"type":"user","message":{"content":"first"}}
{"type":"assistant","message":{"usage":{"input_tokens":100,"output_tokens":9}}}
{"type":"user","message":{"content":[{"type":"text","text":"add a total"}]}}
{"type":"assistant","message":{"model":"claude-sonnet-5","usage":{"input_tokens":3,"output_tokens":4,"cache_read_input_tokens":50}}}
{"type":"user","message":{"content":[{"type":"tool_result","content":"ok"}]}}
not json
{"type":"assistant","message":{"model":"claude-sonnet-5","usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":8}}}
"#;
        std::fs::write(&path, text).expect("written");
        let price_of =
            |model: &str| (model == "claude-sonnet-5").then_some((1_000_000.0, 2_000_000.0));
        let found = read_transcript(&path, &price_of).expect("a transcript");
        assert_eq!(found.request, "add a total");
        let usage = found.usage.expect("tokens");
        assert_eq!(
            (usage.tokens_in, usage.tokens_out, usage.tokens_cached),
            (12, 6, 50)
        );
        let usd = usage.cost_usd.expect("all models have a price");
        assert!((usd - (4.0 + 10.0 + 5.0 + 12.0)).abs() < 1e-9, "{usd}");
        let unpriced = read_transcript(&path, &|_| None).expect("a transcript");
        assert_eq!(unpriced.usage.expect("tokens").cost_usd, None);
        assert!(read_transcript(&dir.path().join("none"), &|_| None).is_none());
    }
}
