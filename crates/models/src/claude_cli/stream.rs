//! Parses the JSON lines the program prints. Each line is read once; only what decides about the
//! run is kept.

use serde::Deserialize;
use serde_json::Value;

use crate::AskStep;
use supervisor_text::words;

/// Maximum length of a tool's target in progress messages.
const MAX_TARGET_LEN: usize = 80;

/// State collected from the program's output.
#[derive(Debug, Default)]
pub(super) struct StreamState {
    /// The last `result` line.
    pub(super) result: Option<Value>,
    /// Number of `result` lines; a valid run has exactly one.
    pub(super) results: usize,
    /// True once any line was JSON: the program has started its work.
    pub(super) began: bool,
    /// Failed API requests.
    pub(super) retries: u32,
    /// The text of all messages. A cut answer is continued in a further message, and the result holds
    /// only the last part.
    pub(super) text: String,
    /// Number of tools that were called.
    pub(super) tools: u32,
    /// Lines that were too long to be read.
    pub(super) missed: usize,
}

impl StreamState {
    /// Reads one line. Returns the progress step it shows, if any.
    pub(super) fn on_line(&mut self, line: &[u8]) -> Option<AskStep> {
        // Lines with file contents can be long, so only the kind is parsed until it is known to
        // matter.
        let kind: Kind = serde_json::from_slice(line).ok()?;
        self.began = true;
        match (kind.kind.as_str(), kind.subtype.as_deref()) {
            ("result", _) => {
                self.results += 1;
                self.result = serde_json::from_slice(line).ok();
                None
            }
            ("system", Some("api_retry")) => {
                self.retries += 1;
                let retry: Value = serde_json::from_slice(line).ok()?;
                let number = |name: &str| {
                    retry[name]
                        .as_u64()
                        .and_then(|n| u32::try_from(n).ok())
                        .unwrap_or_default()
                };
                let why = match &retry["error_status"] {
                    Value::Number(status) => format!("status {status}"),
                    _ => retry["error"]
                        .as_str()
                        .map_or_else(|| "no connection".into(), first_line),
                };
                Some(AskStep::Retrying {
                    attempt: number("attempt"),
                    of: number("max_retries"),
                    why,
                })
            }
            ("assistant", _) => {
                let line: Value = serde_json::from_slice(line).ok()?;
                let message = &line["message"];
                let blocks = message["content"].as_array()?;
                // The program reports errors as messages of this model.
                if message["model"] != "<synthetic>" {
                    for block in blocks.iter().filter(|block| block["type"] == "text") {
                        let text = block["text"].as_str().unwrap_or_default();
                        if self.text.len() + text.len() <= crate::extract::MAX_BYTES {
                            self.text += text;
                        }
                    }
                }
                let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
                self.tools += u32::try_from(calls.count()).unwrap_or(u32::MAX);
                blocks.iter().find_map(step)
            }
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
    subtype: Option<String>,
}

fn step(block: &Value) -> Option<AskStep> {
    match block["type"].as_str()? {
        "thinking" => Some(AskStep::Thinking),
        "tool_use" => {
            let name = block["name"]
                .as_str()
                .filter(|name| *name != "StructuredOutput")?;
            let input = &block["input"];
            let on = ["file_path", "command", "pattern", "path"]
                .iter()
                .find_map(|field| input[*field].as_str());
            Some(AskStep::Tool {
                name: first_line(name),
                on: on.map(first_line).unwrap_or_default(),
            })
        }
        _ => None,
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    words::cut_end(&words::plain(line), MAX_TARGET_LEN).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn output_lines_become_progress_steps() {
        let mut seen = StreamState::default();
        let lines = [
            (
                r#"{"type":"system","subtype":"init","tools":["Edit"]}"#,
                None,
            ),
            (
                r#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":2,"error_status":529,"error":"x"}"#,
                Some(AskStep::Retrying {
                    attempt: 1,
                    of: 2,
                    why: "status 529".into(),
                }),
            ),
            (
                r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"}]}}"#,
                Some(AskStep::Thinking),
            ),
            (
                r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Edit","input":{"file_path":"/p/a.rs"}}]}}"#,
                Some(AskStep::Tool {
                    name: "Edit".into(),
                    on: "/p/a.rs".into(),
                }),
            ),
            (
                r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"StructuredOutput","input":{}}]}}"#,
                None,
            ),
            (
                r#"{"type":"user","message":{"content":"file contents"}}"#,
                None,
            ),
            ("a warning that is not JSON", None),
            (r#"{"type":"result","num_turns":2}"#, None),
        ];
        for (line, step) in lines {
            assert_eq!(seen.on_line(line.as_bytes()), step, "{line}");
        }
        assert_eq!((seen.results, seen.retries, seen.began), (1, 1, true));
        assert_eq!(seen.result.expect("a result")["num_turns"], 2);
    }

    proptest! {
        #[test]
        fn arbitrary_line_does_not_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = StreamState::default().on_line(&line);
        }

        #[test]
        fn unexpected_json_does_not_panic(
            kind in "result|system|assistant|user", sub in "init|api_retry|x",
            junk in prop_oneof!["1", "null", "\\[\\]", "\\{\"content\":1\\}", "\\{\"content\":\\[null,\\{\"type\":\"tool_use\"\\}\\]\\}", "\"x\""]) {
            let line = format!(r#"{{"type":"{kind}","subtype":"{sub}","message":{junk},"attempt":{junk},"error_status":{junk}}}"#);
            let _ = StreamState::default().on_line(line.as_bytes());
        }
    }
}
