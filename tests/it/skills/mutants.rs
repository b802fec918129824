//! `verify.mutants`: small changes of accepted code that its tests should notice.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::tdd::MANIFEST;
use crate::support::scenario::{Scenario, replaces};

const STUB: &str = "pub fn capped(n: i32) -> i32 {\n    n\n}\n";
const CAPPED: &str =
    "pub fn capped(n: i32) -> i32 {\n    if n > 10 {\n        return 10;\n    }\n    n\n}\n";
const FAR_ABOVE: &str =
    "#[test]\nfn large_numbers_are_capped() {\n    assert_eq!(demo::capped(50), 10);\n}\n";
const AT_THE_EDGE: &str = "#[test]\nfn numbers_are_capped() {\n    let all = [demo::capped(50), demo::capped(11), demo::capped(10), demo::capped(-3)];\n    assert_eq!(all, [10, 10, 10, -3]);\n}\n";

fn green(mode: &str, test: &str) -> (Scenario, Value) {
    let files = [MANIFEST, ("src/lib.rs", STUB), ("tests/cap.rs", test)];
    let mut scenario = Scenario::chain(&["small"], &files)
        .settings(&format!("[verify]\nmutants = \"{mode}\"\n"))
        .answers("small", &replaces("src/lib.rs", CAPPED));
    let result = scenario.call(
        "tdd_green",
        json!({"test_path": "tests/cap.rs", "session_id": "cap"}),
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
    assert_eq!(scenario.read("src/lib.rs"), CAPPED);
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
    let log = scenario.state.path().join("state/sessions/cap.jsonl");
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
    let next = scenario.call("tdd_green", json!({"test_path": "tests/cap.rs"}));
    let survivors = next["details"]["mutants_of_last_green"].to_string();
    assert!(survivors.contains("src/lib.rs:2"), "{next:#}");
    let third = scenario.call("tdd_green", json!({"test_path": "tests/cap.rs"}));
    assert!(third["details"]["mutants_of_last_green"].is_null());
    assert_eq!(scenario.read("src/lib.rs"), CAPPED);
}
