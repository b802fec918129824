//! A supervisor that is killed between any two steps of a wake: nothing is lost, and nothing is said twice.

use std::fs;

use serde_json::json;
use supervisor_team::crash_points::WAKE_STEPS;

use super::checkpoints::masked;
use super::session::{BOTH, Layout, Pipeline, TeamClient};

const TASK: &str = "CHECKPOINT-002";
const PROGRESS: &str = "3/10 tasks completed";

/// What a wake leaves behind, without the times and places that differ from run to run.
fn traces(pipeline: &Pipeline) -> (String, serde_json::Value, String) {
    let issues = fs::read_to_string(pipeline.team().join("wisdom/issues.md")).unwrap_or_default();
    let checks = pipeline.sidecar(TASK)["checks"].to_string();
    let base = pipeline
        .team()
        .strip_prefix(pipeline.root())
        .unwrap()
        .display()
        .to_string();
    (
        masked(&pipeline.report(TASK)),
        json!(checks.replace(&base, "")),
        issues,
    )
}

#[test]
fn killed_checkpoint_posts_the_same_verdict_once() {
    for layout in BOTH {
        let sessions = [
            (Pipeline::sound as fn(Layout) -> Pipeline, "pass"),
            (Pipeline::unsound, "warn"),
        ];
        for (pipeline, verdict) in sessions {
            let calm = pipeline(layout);
            let mut client = calm.client();
            client.init();
            assert_eq!(client.checkpoint(TASK)["details"]["verdict"], verdict);
            for step in WAKE_STEPS {
                dies_at(step, &calm, &pipeline(layout));
            }
        }
    }
}

/// A server dies at this step of a wake; the next one comes to what the calm one came to, and nothing is there twice.
fn dies_at(step: &str, calm: &Pipeline, pipeline: &Pipeline) {
    pipeline.client().init();
    let mut doomed = TeamClient::start(pipeline.root(), Some(step));
    doomed.send(
        "supervise",
        json!({"operation": "checkpoint", "task_id": TASK, "pipeline_progress": PROGRESS}),
    );
    assert!(doomed.wait_for_kill(), "{step} was not reached");
    let mut client = pipeline.client();
    let recovered = client.supervise(
        "init",
        json!({"recovery": true, "team_name": "shop", "requirement": "a shop"}),
    );
    assert_eq!(recovered["status"], "pass", "{step}: {recovered}");
    let answer = client.checkpoint(TASK);
    let wanted = calm.sidecar(TASK);
    assert_eq!(
        answer["details"]["verdict"], wanted["verdict"],
        "{step}: {answer}"
    );
    assert_eq!(answer["details"]["score"], wanted["score"], "{step}");
    assert_eq!(traces(pipeline), traces(calm), "{step}");
    let said = |of: &Pipeline| {
        of.messages()
            .into_iter()
            .filter(|m| m["from"] == "supervisor" && m["type"] == "state_update")
            .count()
    };
    assert_eq!((said(pipeline), said(calm)), (1, 1), "{step}");
    let state = client.bus("get_state", json!({"role": "supervisor"}));
    assert_eq!(
        state["details"]["result"]["state"]["supervision_verdict"], wanted["verdict"],
        "{step}"
    );
    // What the other roles had said is still there, too.
    let writer = client.bus("get_state", json!({"role": "writer", "task": "DRAFT-001"}));
    assert_eq!(
        writer["details"]["result"]["state"]["quality_self_score"], 80,
        "{step}"
    );
    let status = client.supervise("status", json!({}));
    assert_eq!(
        status["details"]["accumulator"].as_array().unwrap().len(),
        1,
        "{step}: {status}"
    );
}

#[test]
fn lost_accumulator_is_rebuilt_from_reports() {
    let pipeline = Pipeline::sound(Layout::Older);
    let mut client = pipeline.client();
    client.init();
    client.checkpoint("CHECKPOINT-001");
    std::fs::remove_file(pipeline.team().join(".msg/supervisor.json")).unwrap();
    std::fs::remove_file(pipeline.outputs().join("CHECKPOINT-001-report.json")).unwrap();
    let recovered = client.supervise("init", json!({"recovery": true}));
    assert_eq!(
        recovered["message"],
        "[supervisor] Recovered 1 report, awaiting checkpoints"
    );
    let status = client.supervise("status", json!({}));
    assert_eq!(status["details"]["accumulator"][0]["verdict"], "pass");
}

#[test]
fn wake_reads_only_new_of_50_000_messages() {
    let pipeline = Pipeline::sound(Layout::Older);
    let line = |n: usize| {
        format!(
            "{{\"id\":\"MSG-{n:03}\",\"ts\":\"2026-11-01T10:00:00.000+00:00\",\"from\":\"w{}\",\"to\":\"coordinator\",\"type\":\"progress\",\"summary\":\"s\",\"data\":{{\"task_id\":\"T-{n}\"}}}}\n",
            n % 5
        )
    };
    let many: String = (10..50_000)
        .map(|n| {
            if n % 10 == 0 {
                String::from("{damaged\n")
            } else {
                line(n)
            }
        })
        .collect();
    pipeline.append(&many);
    let mut client = pipeline.client();
    let ready = client.init();
    assert_eq!(ready["details"]["damaged_lines"], 4_999);
    for (n, wakes) in [(60_000, "the first"), (60_001, "a later")] {
        pipeline.append(&line(n));
        let before = client.bytes_read();
        let answer = client.checkpoint("CHECKPOINT-001");
        let everything = client.bytes_read() - before;
        let loaded = &answer["details"]["loaded"];
        // A later wake also finds what the one before it said.
        assert!(
            loaded["new_messages"].as_u64().unwrap() <= 2,
            "{wakes}: {loaded}"
        );
        let read = loaded["bus_bytes_read"].as_u64().unwrap();
        assert!(
            read < 4_000,
            "{wakes} wake read {read} bytes of {}",
            many.len()
        );
        // Artifacts, memory, locks and all: far less than the log.
        assert!(
            everything < 400_000,
            "{wakes} wake read {everything} bytes in all, the log has {}",
            many.len()
        );
    }
    let before = client.bytes_read();
    assert_eq!(
        client.checkpoint("CHECKPOINT-001")["details"]["repeated"],
        true
    );
    assert!(
        client.bytes_read() - before < 400_000,
        "asked again, the log was read"
    );
}
