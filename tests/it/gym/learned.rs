//! The learned policy in real calls: what earlier turns came to decides which tiers are asked and how often, and the log and
//! `explain` say why.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use supervisor_engine::policy::{TaskClass, TaskSize};
use supervisor_engine::services::ModelHistory as _;
use supervisor_gym::passport::PassportBook;
use supervisor_gym::task::GymTask;
use supervisor_gym::task_set::TaskSet;
use supervisor_workspace::state::StateDir;

use crate::support::scenario::Scenario;
use supervisor_test_support::programs::require;

const TASK: &str = "ruby/rows_needed";

fn task() -> GymTask {
    let tasks = TaskSet::own().and_then(|set| set.tasks()).unwrap();
    tasks.into_iter().find(|task| task.name == TASK).unwrap()
}

/// A user with a chain of `small`, which is always wrong now, and `large`, which is right.
fn user(task: &GymTask) -> Scenario {
    let scenario = Scenario::chain(&["small", "large"], &[])
        .settings("[policy]\nmode = \"learned\"\n[models.small]\nattempts_per_tier = 2\n[models.large]\nprice_in = 3.0\nprice_out = 15.0\n");
    let edits = |text: &str| json!({"edits": [{"path": task.solution_path, "action": "replace", "content": text}]});
    let right = edits(&task.reference[&task.solution_path]);
    let mut text = String::new();
    for n in 0..40 {
        // Another wrong answer each time: the same one twice would not be judged again.
        let wrong = edits(&format!("module Solution\n  # {n}\nend\n"));
        let small = json!({"model": "small", "answer": wrong, "tokens_in": 10, "tokens_out": 10, "cost_usd": 0.0});
        let large = json!({"model": "large", "answer": right, "cost_usd": 0.01});
        text += &format!("{small}\n{large}\n");
    }
    fs::write(scenario.state.path().join("answers.jsonl"), text).unwrap();
    scenario
}

/// Notes so many turns of `small`, each with tries that ended like this and took so long.
fn note(scenario: &Scenario, turns: usize, causes: &[&str], seconds: u64) {
    let class = TaskClass {
        skill: "tdd_green".into(),
        language: "ruby".into(),
        size: TaskSize::Small,
    };
    let attempt = |cause: &&str| {
        serde_json::from_value(
            json!({"attempt": 1, "model": "small", "tier": "local", "duration_ms": seconds * 1000,
            "cause": cause, "cost_usd": 0.0, "tokens_in": 1}),
        )
        .unwrap()
    };
    let attempts: Vec<_> = causes.iter().map(attempt).collect();
    let book = PassportBook::of(&StateDir::at(scenario.state.path().join("state")).unwrap());
    for _ in 0..turns {
        book.note(&class, &attempts).unwrap();
    }
}

/// The models of each attempt of a call on a fresh project.
fn call(scenario: &mut Scenario, task: &GymTask) -> Vec<String> {
    empty(scenario.project.path());
    task.write_project(scenario.project.path()).unwrap();
    let result = scenario.call(
        "tdd_green",
        json!({"test_path": task.test_path, "session_id": "learned"}),
    );
    assert_eq!(result["status"], "pass", "{result:#}");
    result["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["model"].as_str().unwrap().to_owned())
        .collect()
}

fn empty(dir: &Path) {
    for path in fs::read_dir(dir).unwrap().flatten() {
        let path = path.path();
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
}

fn decisions(scenario: &Scenario) -> Vec<Value> {
    let log =
        fs::read_to_string(scenario.state.path().join("state/sessions/learned.jsonl")).unwrap();
    log.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["policy"].clone())
        .collect()
}

fn explained(scenario: &Scenario) -> String {
    let output = scenario
        .command()
        .args(["explain", "tdd_green"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[ignore = "needs ruby"]
fn model_that_always_fails_is_skipped() {
    require(&["ruby"]);
    let task = task();
    let mut scenario = user(&task);
    // Its minutes cost more than the top tier.
    note(&scenario, 12, &["rejected"], 120);
    let skipped = (0..3)
        .filter(|_| call(&mut scenario, &task)[0] == "large")
        .count();
    assert!(
        skipped >= 2,
        "asked in {} of 3 calls after 12 failures",
        3 - skipped
    );
    let decisions = decisions(&scenario);
    let policy = decisions
        .iter()
        .find(|policy| policy["order"] == json!(["large"]));
    let policy = policy.unwrap_or_else(|| panic!("{decisions:#?}"));
    assert!(
        policy["sentence"]
            .as_str()
            .unwrap()
            .contains("`small` is skipped"),
        "{policy:#}"
    );
    let explained = explained(&scenario);
    assert!(
        explained.contains("`small` is skipped: accepted in 0 of"),
        "{explained}"
    );
}

#[test]
#[ignore = "needs ruby"]
fn useless_second_try_is_dropped() {
    require(&["ruby"]);
    let task = task();
    let mut scenario = user(&task);
    note(&scenario, 8, &["accepted"], 30);
    note(&scenario, 14, &["rejected", "rejected"], 30);
    let single = (0..3)
        .filter(|_| call(&mut scenario, &task) == ["small", "large"])
        .count();
    assert!(
        single >= 2,
        "tried again in {} of 3 calls after 14 second tries that were wrong",
        3 - single
    );
    let decisions = decisions(&scenario);
    let policy = decisions
        .iter()
        .find(|policy| policy["tries"] == json!([1, 1]));
    let policy = policy.unwrap_or_else(|| panic!("{decisions:#?}"));
    assert_eq!(policy["order"], json!(["small", "large"]));
    let second = &policy["tiers"][0]["by_try"][1];
    assert!(
        second["judged"].as_u64() >= Some(14) && second["accepted"] == 0,
        "{policy:#}"
    );
    assert!(
        policy["sentence"]
            .as_str()
            .unwrap()
            .contains("`small` is asked once and not 2 times"),
        "{policy:#}"
    );
    let explained = explained(&scenario);
    assert!(
        explained.contains("a second try was accepted in 0 of"),
        "{explained}"
    );
}

#[test]
#[ignore = "needs ruby"]
fn useful_second_try_is_kept() {
    require(&["ruby"]);
    let task = task();
    let mut scenario = user(&task);
    note(&scenario, 8, &["accepted"], 30);
    note(&scenario, 14, &["rejected", "accepted"], 30);
    assert_eq!(call(&mut scenario, &task), ["small", "small", "large"]);
    assert_eq!(decisions(&scenario)[0]["tries"], json!([2, 1]));
}
