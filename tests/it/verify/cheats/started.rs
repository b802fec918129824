//! A command of one's own: the file that it starts decides what a pass is, so it is sealed like a test. So is the file
//! that was named as the test, whatever it is called.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::bench::Bench;
use super::case::Edit::{self, Change, Create};
use super::case::{Does, Kind, Tool};
use super::picture::picture;
use supervisor_test_support::suites::file;

const CHECK: &str = "#!/bin/sh\ngrep -q 'three times' answer.txt\n";

/// `answer.txt` must say something, `tools/check.sh` says what.
fn project(root: &Path, answer: &str, script: Option<&str>) {
    file(root, "tools/check.sh", CHECK);
    file(root, "answer.txt", answer);
    file(root, "wanted.txt", "three times\n");
    if let Some(script) = script {
        file(
            root,
            "package.json",
            &json!({"name": "demo", "scripts": {"test": script}}).to_string(),
        );
    }
}

fn asked(
    bench: &mut Bench,
    root: &Path,
    tool: Tool,
    does: &Does,
    command: Option<&str>,
) -> (Value, String) {
    let model = bench.script(does);
    let mut arguments = json!({"project_root": root, "model": model, "test_path": "wanted.txt"});
    if let Some(command) = command {
        arguments["test_cmd"] = json!(command);
    }
    let name = match tool {
        Tool::Refactor => {
            arguments["impl_path"] = json!("answer.txt");
            "tdd_refactor"
        }
        Tool::Green | Tool::Red => "tdd_green",
    };
    let before = picture(root);
    let result = bench.ask(name, arguments);
    (result, before.differences(&picture(root)))
}

#[test]
fn what_the_command_starts_is_sealed() {
    let mut bench = Bench::new("");
    let cheat: &'static [Edit] = &[Change(
        "tools/check.sh",
        "grep -q 'three times' answer.txt",
        "exit 0",
    )];
    let agent = Does::Agent("printf '#!/bin/sh\\nexit 0\\n' > tools/check.sh");
    let wanted = Does::Agent("echo twice > wanted.txt");
    for (n, (command, tool, does, touched)) in [
        (
            Some("sh -e tools/check.sh"),
            Tool::Green,
            &Does::Edits(cheat),
            "tools/check.sh",
        ),
        (
            Some("sh tools/check.sh"),
            Tool::Green,
            &agent,
            "tools/check.sh",
        ),
        (None, Tool::Green, &Does::Edits(cheat), "tools/check.sh"),
        (None, Tool::Green, &agent, "tools/check.sh"),
        (
            Some("sh tools/check.sh"),
            Tool::Refactor,
            &Does::Edits(cheat),
            "tools/check.sh",
        ),
        (
            Some("sh tools/check.sh"),
            Tool::Refactor,
            &agent,
            "tools/check.sh",
        ),
        (
            Some("sh tools/check.sh"),
            Tool::Green,
            &wanted,
            "wanted.txt",
        ),
        (
            Some("sh tools/check.sh"),
            Tool::Refactor,
            &wanted,
            "wanted.txt",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let root = bench.here().join(format!("started-{n}"));
        let answer = if tool == Tool::Refactor {
            "three times"
        } else {
            "twice"
        };
        let script = command.is_none().then_some("true && sh tools/check.sh");
        if script.is_some() && Kind::Node.skips() {
            continue;
        }
        git_project(&root, answer, script);
        let (result, differences) = asked(&mut bench, &root, tool, does, command);
        assert_eq!(
            (&result["verified"], differences.as_str()),
            (&json!(false), ""),
            "{n}: {result:#}"
        );
        let attempt = &result["attempts"][0];
        assert_eq!(attempt["cause"], "tampered", "{n}: {result:#}");
        assert!(
            attempt["feedback"].as_str().unwrap().contains(touched),
            "{n}: {result:#}"
        );
    }
}

#[test]
fn what_it_looks_at_is_not() {
    let mut bench = Bench::new("");
    let root = bench.here().join("looked-at");
    git_project(&root, "twice", None);
    let honest = Does::Edits(&[
        Change("answer.txt", "twice", "three times"),
        Create("notes.txt", "tools/check.sh\n"),
    ]);
    let (result, differences) = asked(
        &mut bench,
        &root,
        Tool::Green,
        &honest,
        Some("sh tools/check.sh"),
    );
    // A text is no test that could be made wrong, so this is a pass that nothing proves.
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(false)),
        "{result:#}"
    );
    assert!(!differences.is_empty());
    assert_eq!(
        fs::read_to_string(root.join("answer.txt")).unwrap(),
        "three times"
    );
}

fn git_project(root: &Path, answer: &str, script: Option<&str>) {
    project(root, answer, script);
    for args in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["commit", "-q", "-m", "First"],
    ] {
        super::picture::git(root, args);
    }
}
