//! `tdd`: a whole cycle in one call, with recorded models and the real tests of a Rust project.

use serde_json::{Value, json};

use crate::skills::tdd::{ADD, ADD_TEST, MANIFEST, OLD_TEST, ONE, WRONG};
use crate::support::scenario::{Scenario, creates, replaces};

const NEG_TEST: &str =
    "#[test]\nfn a_number_is_negated() {\n    assert_eq!(demo::neg(2), -2);\n}\n";

fn demo(tiers: &[&str]) -> Scenario {
    Scenario::chain(tiers, &[MANIFEST, ("src/lib.rs", ONE), OLD_TEST])
}

/// The structured reply and its size.
fn told(reply: &Value) -> (Value, usize) {
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    (serde_json::from_str(text).unwrap(), text.len())
}

/// The log of a session, one entry a line.
fn log(scenario: &Scenario, session: &str) -> Vec<Value> {
    let file = scenario
        .state
        .path()
        .join(format!("state/sessions/{session}.jsonl"));
    std::fs::read_to_string(file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn two_criteria_are_built_in_one_call() {
    let with_neg = format!("{ADD}\npub fn neg(n: i32) -> i32 {{\n    -n\n}}\n");
    let neat = ADD
        .replace("a: i32, b: i32", "left: i32, right: i32")
        .replace("a + b", "left + right");
    let mut scenario = demo(&["small"])
        .answers("small", &creates("tests/add.rs", ADD_TEST))
        .answers("small", &replaces("src/lib.rs", ADD))
        .answers("small", &replaces("src/lib.rs", &neat))
        .answers("small", &creates("tests/neg.rs", NEG_TEST))
        .answers("small", &replaces("src/lib.rs", &with_neg))
        .answers("small", &replaces("src/lib.rs", &with_neg));
    let criteria = [
        "add(a, b) gives the sum of two numbers",
        "neg(n) gives the negative of a number",
    ];
    let reply = scenario.reply(
        "tdd",
        json!({"criteria": criteria, "refactor": true, "session_id": "both"}),
    );
    let (told, size) = told(&reply);
    assert_eq!(
        (&told["status"], &told["verified"]),
        (&json!("pass"), &json!(true)),
        "{told:#}"
    );
    assert!(size < 1024 + 2 * 120 + 100, "{size} bytes: {told}");
    assert_eq!(
        told["message"],
        "2 of 2 criteria green, each shown by a test that failed before"
    );
    assert!(told.get("attempts").is_none(), "{told}");
    let lines: Vec<&str> = told["details"]["criteria"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l.as_str().unwrap())
        .collect();
    assert!(
        lines[0].contains("adds_two_numbers") && lines[0].contains("refactored"),
        "{lines:?}"
    );
    assert!(
        lines[1].contains("a_number_is_negated") && lines[1].contains("nothing to refactor"),
        "{lines:?}"
    );
    assert_eq!(scenario.read("src/lib.rs"), with_neg);
    let whole: Value =
        serde_json::from_slice(&std::fs::read(told["full_result"].as_str().unwrap()).unwrap())
            .unwrap();
    assert_eq!(
        whole["details"]["phases"].as_array().unwrap().len(),
        6,
        "{whole:#}"
    );

    let entries = log(&scenario, "both");
    let phases: Vec<&str> = entries
        .iter()
        .map(|entry| entry["phase"].as_str().unwrap())
        .collect();
    assert_eq!(
        phases,
        ["red", "green", "refactor", "red", "green", "refactor"]
    );
    let id = &entries[0]["cycle_id"];
    assert!(id.as_str().unwrap().starts_with("cycle-"), "{id}");
    assert!(
        entries.iter().all(|entry| entry["cycle_id"] == *id),
        "{entries:#?}"
    );
}

#[test]
fn failed_criterion_leaves_nothing_earlier_ones_stay() {
    let mut scenario = demo(&["small"])
        .answers("small", &creates("tests/add.rs", ADD_TEST))
        .answers("small", &replaces("src/lib.rs", ADD))
        .answers("small", &creates("tests/below/neg.rs", NEG_TEST))
        .answers("small", &creates("tests/neg.rs", NEG_TEST))
        .answers("small", &replaces("src/lib.rs", WRONG));
    let asked = json!({
        "criteria": "1. add(a, b) gives the sum of two numbers\n2. neg(n) gives the negative of a number\n3. one() stays",
        "session_id": "half", "max_attempts": 1,
    });
    let reply = scenario.reply("tdd", asked);
    let (told, size) = told(&reply);
    // The test in a directory that cargo does not look into is no red; with one attempt that ends it.
    assert_eq!(
        (&told["status"], &told["phase"]),
        (&json!("error"), &json!("red")),
        "{told:#}"
    );
    assert!(
        told["message"]
            .as_str()
            .unwrap()
            .starts_with("Criterion 2 of 3 failed at red, and the criterion before it is kept. "),
        "{told:#}"
    );
    assert!(size < 2 * 1024, "{size} bytes: {told}");
    let next = &told["next"];
    assert_eq!(next["tool"], "tdd", "{told:#}");
    let left = json!(["neg(n) gives the negative of a number", "one() stays"]);
    assert_eq!(next["arguments"]["criteria"], left);
    assert_eq!(next["arguments"]["max_attempts"], 1);
    let diff = told["diff"].as_str().unwrap();
    assert!(
        diff.contains("+++ b/tests/add.rs") && diff.contains("+++ b/src/lib.rs"),
        "what stays is shown: {diff}"
    );
    assert!(!diff.contains("neg"), "what was undone is not: {diff}");
    let attempts = told["attempts"].as_array().unwrap().iter();
    let attempts: Vec<String> = attempts
        .map(|one| {
            let text = |name: &str| one[name].as_str().unwrap_or_default();
            format!("{} {} {}", text("phase"), text("model"), text("cause"))
        })
        .collect();
    assert_eq!(
        attempts,
        [
            "red small accepted",
            "green small accepted",
            "red small rejected"
        ]
    );
    assert_eq!(scenario.read("src/lib.rs"), ADD, "the first one stays");

    let before = scenario.tree();
    let reply = scenario.reply(
        "tdd",
        json!({"criteria": ["neg(n) gives the negative"], "session_id": "half"}),
    );
    let told = self::told(&reply).0;
    assert_eq!(
        (&told["status"], &told["phase"]),
        (&json!("error"), &json!("green")),
        "{told:#}"
    );
    assert!(
        told["message"].as_str().unwrap().starts_with(
            "Criterion 1 of 1 failed at green, and nothing was changed. Its red test was removed. "
        ),
        "{told:#}"
    );
    assert_eq!(scenario.tree(), before, "the red test is gone again");
    let ids: Vec<Value> = log(&scenario, "half")
        .iter()
        .map(|entry| entry["cycle_id"].clone())
        .collect();
    assert_eq!(ids.len(), 5);
    assert!(
        ids[0] == ids[2] && ids[3] == ids[4] && ids[0] != ids[3],
        "{ids:?}"
    );
}

#[test]
fn exhausted_chain_prepares_a_call_of_prove() {
    let rejected = creates("tests/below/add.rs", ADD_TEST);
    for (line, said) in [
        (
            json!({"model": "small", "failure": "setup"}),
            "No model gave an answer, so nothing was changed. ",
        ),
        (
            json!({"model": "small", "failure": "quota"}),
            "No model gave an answer, so nothing was changed. ",
        ),
        (
            json!({"model": "small", "answer": rejected}),
            "No answer passed the checks, so nothing was changed. ",
        ),
    ] {
        let mut scenario = demo(&["small"]);
        scenario.line(&line);
        let root = scenario.project.path().canonicalize().unwrap();
        let tests = "cargo test --offline";
        let told = told(&scenario.reply(
            "tdd",
            json!({"criteria": "add(a, b) gives the sum", "max_attempts": 1, "test_cmd": tests}),
        ))
        .0;
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(said), "{message}");
        assert!(
            message.ends_with("Or change the code yourself, then call `prove`."),
            "{message}"
        );
        assert!(!message.contains('…'), "a remedy is never cut: {message}");
        assert_eq!(
            told["next"],
            json!({"tool": "prove", "arguments": {"project_root": root, "test_cmd": tests}}),
            "{told:#}"
        );
    }
}

#[test]
fn cycle_stopped_at_red_keeps_the_test() {
    let mut scenario = demo(&["small"]).answers("small", &creates("tests/add.rs", ADD_TEST));
    let reply = scenario.reply(
        "tdd",
        json!({"criteria": ["add(a, b) gives the sum"], "stop_at": "red"}),
    );
    let told = self::told(&reply).0;
    assert_eq!(
        (&told["status"], &told["phase"], &told["verified"]),
        (&json!("pass"), &json!("red"), &json!(true))
    );
    assert_eq!(scenario.read("tests/add.rs"), ADD_TEST);

    let mut scenario = demo(&["small"]);
    scenario.line(
        &json!({"model": "small", "answer": creates("tests/add.rs", ADD_TEST), "cost_usd": 0.9}),
    );
    scenario
        .line(&json!({"model": "small", "answer": replaces("src/lib.rs", WRONG), "cost_usd": 0.9}));
    scenario
        .line(&json!({"model": "small", "answer": replaces("src/lib.rs", ADD), "cost_usd": 0.9}));
    let before = scenario.tree();
    let asked = json!({"criteria": ["add(a, b) gives the sum"], "budget_usd": 1.0});
    let told = self::told(&scenario.reply("tdd", asked)).0;
    assert_eq!(
        (&told["status"], &told["phase"]),
        (&json!("error"), &json!("green")),
        "{told:#}"
    );
    assert_eq!(scenario.tree(), before);

    for (criteria, said) in [
        (json!([]), "criteria is required"),
        (json!(vec!["x"; 21]), "21 are more than 20"),
    ] {
        let told = self::told(&scenario.reply("tdd", json!({"criteria": criteria}))).0;
        assert!(told["message"].as_str().unwrap().contains(said), "{told:#}");
    }
}

/// Two functions that are wrong, each with a failing test in a file of its own.
fn two_red_files() -> Scenario {
    let code = format!("{WRONG}\npub fn sub(a: i32, b: i32) -> i32 {{\n    a + b\n}}\n");
    let sub_test = "#[test]\nfn subtracts() {\n    assert_eq!(demo::sub(5, 2), 3);\n}\n";
    let files = [
        MANIFEST,
        ("src/lib.rs", code.as_str()),
        OLD_TEST,
        ("tests/add.rs", ADD_TEST),
        ("tests/sub.rs", sub_test),
    ];
    let half = code.replace("a - b", "a  + b");
    let done = half
        .replace("    a + b", "    a - b")
        .replace("a  + b", "a + b");
    Scenario::chain(&["small"], &files)
        .answers(
            "small",
            &replaces("src/lib.rs", &half.replace("a  + b", "b + a")),
        )
        .answers(
            "small",
            &replaces("src/lib.rs", &done.replace("    a + b", "    b + a")),
        )
}

#[test]
fn green_without_test_path_fixes_all_red_files() {
    for arguments in [
        json!({}),
        json!({"test_path": ["tests/add.rs", "tests/sub.rs"]}),
    ] {
        let mut scenario = two_red_files();
        let before = scenario.read("src/lib.rs");
        let green = scenario.call("tdd_green", arguments);
        assert_eq!(
            (&green["status"], &green["verified"]),
            (&json!("pass"), &json!(true)),
            "{green:#}"
        );
        assert_eq!(green["attempts"].as_array().unwrap().len(), 2, "{green:#}");
        assert_eq!(green["files_changed"], json!(["src/lib.rs"]));
        let message = green["message"].as_str().unwrap();
        assert!(
            message.contains("adds_two_numbers") && message.contains("subtracts"),
            "{message}"
        );
        drop(scenario.end_session());
        let mut undo = scenario.command();
        undo.current_dir(scenario.root()).arg("undo");
        let undone = undo.stdin(std::process::Stdio::null()).output().unwrap();
        assert!(undone.status.success(), "{undone:?}");
        assert_eq!(scenario.read("src/lib.rs"), before, "all of it at once");
    }
}

#[test]
fn red_file_that_stays_red_keeps_those_before() {
    let mut scenario = two_red_files();
    let only = json!({"test_path": ["tests/add.rs", "tests/sub.rs"], "max_attempts": 1});
    // The second answer is missing, so nobody can make the second file green.
    let answers = scenario.state.path().join("answers.jsonl");
    let first = std::fs::read_to_string(&answers).unwrap();
    std::fs::write(&answers, first.lines().next().unwrap()).unwrap();
    let green = scenario.call("tdd_green", only);
    assert_ne!(green["status"], "pass", "{green:#}");
    let message = green["message"].as_str().unwrap();
    assert!(
        message.starts_with("1 of 2 are green and kept"),
        "{message}"
    );
    assert!(scenario.read("src/lib.rs").contains("b + a"));
}

#[test]
fn green_without_test_path_fixes_what_is_red() {
    let files = [
        MANIFEST,
        ("src/lib.rs", ONE),
        OLD_TEST,
        ("tests/add.rs", ADD_TEST),
    ];
    let mut scenario =
        Scenario::chain(&["small"], &files).answers("small", &replaces("src/lib.rs", ADD));
    // The test names what is not written, so it does not build.
    let green = scenario.call("tdd_green", json!({}));
    assert_eq!(green["status"], "pass", "{green:#}");
    assert_eq!(scenario.read("src/lib.rs"), ADD);

    let nothing = scenario.call("tdd_green", json!({}));
    assert_eq!(nothing["status"], "error", "{nothing:#}");
    let message = nothing["message"].as_str().unwrap();
    assert!(message.starts_with("nothing is red now"), "{message}");

    // A test that fails by its assertion.
    std::fs::write(scenario.root().join("src/lib.rs"), WRONG).unwrap();
    scenario.say("small", &replaces("src/lib.rs", ADD));
    let green = scenario.call("tdd_green", json!({}));
    assert_eq!(green["status"], "pass", "{green:#}");
    assert!(scenario.asked_of("small")[1].contains("adds_two_numbers"));
}
