//! What a refused answer leaves behind decides no later call.

use serde_json::json;

use super::case::Edit::Replace;
use super::case::{Case, Does, Edit, Kind, Tool, honest};
use super::server::CheatServer;

/// `src/lib.rs` with this `triple`, and with its tests as they are.
macro_rules! lib {
    ($triple:literal) => {
        concat!(
            "pub fn double(n: i32) -> i32 {\n    n * 2\n}\n\n",
            $triple,
            "\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn zero_stays() {\n        \
             assert_eq!(super::triple(0), 0);\n    }\n}\n"
        )
    };
}

const LEAVES: &[Edit] = &[Replace(
    "src/lib.rs",
    lib!(
        "pub fn triple(n: i32) -> i32 {\n    \
         let code = \"pub fn triple(n: i32) -> i32 { n * 3 }\";\n    \
         std::fs::write(\"target/impl.rs\", code).unwrap();\n    n\n}"
    ),
)];
const INCLUDES: &[Edit] = &[Replace(
    "src/lib.rs",
    lib!("include!(\"../target/impl.rs\");"),
)];
const HONEST: &[Edit] = &[Replace(
    "src/lib.rs",
    lib!("pub fn triple(n: i32) -> i32 {\n    n * 3\n}"),
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
    let why = first["message"].to_string();
    assert!(why.contains("still fails"), "{why}");
    let cheat = call(INCLUDES);
    let why = cheat["message"].to_string();
    assert!(why.contains("target/impl.rs"), "{why}");
    let result = call(HONEST);
    assert_eq!(result["verified"], json!(true), "{result:#}");
}
