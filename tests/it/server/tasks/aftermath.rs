//! A server that is killed after its work was accepted and before its job was ended: the change is in the project, and
//! so the job is no crash.

use serde_json::{Value, json};
use supervisor_test_support::programs::require;

use crate::support::mcp_session::{Session, until, wait};
use crate::support::review_project::{both, good, shop};
use crate::support::scenario::{Scenario, creates, replaces};
use crate::support::tasks::{ADDED, ask, ended, get, green, offering, on, red_project};

/// A server that dies at this place, with a client that offers tasks.
fn dying(scenario: &Scenario, place: &str) -> Session {
    let mut command = scenario.command();
    command.env("SUPERVISOR_FAULT", place);
    crate::support::tasks::offering_with(command)
}

/// Calls a tool and waits for the server's death; the only job there is, as the next server tells it.
fn killed(scenario: &Scenario, place: &str, tool: &str, arguments: Value) -> Value {
    let mut session = dying(scenario, place);
    session.call("start", tool, on(scenario, arguments));
    assert_eq!(wait(&mut session.process), None, "{place}: it was killed");
    let mut restarted = offering(scenario);
    let tasks = ask(&mut restarted, "tasks/list", json!({}))["result"]["tasks"].clone();
    let id = tasks[0]["taskId"]
        .as_str()
        .expect("a task: without overlays a call that edits is not one");
    let task = ended(&mut restarted, id);
    assert_eq!(get(&mut restarted, id), task, "it ended once");
    task
}

fn log_of(scenario: &Scenario) -> Vec<Value> {
    let sessions = scenario.state.path().join("state/sessions");
    let files = std::fs::read_dir(sessions)
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    files
        .flat_map(|text| {
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect::<Vec<Value>>()
        })
        .collect()
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs python3 and user namespaces")]
#[cfg_attr(not(debug_assertions), ignore = "needs debug assertions")]
fn green_killed_after_commit_is_completed() {
    require(&["python3"]);
    for place in ["CallAccepted", "CallLogged"] {
        let mut scenario = red_project(true);
        scenario.say("small", &replaces("add.py", ADDED));
        let task = killed(&scenario, place, "tdd_green", green());
        assert_eq!(scenario.read("add.py"), ADDED, "{place}");
        assert_eq!(task["status"], "completed", "{place}: {task:#}");
        let result = &task["result"]["structuredContent"];
        assert_eq!(
            (&result["status"], &result["verified"]),
            (&json!("pass"), &json!(true)),
            "{place}: {task:#}"
        );
        assert_eq!(result["model_used"], "small", "{place}: {task:#}");
        let log = log_of(&scenario);
        assert_eq!(log.len(), 1, "{place}: one line for one call: {log:#?}");
        assert_eq!(
            (&log[0]["final_status"], log[0].get("cause")),
            (&json!("pass"), None),
            "{place}: {log:#?}"
        );
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs python3 and user namespaces")]
#[cfg_attr(not(debug_assertions), ignore = "needs debug assertions")]
fn green_killed_before_commit_leaves_nothing() {
    require(&["python3"]);
    let mut scenario = red_project(true);
    let before = scenario.tree();
    scenario.say("small", &replaces("add.py", ADDED));
    let task = killed(&scenario, "LastEdit", "tdd_green", green());
    assert_eq!(
        (&task["status"], &task["error"]["data"]["cause"]),
        (&json!("failed"), &json!("crashed")),
        "{task:#}"
    );
    assert!(
        task["error"]["message"]
            .as_str()
            .unwrap()
            .contains("nothing of it is in the project"),
        "{task:#}"
    );
    until("the project as it was", || scenario.tree() == before);
    assert_eq!(log_of(&scenario)[0]["cause"], "crashed");
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "needs debug assertions")]
fn review_killed_after_logging_is_completed() {
    let scenario = shop(&["small"]).answers("small", &good());
    let task = killed(&scenario, "CallLogged", "review", both());
    assert_eq!(task["status"], "completed", "{task:#}");
    assert_eq!(
        task["result"]["structuredContent"]["status"], "pass",
        "{task:#}"
    );
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs python3 and user namespaces")]
#[cfg_attr(not(debug_assertions), ignore = "needs debug assertions")]
fn killed_cycle_names_its_accepted_phases() {
    require(&["python3"]);
    let mut scenario = red_project(true);
    std::fs::write(scenario.project.path().join("add.py"), ADDED).unwrap();
    let test = "import unittest\n\nfrom add import sub\n\n\nclass SubTest(unittest.TestCase):\n    def test_subtracts(self):\n        \
                self.assertEqual(sub(5, 2), 3)\n";
    scenario.say("small", &creates("test_sub.py", test));
    let criteria =
        json!({"criteria": "sub(a, b) gives the difference", "test_cmd": "python3 -m unittest -v"});
    let task = killed(&scenario, "CallAccepted", "tdd", criteria);
    assert_eq!(scenario.read("test_sub.py"), test);
    assert_eq!(
        (&task["status"], &task["error"]["data"]["cause"]),
        (&json!("failed"), &json!("crashed")),
        "{task:#}"
    );
    let said = task["error"]["message"].as_str().unwrap();
    assert!(
        said.contains("accepted before that, and in the project: `red`"),
        "{said}"
    );
}
