//! How a client's model finds our tools. Claude Code shows a server's tools by their names alone and lets the model search,
//! unless a tool's `_meta` says otherwise; what it understands there is written here, one line a tool.

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::json;

/// How the client's model comes to know a tool.
#[derive(Clone, Copy)]
enum ToolLoading {
    /// In the first request of every session, with its schema.
    Always,
    /// By words that a model searches by.
    Found(&'static str),
}

use ToolLoading::{Always, Found};

/// Tools whose answers can be long: findings, entries. What we send is cut below that already.
const LARGE: &[&str] = &["review", "session_log"];

const HINTS: &[(&str, ToolLoading)] = &[
    (
        "brain_query",
        Found("recall notes memory decisions earlier sessions"),
    ),
    (
        "brain_write",
        Found("remember save note memory decision lesson"),
    ),
    ("debug", Always),
    (
        "retrospective",
        Found("look back sessions lessons what went wrong improve"),
    ),
    ("review", Always),
    (
        "session_log",
        Found("history of calls costs models statistics"),
    ),
    (
        "spec",
        Found("specification requirements acceptance criteria document"),
    ),
    (
        "supervise",
        Found("pipeline checkpoint agents verdict report"),
    ),
    ("tdd", Always),
    ("tdd_green", Always),
    ("tdd_red", Always),
    ("tdd_refactor", Always),
    ("team_msg", Found("message bus mailbox agents")),
    (
        "tier",
        Found("which models reachable local ollama claude status"),
    ),
    (
        "trainer",
        Found("training examples dataset fine-tune from log"),
    ),
];

/// The tool with what is known of it. One without a line has no `_meta`.
pub(super) fn with_hints(mut tool: Tool) -> Tool {
    // Beside the name, where clients look for it since 2025-06; it need not be said twice.
    tool.title = tool
        .annotations
        .as_ref()
        .and_then(|about| about.title.clone());
    tool.annotations = tool.annotations.and_then(only_unusual);
    let Some((_, loading)) = HINTS.iter().find(|(name, _)| *name == tool.name) else {
        return tool;
    };
    let mut meta = JsonObject::new();
    match loading {
        Always => meta.insert("anthropic/alwaysLoad".into(), json!(true)),
        Found(words) => meta.insert("anthropic/searchHint".into(), json!(words)),
    };
    if LARGE.contains(&tool.name.as_ref()) {
        meta.insert(
            "anthropic/maxResultSizeChars".into(),
            json!(supervisor_skills::reply::MAX_RESULT * 2),
        );
    }
    tool.meta = Some(MetaObject(meta));
    tool
}

/// What differs from what the protocol assumes of a tool that says nothing: it may write, destroy, do more when called
/// again, and reach the world outside.
fn only_unusual(mut about: ToolAnnotations) -> Option<ToolAnnotations> {
    about.title = None;
    if about.read_only_hint == Some(true) {
        // Of a tool that only reads, neither means anything.
        (about.destructive_hint, about.idempotent_hint) = (None, None);
    }
    about.read_only_hint = about.read_only_hint.filter(|reads| *reads);
    about.destructive_hint = about.destructive_hint.filter(|destroys| !destroys);
    about.idempotent_hint = about.idempotent_hint.filter(|is_idempotent| *is_idempotent);
    about.open_world_hint = about.open_world_hint.filter(|is_open| !is_open);
    (about != ToolAnnotations::default()).then_some(about)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_can_be_found_and_every_line_speaks_of_a_tool() {
        let mut named: Vec<String> = HINTS.iter().map(|(tool, _)| (*tool).to_owned()).collect();
        let mut tools: Vec<String> = supervisor_skills::router()
            .list_all()
            .iter()
            .map(|t| t.name.to_string())
            .collect();
        named.sort();
        tools.sort();
        assert_eq!(named, tools);
    }

    #[test]
    fn every_tool_has_all_four_hints_and_lists_those_that_are_not_assumed() {
        for tool in supervisor_skills::router().list_all() {
            let name = tool.name.clone();
            let about = tool.annotations.clone().unwrap_or_default();
            let hints = [
                about.read_only_hint,
                about.destructive_hint,
                about.idempotent_hint,
                about.open_world_hint,
            ];
            let [
                Some(reads),
                Some(destroys),
                Some(is_idempotent),
                Some(is_open),
            ] = hints
            else {
                panic!("`{name}` does not say all of its hints");
            };
            let listed = with_hints(tool).annotations.unwrap_or_default();
            assert_eq!(listed.title, None, "{name}");
            // As a client reads them.
            assert_eq!(listed.read_only_hint.unwrap_or(false), reads, "{name}");
            assert_eq!(listed.open_world_hint.unwrap_or(true), is_open, "{name}");
            if !reads {
                assert_eq!(listed.destructive_hint.unwrap_or(true), destroys, "{name}");
                assert_eq!(
                    listed.idempotent_hint.unwrap_or(false),
                    is_idempotent,
                    "{name}"
                );
            }
        }
    }
}
