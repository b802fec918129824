//! The message bus: shapes that teams know, and the weak points of the original mended.

use std::fs;

use serde_json::json;

use super::session::{BOTH, ID, Layout, Pipeline, TeamClient};

#[test]
fn every_operation_answers_in_the_documented_shape() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = TeamClient::start(dir.path(), None);
    let logged = client.bus(
        "log",
        json!({"from": "writer", "type": "progress", "summary": "half", "data": {"task_id": "D"}}),
    );
    assert_eq!(logged["details"]["result"]["id"], "MSG-001");
    assert_eq!(logged["details"]["success"], true);
    let sent = client.bus("broadcast", json!({"from": "coordinator"}));
    assert!(
        sent["details"]["result"]["message"]
            .as_str()
            .unwrap()
            .contains("[coordinator → all]")
    );
    client.bus(
        "log",
        json!({"from": "a", "to": "writer", "delivery_method": "poll", "ref": "x.md"}),
    );
    let read = client.bus("read", json!({"id": "MSG-003"}));
    assert_eq!(read["details"]["result"]["data"]["ref"], "x.md");
    assert_eq!(read["details"]["result"]["dispatch_status"], "pending");
    let list = client.bus("list", json!({"from": "writer"}));
    assert_eq!(
        (
            &list["details"]["result"]["total"],
            &list["details"]["result"]["showing"]
        ),
        (&json!(1), &json!(1))
    );
    let status = client.bus("status", json!({}));
    assert_eq!(status["details"]["result"]["total_messages"], 3);
    assert!(status["details"]["result"]["members"][0]["messageCount"].is_number());
    let box_before = client.bus("mailbox_status", json!({}));
    assert_eq!(
        box_before["details"]["result"]["roles"]["writer"]["pending"],
        1
    );
    let mail = client.bus("read_mailbox", json!({"role": "writer"}));
    assert_eq!(mail["details"]["result"]["count"], 1);
    assert_eq!(
        client.bus("read_mailbox", json!({"role": "writer"}))["details"]["result"]["count"],
        0
    );
    let deleted = client.bus("delete", json!({"id": "MSG-003"}));
    assert_eq!(deleted["details"]["result"]["deleted"], "MSG-003");
    let missing = client.bus("read", json!({"id": "MSG-003"}));
    assert_eq!(
        (&missing["details"]["success"], &missing["status"]),
        (&json!(false), &json!("error"))
    );
}

#[test]
fn ids_are_never_reused() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = TeamClient::start(dir.path(), None);
    client.bus("log", json!({"from": "a"}));
    client.bus("log", json!({"from": "a"}));
    client.bus("delete", json!({"id": "MSG-002"}));
    assert_eq!(
        client.bus("log", json!({"from": "a"}))["details"]["result"]["id"],
        "MSG-003"
    );
    client.bus("clear", json!({}));
    assert_eq!(
        client.bus("log", json!({"from": "a"}))["details"]["result"]["id"],
        "MSG-004"
    );
    let archive = dir
        .path()
        .join(format!(".workflow/.team/{ID}/.msg/archive"));
    assert_eq!(
        fs::read_dir(archive).unwrap().count(),
        1,
        "cleared messages are kept aside"
    );
}

#[test]
fn role_and_task_state_survives_a_clear() {
    for layout in BOTH {
        let pipeline = Pipeline::sound(layout);
        let mut client = pipeline.client();
        client.bus("log", json!({"from": "writer", "type": "state_update", "data": {"task_id": "DRAFT-005", "n": 5, "team_name": "T"}}));
        client.bus("clear", json!({}));
        let state = client.bus("get_state", json!({"role": "writer"}));
        assert_eq!(
            state["details"]["result"]["state"]["quality_self_score"], 83,
            "{layout:?}"
        );
        assert_eq!(state["details"]["result"]["state"]["n"], 5);
        let early = client.bus("get_state", json!({"role": "writer", "task": "DRAFT-001"}));
        assert_eq!(
            early["details"]["result"]["state"]["quality_self_score"], 80,
            "{layout:?}"
        );
        let meta: serde_json::Value =
            serde_json::from_slice(&fs::read(pipeline.team().join(".msg/meta.json")).unwrap())
                .unwrap();
        assert_eq!(meta["team_name"], "T");
    }
}

#[test]
fn damaged_line_costs_only_that_line() {
    let pipeline = Pipeline::sound(Layout::Older);
    pipeline.append("{\"id\": \"MSG-007\", \"from\": \n\u{0}garbage\n");
    pipeline.append("{\"id\":\"MSG-008\",\"from\":\"b\",\"to\":\"c\"}");
    let mut client = pipeline.client();
    let logged = client.bus("log", json!({"from": "a"}));
    assert_eq!(logged["details"]["result"]["id"], "MSG-009");
    let list = client.bus("list", json!({"since_id": "MSG-006", "last": 100}));
    let ids: Vec<_> = list["details"]["result"]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["id"].clone())
        .collect();
    assert_eq!(ids, ["MSG-008", "MSG-009"]);
    assert_eq!(list["details"]["result"]["damaged_lines"], 2);
}

#[test]
fn eight_concurrent_writers_get_distinct_ids() {
    let dir = tempfile::tempdir().unwrap();
    let writers: Vec<_> = (0..8)
        .map(|n| {
            let root = dir.path().to_owned();
            std::thread::spawn(move || {
                let mut client = TeamClient::start(&root, None);
                for _ in 0..25 {
                    let logged =
                        client.bus("log", json!({"from": format!("w{n}"), "data": {"n": n}}));
                    assert_eq!(logged["status"], "pass", "{logged}");
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|w| w.join().unwrap());
    let log = fs::read_to_string(
        dir.path()
            .join(format!(".workflow/.team/{ID}/.msg/messages.jsonl")),
    )
    .unwrap();
    let ids: std::collections::BTreeSet<String> = log
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["id"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 200);
}

#[test]
fn wrong_names_and_places_get_a_sentence_each() {
    let pipeline = Pipeline::sound(Layout::Older);
    let mut client = pipeline.client();
    for bad in ["../x", "", ".", "a/b", "a\u{0}b"] {
        let said = client.bus("list", json!({"session_id": bad}));
        assert_eq!(said["status"], "error", "{bad:?}: {said}");
        assert!(
            said["message"].as_str().unwrap().contains("session_id"),
            "{said}"
        );
    }
}
