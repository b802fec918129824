//! `commit: true`: each green criterion is a commit of the call's files alone, made as the user
//! would make it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use supervisor_test_support::project::git;

use crate::skills::tdd::{ADD, ADD_TEST, MANIFEST, OLD_TEST, ONE};
use crate::support::scenario::{Scenario, creates, replaces};

const STAGED: &str = "staged by the user\n";

/// A repository with one staged change, and answers for one criterion.
fn repository() -> Scenario {
    let files = [
        MANIFEST,
        ("src/lib.rs", ONE),
        OLD_TEST,
        ("notes.txt", "old\n"),
        (".gitignore", "target\nCargo.lock\n"),
    ];
    let scenario = Scenario::chain(&["small"], &files)
        .answers("small", &creates("tests/add.rs", ADD_TEST))
        .answers("small", &replaces("src/lib.rs", ADD));
    let root = scenario.root();
    git(&root, &["init", "-q"]);
    git(&root, &["config", "user.name", "somebody"]);
    git(&root, &["config", "user.email", "somebody@example.org"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "base"]);
    fs::write(root.join("notes.txt"), STAGED).unwrap();
    git(&root, &["add", "notes.txt"]);
    fs::write(root.join("notes.txt"), "not staged\n").unwrap();
    scenario
}

fn hook(root: &Path, name: &str, script: &str) {
    let path = root.join(".git/hooks").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn printed(root: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .args(words)
        .current_dir(root)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn cycle(scenario: &mut Scenario) -> Value {
    let told = scenario.call(
        "tdd",
        json!({"criteria": "add(a, b) gives the sum", "commit": true, "session_id": "commit"}),
    );
    assert_eq!(told["status"], "pass", "{told:#}");
    drop(scenario.end_session());
    told
}

fn undo(scenario: &Scenario) -> Output {
    let mut command = scenario.command();
    let command = command.current_dir(scenario.root()).arg("undo");
    command.stdin(Stdio::null()).output().unwrap()
}

fn is_untouched(root: &Path) {
    assert_eq!(printed(root, &["show", ":notes.txt"]), STAGED);
    assert_eq!(
        fs::read_to_string(root.join("notes.txt")).unwrap(),
        "not staged\n"
    );
    assert_eq!(printed(root, &["status", "--porcelain"]), "MM notes.txt\n");
}

#[test]
fn green_criterion_is_committed_without_staged_work() {
    let mut scenario = repository();
    let root = scenario.root();
    hook(&root, "commit-msg", "echo checked >> \"$1\"");
    let told = cycle(&mut scenario);
    let commit = told["details"]["commits"][0].as_str().unwrap();
    assert_eq!(printed(&root, &["rev-parse", "HEAD"]).trim(), commit);
    assert_eq!(
        printed(&root, &["log", "-1", "--format=%B"]).trim(),
        "add(a, b) gives the sum\nchecked"
    );
    assert_eq!(
        printed(&root, &["show", "--name-only", "--format="]),
        "src/lib.rs\ntests/add.rs\n"
    );
    is_untouched(&root);
}

#[test]
fn undo_of_a_commit_is_a_commit() {
    let mut scenario = repository();
    let root = scenario.root();
    let told = cycle(&mut scenario);
    let commit = told["details"]["commits"][0].as_str().unwrap();
    let undone = undo(&scenario);
    let said = String::from_utf8_lossy(&undone.stdout).into_owned();
    assert!(undone.status.success(), "{said}");
    let message = printed(&root, &["log", "-1", "--format=%B"]);
    assert_eq!(
        message.trim(),
        format!("Revert \"add(a, b) gives the sum\"\n\nThis reverts commit {commit}.")
    );
    assert_eq!(printed(&root, &["diff", "HEAD~2", "HEAD"]), "", "{said}");
    is_untouched(&root);
}

#[test]
fn failing_hook_keeps_the_work() {
    let mut scenario = repository();
    let root = scenario.root();
    hook(&root, "pre-commit", "echo the style is wrong >&2; exit 1");
    let told = cycle(&mut scenario);
    let message = told["message"].as_str().unwrap();
    assert!(
        message.contains("Not committed") && message.contains("the style is wrong"),
        "{message}"
    );
    assert_eq!(scenario.read("src/lib.rs"), ADD);
    assert_eq!(printed(&root, &["log", "--format=%s"]), "base\n");
    let status = printed(&root, &["status", "--porcelain"]);
    assert_eq!(status, "MM notes.txt\n M src/lib.rs\n?? tests/add.rs\n");
}

#[test]
fn locked_index_does_not_undo_the_commit() {
    let mut scenario = repository();
    let root = scenario.root();
    hook(&root, "post-commit", "touch .git/index.lock");
    let told = cycle(&mut scenario);
    let message = told["message"].as_str().unwrap();
    let commit = told["details"]["commits"][0].as_str().unwrap();
    assert_eq!(printed(&root, &["rev-parse", "HEAD"]).trim(), commit);
    assert!(
        !message.contains("Not committed")
            && message.contains("run `git reset -- src/lib.rs tests/add.rs`"),
        "{message}"
    );
    fs::remove_file(root.join(".git/index.lock")).unwrap();
    fs::remove_file(root.join(".git/hooks/post-commit")).unwrap();
    git(&root, &["reset", "--", "src/lib.rs", "tests/add.rs"]);
    let undone = undo(&scenario);
    assert!(undone.status.success(), "{undone:?}");
    let message = printed(&root, &["log", "-1", "--format=%B"]);
    assert!(message.contains(&format!("This reverts commit {commit}.")));
}

#[test]
fn nothing_is_committed_after_a_failed_commit() {
    let both = format!("{ADD}\npub fn sub(a: i32, b: i32) -> i32 {{\n    a - b\n}}\n");
    let sub_test = ADD_TEST.replace("add", "sub").replace('3', "-1");
    let mut scenario = repository()
        .answers("small", &creates("tests/sub.rs", &sub_test))
        .answers("small", &replaces("src/lib.rs", &both));
    let root = scenario.root();
    hook(&root, "pre-commit", "echo x >> .git/tries; exit 1");
    let told = scenario.call(
        "tdd",
        json!({"criteria": ["add(a, b) gives the sum", "sub(1, 2) is -1"], "commit": true}),
    );
    assert_eq!(told["status"], "pass", "{told:#}");
    assert_eq!(scenario.read(".git/tries"), "x\n", "one commit was tried");
    let message = told["message"].as_str().unwrap();
    assert!(
        message.contains("2 criteria, first criterion 1"),
        "{message}"
    );
}

#[test]
fn files_with_changes_of_the_user_are_not_committed() {
    let mut scenario = repository();
    let root = scenario.root();
    let own = format!("// mine\n{ONE}");
    fs::write(root.join("src/lib.rs"), &own).unwrap();
    let told = cycle(&mut scenario);
    let message = told["message"].as_str().unwrap();
    assert!(
        message.contains("`src/lib.rs` had uncommitted changes of yours"),
        "{message}"
    );
    assert_eq!(printed(&root, &["log", "--format=%s"]), "base\n");
}
