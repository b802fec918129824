//! The readers of input from outside, each as one function that takes any bytes. It panics if a rule is broken: no input may
//! make a reader panic. The tests replay `fuzz/corpus`; `just fuzz TARGET SECONDS` looks for more.

/// Takes any bytes, and panics only if a rule is broken.
pub(crate) type FuzzTarget = fn(&[u8]);

/// Every target, by the name of its folder in the corpus.
pub(crate) const TARGETS: &[(&str, FuzzTarget)] = &[
    ("json_rpc_line", supervisor_mcp::fuzz::json_rpc_line),
    ("answer", supervisor_edits::fuzz::answer),
    ("claude_stream", supervisor_models::fuzz::claude_stream),
    ("chat_completion", supervisor_models::fuzz::chat_completion),
    ("test_report", supervisor_verify::fuzz::test_report),
    ("falsifier", supervisor_verify::fuzz::falsifier),
    ("routing", |data| {
        supervisor_settings::fuzz::routing(include_str!("../models.toml"), data);
    }),
    ("edits", supervisor_workspace::fuzz::edits),
    ("journal", supervisor_workspace::fuzz::journal),
    ("log_reader", supervisor_engine::session::fuzz::log_reader),
];
