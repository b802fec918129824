//! `supervisor call`: every tool from the shell, with recorded models and the real tests of a Rust project.

mod interrupt;
mod mistakes;
mod screen;

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use regex::Regex;
use serde_json::{Value, json};

use crate::skills::tdd::{ADD, ADD_TEST, MANIFEST, OLD_TEST, ONE, WRONG};
use crate::support::debug_project as debug;
use crate::support::mcp_session::{Which, command};
use crate::support::scenario::{Scenario, creates, replaces};

/// A project with a test that names what is not written. Its tests say the same on every machine.
fn red_demo(tiers: &[&str]) -> Scenario {
    let files = [
        MANIFEST,
        ("src/lib.rs", ONE),
        OLD_TEST,
        ("tests/add.rs", ADD_TEST),
    ];
    Scenario::chain(tiers, &files).env("RUST_BACKTRACE", "0")
}

/// The program, started where the project is.
fn standing_in(scenario: &Scenario) -> Command {
    let mut command = scenario.command();
    command.current_dir(scenario.root()).stdin(Stdio::null());
    command
}

fn call(scenario: &Scenario, words: &[&str]) -> Output {
    standing_in(scenario)
        .arg("call")
        .args(words)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Without what differs from run to run.
fn masked(text: &str, scenario: &Scenario) -> String {
    let mut text = text.replace(&scenario.root().display().to_string(), "[ROOT]");
    text = text.replace(&scenario.state.path().display().to_string(), "[STATE]");
    for (pattern, instead) in [
        (r"\d+\.\d+ ?s\b", "[TIME]"),
        (r"· \d+ s", "· [TIME]"),
        (r"-[0-9a-f]{16}\b", "-[HASH]"),
        (r"results/[0-9a-f]{16}\b", "results/[HASH]"),
        (r#""chain": "[0-9a-f]{32}""#, r#""chain": "[DIGEST]""#),
        (r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ", "[WHEN]"),
        // Why a test failed is the runner's to say.
        (
            r"(1 failed, 0 skipped): [^\n]*?(; call again|\n|$)",
            "$1: [WHY]$2",
        ),
        (r"' \(\d+\) panicked", "' (THREAD) panicked"),
        (r#""(duration|generate|verify)_ms": \d+"#, r#""${1}_ms": 0"#),
    ] {
        text = Regex::new(pattern)
            .unwrap()
            .replace_all(&text, instead)
            .into_owned();
    }
    // Cargo may say that it waits for others, or build once more than it needs to, and what is cut off is another part.
    let printed = r#"(?m)^(output\n)((?:  \|.*\n?)+)|("runner_output": )("(?:[^"\\]|\\.)*")"#;
    let mask = |found: &regex::Captures<'_>| match (found.get(1), found.get(3)) {
        _ if !found[0].contains("test result: ") => found[0].to_owned(),
        (Some(_), _) => String::from("output\n  | [CARGO]\n"),
        (None, _) => String::from("\"runner_output\": \"[CARGO]\""),
    };
    Regex::new(printed)
        .unwrap()
        .replace_all(&text, mask)
        .into_owned()
}

#[test]
fn pass_reports_changes_attempts_and_next_step() {
    let scenario = red_demo(&["small", "large"])
        .answers("small", &replaces("src/lib.rs", WRONG))
        .answers("large", &replaces("src/lib.rs", ADD));
    let output = call(
        &scenario,
        &[
            "tdd_green",
            "--arg",
            "test_path=tests/add.rs",
            "--arg",
            "session_id=shell",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(scenario.read("src/lib.rs"), ADD);
    assert!(
        !output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b),
        "no escapes without a terminal"
    );
    insta::assert_snapshot!("call_pass", masked(&text(&output.stdout), &scenario));
    for step in [
        "snapshot of 4 files",
        "tier 1/2 small rejected: ",
        "tier 2/2 large · asking",
        "tier 2/2 large accepted: ",
    ] {
        assert!(
            text(&output.stderr).lines().any(|line| line.contains(step)),
            "{step}: {output:?}"
        );
    }
    let log = scenario.state.path().join("state/sessions/shell.jsonl");
    assert_eq!(std::fs::read_to_string(log).unwrap().lines().count(), 1);
}

#[test]
fn fail_is_an_answer_with_exit_code_1() {
    let passes = "#[test]\nfn one_is_still_one() {\n    assert_eq!(demo::one(), 1);\n}\n";
    let scenario = red_demo(&["small"]).answers("small", &creates("tests/again.rs", passes));
    std::fs::remove_file(scenario.project.path().join("tests/add.rs")).unwrap();
    let before = scenario.tree();
    let output = call(
        &scenario,
        &[
            "tdd_red",
            "--arg",
            "spec=one() is 1",
            "--arg",
            "session_id=shell",
        ],
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    insta::assert_snapshot!("call_fail", masked(&text(&output.stdout), &scenario));
    assert_eq!(scenario.tree(), before);
}

#[test]
fn error_leaves_stdout_empty_with_exit_code_2() {
    let scenario = red_demo(&["small"]).answers("small", &replaces("src/lib.rs", WRONG));
    let before = scenario.tree();
    let output = call(
        &scenario,
        &[
            "tdd_green",
            "--arg",
            "test_path=tests/add.rs",
            "--arg",
            "session_id=shell",
        ],
    );
    assert_eq!(
        (output.status.code(), text(&output.stdout).as_str()),
        (Some(2), "")
    );
    let said = text(&output.stderr);
    let report = said
        .lines()
        .skip_while(|line| !line.starts_with("error: No answer"))
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        report.contains("\n  | assertion `left == right` failed"),
        "{report}"
    );
    insta::assert_snapshot!("call_error", masked(&report, &scenario));
    assert_eq!(scenario.tree(), before);
}

/// Line by line, so that a difference can be read.
fn same(ours: &str, theirs: &str) {
    let differing: Vec<_> = ours
        .lines()
        .zip(theirs.lines())
        .filter(|(ours, theirs)| ours != theirs)
        .collect();
    assert!(differing.is_empty(), "{differing:#?}");
    assert_eq!(ours.lines().count(), theirs.lines().count());
}

#[test]
fn json_output_equals_the_mcp_result() {
    let make = || {
        red_demo(&["small", "large"])
            .answers("small", &replaces("src/lib.rs", WRONG))
            .answers("large", &replaces("src/lib.rs", ADD))
    };
    let (shell, mut mcp) = (make(), make());
    let output = call(
        &shell,
        &[
            "tdd_green",
            "--arg",
            "test_path=tests/add.rs",
            "--arg",
            "session_id=same",
            "--arg",
            "timeout_s=500",
            "--output=json",
        ],
    );
    let ours: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    let reply = mcp.reply(
        "tdd_green",
        json!({"test_path": "tests/add.rs", "session_id": "same", "timeout_s": 500}),
    );
    let theirs = reply["result"]["structuredContent"].clone();
    let shown = |value: &Value, scenario: &Scenario| {
        masked(&serde_json::to_string_pretty(value).unwrap(), scenario)
    };
    same(&shown(&ours, &shell), &shown(&theirs, &mcp));
    assert!(
        text(&output.stderr).contains("tdd_green · tier 1/2 small rejected"),
        "progress is on stderr"
    );
    // And what is remembered of it.
    let entry = |scenario: &Scenario| {
        let line = std::fs::read_to_string(scenario.state.path().join("state/sessions/same.jsonl"))
            .unwrap();
        let mut entry: Value = serde_json::from_str(&line).unwrap();
        entry["timestamp"] = Value::Null;
        entry["call"] = Value::Null;
        shown(&entry, scenario)
    };
    same(&entry(&shell), &entry(&mcp));
}

#[test]
fn json_arguments_come_from_file_or_stdin() {
    let scenario = red_demo(&["small"]);
    let arguments = json!({"test_path": "tests/add.rs", "dry_run": true}).to_string();
    let file = scenario.state.path().join("arguments.json");
    std::fs::write(&file, &arguments).unwrap();
    let from_file = call(&scenario, &["tdd_green", "--json", file.to_str().unwrap()]);
    assert_eq!(from_file.status.code(), Some(0), "{from_file:?}");

    let mut command = standing_in(&scenario);
    let mut child = command
        .args(["call", "tdd_green", "--json", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(arguments.as_bytes())
        .unwrap();
    let from_stdin = child.wait_with_output().unwrap();
    assert_eq!(from_stdin.status.code(), Some(0), "{from_stdin:?}");
    assert!(
        text(&from_stdin.stdout).starts_with("pass: dry run"),
        "{from_stdin:?}"
    );
    assert!(scenario.asked_of("small").is_empty());
}

#[test]
fn relative_project_path_is_resolved() {
    let scenario = red_demo(&["small"]);
    let root = scenario.root();
    let name = format!(
        "project_root={}",
        root.file_name().unwrap().to_str().unwrap()
    );
    let words = [
        "call",
        "tdd_green",
        "--arg",
        "test_path=tests/add.rs",
        "--arg",
        "dry_run=true",
        "--output",
        "json",
    ];
    let mut command = scenario.command();
    let output = command
        .current_dir(root.parent().unwrap())
        .args(words)
        .args(["--arg", &name])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = call(
        &scenario,
        &[
            "tdd_green",
            "--arg",
            "test_path=tests/add.rs",
            "--arg",
            "project_root=no/such",
        ],
    );
    let sentence = format!("error: `{}/no/such` does not exist", root.display());
    assert!(
        output.status.code() == Some(2) && text(&output.stderr).starts_with(&sentence),
        "{output:?}"
    );
    // A client stands nowhere, so the server itself takes no such thing.
    let mut scenario = scenario;
    let refused = scenario.call(
        "tdd_green",
        json!({"test_path": "tests/add.rs", "project_root": "."}),
    );
    assert_eq!(refused["status"], "error", "{refused}");
}

#[test]
fn without_a_tool_all_tools_are_listed() {
    let output = command(Which::Real).arg("call").output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    insta::assert_snapshot!("call_list", text(&output.stdout));
    let output = command(Which::Real)
        .args(["call", "--output", "json"])
        .output()
        .unwrap();
    let tools: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let mut session = crate::support::mcp_session::Session::real();
    session.initialize("2025-11-25");
    session.request(1, "tools/list", json!({}));
    assert_eq!(json!(tools), session.reply(1)["result"]["tools"]);
}

#[test]
fn closed_stdout_is_not_a_failure() {
    let mut child = command(Which::Real)
        .arg("call")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), text(&output.stderr).as_str()),
        (Some(0), "")
    );
}

#[test]
fn broken_settings_are_named() {
    let scenario = red_demo(&["small"]).settings("\n[backends.far]\n");
    let output = call(&scenario, &["tdd_green", "--arg", "test_path=tests/add.rs"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let sentence = text(&output.stderr);
    assert!(
        sentence.contains("the settings cannot be used") && sentence.contains("models.toml"),
        "{sentence}"
    );
}

#[test]
fn text_answer_is_shown_with_its_details() {
    let scenario = debug::project(&["small"]).answers("small", &debug::sound());
    let words = [
        "debug",
        "--arg",
        &format!("error={}", debug::ERROR),
        "--arg",
        &format!("repro_cmd={}", debug::REPRO),
    ];
    let output = call(
        &scenario,
        &[
            &words[..],
            &["--arg", "files=report.sh", "--arg", "session_id=shell"],
        ]
        .concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    insta::assert_snapshot!("call_debug", masked(&text(&output.stdout), &scenario));
}

#[test]
fn busy_project_names_the_other_call() {
    let mut scenario = red_demo(&["small"]).env("SUPERVISOR_LIMITS__LOCK_WAIT_S", "0.1");
    scenario.line(&json!({"model": "small", "failure": "hang"}));
    let words = ["tdd_green", "--arg", "test_path=tests/add.rs"];
    let mut first = standing_in(&scenario)
        .arg("call")
        .args(words)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    crate::support::mcp_session::until("the question", || !scenario.asked_of("small").is_empty());
    let second = call(&scenario, &words);
    let said = text(&second.stderr);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&first),
        rustix::process::Signal::INT,
    )
    .unwrap();
    crate::support::mcp_session::wait(&mut first);
    assert_eq!(second.status.code(), Some(2), "{said}");
    let named = format!(
        "error: busy: process {} works on this project since ",
        first.id()
    );
    assert!(
        said.contains(&named) && !said.contains("killed") && !said.contains("WARN"),
        "{said}"
    );
}

#[test]
fn root_that_is_a_file_is_reported_first() {
    let scenario = red_demo(&["small"]);
    let file = scenario.root().join("Cargo.toml");
    let words = [
        "tdd_green",
        "--arg",
        "test_path=x",
        "--arg",
        &format!("project_root={}", file.display()),
    ];
    let said = text(&call(&scenario, &words).stderr);
    assert!(
        said.starts_with(&format!("error: `{}` is not a directory; ", file.display())),
        "{said}"
    );
}

#[test]
fn review_findings_as_sarif_and_markdown() {
    let mut scenario = crate::support::review_project::shop(&["small"]);
    let arguments = [
        "review",
        "--arg",
        "files=src/shop.py",
        "--arg",
        "files=src/util.py",
    ];
    let mut printed = |form: &str| {
        scenario.say("small", &crate::support::review_project::good());
        let output = call(&scenario, &[&arguments[..], &["--output", form]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let log: Value = serde_json::from_str(&printed("sarif")).unwrap();
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "supervisor review");
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 3, "{log:#}");
    let place = &results[2]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "src/shop.py");
    assert_eq!(place["region"], json!({"startLine": 15, "endLine": 16}));
    assert_eq!(results[0]["level"], "warning");
    let comment = printed("markdown");
    for part in [
        "**pass**: 3 warnings in 2 files",
        "| warning | `src/shop.py:5` | an empty list divides by zero |",
    ] {
        assert!(comment.contains(part), "{part}: {comment}");
    }
    let refused = call(&scenario, &["tier", "--output", "sarif"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("findings of `review`"));
}
