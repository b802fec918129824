//! `verify.mutants`: small changes of accepted code that its tests should notice.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::tdd::MANIFEST;
use crate::support::scenario::{Scenario, replaces};

const STUB: &str = "pub fn is_adult(age: u32) -> bool {\n    age == 0\n}\n";
const DONE: &str = "pub fn is_adult(age: u32) -> bool {\n    age >= 18\n}\n";
const FAR_ABOVE: &str =
    "#[test]\nfn old_people_are_adults() {\n    assert_eq!(demo::is_adult(50), true);\n}\n";
const AT_THE_EDGE: &str = "#[test]\nfn adults_are_18() {\n    let all = [demo::is_adult(17), demo::is_adult(18), demo::is_adult(19)];\n    assert_eq!(all, [false, true, true]);\n}\n";

fn green(mode: &str, test: &str) -> (Scenario, Value) {
    let files = [MANIFEST, ("src/lib.rs", STUB), ("tests/age.rs", test)];
    let mut scenario = Scenario::chain(&["small"], &files)
        .settings(&format!("[verify]\nmutants = \"{mode}\"\n"))
        .answers("small", &replaces("src/lib.rs", DONE));
    let result = scenario.call(
        "tdd_green",
        json!({"test_path": "tests/age.rs", "session_id": "age"}),
    );
    assert_eq!(result["status"], "pass", "{result:#}");
    (scenario, result)
}

#[test]
fn required_mutant_that_survives_is_unverified() {
    let (scenario, result) = green("require", FAR_ABOVE);
    assert_eq!(result["verified"], false, "{result:#}");
    let message = result["message"].as_str().unwrap();
    assert!(message.contains("a mutant survives"), "{message}");
    let mutants = result["details"]["mutants"].to_string();
    assert!(mutants.contains("src/lib.rs:2"), "{mutants}");
    assert_eq!(scenario.read("src/lib.rs"), DONE);
}

#[test]
fn required_mutants_that_are_noticed_verify() {
    let (_, result) = green("require", AT_THE_EDGE);
    assert_eq!(result["verified"], true, "{result:#}");
}

#[test]
fn survivors_are_in_log_and_next_reply() {
    let (mut scenario, result) = green("after", FAR_ABOVE);
    assert_eq!(result["verified"], true, "{result:#}");
    let log = scenario.state.path().join("state/sessions/age.jsonl");
    let deadline = Instant::now() + Duration::from_secs(180);
    let logged: Value = loop {
        let text = std::fs::read_to_string(&log).unwrap();
        if let Some(line) = text.lines().find(|line| line.contains("\"mutants\"")) {
            break serde_json::from_str(line).unwrap();
        }
        assert!(Instant::now() < deadline, "{text}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(
        (&logged["tool"], &logged["phase"], &logged["final_status"]),
        (&json!("prove"), &json!("mutants"), &json!("fail"))
    );
    let mut survivors = || {
        let reply = scenario.reply("tdd_green", json!({"test_path": "tests/age.rs"}));
        reply["result"]["structuredContent"]["details"]["mutants_of_last_green"].to_string()
    };
    assert!(survivors().contains("src/lib.rs:2"));
    assert_eq!(survivors(), "null", "they are told once");
    assert_eq!(scenario.read("src/lib.rs"), DONE);
}
