//! `tdd_green` with a check in the place of a test: SQL by rows, with wrong work and cheats.

use serde_json::{Value, json};
use supervisor_gym::task::GymTask;
use supervisor_gym::task_set::TaskSet;
use supervisor_test_support::programs::require;

use crate::support::scenario::{Scenario, gate, trail};

fn task(name: &str) -> GymTask {
    let tasks = TaskSet::own().and_then(|set| set.tasks()).unwrap();
    tasks.into_iter().find(|task| task.name == name).unwrap()
}

fn scenario(task: &GymTask) -> Scenario {
    let scenario = Scenario::chain(&["small", "large"], &[]);
    task.write_project(scenario.project.path()).unwrap();
    scenario
}

fn answer(task: &GymTask, files: &supervisor_gym::task::FileTexts) -> Value {
    let edit = |(path, text): (&String, &String)| {
        let action = if task.files.contains_key(path) {
            "replace"
        } else {
            "create"
        };
        json!({"path": path, "action": action, "content": text})
    };
    json!({"edits": files.iter().map(edit).collect::<Vec<_>>()})
}

/// The file as it is.
fn unchanged(task: &GymTask) -> Value {
    let text = String::from_utf8_lossy(&task.files[&task.solution_path]).into_owned();
    json!({"edits": [{"path": task.solution_path, "action": "replace", "content": text}]})
}

fn arguments(task: &GymTask) -> Value {
    json!({"check": task.check.as_ref().unwrap().visible, "context": task.spec})
}

#[test]
fn query_is_accepted_by_its_rows_and_falsified() {
    let task = task("sql/best_customers");
    let wrong = json!({"edits": [{"path": "query.sql", "action": "replace", "content": "SELECT customer, total FROM orders"}]});
    let mut scenario = scenario(&task).answers("small", &wrong);
    scenario.say("large", &answer(&task, &task.reference));
    let result = scenario.call("tdd_green", arguments(&task));
    assert_eq!(
        trail(&result),
        "small rejected | large accepted",
        "{result:#}"
    );
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(true)),
        "{result:#}"
    );
    let falsified = gate(&result, "falsified")["detail"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        falsified.contains("another expected value") && falsified.contains("no data"),
        "{falsified}"
    );
    assert_eq!(scenario.read("query.sql"), task.reference["query.sql"]);
    let asked = &scenario.asked_of("small")[0];
    assert!(
        asked.contains("CREATE TABLE orders") && asked.contains("eve,15"),
        "{asked}"
    );
    let again = &scenario.asked_of("large")[0];
    assert!(
        again.contains("rows were returned, 2 are expected"),
        "{again}"
    );
    let log = scenario.call("tdd_green", arguments(&task));
    assert!(
        log["message"].as_str().unwrap().contains("nothing is red"),
        "{log:#}"
    );
}

#[test]
fn cheats_of_a_query_are_refused() {
    let task = task("sql/best_customers");
    let cheats = &task.check.as_ref().unwrap().cheats;
    assert!(cheats.len() >= 4);
    for cheat in cheats {
        let mut scenario = scenario(&task).answers("small", &answer(&task, &cheat.files));
        scenario.say("large", &unchanged(&task));
        let before = scenario.tree();
        let result = scenario.call("tdd_green", arguments(&task));
        assert_eq!(result["status"], "error", "{}: {result:#}", cheat.why);
        assert!(
            trail(&result).starts_with("small tampered"),
            "{}: {}",
            cheat.why,
            trail(&result)
        );
        assert_eq!(scenario.tree(), before, "{}", cheat.why);
    }
}

#[test]
#[ignore = "needs python3"]
fn references_of_other_checks_are_accepted_and_cheats_refused() {
    require(&["python3"]);
    for name in [
        "transformation/sales_by_month",
        "transformation/wide_to_long",
        "configuration/server_limits",
        "documentation/broken_guide",
    ] {
        let task = task(name);
        let mut accepted = scenario(&task).answers("small", &answer(&task, &task.reference));
        let result = accepted.call("tdd_green", arguments(&task));
        assert_eq!(
            (&result["status"], &result["verified"]),
            (&json!("pass"), &json!(true)),
            "{name}: {result:#}"
        );
        for cheat in &task.check.as_ref().unwrap().cheats {
            let mut scenario = scenario(&task).answers("small", &answer(&task, &cheat.files));
            scenario.say("large", &unchanged(&task));
            let result = scenario.call("tdd_green", arguments(&task));
            assert_eq!(
                result["status"], "error",
                "{name}, {}: {result:#}",
                cheat.why
            );
        }
    }
}

#[test]
fn check_that_cannot_be_made_names_its_mistake() {
    let task = task("sql/best_customers");
    let mut scenario = scenario(&task);
    let mut call = |check: Value| {
        let result = scenario.call("tdd_green", json!({"check": check}));
        assert_eq!(result["status"], "error", "{result:#}");
        result["message"].as_str().unwrap().to_owned()
    };
    let missing = json!({"kind": "rows", "query": "q.sql", "database": "none.sql", "expected": "expected.csv"});
    assert!(call(missing).contains("there is no file `none.sql`"));
    let outside = json!({"kind": "files", "command": "x", "expected": "/etc/passwd"});
    assert!(call(outside).contains("leads out of the project"));
    let result = scenario.call(
        "tdd_green",
        json!({"test_path": "expected.csv", "check": {"kind": "command", "command": "true"}}),
    );
    assert!(
        result["message"]
            .as_str()
            .unwrap()
            .contains("give one of them"),
        "{result:#}"
    );
}
