//! `supervisor undo`: an accepted call is taken back from what is on disk, by a process that knows nothing of the server.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::skills::tdd::{ADD, ADD_TEST, MANIFEST, OLD_TEST, ONE, WRONG};
use crate::support::scenario::{Scenario, creates, replaces};

/// A test inside the source, so that there is not a directory of tests yet.
const INLINE: &str = "\n#[test]\nfn one_is_one() {\n    assert_eq!(one(), 1);\n}\n";

/// A project in which a red and a green were accepted, and its server has ended.
fn worked_on() -> Scenario {
    worked_on_with("")
}

fn worked_on_with(settings: &str) -> Scenario {
    let files = [MANIFEST, ("src/lib.rs", &*format!("{ONE}{INLINE}"))];
    let mut scenario = Scenario::chain(&["small"], &files).settings(settings);
    scenario.say("small", &creates("tests/add.rs", ADD_TEST));
    let red = scenario.call(
        "tdd_red",
        json!({"spec": "add(a, b) gives the sum of two numbers", "session_id": "undo"}),
    );
    assert_eq!(red["status"], "pass", "{red:#}");
    scenario.say("small", &replaces("src/lib.rs", &format!("{ADD}{INLINE}")));
    let green = scenario.call("tdd_green", red["next"]["arguments"].clone());
    assert_eq!(green["status"], "pass", "{green:#}");
    drop(scenario.end_session());
    scenario
}

fn undo(scenario: &Scenario, words: &[&str]) -> Output {
    let mut command = scenario.command();
    command
        .current_dir(scenario.root())
        .arg("undo")
        .args(words)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The ids of the calls in the log, in their order.
fn calls(scenario: &Scenario) -> Vec<String> {
    let log = fs::read_to_string(scenario.state.path().join("state/sessions/undo.jsonl")).unwrap();
    let id = |line: &str| {
        serde_json::from_str::<Value>(line).unwrap()["call"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    log.lines().map(id).collect()
}

#[test]
fn whole_tdd_call_is_undone_at_once() {
    let files = [MANIFEST, ("src/lib.rs", ONE), OLD_TEST];
    let mut scenario = Scenario::chain(&["small"], &files)
        .answers("small", &creates("tests/add.rs", ADD_TEST))
        .answers("small", &replaces("src/lib.rs", ADD))
        // The second criterion fails in green: its red is undone by the call itself.
        .answers(
            "small",
            &replaces(
                "tests/add.rs",
                &format!(
                    "{ADD_TEST}\n#[test]\nfn neg() {{\n    assert_eq!(demo::neg(2), -2);\n}}\n"
                ),
            ),
        )
        .answers("small", &replaces("src/lib.rs", WRONG));
    let before = scenario.tree();
    let told = scenario.call(
        "tdd",
        json!({"criteria": ["add(a, b) gives the sum", "neg(n) gives the negative"], "session_id": "undo", "max_attempts": 1}),
    );
    assert_eq!(told["phase"], "green", "{told:#}");
    assert_eq!(scenario.read("src/lib.rs"), ADD, "{told:#}");
    drop(scenario.end_session());
    let undone = undo(&scenario, &[]);
    assert!(undone.status.success(), "{}", said(&undone));
    assert!(
        said(&undone).starts_with("tdd cycle-")
            && said(&undone).contains("Undone: 2 files restored."),
        "{}",
        said(&undone)
    );
    let after = scenario.tree();
    for path in ["src/lib.rs", "tests/add.rs"] {
        let path = std::path::Path::new(path);
        assert_eq!(after.get(path), before.get(path), "{}", said(&undone));
    }
}

#[test]
fn accepted_calls_are_undone_latest_first() {
    let scenario = worked_on();
    let accepted = scenario.tree();
    let dry = undo(&scenario, &["--dry-run"]);
    assert!(
        dry.status.success() && said(&dry).contains("restore    src/lib.rs"),
        "{}",
        said(&dry)
    );
    assert!(
        said(&dry).contains("Would undo the changes to 1 file."),
        "{}",
        said(&dry)
    );
    assert_eq!(scenario.tree(), accepted, "a dry run does nothing");

    let first = undo(&scenario, &[]);
    assert!(first.status.success(), "{}", said(&first));
    assert!(
        said(&first).contains(&calls(&scenario)[1]) && said(&first).contains("tdd_green"),
        "{}",
        said(&first)
    );
    assert_eq!(
        (scenario.read("src/lib.rs"), scenario.read("tests/add.rs")),
        (format!("{ONE}{INLINE}"), ADD_TEST.into())
    );

    let second = undo(&scenario, &["--project", "tests"]);
    assert!(
        second.status.success() && said(&second).contains("remove     tests/add.rs"),
        "{}",
        said(&second)
    );
    assert!(
        !scenario.project.path().join("tests").exists(),
        "a directory that it made goes with it"
    );

    let third = undo(&scenario, &[]);
    assert_eq!(third.status.code(), Some(2), "{}", said(&third));
    assert!(
        said(&third).contains("No accepted call of"),
        "{}",
        said(&third)
    );
}

#[test]
fn work_done_on_an_overlay_is_undone() {
    let scenario = worked_on_with("[sandbox]\nmode = \"auto\"\n");
    for (call, file) in [("tdd_green", "src/lib.rs"), ("tdd_red", "tests/add.rs")] {
        let output = undo(&scenario, &[]);
        assert!(output.status.success(), "{}", said(&output));
        assert!(
            said(&output).contains(call) && said(&output).contains(file),
            "{}",
            said(&output)
        );
    }
    assert_eq!(scenario.read("src/lib.rs"), format!("{ONE}{INLINE}"));
    assert!(!scenario.project.path().join("tests").exists());
}

#[test]
fn later_change_is_named_and_nothing_undone() {
    let scenario = worked_on();
    let calls = calls(&scenario);
    // Of two files one was changed by hand: not even the other is touched.
    let mine = ADD.replace("a + b", "b + a");
    fs::write(scenario.project.path().join("src/lib.rs"), &mine).unwrap();
    let before = scenario.tree();
    let output = undo(&scenario, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("Not undone: you edited `src/lib.rs` after the call."),
        "{}",
        said(&output)
    );
    assert_eq!(scenario.tree(), before);

    // The red alone is still as it was left, and can go.
    let red = undo(&scenario, &[&calls[0][..8]]);
    assert!(red.status.success(), "{}", said(&red));
    assert!(!scenario.project.path().join("tests/add.rs").exists());
    let again = undo(&scenario, &[&calls[0]]);
    assert_eq!(again.status.code(), Some(2));
    assert!(
        said(&again).contains("was undone already"),
        "{}",
        said(&again)
    );
}

#[test]
fn call_without_changes_has_nothing_to_undo() {
    let mut scenario = Scenario::chain(
        &["small"],
        &[
            MANIFEST,
            ("src/lib.rs", ONE),
            OLD_TEST,
            ("tests/add.rs", ADD_TEST),
        ],
    )
    .answers("small", &replaces("src/lib.rs", WRONG));
    let green = scenario.call(
        "tdd_green",
        json!({"test_path": "tests/add.rs", "session_id": "undo"}),
    );
    assert_ne!(green["status"], "pass");
    let output = undo(&scenario, &[&calls(&scenario)[0]]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("was not accepted, so it changed nothing"),
        "{}",
        said(&output)
    );
    let output = undo(&scenario, &["0123456789abcdef"]);
    assert!(
        said(&output).contains("there is no call `0123456789abcdef`"),
        "{}",
        said(&output)
    );
}
