//! A supervisor that is killed between any two steps of a wake: nothing is lost, and nothing is said twice.

use serde_json::json;
use supervisor::team::fault::WAKE_STEPS;

use super::session::{BOTH, Layout, Pipeline, TeamClient};

#[test]
fn killed_between_any_two_steps_the_verdict_is_the_same_and_said_once() {
    let calm = Pipeline::sound(Layout::Older);
    let mut client = calm.client();
    client.init();
    client.checkpoint("CHECKPOINT-001");
    let wanted = calm.sidecar("CHECKPOINT-001");
    for (n, step) in WAKE_STEPS.iter().enumerate() {
        let pipeline = Pipeline::sound(BOTH[n % 2]);
        pipeline.client().init();
        let mut doomed = TeamClient::start(pipeline.root(), Some(step));
        doomed.send("supervise", json!({"operation": "checkpoint", "task_id": "CHECKPOINT-001"}));
        assert!(doomed.wait_for_kill(), "{step} was not reached");
        let mut client = pipeline.client();
        let recovered = client.supervise("init", json!({"recovery": true}));
        assert_eq!(recovered["status"], "pass", "{step}: {recovered}");
        let answer = client.checkpoint("CHECKPOINT-001");
        assert_eq!(answer["details"]["verdict"], wanted["verdict"], "{step}: {answer}");
        assert_eq!(answer["details"]["score"], wanted["score"], "{step}");
        let said = pipeline.messages().into_iter().filter(|m| m["from"] == "supervisor").count();
        assert_eq!(said, 1, "{step}: said {said} times");
        let state = client.bus("get_state", json!({"role": "supervisor"}));
        assert_eq!(state["details"]["result"]["state"]["supervision_verdict"], wanted["verdict"], "{step}");
        let status = client.supervise("status", json!({}));
        assert_eq!(status["details"]["accumulator"].as_array().unwrap().len(), 1, "{step}: {status}");
    }
}

#[test]
fn without_its_memory_and_sidecars_the_accumulator_is_rebuilt_from_reports() {
    let pipeline = Pipeline::sound(Layout::Older);
    let mut client = pipeline.client();
    client.init();
    client.checkpoint("CHECKPOINT-001");
    std::fs::remove_file(pipeline.team().join(".msg/supervisor.json")).unwrap();
    std::fs::remove_file(pipeline.outputs().join("CHECKPOINT-001-report.json")).unwrap();
    let recovered = client.supervise("init", json!({"recovery": true}));
    assert_eq!(recovered["message"], "[supervisor] Recovered 1 report, awaiting checkpoints");
    let status = client.supervise("status", json!({}));
    assert_eq!(status["details"]["accumulator"][0]["verdict"], "pass");
}

#[test]
fn of_fifty_thousand_messages_a_wake_reads_only_the_new_ones() {
    let pipeline = Pipeline::sound(Layout::Older);
    let line = |n: usize| {
        format!(
            "{{\"id\":\"MSG-{n:03}\",\"ts\":\"2026-11-01T10:00:00.000+00:00\",\"from\":\"w{}\",\"to\":\"coordinator\",\"type\":\"progress\",\"summary\":\"s\",\"data\":{{\"task_id\":\"T-{n}\"}}}}\n",
            n % 5
        )
    };
    let many: String = (10..50_000).map(|n| if n % 10 == 0 { String::from("{damaged\n") } else { line(n) }).collect();
    pipeline.append(&many);
    let mut client = pipeline.client();
    let ready = client.init();
    assert_eq!(ready["details"]["damaged_lines"], 4_999);
    pipeline.append(&line(60_000));
    let answer = client.checkpoint("CHECKPOINT-001");
    let loaded = &answer["details"]["loaded"];
    assert_eq!(loaded["new_messages"], 1, "{loaded}");
    let read = loaded["bus_bytes_read"].as_u64().unwrap();
    assert!(read < 1_000, "{read} bytes of {} were read", many.len());
}
