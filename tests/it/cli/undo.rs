//! `supervisor undo`: an accepted call is taken back from what is on disk, by a process that knows nothing of the server.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::skills::tdd::{ADD, ADD_TEST, MANIFEST, OLD_TEST, ONE, WRONG};
use crate::support::tdd_bench::{Bench, creates, replaces};

/// A test inside the source, so that there is no directory of tests yet.
const INLINE: &str = "\n#[test]\nfn one_is_one() {\n    assert_eq!(one(), 1);\n}\n";

/// A project in which a red and a green were accepted, and its server has ended.
fn worked_on() -> Bench {
    worked_on_with("")
}

fn worked_on_with(settings: &str) -> Bench {
    let files = [MANIFEST, ("src/lib.rs", &*format!("{ONE}{INLINE}"))];
    let mut bench = Bench::chain(&["small"], &files).settings(settings);
    bench.say("small", &creates("tests/add.rs", ADD_TEST));
    let red = bench.call(
        "tdd_red",
        json!({"spec": "add(a, b) gives the sum of two numbers", "session_id": "undo"}),
    );
    assert_eq!(red["status"], "pass", "{red:#}");
    bench.say("small", &replaces("src/lib.rs", &format!("{ADD}{INLINE}")));
    let green = bench.call("tdd_green", red["next"]["arguments"].clone());
    assert_eq!(green["status"], "pass", "{green:#}");
    drop(bench.end_session());
    bench
}

fn undo(bench: &Bench, words: &[&str]) -> Output {
    let mut command = bench.command();
    command
        .current_dir(bench.root())
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
fn calls(bench: &Bench) -> Vec<String> {
    let log = fs::read_to_string(bench.state.path().join("state/sessions/undo.jsonl")).unwrap();
    let id = |line: &str| {
        serde_json::from_str::<Value>(line).unwrap()["call"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    log.lines().map(id).collect()
}

#[test]
fn accepted_calls_are_taken_back_one_by_one_the_latest_first() {
    let bench = worked_on();
    let accepted = bench.tree();
    let dry = undo(&bench, &["--dry-run"]);
    assert!(
        dry.status.success() && said(&dry).contains("restore    src/lib.rs"),
        "{}",
        said(&dry)
    );
    assert!(
        said(&dry).contains("would take back 1 file"),
        "{}",
        said(&dry)
    );
    assert_eq!(bench.tree(), accepted, "a dry run does nothing");

    let first = undo(&bench, &[]);
    assert!(first.status.success(), "{}", said(&first));
    assert!(
        said(&first).contains(&calls(&bench)[1]) && said(&first).contains("tdd_green"),
        "{}",
        said(&first)
    );
    assert_eq!(
        (bench.read("src/lib.rs"), bench.read("tests/add.rs")),
        (format!("{ONE}{INLINE}"), ADD_TEST.into())
    );

    let second = undo(&bench, &["--project", "tests"]);
    assert!(
        second.status.success() && said(&second).contains("remove     tests/add.rs"),
        "{}",
        said(&second)
    );
    assert!(
        !bench.project.path().join("tests").exists(),
        "a directory that it made goes with it"
    );

    let third = undo(&bench, &[]);
    assert_eq!(third.status.code(), Some(2), "{}", said(&third));
    assert!(
        said(&third).contains("no accepted call of"),
        "{}",
        said(&third)
    );
}

#[test]
fn work_that_was_done_in_a_private_view_is_taken_back_too() {
    let bench = worked_on_with("[sandbox]\nmode = \"auto\"\n");
    for (call, file) in [("tdd_green", "src/lib.rs"), ("tdd_red", "tests/add.rs")] {
        let output = undo(&bench, &[]);
        assert!(output.status.success(), "{}", said(&output));
        assert!(
            said(&output).contains(call) && said(&output).contains(file),
            "{}",
            said(&output)
        );
    }
    assert_eq!(bench.read("src/lib.rs"), format!("{ONE}{INLINE}"));
    assert!(!bench.project.path().join("tests").exists());
}

#[test]
fn a_file_that_was_changed_since_is_named_and_nothing_is_done() {
    let bench = worked_on();
    let calls = calls(&bench);
    // Of two files one was changed by hand: not even the other is touched.
    let mine = ADD.replace("a + b", "b + a");
    fs::write(bench.project.path().join("src/lib.rs"), &mine).unwrap();
    let before = bench.tree();
    let output = undo(&bench, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("src/lib.rs: changed since"),
        "{}",
        said(&output)
    );
    assert_eq!(bench.tree(), before);

    // The red alone is still as it was left, and can go.
    let red = undo(&bench, &[&calls[0][..8]]);
    assert!(red.status.success(), "{}", said(&red));
    assert!(!bench.project.path().join("tests/add.rs").exists());
    let again = undo(&bench, &[&calls[0]]);
    assert_eq!(again.status.code(), Some(2));
    assert!(
        said(&again).contains("was taken back already"),
        "{}",
        said(&again)
    );
}

#[test]
fn a_call_that_changed_nothing_says_so() {
    let mut bench = Bench::chain(
        &["small"],
        &[
            MANIFEST,
            ("src/lib.rs", ONE),
            OLD_TEST,
            ("tests/add.rs", ADD_TEST),
        ],
    )
    .answers("small", &replaces("src/lib.rs", WRONG));
    let green = bench.call(
        "tdd_green",
        json!({"test_path": "tests/add.rs", "session_id": "undo"}),
    );
    assert_ne!(green["status"], "pass");
    let output = undo(&bench, &[&calls(&bench)[0]]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("was not accepted, so it changed nothing"),
        "{}",
        said(&output)
    );
    let output = undo(&bench, &["0123456789abcdef"]);
    assert!(
        said(&output).contains("there is no call `0123456789abcdef`"),
        "{}",
        said(&output)
    );
}
