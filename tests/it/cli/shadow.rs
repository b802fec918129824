//! Shadow mode with the built program: a change that `prove` finds proven is recorded, and replayed by a recorded model on
//! a copy.

use std::process::{Command, Output, Stdio};

use serde_json::Value;
use supervisor_gym::passport::PassportBook;
use supervisor_test_support::programs::require;
use supervisor_workspace::state::StateDir;

use crate::skills::tdd::{ADD, ADD_TEST, MANIFEST, OLD_TEST, ONE};
use crate::support::mcp_session::until;
use crate::support::scenario::{Scenario, replaces};

fn supervisor(scenario: &Scenario, words: &[&str]) -> Output {
    scenario
        .command()
        .args(words)
        .current_dir(scenario.root())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn said(scenario: &Scenario, words: &[&str]) -> String {
    let output = supervisor(scenario, words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn git(scenario: &Scenario, words: &[&str]) {
    let names = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    let mut command = Command::new("git");
    let done = command
        .args(names)
        .args(words)
        .current_dir(scenario.root())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// A project whose change is proven: a function and its test.
fn changed_project() -> Scenario {
    let scenario = Scenario::chain(
        &["small"],
        &[
            MANIFEST,
            ("src/lib.rs", ONE),
            OLD_TEST,
            (".gitignore", "target/\n"),
        ],
    );
    git(&scenario, &["init", "-q"]);
    git(&scenario, &["add", "-A"]);
    git(&scenario, &["commit", "-qm", "base"]);
    std::fs::write(scenario.root().join("src/lib.rs"), ADD).unwrap();
    std::fs::write(scenario.root().join("tests/add.rs"), ADD_TEST).unwrap();
    scenario
}

#[test]
#[ignore = "needs git"]
fn settings_of_the_project_apply_to_its_copy() {
    require(&["git", "cargo"]);
    let mut scenario = changed_project().answers("small", &replaces("src/lib.rs", ADD));
    let project = scenario.root().display().to_string();
    scenario = scenario.settings(&format!(
        "[backends.cloud]\nkind = \"openai\"\ntier = \"subagent\"\nbase_url = \"https://example.com/v1\"\nmodels = [\"cloud\"]\n\
         [projects.\"{project}\"]\nstay_local = true\ntest_cmd = \"cargo test --tests\"\n"
    ));
    said(&scenario, &["shadow", "on", "--model", "cloud"]);
    said(&scenario, &["prove"]);
    let refused = said(&scenario, &["shadow", "run", "--anyway"]);
    assert!(
        refused.starts_with("0 tasks replayed, 0 accepted, 1 left out (")
            && refused.contains("stay_local"),
        "{refused}"
    );
    said(&scenario, &["shadow", "on"]);
    let ran = said(&scenario, &["shadow", "run", "--anyway"]);
    assert!(ran.starts_with("1 task replayed, 1 accepted"), "{ran}");
    let calls = scenario.state.path().join("state/shadow/calls/sessions");
    let log: String = std::fs::read_dir(calls)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default())
        .collect();
    assert!(log.contains("cargo test --tests"), "{log}");
}

#[test]
#[ignore = "needs git"]
fn killed_run_leaves_no_copy_behind() {
    require(&["git", "cargo"]);
    let mut scenario = changed_project();
    scenario.line(&serde_json::json!({"model": "small", "failure": "hang"}));
    said(&scenario, &["shadow", "on"]);
    said(&scenario, &["prove"]);
    let before = scenario.tree();
    let mut child = scenario
        .command()
        .args(["shadow", "run", "--anyway"])
        .current_dir(scenario.root())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    until("the question", || !scenario.asked_of("small").is_empty());
    let copies = scenario.state.path().join("state/shadow/copies");
    assert_eq!(std::fs::read_dir(&copies).unwrap().count(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(scenario.tree(), before);
    let answer = serde_json::json!({"model": "small", "answer": replaces("src/lib.rs", ADD)});
    std::fs::write(
        scenario.state.path().join("answers.jsonl"),
        format!("{answer}\n"),
    )
    .unwrap();
    let ran = said(&scenario, &["shadow", "run", "--anyway"]);
    assert!(ran.starts_with("1 task replayed, 1 accepted"), "{ran}");
    assert!(!copies.exists(), "the copies are removed");
}

#[test]
#[ignore = "needs git"]
fn proven_change_is_recorded_and_replayed_on_a_copy() {
    require(&["git", "cargo"]);
    let scenario = changed_project().answers("small", &replaces("src/lib.rs", ADD));
    said(&scenario, &["prove"]);
    assert!(said(&scenario, &["shadow", "status"]).starts_with("off\n0 tasks recorded"));
    assert!(
        !supervisor(&scenario, &["shadow", "run"]).status.success(),
        "it is off"
    );
    said(&scenario, &["shadow", "on", "--minutes", "10"]);
    said(&scenario, &["prove"]);
    said(&scenario, &["prove"]);
    let status = said(&scenario, &["shadow", "status"]);
    assert!(
        status.contains("asking local models only")
            && status.contains("1 task recorded, 0 replayed"),
        "{status}"
    );

    let before = scenario.tree();
    let ran = said(&scenario, &["shadow", "run", "--anyway"]);
    assert_eq!(
        ran,
        "1 task replayed, 1 accepted, $0.00 spent; nothing is left to replay\n"
    );
    assert_eq!(scenario.tree(), before, "the user's files are as they were");
    let asked = &scenario.asked_of("small")[0];
    assert!(
        !asked.contains("a + b") && asked.contains("adds_two_numbers"),
        "{asked}"
    );

    let report: Value =
        serde_json::from_str(&said(&scenario, &["shadow", "report", "--json"])).unwrap();
    assert_eq!(
        (&report["replayed"], &report["accepted"]),
        (&1.into(), &1.into()),
        "{report:#}"
    );
    assert!(
        report["advice"]
            .as_str()
            .unwrap()
            .starts_with("too early to tell"),
        "{report:#}"
    );
    let state = StateDir::at(scenario.state.path().join("state")).unwrap();
    let passport = PassportBook::of(&state).newest("small").unwrap();
    assert!(passport.is_some(), "the passport has the outcome");
    assert!(
        said(&scenario, &["stats"]).starts_with("No calls yet"),
        "the log has none of it"
    );

    assert_eq!(said(&scenario, &["shadow", "purge"]), "removed 1 task\n");
    said(&scenario, &["shadow", "off"]);
    assert!(said(&scenario, &["shadow", "status"]).starts_with("off\n0 tasks recorded"));
}
