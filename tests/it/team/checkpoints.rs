//! Checkpoints of a whole pipeline: verdicts, reports, state, repeats, overrides, shutdown.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use super::naive;
use super::session::{BOTH, ID, Layout, Pipeline};

/// The report without the time in it.
pub(super) fn masked(report: &str) -> String {
    regex::Regex::new(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00")
        .unwrap()
        .replace_all(report, "[TIME]")
        .into_owned()
}

/// The report as the older layout has it: the two differ in where things lie, and in nothing else.
fn placed(pipeline: &Pipeline, report: &str) -> String {
    let relative = |path: std::path::PathBuf| {
        path.strip_prefix(pipeline.root())
            .unwrap()
            .display()
            .to_string()
    };
    let older = format!(".workflow/.team/{ID}");
    let report =
        masked(report).replace(&relative(pipeline.outputs()), &format!("{older}/artifacts"));
    report.replace(&relative(pipeline.team()), &older)
}

/// Counted by hand: the mean over what applies, and a critical failure blocks.
fn recomputed(sidecar: &Value) -> (String, f64) {
    let checks = sidecar["checks"].as_array().unwrap();
    let points: Vec<f64> = checks
        .iter()
        .filter_map(|c| match c["outcome"].as_str().unwrap() {
            "pass" => Some(1.0),
            "warn" => Some(0.5),
            "fail" => Some(0.0),
            _ => None,
        })
        .collect();
    let mean = points.iter().sum::<f64>() / f64::from(u32::try_from(points.len()).unwrap());
    let critical = checks
        .iter()
        .any(|c| c["critical"] == true && c["outcome"] == "fail");
    let verdict = if critical || mean < 0.5 {
        "block"
    } else if mean < 0.8 {
        "warn"
    } else {
        "pass"
    };
    (verdict.to_owned(), (mean * 100.0).round() / 100.0)
}

#[test]
fn sound_pipeline_passes_in_both_layouts() {
    for layout in BOTH {
        let pipeline = Pipeline::sound(layout);
        let mut client = pipeline.client();
        let ready = client.init();
        assert_eq!(
            ready["message"], "[supervisor] Ready, awaiting checkpoints",
            "{ready}"
        );
        for task in ["CHECKPOINT-001", "CHECKPOINT-002", "CHECKPOINT-003"] {
            let answer = client.checkpoint(task);
            assert_eq!(
                answer["details"]["verdict"], "pass",
                "{layout:?} {task}: {answer:#}"
            );
            let sidecar = pipeline.sidecar(task);
            assert_eq!(
                recomputed(&sidecar),
                ("pass".into(), sidecar["score"].as_f64().unwrap())
            );
            naive::agrees(&pipeline, task, &sidecar);
            insta::assert_snapshot!(
                format!("sound_{task}"),
                placed(&pipeline, &pipeline.report(task))
            );
        }
    }
}

#[test]
fn drifting_terms_warn_and_uncovered_requirements_block() {
    for layout in BOTH {
        let pipeline = Pipeline::unsound(layout);
        let mut client = pipeline.client();
        client.init();
        assert_eq!(
            client.checkpoint("CHECKPOINT-001")["details"]["verdict"],
            "pass"
        );
        let second = client.checkpoint("CHECKPOINT-002");
        assert_eq!(second["details"]["verdict"], "warn", "{second:#}");
        assert_eq!(second["details"]["trend"], "degrading");
        let text = second.to_string();
        assert!(
            text.contains("customer") && text.contains("purchase"),
            "the terms are named: {text}"
        );
        let third = client.checkpoint("CHECKPOINT-003");
        assert_eq!(
            (
                third["status"].as_str(),
                third["details"]["verdict"].as_str()
            ),
            (Some("fail"), Some("block"))
        );
        let report = pipeline.report("CHECKPOINT-003");
        assert!(
            report.contains("TASK-001 → TASK-002") || report.contains("TASK-002 → TASK-001"),
            "{report}"
        );
        assert!(report.contains("REQ-002"), "{report}");
        for task in ["CHECKPOINT-002", "CHECKPOINT-003"] {
            let sidecar = pipeline.sidecar(task);
            let (verdict, score) = recomputed(&sidecar);
            assert_eq!(
                (
                    sidecar["verdict"].as_str().unwrap(),
                    sidecar["score"].as_f64().unwrap()
                ),
                (verdict.as_str(), score)
            );
            for check in sidecar["checks"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|c| c["outcome"] == "fail")
            {
                assert!(
                    !check["evidence"].as_array().unwrap().is_empty(),
                    "a failure without evidence: {check}"
                );
            }
            naive::agrees(&pipeline, task, &sidecar);
            insta::assert_snapshot!(
                format!("unsound_{task}"),
                placed(&pipeline, &pipeline.report(task))
            );
        }
        let issues = fs::read_to_string(pipeline.team().join("wisdom/issues.md")).unwrap();
        assert!(issues.contains("CHECKPOINT-002"), "{issues}");
    }
}

#[test]
fn bus_state_follows_the_protocol() {
    let pipeline = Pipeline::sound(Layout::Run);
    let mut client = pipeline.client();
    client.init();
    let answer = client.wake("## Checkpoint Request\ntask_id: CHECKPOINT-001\nscope: [DRAFT-001, DRAFT-002]\npipeline_progress: 3/10 tasks completed\n");
    for line in answer["details"]["message_text"].as_str().unwrap().lines() {
        assert!(line.starts_with("[supervisor] "), "{line}");
    }
    let last = pipeline.messages().pop().unwrap();
    assert_eq!(
        (last["from"].as_str(), last["type"].as_str()),
        (Some("supervisor"), Some("state_update"))
    );
    assert_eq!(last["summary"], "[supervisor] CHECKPOINT-001: pass");
    let data = &last["data"];
    for key in [
        "status",
        "task_id",
        "ref",
        "key_findings",
        "decisions",
        "verification",
        "supervision_verdict",
        "supervision_score",
        "risks_logged",
        "blocks_detected",
    ] {
        assert!(!data[key].is_null(), "{key} is missing: {data}");
    }
    assert!(
        data["ref"]
            .as_str()
            .unwrap()
            .ends_with("outputs/CHECKPOINT-001-report.md")
    );
}

#[test]
fn later_wake_reads_only_new_messages() {
    let pipeline = Pipeline::sound(Layout::Older);
    let mut client = pipeline.client();
    client.init();
    let first = client.checkpoint("CHECKPOINT-001");
    assert!(
        first["details"]["loaded"]["artifacts_read"]
            .as_u64()
            .unwrap()
            >= 5,
        "{first:#}"
    );
    pipeline.message(50, "writer", "progress", &json!({"task_id": "DRAFT-003"}));
    let second = client.checkpoint("CHECKPOINT-002");
    let loaded = &second["details"]["loaded"];
    assert!(loaded["artifacts_known"].as_u64().unwrap() >= 4, "{loaded}");
    assert_eq!(
        loaded["new_messages"], 2,
        "its own and the one message: {loaded}"
    );
    assert!(
        loaded["bus_bytes_read"].as_u64().unwrap() < 3000,
        "{loaded}"
    );
}

#[test]
fn repeated_checkpoint_is_posted_once_until_changed() {
    let pipeline = Pipeline::sound(Layout::Older);
    let mut client = pipeline.client();
    client.init();
    client.checkpoint("CHECKPOINT-001");
    let messages = pipeline.messages().len();
    let again = client.checkpoint("CHECKPOINT-001");
    assert_eq!(
        (&again["details"]["repeated"], &again["details"]["revision"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(pipeline.messages().len(), messages, "no second message");
    pipeline.remove("spec/requirements/REQ-001-pay.md");
    pipeline.replace("spec/requirements/_index.md", "| G-001 |", "| |");
    let changed = client.checkpoint("CHECKPOINT-001");
    assert_eq!(
        (
            &changed["details"]["revision"],
            &changed["details"]["verdict"]
        ),
        (&json!(2), &json!("block")),
        "{changed:#}"
    );
    assert!(
        pipeline
            .outputs()
            .join("CHECKPOINT-001-report.r1.md")
            .exists()
    );
}

#[test]
fn missing_required_artifact_blocks_with_its_path() {
    let pipeline = Pipeline::sound(Layout::Older);
    pipeline.remove("spec/product-brief.md");
    let mut client = pipeline.client();
    client.init();
    let answer = client.checkpoint("CHECKPOINT-001");
    assert_eq!(answer["details"]["verdict"], "block");
    assert!(answer.to_string().contains("product-brief.md"));
}

#[test]
fn override_is_recorded_everywhere() {
    let pipeline = Pipeline::sound(Layout::Older);
    pipeline.remove("plan/plan.json");
    let mut client = pipeline.client();
    client.init();
    assert_eq!(
        client.checkpoint("CHECKPOINT-003")["details"]["verdict"],
        "block"
    );
    let done = client.supervise(
        "override",
        json!({"task_id": "CHECKPOINT-003", "by": "Ada", "reason": "the plan is on paper"}),
    );
    assert_eq!(done["status"], "pass", "{done}");
    assert!(pipeline.report("CHECKPOINT-003").contains("By Ada"));
    assert_eq!(pipeline.sidecar("CHECKPOINT-003")["override"]["by"], "Ada");
    assert_eq!(
        pipeline.messages().last().unwrap()["data"]["override"]["reason"],
        "the plan is on paper"
    );
    let state = client.bus("get_state", json!({"role": "supervisor"}));
    assert_eq!(state["details"]["result"]["state"]["override"]["by"], "Ada");
    assert_eq!(
        client.supervise(
            "override",
            json!({"task_id": "CHECKPOINT-003", "by": "", "reason": "x"})
        )["status"],
        "error"
    );
}

#[test]
fn only_reports_wisdom_and_bus_are_written() {
    let pipeline = Pipeline::sound(Layout::Older);
    let before = contents(pipeline.root());
    let mut client = pipeline.client();
    client.init();
    client.checkpoint("CHECKPOINT-001");
    client.checkpoint("CHECKPOINT-003");
    for (path, bytes) in contents(pipeline.root()) {
        let ours = path.contains("/.msg/")
            || path.contains("/artifacts/CHECKPOINT-")
            || path.contains("/wisdom/");
        assert!(
            ours || before.get(&path) == Some(&bytes),
            "{path} was written"
        );
    }
}

fn contents(dir: &std::path::Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in ignore::WalkBuilder::new(dir)
        .standard_filters(false)
        .build()
        .flatten()
    {
        if entry.file_type().is_some_and(|t| t.is_file()) {
            all.insert(
                entry.path().display().to_string(),
                fs::read(entry.path()).unwrap(),
            );
        }
    }
    all
}

#[test]
fn third_error_is_reported_and_ends_nothing() {
    let pipeline = Pipeline::sound(Layout::Older);
    let mut client = pipeline.client();
    client.init();
    for _ in 0..3 {
        assert_eq!(client.wake("hello there")["status"], "error");
    }
    let status = client.supervise("status", json!({}));
    assert_eq!(
        (
            &status["details"]["errors"],
            &status["details"]["phase"]["is"]
        ),
        (&json!(3), &json!("idle"))
    );
    let last = pipeline.messages().pop().unwrap();
    assert_eq!(
        (last["type"].as_str(), last["from"].as_str()),
        (Some("error"), Some("supervisor"))
    );
    assert_eq!(
        client.checkpoint("CHECKPOINT-001")["details"]["verdict"],
        "pass"
    );
    let answer = client.wake(r#"{"type": "shutdown_request", "request_id": "r-1"}"#);
    assert_eq!(answer["details"]["shutdown_response"]["approve"], true);
    assert_eq!(
        client.checkpoint("CHECKPOINT-002")["status"],
        "error",
        "nothing after the shutdown"
    );
    assert_eq!(client.init()["status"], "pass", "but a new beginning");
}
