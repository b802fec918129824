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

/// Reads a transcript, a JSON object in each line. `None` if there is none.
pub fn read_transcript(path: &Path) -> Option<Transcript> {
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
                    let sum = found.usage.get_or_insert_with(HostUsage::default);
                    sum.tokens_in += count("input_tokens") + count("cache_creation_input_tokens");
                    sum.tokens_out += count("output_tokens");
                    sum.tokens_cached += count("cache_read_input_tokens");
                    if let Some(usd) = line["costUSD"].as_f64() {
                        *sum.cost_usd.get_or_insert(0.0) += usd;
                    }
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
{"type":"assistant","message":{"usage":{"input_tokens":3,"output_tokens":4,"cache_read_input_tokens":50}}}
{"type":"user","message":{"content":[{"type":"tool_result","content":"ok"}]}}
not json
{"type":"assistant","message":{"usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":5}}}
"#;
        std::fs::write(&path, text).expect("written");
        let found = read_transcript(&path).expect("a transcript");
        assert_eq!(found.request, "add a total");
        let usage = found.usage.expect("tokens");
        assert_eq!(
            (usage.tokens_in, usage.tokens_out, usage.tokens_cached),
            (9, 6, 50)
        );
        assert_eq!(usage.cost_usd, None);
        assert!(read_transcript(&dir.path().join("none")).is_none());
    }
}
