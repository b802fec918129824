//! The user's own checks as gates of red, green and refactor: what was clean stays clean.

use serde_json::{Value, json};

use super::tdd::{ADD, ADD_TEST, MANIFEST, OLD_TEST, WRONG};
use crate::support::scenario::{Scenario, creates, gate, replaces, trail};

/// Fails if a file has a word that the user does not want.
const LINT: (&str, &str) = ("lint.sh", "if grep -rn FIXME src tests; then exit 1; fi\n");

fn project(code: &str, test: Option<&str>) -> Scenario {
    let mut files = vec![MANIFEST, OLD_TEST, LINT, ("src/lib.rs", code)];
    files.extend(test.map(|test| ("tests/add.rs", test)));
    Scenario::chain(&["small", "medium"], &files).settings("[verify]\nchecks = [\"sh lint.sh\"]\n")
}

fn with_word(code: &str) -> String {
    format!("// FIXME\n{code}")
}

fn is_rejected_then_clean(result: &Value) {
    assert_eq!(result["status"], "pass", "{result:#}");
    assert_eq!(trail(result), "small rejected | medium accepted");
    let feedback = result["attempts"][0]["feedback"].as_str().unwrap();
    assert!(
        feedback.contains("`sh lint.sh` was clean before"),
        "{feedback}"
    );
}

#[test]
fn green_that_soils_a_check_is_rejected() {
    let mut scenario = project(WRONG, Some(ADD_TEST))
        .answers("small", &replaces("src/lib.rs", &with_word(ADD)))
        .answers("medium", &replaces("src/lib.rs", ADD));
    let result = scenario.call("tdd_green", json!({"test_path": "tests/add.rs"}));
    is_rejected_then_clean(&result);
    assert!(scenario.asked_of("medium")[0].contains("FIXME"));
}

#[test]
fn red_that_soils_a_check_is_rejected() {
    let mut scenario = project(WRONG, None)
        .answers("small", &creates("tests/add.rs", &with_word(ADD_TEST)))
        .answers("medium", &creates("tests/add.rs", ADD_TEST));
    let result = scenario.call("tdd_red", json!({"spec": "add(1, 2) is 3"}));
    is_rejected_then_clean(&result);
}

#[test]
fn refactoring_that_soils_a_check_is_rejected() {
    let tidy = ADD.replace("a + b", "b + a");
    let mut scenario = project(ADD, Some(ADD_TEST))
        .answers("small", &replaces("src/lib.rs", &with_word(&tidy)))
        .answers("medium", &replaces("src/lib.rs", &tidy));
    let result = scenario.call(
        "tdd_refactor",
        json!({"test_path": "tests/add.rs", "impl_path": "src/lib.rs"}),
    );
    is_rejected_then_clean(&result);
}

#[test]
fn check_that_was_not_clean_rejects_nothing() {
    let mut scenario = project(&with_word(WRONG), Some(ADD_TEST))
        .answers("small", &replaces("src/lib.rs", &with_word(ADD)));
    let result = scenario.call("tdd_green", json!({"test_path": "tests/add.rs"}));
    assert_eq!(trail(&result), "small accepted", "{result:#}");
    let detail = gate(&result, "checks")["detail"].as_str().unwrap();
    assert!(detail.contains("was not clean before either"), "{detail}");
}

const TWO: &str = "pub fn one() -> i32 {\n    1\n}\n\npub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\npub fn half(n: i32) -> i32 {\n    n / 2\n}\n";

fn refactored(from: &str, to: &str) -> Value {
    let mut scenario = project(TWO, Some(ADD_TEST))
        .answers("small", &replaces("src/lib.rs", &TWO.replace(from, to)));
    let result = scenario.call(
        "tdd_refactor",
        json!({"test_path": "tests/add.rs", "impl_path": "src/lib.rs"}),
    );
    assert_eq!(result["status"], "pass", "{result:#}");
    result
}

#[test]
fn refactoring_of_tested_lines_is_verified() {
    let result = refactored("a + b", "b + a");
    assert_eq!(result["verified"], true, "{result:#}");
    let message = result["message"].as_str().unwrap();
    let share = "1 of 1 changed line reached by a test that was seen failing";
    assert!(message.contains(share), "{message}");
}

#[test]
fn refactoring_of_untested_lines_is_not_verified() {
    let result = refactored("n / 2", "n - n / 2");
    assert_eq!(result["verified"], false, "{result:#}");
    let message = result["message"].as_str().unwrap();
    assert!(
        message.starts_with("not verified, because no test fails")
            && message.contains("0 of 1 changed line"),
        "{message}"
    );
}
