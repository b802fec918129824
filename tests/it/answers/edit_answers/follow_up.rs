//! What happens with an answer that cannot be read, or that asks for more: one repair question, two looks at the project,
//! and neither counts as an attempt.

use serde_json::json;

use super::files_below;
use super::projects::PYTHON;
use crate::support::scenario::{Scenario, replaces, trail};
use supervisor_test_support::programs::require;

#[test]
#[ignore = "needs python3 and pytest"]
fn unreadable_answer_is_kept_and_repaired_once() {
    require(PYTHON.needs);
    let mut scenario = Scenario::chain(&["small"], PYTHON.files);
    scenario.line(&json!({"model": "small", "text": "I would double it."}));
    scenario.say(
        "small",
        &replaces(PYTHON.code_path, &PYTHON.with(PYTHON.right_line)),
    );
    let result = scenario.call("tdd_green", json!({"test_path": PYTHON.test_path}));
    assert_eq!(trail(&result), "small accepted", "{result:#}");
    let prompts = scenario.asked_of("small");
    assert_eq!(prompts.len(), 2);
    assert!(
        prompts[1].contains("there is no code in the answer")
            && prompts[1].contains("I would double it."),
        "{}",
        prompts[1]
    );
    let asks = &result["attempts"][0]["asks"];
    assert_eq!(asks[1]["follow_up"], "repair", "{asks:#}");
    let is_it = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path).is_ok_and(|text| text == "I would double it.")
    };
    let mut kept = files_below(&scenario.state.path().join("state/exchange"));
    kept.retain(is_it);
    assert_eq!(kept.len(), 1);
    assert!(
        asks[0]["said"]
            .as_str()
            .unwrap()
            .contains(kept[0].to_str().unwrap()),
        "{asks:#}"
    );
}

#[test]
#[ignore = "needs python3 and pytest"]
fn answer_that_stays_unreadable_escalates() {
    require(PYTHON.needs);
    let mut scenario = Scenario::chain(&["small", "large"], PYTHON.files);
    for _ in 0..4 {
        scenario.line(&json!({"model": "small", "text": "Just double it, then it works."}));
    }
    scenario.say(
        "large",
        &replaces(PYTHON.code_path, &PYTHON.with(PYTHON.right_line)),
    );
    let result = scenario.call("tdd_green", json!({"test_path": PYTHON.test_path}));
    assert!(
        trail(&result).starts_with("small unreadable")
            && trail(&result).ends_with("large accepted"),
        "{result:#}"
    );
    assert_eq!(result["attempts"][0]["verdict"], "error");
    let stats = scenario.command().arg("stats").output().unwrap();
    let said = String::from_utf8_lossy(&stats.stdout);
    assert!(said.contains("unreadable"), "{said}");
}

#[test]
#[ignore = "needs python3 and pytest"]
fn requested_file_is_shown_and_asked_again() {
    require(PYTHON.needs);
    let mut files = PYTHON.files.to_vec();
    files.push(("far/away/table.py", "WIDTH = 77\n"));
    let mut scenario = Scenario::chain(&["small"], &files);
    scenario
        .line(&json!({"model": "small", "text": "NEED: far/away/table.py, no_such_thing_at_all"}));
    scenario.say(
        "small",
        &replaces(PYTHON.code_path, &PYTHON.with(PYTHON.right_line)),
    );
    let result = scenario.call("tdd_green", json!({"test_path": PYTHON.test_path}));
    assert_eq!(trail(&result), "small accepted", "{result:#}");
    let prompts = scenario.asked_of("small");
    assert_eq!(prompts.len(), 2);
    assert!(
        prompts[1].contains("WIDTH = 77")
            && prompts[1].contains("Not found: `no_such_thing_at_all`"),
        "{}",
        prompts[1]
    );
    assert_eq!(result["attempts"][0]["asks"][1]["follow_up"], "need");
}
