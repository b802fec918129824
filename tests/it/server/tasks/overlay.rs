//! Calls that edit: on an overlay they are tasks, in the project itself they block.

use std::fs;
use std::time::{Duration, Instant};
use supervisor_test_support::programs::require;

use serde_json::json;

use super::crashes::kill;
use crate::support::mcp_session::{Session, result_of, until};
use crate::support::scenario::{Scenario, creates, replaces};
use crate::support::tasks::{
    ADDED, ask, cancel, ended, get, green, offering, on, red_project, start,
};

/// Starts a green on an overlay, which is a task.
fn start_green(session: &mut Session, scenario: &Scenario) -> String {
    session.call("start", "tdd_green", on(scenario, green()));
    let reply = session.reply_after_tests("start");
    reply["result"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("no task, so no overlay: {reply}"))
        .to_owned()
}

fn hanging(is_sandboxed: bool) -> Scenario {
    let mut scenario = red_project(is_sandboxed);
    scenario.line(&json!({"model": "small", "failure": "hang"}));
    scenario
}

fn until_asked(scenario: &Scenario) {
    until("the question to the model", || {
        !scenario.asked_of("small").is_empty()
    });
}

#[test]
#[ignore = "needs python3 and user namespaces"]
fn green_on_an_overlay_is_a_task() {
    require(&["python3"]);
    let mut scenario = red_project(true);
    scenario.line(&json!({"model": "small", "answer": replaces("add.py", ADDED), "wait_ms": 200}));
    let mut session = offering(&scenario);
    let id = start_green(&mut session, &scenario);
    assert_ne!(scenario.read("add.py"), ADDED, "nothing is accepted yet");
    let task = ended(&mut session, &id);
    let result = result_of(&json!({"result": task["result"]}));
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(true)),
        "{result:#}"
    );
    assert!(
        result["sandbox"].as_str().unwrap().contains("private view"),
        "{result:#}"
    );
    assert_eq!(scenario.read("add.py"), ADDED);
}

#[test]
#[ignore = "needs python3 and user namespaces"]
fn whole_cycle_on_overlays_is_one_task() {
    require(&["python3"]);
    let mut scenario = red_project(true);
    fs::write(scenario.project.path().join("add.py"), ADDED).unwrap();
    let test = "import unittest\n\nfrom add import sub\n\n\nclass SubTest(unittest.TestCase):\n    def test_subtracts(self):\n        \
                self.assertEqual(sub(5, 2), 3)\n";
    scenario.say("small", &creates("test_sub.py", test));
    let both = format!("{ADDED}\n\ndef sub(a, b):\n    return a - b\n");
    scenario.say("small", &replaces("add.py", &both));
    let mut session = offering(&scenario);
    let criteria =
        json!({"criteria": "sub(a, b) gives the difference", "test_cmd": "python3 -m unittest -v"});
    session.call("start", "tdd", on(&scenario, criteria));
    let reply = session.reply_after_tests("start");
    let id = reply["result"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("no task, so no overlay: {reply}"));
    let task = ended(&mut session, id);
    assert_eq!(
        task["result"]["structuredContent"]["status"], "pass",
        "{task:#}"
    );
    assert_eq!(
        (scenario.read("add.py"), scenario.read("test_sub.py")),
        (both, test.to_owned())
    );
    assert_eq!(
        ask(&mut session, "tasks/list", json!({}))["result"]["tasks"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures are what the test shows")]
#[ignore = "needs python3 and user namespaces"]
fn randomly_killed_green_is_applied_atomically() {
    require(&["python3"]);
    let rounds = if std::env::var("SUPERVISOR_TEST_LONG").is_ok_and(|v| v == "1") {
        60
    } else {
        6
    };
    // The first is left alone: it says how long the others have.
    let mut took = Duration::MAX;
    for round in 0..=rounds {
        let mut scenario = red_project(true);
        scenario
            .line(&json!({"model": "small", "answer": replaces("add.py", ADDED), "wait_ms": 50}));
        let before = scenario.tree();
        let mut session = offering(&scenario);
        let id = start_green(&mut session, &scenario);
        let started = Instant::now();
        if round == 0 {
            ended(&mut session, &id);
            took = started.elapsed();
        } else {
            std::thread::sleep(
                took.mul_f64(f64::from(getrandom::u32().unwrap()) / f64::from(u32::MAX) * 1.2),
            );
        }
        kill(session);
        let mut restarted = offering(&scenario);
        // A child that was being started when the server died holds the lock of the job until it is a program of its own.
        let task = ended(&mut restarted, &id);
        let is_changed = scenario.tree() != before;
        if is_changed {
            assert_eq!(scenario.read("add.py"), ADDED, "{task:#}");
        }
        match task["status"].as_str().unwrap() {
            "completed" => assert!(is_changed, "{task:#}"),
            "failed" => {
                assert_eq!(task["error"]["data"]["cause"], "crashed", "{task:#}");
                // What was half written is taken back by the guard, which outlives the server.
                until("the project as it was", || scenario.tree() == before);
            }
            other => panic!("{other}"),
        }
        eprintln!("{} · changed {is_changed}", task["status"]);
        assert_eq!(get(&mut restarted, &id), task, "it ended once");
    }
}

#[test]
#[ignore = "needs python3 and user namespaces"]
fn stopped_green_on_overlay_leaves_project_unchanged() {
    require(&["python3"]);
    let scenario = hanging(true);
    let before = scenario.tree();
    let mut session = offering(&scenario);
    let id = start_green(&mut session, &scenario);
    until_asked(&scenario);
    kill(session);
    let mut restarted = offering(&scenario);
    let task = get(&mut restarted, &id);
    assert_eq!(
        (&task["status"], &task["error"]["data"]["cause"]),
        (&json!("failed"), &json!("crashed")),
        "{task:#}"
    );
    assert_eq!(scenario.tree(), before);
    // The project is free again for the next one.
    let asked = scenario.asked_of("small").len();
    let next = start(&mut restarted, "tdd_green", on(&scenario, green()));
    until("the next question", || {
        scenario.asked_of("small").len() > asked
    });
    cancel(&mut restarted, &next);
    assert_eq!(ended(&mut restarted, &next)["status"], "cancelled");
    assert_eq!(
        get(&mut restarted, &id),
        task,
        "the first stays as it ended"
    );
    assert_eq!(scenario.tree(), before);
}

#[test]
#[ignore = "needs python3"]
fn green_in_place_blocks_despite_tasks() {
    require(&["python3"]);
    let mut scenario = red_project(false);
    scenario.say("small", &replaces("add.py", ADDED));
    let mut session = offering(&scenario);
    session.call("green", "tdd_green", on(&scenario, green()));
    let result = result_of(&session.reply_after_tests("green"));
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(true)),
        "{result:#}"
    );
    assert_eq!(
        ask(&mut session, "tasks/list", json!({}))["result"]["tasks"],
        json!([])
    );
}

#[test]
#[ignore = "needs python3"]
fn waiting_call_can_be_cancelled_without_task() {
    require(&["python3"]);
    let scenario = hanging(false);
    let mut session = offering(&scenario);
    session.call("holds", "tdd_green", on(&scenario, green()));
    until_asked(&scenario);
    session.call(
        "waits",
        "review",
        on(&scenario, json!({"files": ["add.py"]})),
    );
    session.cancel("waits");
    session.cancel("holds");
    let end = session.finish();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(
        end.rest
            .iter()
            .all(|message| message["id"] != "waits" && message["id"] != "holds"),
        "{:?}",
        end.rest
    );
    assert_eq!(
        ask(&mut offering(&scenario), "tasks/list", json!({}))["result"]["tasks"],
        json!([])
    );
}
