//! What happens with an answer that cannot be read, or that asks for more: one repair question, two looks at the project,
//! and neither counts as an attempt.

use serde_json::json;

use super::files_below;
use super::projects::PYTHON;
use crate::support::tdd_bench::{Bench, replaces, trail};
use supervisor_test_support::programs::require;

#[test]
#[ignore = "needs python3 and pytest"]
fn an_answer_that_cannot_be_read_is_kept_and_asked_about_once() {
    require(PYTHON.needs);
    let mut bench = Bench::chain(&["small"], PYTHON.files);
    bench.line(&json!({"model": "small", "text": "I would double it."}));
    bench.say(
        "small",
        &replaces(PYTHON.code_path, &PYTHON.with(PYTHON.right_line)),
    );
    let result = bench.call("tdd_green", json!({"test_path": PYTHON.test_path}));
    assert_eq!(trail(&result), "small accepted", "{result:#}");
    let prompts = bench.asked_of("small");
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
    let mut kept = files_below(&bench.state.path().join("state/exchange"));
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
fn an_answer_that_stays_unreadable_counts_against_its_model_and_the_next_tier_is_asked() {
    require(PYTHON.needs);
    let mut bench = Bench::chain(&["small", "large"], PYTHON.files);
    for _ in 0..4 {
        bench.line(&json!({"model": "small", "text": "Just double it, then it works."}));
    }
    bench.say(
        "large",
        &replaces(PYTHON.code_path, &PYTHON.with(PYTHON.right_line)),
    );
    let result = bench.call("tdd_green", json!({"test_path": PYTHON.test_path}));
    assert!(
        trail(&result).starts_with("small unreadable")
            && trail(&result).ends_with("large accepted"),
        "{result:#}"
    );
    assert_eq!(result["attempts"][0]["verdict"], "error");
    let stats = bench.command().arg("stats").output().unwrap();
    let said = String::from_utf8_lossy(&stats.stdout);
    assert!(said.contains("unreadable"), "{said}");
}

#[test]
#[ignore = "needs python3 and pytest"]
fn a_model_that_asks_for_a_file_is_shown_it_and_asked_again() {
    require(PYTHON.needs);
    let mut files = PYTHON.files.to_vec();
    files.push(("far/away/table.py", "WIDTH = 77\n"));
    let mut bench = Bench::chain(&["small"], &files);
    bench.line(&json!({"model": "small", "text": "NEED: far/away/table.py, no_such_thing_at_all"}));
    bench.say(
        "small",
        &replaces(PYTHON.code_path, &PYTHON.with(PYTHON.right_line)),
    );
    let result = bench.call("tdd_green", json!({"test_path": PYTHON.test_path}));
    assert_eq!(trail(&result), "small accepted", "{result:#}");
    let prompts = bench.asked_of("small");
    assert_eq!(prompts.len(), 2);
    assert!(
        prompts[1].contains("WIDTH = 77")
            && prompts[1].contains("Not found: `no_such_thing_at_all`"),
        "{}",
        prompts[1]
    );
    assert_eq!(result["attempts"][0]["asks"][1]["follow_up"], "need");
}
