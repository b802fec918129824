//! What is read from outside, each by one function that takes any bytes. It panics if a rule is broken: nothing may make
//! the readers themselves panic, and what they read must hold together.
//! The corpus in `fuzz/corpus` is replayed by the tests, and grown by `just fuzz TARGET SECONDS`.

use crate::{answers, backend, routing, server, session, verify, workspace};

/// Takes any bytes, and panics only if a rule is broken.
pub type FuzzTarget = fn(&[u8]);

/// Every target, by the name of its folder in the corpus.
pub const TARGETS: &[(&str, FuzzTarget)] = &[
    ("json_rpc_line", server::fuzz::json_rpc_line),
    ("answer", answers::fuzz::answer),
    ("claude_stream", backend::fuzz::claude_stream),
    ("chat_completion", backend::fuzz::chat_completion),
    ("test_report", verify::fuzz::test_report),
    ("falsifier", verify::fuzz::falsifier),
    ("routing", routing::fuzz::routing),
    ("edits", workspace::fuzz::edits),
    ("journal", workspace::fuzz::journal),
    ("log_reader", session::fuzz::log_reader),
];

/// Runs one target.
pub fn run(name: &str, data: &[u8]) {
    let (_, target) = TARGETS
        .iter()
        .find(|(known, _)| *known == name)
        .expect("a target of the table");
    target(data);
}
