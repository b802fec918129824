//! Hints that help a client's model find our tools. Claude Code shows only tool names and lets the
//! model search, unless a tool's `_meta` says otherwise. This table holds one entry per tool.

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::json;

/// How the client's model learns about a tool.
#[derive(Clone, Copy)]
enum ToolLoading {
    /// Loaded in the first request of every session, with its schema.
    Always,
    /// Found by these search words.
    Found(&'static str),
}

use ToolLoading::{Always, Found};

/// Tools with long results. We already cut results below this limit.
const LARGE_RESULT_TOOLS: &[&str] = &["review", "session_log"];

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
    ("prove", Always),
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

/// Adds the hints to a tool. A tool without an entry gets no `_meta`.
pub(super) fn with_hints(mut tool: Tool) -> Tool {
    // Since 2025-06 clients read the title beside the name, so it is not repeated in the
    // annotations.
    tool.title = tool
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.title.clone());
    tool.annotations = tool.annotations.and_then(drop_default_annotations);
    let Some((_, loading)) = HINTS.iter().find(|(name, _)| *name == tool.name) else {
        return tool;
    };
    let mut meta = JsonObject::new();
    match loading {
        Always => meta.insert("anthropic/alwaysLoad".into(), json!(true)),
        Found(words) => meta.insert("anthropic/searchHint".into(), json!(words)),
    };
    if LARGE_RESULT_TOOLS.contains(&tool.name.as_ref()) {
        meta.insert(
            "anthropic/maxResultSizeChars".into(),
            json!(supervisor_skills::reply::MAX_RESULT * 2),
        );
    }
    tool.meta = Some(MetaObject(meta));
    tool
}

/// Keeps only annotations that differ from the protocol's defaults: a tool may write, destroy, have
/// further effects when called again, and reach the network.
fn drop_default_annotations(mut annotations: ToolAnnotations) -> Option<ToolAnnotations> {
    annotations.title = None;
    if annotations.read_only_hint == Some(true) {
        // Neither means anything for a read-only tool.
        (annotations.destructive_hint, annotations.idempotent_hint) = (None, None);
    }
    annotations.read_only_hint = annotations.read_only_hint.filter(|reads| *reads);
    annotations.destructive_hint = annotations.destructive_hint.filter(|destroys| !destroys);
    annotations.idempotent_hint = annotations
        .idempotent_hint
        .filter(|is_idempotent| *is_idempotent);
    annotations.open_world_hint = annotations.open_world_hint.filter(|is_open| !is_open);
    (annotations != ToolAnnotations::default()).then_some(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_one_hint() {
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
    fn listed_annotations_keep_their_meaning() {
        for tool in supervisor_skills::router().list_all() {
            let name = tool.name.clone();
            let annotations = tool.annotations.clone().unwrap_or_default();
            let hints = [
                annotations.read_only_hint,
                annotations.destructive_hint,
                annotations.idempotent_hint,
                annotations.open_world_hint,
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
            // Apply the client's defaults.
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
