//! How a client's model finds our tools. Claude Code shows a server's tools by their names alone and lets the model search,
//! unless a tool's `_meta` says otherwise; what it understands there is written here, one line a tool.

use rmcp::model::{JsonObject, MetaObject, Tool};
use serde_json::json;

/// What is said about one tool.
struct ToolHint {
    tool: &'static str,
    /// In the first request of every session, with its schema.
    always: bool,
    /// Words that a model searches by.
    search: &'static str,
}

/// Tools whose answers can be long: findings, entries. What we send is cut below that already.
const LARGE: &[&str] = &["review", "session_log"];

const HINTS: &[ToolHint] = &[
    hint("brain_query", "recall notes memory decisions earlier sessions"),
    hint("brain_write", "remember save note memory decision lesson"),
    core("debug", "explain error crash stack trace failing test root cause"),
    hint("retrospective", "look back sessions lessons what went wrong improve"),
    core("review", "code review diff commit pull request bugs security"),
    hint("session_log", "history of calls costs models statistics"),
    hint("spec", "specification requirements acceptance criteria document"),
    hint("supervise", "pipeline checkpoint agents team verdict report"),
    core("tdd", "implement add feature behaviour test-driven whole cycle"),
    core("tdd_green", "make failing test pass implement code"),
    core("tdd_red", "write failing test first"),
    core("tdd_refactor", "refactor clean up code keep tests green"),
    hint("team_msg", "message bus mailbox agents team state"),
    hint("tier", "which models reachable local ollama claude status"),
    hint("trainer", "training examples dataset fine-tune from log"),
];

const fn core(tool: &'static str, search: &'static str) -> ToolHint {
    ToolHint { tool, always: true, search }
}

const fn hint(tool: &'static str, search: &'static str) -> ToolHint {
    ToolHint { tool, always: false, search }
}

/// The tool with what is known of it. One without a line is listed as it is.
pub(super) fn with_hints(mut tool: Tool) -> Tool {
    let Some(hint) = HINTS.iter().find(|hint| hint.tool == tool.name) else { return tool };
    let mut meta = JsonObject::new();
    if hint.always {
        meta.insert("anthropic/alwaysLoad".into(), json!(true));
    }
    meta.insert("anthropic/searchHint".into(), json!(hint.search));
    if LARGE.contains(&hint.tool) {
        meta.insert("anthropic/maxResultSizeChars".into(), json!(super::MAX_RESULT * 2));
    }
    tool.meta = Some(MetaObject(meta));
    // Older clients look for it among the annotations, newer ones beside the name.
    tool.title = tool.annotations.as_ref().and_then(|about| about.title.clone());
    tool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_can_be_searched_for_and_every_line_speaks_of_a_tool() {
        let mut named: Vec<String> = HINTS.iter().map(|hint| hint.tool.to_owned()).collect();
        let mut tools: Vec<String> = crate::skills::router().list_all().iter().map(|t| t.name.to_string()).collect();
        named.sort();
        tools.sort();
        assert_eq!(named, tools);
    }
}
