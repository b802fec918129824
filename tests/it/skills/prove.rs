//! `prove` as a tool: what the calling model gets for a change that somebody made in the working tree.

use serde_json::{Value, json};
use supervisor_test_support::project::{TestProject, git};

use super::tdd::{ADD, ADD_TEST, MANIFEST, WRONG};
use crate::support::mcp_session::Session;

const MORE: &str = "\npub fn double(n: i32) -> i32 {\n    n * 2\n}\n";
const MORE_TEST: &str = "#[test]\nfn doubles() {\n    assert_eq!(demo::double(21), 42);\n}\n";

/// The structured reply to `prove` after these files were written, and its length.
fn reply(files: &[(&str, &str)], arguments: &Value) -> (Value, usize) {
    let project = TestProject::with(&[
        (MANIFEST.0, MANIFEST.1),
        (".gitignore", "target\nCargo.lock\n"),
        ("src/lib.rs", ADD),
        ("tests/add.rs", ADD_TEST),
    ]);
    let root = project.root();
    project.git(&["init", "-q"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "base"]);
    for (path, text) in files {
        project.write(path, text);
    }
    let before = git(&root, &["status", "--porcelain"]);
    let mut session = Session::real();
    session.initialize("2025-11-25");
    let mut all = json!({"project_root": root});
    all.as_object_mut()
        .unwrap()
        .extend(arguments.as_object().unwrap().clone());
    session.call(1, "prove", all);
    let result = session.reply_after_tests(1)["result"].clone();
    assert_eq!(git(&root, &["status", "--porcelain"]), before);
    let text = result["content"][0]["text"].as_str().unwrap();
    (result["structuredContent"].clone(), text.len())
}

#[test]
fn proven_change_is_a_verified_pass() {
    let code = format!("{ADD}{MORE}");
    let files = [
        ("src/lib.rs", code.as_str()),
        ("tests/double.rs", MORE_TEST),
    ];
    let (reply, length) = reply(&files, &json!({"mutants": true}));
    assert_eq!(reply["status"], "pass", "{reply:#}");
    assert_eq!(reply["verified"], true, "{reply:#}");
    assert_eq!(reply["details"]["falsified"], "1 of 1", "{reply:#}");
    assert!(reply["details"]["mutants"].is_string(), "{reply:#}");
    assert!(length < 1_500, "{length} bytes");
}

#[test]
fn broken_change_names_the_test() {
    let (reply, length) = reply(&[("src/lib.rs", WRONG)], &json!({}));
    assert_eq!(reply["status"], "fail", "{reply:#}");
    assert_eq!(reply["details"]["verdict"], "broken", "{reply:#}");
    let named = reply["details"]["regressions"][0].as_str().unwrap();
    assert!(named.contains("adds_two_numbers"), "{reply:#}");
    assert!(length < 1_500, "{length} bytes");
}

#[test]
fn change_without_a_test_says_what_to_do() {
    let code = format!("{ADD}{MORE}");
    let (reply, _) = reply(&[("src/lib.rs", code.as_str())], &json!({"fast": true}));
    assert_eq!(reply["details"]["verdict"], "unproven", "{reply:#}");
    let gap = reply["details"]["gaps"][0].as_str().unwrap();
    assert!(gap.contains("Next: "), "{reply:#}");
}

#[test]
fn large_reply_is_short_and_keeps_the_arguments() {
    let mut tests = String::new();
    let mut code = format!("{ADD}{MORE}");
    for n in 0..40 {
        tests += &format!(
            "#[test]\nfn a_test_with_a_rather_long_name_that_is_number_{n}() {{\n    assert_eq!(demo::add(1, {n}), 1 + {n});\n}}\n"
        );
        code += &format!("pub fn unused_{n}(a: i32) -> i32 {{\n    a + {n}\n}}\n");
    }
    let files = [
        ("src/lib.rs", code.as_str()),
        ("tests/many.rs", tests.as_str()),
    ];
    let names: Vec<String> = (0..20).map(|n| format!("that_is_number_{n}")).collect();
    let arguments = json!({
        "base": "HEAD", "tests": names, "fast": true, "allow_test_change": ["adds_two_numbers"],
        "test_cmd": "cargo test",
    });
    let (reply, length) = reply(&files, &arguments);
    assert_eq!(reply["details"]["verdict"], "unproven", "{reply:#}");
    let next = &reply["next"]["arguments"];
    for name in ["base", "fast", "allow_test_change", "test_cmd"] {
        assert_eq!(next[name], arguments[name], "{reply:#}");
    }
    assert!(length < 1_500, "{length} bytes");
}

#[test]
fn wrong_base_is_an_error_with_a_remedy() {
    let (reply, _) = reply(&[("src/lib.rs", WRONG)], &json!({"base": "no-such"}));
    assert_eq!(reply["status"], "error", "{reply:#}");
    let message = reply["message"].as_str().unwrap();
    assert!(message.contains("`no-such` is not a commit"), "{message}");
}
