//! Calls that edit: in a private view they are tasks, in the project itself they block.

use std::fs;
use std::time::{Duration, Instant};
use supervisor_test_support::programs::require;

use serde_json::json;

use super::crashes::kill;
use crate::support::mcp_bench::{Session, result_of, until};
use crate::support::tasks_bench::{
    ADDED, ask, cancel, ended, get, green, offering, on, red_project, start,
};
use crate::support::tdd_bench::{Bench, creates, replaces};

/// Starts a green on an overlay, which is a task.
fn start_green(session: &mut Session, bench: &Bench) -> String {
    session.call("start", "tdd_green", on(bench, green()));
    let reply = session.reply_after_tests("start");
    reply["result"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("no task, so no overlay: {reply}"))
        .to_owned()
}

fn hanging(is_walled: bool) -> Bench {
    let mut bench = red_project(is_walled);
    bench.line(&json!({"model": "small", "failure": "hang"}));
    bench
}

fn until_asked(bench: &Bench) {
    until("the question to the model", || {
        !bench.asked_of("small").is_empty()
    });
}

#[test]
#[ignore = "needs python3 and user namespaces"]
fn a_green_in_a_private_view_is_a_task_and_the_project_changes_when_it_is_accepted() {
    require(&["python3"]);
    let mut bench = red_project(true);
    bench.line(&json!({"model": "small", "answer": replaces("add.py", ADDED), "wait_ms": 200}));
    let mut session = offering(&bench);
    let id = start_green(&mut session, &bench);
    assert_ne!(bench.read("add.py"), ADDED, "nothing is accepted yet");
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
    assert_eq!(bench.read("add.py"), ADDED);
}

#[test]
#[ignore = "needs python3 and user namespaces"]
fn a_whole_cycle_in_private_views_is_one_task() {
    require(&["python3"]);
    let mut bench = red_project(true);
    fs::write(bench.project.path().join("add.py"), ADDED).unwrap();
    let test = "import unittest\n\nfrom add import sub\n\n\nclass SubTest(unittest.TestCase):\n    def test_subtracts(self):\n        \
                self.assertEqual(sub(5, 2), 3)\n";
    bench.say("small", &creates("test_sub.py", test));
    let both = format!("{ADDED}\n\ndef sub(a, b):\n    return a - b\n");
    bench.say("small", &replaces("add.py", &both));
    let mut session = offering(&bench);
    let criteria =
        json!({"criteria": "sub(a, b) gives the difference", "test_cmd": "python3 -m unittest -v"});
    session.call("start", "tdd", on(&bench, criteria));
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
        (bench.read("add.py"), bench.read("test_sub.py")),
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
fn a_green_that_is_killed_at_a_random_moment_is_in_the_project_whole_or_not_at_all() {
    require(&["python3"]);
    let rounds = if std::env::var("SUPERVISOR_TEST_LONG").is_ok_and(|v| v == "1") {
        60
    } else {
        6
    };
    // The first is left alone: it says how long the others have.
    let mut took = Duration::MAX;
    for round in 0..=rounds {
        let mut bench = red_project(true);
        bench.line(&json!({"model": "small", "answer": replaces("add.py", ADDED), "wait_ms": 50}));
        let before = bench.tree();
        let mut session = offering(&bench);
        let id = start_green(&mut session, &bench);
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
        let mut restarted = offering(&bench);
        // A child that was being started when the server died holds the lock of the job until it is a program of its own.
        let task = ended(&mut restarted, &id);
        let is_changed = bench.tree() != before;
        if is_changed {
            assert_eq!(bench.read("add.py"), ADDED, "{task:#}");
        }
        match task["status"].as_str().unwrap() {
            "completed" => assert!(is_changed, "{task:#}"),
            "failed" => {
                assert_eq!(task["error"]["data"]["cause"], "crashed", "{task:#}");
                // What was half written is taken back by the guard, which outlives the server.
                until("the project as it was", || bench.tree() == before);
            }
            other => panic!("{other}"),
        }
        eprintln!("{} · changed {is_changed}", task["status"]);
        assert_eq!(get(&mut restarted, &id), task, "it ended once");
    }
}

#[test]
#[ignore = "needs python3 and user namespaces"]
fn a_killed_or_cancelled_green_in_a_private_view_leaves_the_project_as_it_was() {
    require(&["python3"]);
    let bench = hanging(true);
    let before = bench.tree();
    let mut session = offering(&bench);
    let id = start_green(&mut session, &bench);
    until_asked(&bench);
    kill(session);
    let mut restarted = offering(&bench);
    let task = get(&mut restarted, &id);
    assert_eq!(
        (&task["status"], &task["error"]["data"]["cause"]),
        (&json!("failed"), &json!("crashed")),
        "{task:#}"
    );
    assert_eq!(bench.tree(), before);
    // The project is free again for the next one.
    let asked = bench.asked_of("small").len();
    let next = start(&mut restarted, "tdd_green", on(&bench, green()));
    until("the next question", || {
        bench.asked_of("small").len() > asked
    });
    cancel(&mut restarted, &next);
    assert_eq!(ended(&mut restarted, &next)["status"], "cancelled");
    assert_eq!(
        get(&mut restarted, &id),
        task,
        "the first stays as it ended"
    );
    assert_eq!(bench.tree(), before);
}

#[test]
#[ignore = "needs python3"]
fn a_green_in_the_project_itself_blocks_also_where_tasks_are_offered() {
    require(&["python3"]);
    let mut bench = red_project(false);
    bench.say("small", &replaces("add.py", ADDED));
    let mut session = offering(&bench);
    session.call("green", "tdd_green", on(&bench, green()));
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
fn a_call_that_still_waits_for_the_project_can_be_cancelled_and_leaves_no_task() {
    require(&["python3"]);
    let bench = hanging(false);
    let mut session = offering(&bench);
    session.call("holds", "tdd_green", on(&bench, green()));
    until_asked(&bench);
    session.call("waits", "review", on(&bench, json!({"files": ["add.py"]})));
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
        ask(&mut offering(&bench), "tasks/list", json!({}))["result"]["tasks"],
        json!([])
    );
}
