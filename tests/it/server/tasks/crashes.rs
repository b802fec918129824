//! A server that is killed: the record of each job survives it and ends exactly once.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::mcp_session::Session;
use crate::support::review_project::{both, good, shop};
use crate::support::tasks::{ask, ended, get, hanging_review, offering, on, start, start_hanging};

/// As `kill -9`; returns when it is gone.
pub(super) fn kill(mut session: Session) {
    session.process.kill().unwrap();
    session.process.wait().unwrap();
}

#[test]
fn task_of_killed_server_has_crashed_once() {
    let scenario = hanging_review();
    let before = scenario.tree();
    let mut session = offering(&scenario);
    let id = start_hanging(&mut session, &scenario);
    kill(session);
    let mut restarted = offering(&scenario);
    let mut other = offering(&scenario);
    // Both at once: one of them writes the end.
    restarted.request("a", "tasks/get", json!({"taskId": id}));
    other.request("b", "tasks/get", json!({"taskId": id}));
    restarted.reply("a");
    other.reply("b");
    let task = get(&mut restarted, &id);
    assert_eq!(task["status"], "failed", "{task:#}");
    assert_eq!(task["error"]["data"]["cause"], "crashed", "{task:#}");
    assert!(
        task["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("crashed: the server died"),
        "{task:#}"
    );
    for session in [&mut restarted, &mut other] {
        assert_eq!(get(session, &id), task, "the end is written once");
    }
    assert_eq!(scenario.tree(), before);
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures are what the test shows")]
fn randomly_killed_tasks_end_exactly_once() {
    let rounds = if std::env::var("SUPERVISOR_TEST_LONG").is_ok_and(|v| v == "1") {
        200
    } else {
        20
    };
    let mut scenario = shop(&["small"]);
    scenario.line(&json!({"model": "small", "answer": good(), "wait_ms": 150}));
    let before = scenario.tree();
    let mut handles = Vec::new();
    // Every end as it was first seen.
    let mut ends: BTreeMap<String, Value> = BTreeMap::new();
    // The first is left alone: it says how long the others have, on this machine and under its load.
    let began = Instant::now();
    let mut whole = offering(&scenario);
    let id = start(&mut whole, "review", on(&scenario, both()));
    ended(&mut whole, &id);
    let took = began.elapsed();
    kill(whole);
    for round in 0..rounds {
        // The moment itself is what is tried: before the record, during the work, after the end.
        let moment = Instant::now()
            + took.mul_f64(f64::from(getrandom::u32().unwrap()) / f64::from(u32::MAX) * 1.5);
        let mut session = offering(&scenario);
        session.call("start", "review", on(&scenario, both()));
        std::thread::sleep(moment.saturating_duration_since(Instant::now()));
        if session.has_reply("start") {
            handles.push(
                session.reply("start")["result"]["taskId"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
            );
        }
        kill(session);
        // A new server every few rounds, so that several crashes are found by one.
        if round % 4 == 3 || round == rounds - 1 {
            look(&mut offering(&scenario), &mut ends);
        }
    }
    look(&mut offering(&scenario), &mut ends);
    for id in &handles {
        assert!(
            ends.contains_key(id),
            "{id} was answered with a handle and is lost"
        );
    }
    let crashed = ends
        .values()
        .filter(|end| end["status"] == "failed")
        .count();
    let completed = ends
        .values()
        .filter(|end| end["status"] == "completed")
        .count();
    eprintln!(
        "{rounds} kills: {} handles, {crashed} crashed, {completed} completed",
        handles.len()
    );
    assert_eq!(crashed + completed, ends.len(), "{ends:#?}");
    assert_eq!(scenario.tree(), before);
}

/// Every task is over, and those that were seen before have not changed since.
fn look(session: &mut Session, ends: &mut BTreeMap<String, Value>) {
    let listed = ask(session, "tasks/list", json!({}))["result"]["tasks"].clone();
    let ids = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["taskId"].as_str().unwrap().to_owned());
    for id in ids.chain(ends.keys().cloned().collect::<Vec<_>>()) {
        let task = ended(session, &id);
        if task["status"] == "failed" {
            assert_eq!(task["error"]["data"]["cause"], "crashed", "{task:#}");
        }
        let first = ends.entry(id).or_insert_with(|| task.clone());
        assert_eq!(*first, task, "it ended twice");
    }
}
