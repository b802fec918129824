//! The lines that the program prints while it works. Each is looked at once and forgotten; what decides about the run
//! is kept.

use serde::Deserialize;
use serde_json::Value;

use crate::AskStep;
use supervisor_text::words;

/// Longest text of a tool's target in progress.
const TARGET: usize = 80;

/// What was seen of a run.
#[derive(Debug, Default)]
pub(super) struct SeenStream {
    /// The last `result` line.
    pub(super) result: Option<Value>,
    /// How many there were; one is right.
    pub(super) results: usize,
    /// Any line at all that was JSON, so the program had begun its work.
    pub(super) began: bool,
    /// Attempts of its API that failed.
    pub(super) retries: u32,
    /// Lines that were too long to be read.
    pub(super) missed: usize,
}

impl SeenStream {
    /// Takes one line; says what it shows of the work.
    pub(super) fn line(&mut self, line: &[u8]) -> Option<AskStep> {
        // Lines with file contents can be long, so most of a line is skipped until its kind is known to matter.
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
                        .map_or_else(|| "no connection".into(), shown),
                };
                Some(AskStep::Retrying {
                    attempt: number("attempt"),
                    of: number("max_retries"),
                    why,
                })
            }
            ("assistant", _) => {
                let message: Value = serde_json::from_slice(line).ok()?;
                message["message"]["content"]
                    .as_array()?
                    .iter()
                    .find_map(step)
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
                name: shown(name),
                on: on.map(shown).unwrap_or_default(),
            })
        }
        _ => None,
    }
}

fn shown(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    words::cut_end(&words::plain(line), TARGET).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_run_is_retold_as_steps() {
        let mut seen = SeenStream::default();
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
            ("a warning that is no JSON", None),
            (r#"{"type":"result","num_turns":2}"#, None),
        ];
        for (line, step) in lines {
            assert_eq!(seen.line(line.as_bytes()), step, "{line}");
        }
        assert_eq!((seen.results, seen.retries, seen.began), (1, 1, true));
        assert_eq!(seen.result.expect("a result")["num_turns"], 2);
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = SeenStream::default().line(&line);
        }

        #[test]
        fn no_json_of_the_wrong_shape_makes_it_panic(
            kind in "result|system|assistant|user", sub in "init|api_retry|x",
            junk in prop_oneof!["1", "null", "\\[\\]", "\\{\"content\":1\\}", "\\{\"content\":\\[null,\\{\"type\":\"tool_use\"\\}\\]\\}", "\"x\""]) {
            let line = format!(r#"{{"type":"{kind}","subtype":"{sub}","message":{junk},"attempt":{junk},"error_status":{junk}}}"#);
            let _ = SeenStream::default().line(line.as_bytes());
        }
    }
}
