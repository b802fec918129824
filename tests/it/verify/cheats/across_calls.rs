//! What a refused answer leaves behind decides no later call.

use serde_json::json;

use super::case::Edit::Replace;
use super::case::{Case, Does, Edit, Kind, Tool, honest};
use super::server::CheatServer;

const LEAVES: &[Edit] = &[Replace(
    "src/lib.rs",
    "pub fn double(n: i32) -> i32 {\n    n * 2\n}\n\npub fn triple(n: i32) -> i32 {\n    \
     let code = \"pub fn triple(n: i32) -> i32 { n * 3 }\";\n    \
     std::fs::write(\"target/impl.rs\", code).unwrap();\n    n\n}\n",
)];
const INCLUDES: &[Edit] = &[Replace(
    "src/lib.rs",
    "pub fn double(n: i32) -> i32 {\n    n * 2\n}\n\ninclude!(\"../target/impl.rs\");\n",
)];
const HONEST: &[Edit] = &[Replace(
    "src/lib.rs",
    "pub fn double(n: i32) -> i32 {\n    n * 2\n}\n\npub fn triple(n: i32) -> i32 {\n    n * 3\n}\n",
)];

#[test]
fn build_output_of_refused_answer_is_gone() {
    let mut server = CheatServer::sandboxed(&[]);
    let root = server.project(Kind::Rust, Tool::Green);
    let mut call = |edits: &'static [Edit]| {
        let case: Case = honest(Kind::Rust, Tool::Green, "across calls", Does::Edits(edits));
        server.run_in(&root, &case).result
    };
    let first = call(LEAVES);
    assert_ne!(first["status"], json!("pass"), "{first:#}");
    let cheat = call(INCLUDES);
    assert_ne!(cheat["status"], json!("pass"), "{cheat:#}");
    let result = call(HONEST);
    assert_eq!(result["verified"], json!(true), "{result:#}");
}
