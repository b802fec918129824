//! A role spec is followed row by row, and the coordinator's messages of the first version work.

use std::fs;

use serde_json::{Value, json};

use super::session::{ID, Layout, Pipeline, TeamClient};

/// In the form that public pipelines use: a heading per checkpoint, a table below it.
const SPEC: &str = "\
---
role: supervisor
prefix: CHECKPOINT
---

# Supervisor

## Phase 3: Supervision Checks

### CHECKPOINT-001: Brief and PRD (after DRAFT-002)

| Check | Method | Pass Criteria |
|-------|--------|---------------|
| Terminology alignment | Extract key terms from both | One term for one concept |
| Artifact existence | Check file paths | product-brief.md and requirements/ exist |
| Prices are in euros | Read the brief | No other currency is named |

### CHECKPOINT-004: Release notes

- Every story has a line in the release notes

### Execution Health Checks (all checkpoints)

| Check | Method | Pass Criteria |
|-------|--------|---------------|
| Retry patterns | Count error messages per role | No role has 3 |

## Phase 4: Verdict Generation

| Verdict | Score | Action |
|---------|-------|--------|
| pass | 0.8 | go on |
";

fn rows(result: &Value) -> Vec<String> {
    let rows = result["details"]["role_spec_rows"].as_array().unwrap();
    let one = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        format!("{} {}: {}", text("checkpoint"), text("row"), text("became"))
    };
    rows.iter().map(one).collect()
}

#[test]
fn each_row_of_a_role_spec_is_accounted_for() {
    let pipeline = Pipeline::sound(Layout::Older);
    fs::write(pipeline.root().join("role.md"), SPEC).unwrap();
    let mut client = pipeline.client();
    let ready = client.supervise("init", json!({"role_spec": "role.md"}));
    assert_eq!(ready["status"], "pass", "{ready:#}");
    assert_eq!(
        rows(&ready),
        [
            "CHECKPOINT-001 Terminology alignment: the built-in check `terminology` (criteria as built in: one term for each concept)",
            "CHECKPOINT-001 Artifact existence: the built-in check `artifact_existence` (criteria as built in: the documents of the phase are there and not empty)",
            "CHECKPOINT-001 Prices are in euros: a question to a model",
            "CHECKPOINT-001 Retry patterns: the built-in check `error_patterns` (criteria as built in: fewer than 3 errors of each role)",
            "CHECKPOINT-004 Every story has a line in the release notes: a question to a model",
            "CHECKPOINT-004 Retry patterns: the built-in check `error_patterns` (criteria as built in: fewer than 3 errors of each role)",
        ]
    );
    let first = client.checkpoint("CHECKPOINT-001");
    let sidecar = pipeline.sidecar("CHECKPOINT-001");
    let checks = sidecar["checks"].as_array().unwrap().iter();
    let titles: Vec<&str> = checks
        .map(|check| check["title"].as_str().unwrap())
        .collect();
    assert_eq!(
        titles,
        [
            "Terminology alignment",
            "Artifact existence",
            "Prices are in euros",
            "Retry patterns"
        ],
        "{first:#}"
    );
    assert_eq!(client.checkpoint("CHECKPOINT-004")["status"], "pass");
    let unknown = client.checkpoint("CHECKPOINT-002");
    assert_eq!(unknown["status"], "error", "{unknown:#}");
}

#[test]
fn missing_artifact_of_a_role_spec_warns() {
    let pipeline = Pipeline::sound(Layout::Older);
    fs::write(pipeline.root().join("role.md"), SPEC).unwrap();
    pipeline.remove("spec/product-brief.md");
    let mut client = pipeline.client();
    client.supervise("init", json!({"role_spec": "role.md"}));
    let result = client.checkpoint("CHECKPOINT-001");
    assert_ne!(result["details"]["verdict"], "block", "{result:#}");
    assert!(
        result.to_string().contains("product-brief.md"),
        "{result:#}"
    );
}

#[test]
fn role_spec_may_be_outside_the_project() {
    let pipeline = Pipeline::sound(Layout::Older);
    let elsewhere = tempfile::tempdir().unwrap();
    let spec = elsewhere.path().join("role.md");
    let mut client = pipeline.client();
    let missing = client.supervise("init", json!({"role_spec": spec}));
    let message = missing["message"].as_str().unwrap();
    assert!(message.contains("there is no role spec"), "{message}");
    fs::write(&spec, SPEC).unwrap();
    let ready = client.supervise("init", json!({"role_spec": spec}));
    assert_eq!(ready["status"], "pass", "{ready:#}");
    let home = ("HOME", elsewhere.path().to_str().unwrap().to_owned());
    let mut at_home = TeamClient::with_env(pipeline.root(), &[home]);
    let ready = at_home.supervise("init", json!({"role_spec": "~/role.md"}));
    assert_eq!(ready["status"], "pass", "{ready:#}");
    let key = elsewhere.path().join("id_rsa");
    fs::write(&key, SPEC).unwrap();
    let refused = client.supervise("init", json!({"role_spec": key}));
    assert_eq!(refused["status"], "error", "{refused:#}");
}

#[test]
fn spawn_fields_of_the_first_version_start_the_observer() {
    let pipeline = Pipeline::sound(Layout::Older);
    let mut client = pipeline.client();
    let ready = client.call(
        "supervise",
        json!({"role": "supervisor", "session": format!(".workflow/.team/{ID}"), "session_id": ID,
            "team_name": "shop", "requirement": "sell things", "recovery": false}),
    );
    assert_eq!(
        ready["message"], "[supervisor] Ready, awaiting checkpoints",
        "{ready:#}"
    );
    let sentence = ready["details"]["message_text"].as_str().unwrap();
    assert!(
        sentence.starts_with("[supervisor] Resident supervisor ready.") && sentence.contains(ID),
        "{sentence}"
    );
    let told = pipeline.messages();
    let last = told.last().unwrap();
    assert_eq!(
        (&last["from"], &last["summary"]),
        (
            &json!("supervisor"),
            &json!("[supervisor] Ready, awaiting checkpoints")
        ),
        "{last:#}"
    );
    let report = client.wake("## Checkpoint Request\ntask_id: CHECKPOINT-001\nscope: [DRAFT-001, DRAFT-002]\npipeline_progress: 3/10 tasks completed\n");
    let text = report["details"]["message_text"].as_str().unwrap();
    assert!(
        text.contains("[supervisor] Findings: Goals to requirements: "),
        "a pass names what is sound: {text}"
    );
}

#[test]
fn recovery_names_a_checkpoint_in_progress() {
    let pipeline = Pipeline::sound(Layout::Older);
    let mut client = pipeline.client();
    client.init();
    client.checkpoint("CHECKPOINT-001");
    pipeline.message(
        50,
        "supervisor",
        "state_update",
        &json!({"task_id": "CHECKPOINT-002", "status": "in_progress"}),
    );
    // One that is made again is in progress, although it has a report.
    pipeline.message(
        51,
        "supervisor",
        "state_update",
        &json!({"task_id": "CHECKPOINT-001", "status": "in_progress"}),
    );
    let recovered = client.supervise("init", json!({"recovery": true}));
    assert_eq!(
        recovered["details"]["in_progress"],
        json!(["CHECKPOINT-001", "CHECKPOINT-002"]),
        "{recovered:#}"
    );
    let text = recovered["details"]["message_text"].as_str().unwrap();
    assert!(
        text.contains("In progress when the supervisor ended: CHECKPOINT-001, CHECKPOINT-002"),
        "{text}"
    );
}

const OWN: &str = "id = \"CHECKPOINT-100\"\nname = \"notes\"\n[sources]\nnotes = [\"notes/*.md\"]\n\
    [[check]]\nid = \"written\"\nkind = \"artifacts\"\nsources = [\"notes\"]\nmin_bytes = 5\n\
    [[check]]\nid = \"decisions\"\nkind = \"code\"\nname = \"decision_chain\"\n";

fn state(pipeline: &Pipeline, n: usize, task: &str, path: &str) {
    let data = json!({"task_id": task, "status": "task_complete", "ref": path});
    pipeline.message(n, "writer", "state_update", &data);
}

#[test]
fn scope_decides_what_is_checked_and_refs_are_followed() {
    let pipeline = Pipeline::sound(Layout::Older);
    fs::write(pipeline.root().join("own.toml"), OWN).unwrap();
    pipeline.write("notes/a.md", "long enough\n");
    pipeline.write("notes/b.md", "x");
    state(&pipeline, 60, "TASK-A", "notes/a.md");
    state(&pipeline, 61, "TASK-B", "notes/b.md");
    state(&pipeline, 62, "TASK-C", "notes/nowhere.md");
    let mut client = pipeline.client();
    client.supervise("init", json!({"role_spec": "own.toml"}));
    let mut verdict = |scope: Value| {
        let result = client.supervise(
            "checkpoint",
            json!({"task_id": "CHECKPOINT-100", "scope": scope}),
        );
        (result["details"]["verdict"].clone(), result.to_string())
    };
    assert_eq!(verdict(json!(["TASK-A"])).0, "pass");
    let (_, both) = verdict(json!(["TASK-A", "TASK-B"]));
    assert!(both.contains("`notes/b.md` has 1 bytes"), "{both}");
    let (_, missing) = verdict(json!(["TASK-A", "TASK-C"]));
    assert!(
        missing.contains("not there: TASK-C: `notes/nowhere.md`"),
        "{missing}"
    );
}

#[test]
fn scope_of_the_definition_decides_without_one_in_the_request() {
    let pipeline = Pipeline::sound(Layout::Older);
    let own = OWN.replace("[sources]", "scope = [\"TASK-A\"]\n[sources]");
    fs::write(pipeline.root().join("own.toml"), own).unwrap();
    pipeline.write("notes/a.md", "long enough\n");
    pipeline.write("notes/b.md", "x");
    state(&pipeline, 60, "TASK-A", "notes/a.md");
    state(&pipeline, 61, "TASK-B", "notes/b.md");
    let mut client = pipeline.client();
    client.supervise("init", json!({"role_spec": "own.toml"}));
    let result = client.checkpoint("CHECKPOINT-100");
    assert_eq!(result["details"]["verdict"], "pass", "{result:#}");
    let sidecar = pipeline.sidecar("CHECKPOINT-100");
    assert_eq!(sidecar["scope"], json!(["TASK-A"]));
    let inputs = sidecar["inputs"].as_object().unwrap();
    assert!(!inputs.keys().any(|path| path.ends_with("b.md")));
}

#[test]
fn other_side_of_a_comparison_stays_in_scope() {
    let pipeline = Pipeline::sound(Layout::Older);
    state(&pipeline, 60, "DRAFT-001", "spec/product-brief.md");
    state(&pipeline, 61, "DRAFT-002", "spec/requirements");
    let mut client = pipeline.client();
    client.init();
    let scope = json!(["DRAFT-002"]);
    let result = client.supervise(
        "checkpoint",
        json!({"task_id": "CHECKPOINT-001", "scope": scope}),
    );
    assert_eq!(result["details"]["verdict"], "pass", "{result:#}");
    let sidecar = pipeline.sidecar("CHECKPOINT-001");
    let inputs = sidecar["inputs"].as_object().unwrap();
    assert!(inputs.keys().any(|path| path.ends_with("product-brief.md")));

    // Nobody refers to the other files of this source.
    state(&pipeline, 62, "DRAFT-003", "spec/architecture/_index.md");
    let next = json!({"task_id": "CHECKPOINT-002", "scope": ["DRAFT-004"]});
    client.supervise("checkpoint", next);
    let inputs = pipeline.sidecar("CHECKPOINT-002")["inputs"].to_string();
    assert!(inputs.contains("spec/architecture/_index.md"), "{inputs}");
}

#[test]
fn file_of_a_ref_is_read_and_checked() {
    let pipeline = Pipeline::sound(Layout::Older);
    fs::write(pipeline.root().join("own.toml"), OWN).unwrap();
    pipeline.write("notes/a.md", "## Decisions\n\n- database: Postgres\n");
    fs::create_dir(pipeline.root().join("docs")).unwrap();
    fs::write(
        pipeline.root().join("docs/design.md"),
        "## Decisions\n\n- cache: Redis\n",
    )
    .unwrap();
    fs::write(pipeline.root().join("docs/.env"), "KEY=1\n").unwrap();
    state(&pipeline, 60, "TASK-A", "docs/design.md");
    state(&pipeline, 61, "TASK-B", "docs/.env");
    let mut client = pipeline.client();
    client.supervise("init", json!({"role_spec": "own.toml"}));
    client.checkpoint("CHECKPOINT-100");
    let inputs = pipeline.sidecar("CHECKPOINT-100")["inputs"].clone();
    assert!(inputs["docs/design.md"].is_string(), "{inputs:#}");
    assert!(inputs["docs/.env"].is_null(), "{inputs:#}");
    fs::write(
        pipeline.root().join("docs/design.md"),
        "## Decisions\n\n- database: SQLite\n",
    )
    .unwrap();
    client.checkpoint("CHECKPOINT-100");
    assert_eq!(pipeline.sidecar("CHECKPOINT-100")["revision"], 2);
}

/// A role spec of another shape than ours: numbered tables, lists, another report.
#[test]
fn foreign_role_spec_runs_through_a_session() {
    let pipeline = Pipeline::sound(Layout::Run);
    let spec = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/role-spec/gatekeeper.md"
    );
    let mut client = pipeline.client();
    let ready = client.supervise("init", json!({"role_spec": spec}));
    assert_eq!(
        rows(&ready),
        [
            "CHECKPOINT-001 Goals traced: the built-in check `goal_trace` (criteria as built in: every goal `G-NN` of the brief is in a requirement)",
            "CHECKPOINT-001 Terminology: the built-in check `terminology` (criteria as built in: one term for each concept)",
            "CHECKPOINT-001 Currency is euro: a question to a model",
            "CHECKPOINT-001 Error patterns: the built-in check `error_patterns`",
            "CHECKPOINT-003 : built in",
            "CHECKPOINT-010 Decision chain consistent: the built-in check `decision_chain`",
            "CHECKPOINT-010 Every component names its owner: a question to a model",
            "CHECKPOINT-010 Error patterns: the built-in check `error_patterns`",
            " report section `Staffing`: not filled: a checkpoint has nothing for it",
        ]
    );
    for task in ["CHECKPOINT-001", "CHECKPOINT-010", "CHECKPOINT-003"] {
        let result = client.checkpoint(task);
        assert_eq!(result["details"]["verdict"], "pass", "{result:#}");
    }
    let report = pipeline.report("CHECKPOINT-001");
    let headings: Vec<&str> = report.lines().filter(|l| l.starts_with('#')).collect();
    assert_eq!(
        headings,
        [
            "# Gate report CHECKPOINT-001",
            "## Decision",
            "## Risks",
            "## Findings",
            "### Consistency",
            "### Execution Health",
            "### Process",
            "## Staffing",
            "## Next steps",
        ],
        "{report}"
    );
    assert!(
        report.contains("\nVerdict: PASS (score: 1.00)\n"),
        "{report}"
    );
    assert!(report.contains("Not filled"), "{report}");
    drop(client);
    // Recovery reads the verdict from the report alone.
    fs::remove_file(pipeline.outputs().join("CHECKPOINT-001-report.json")).unwrap();
    fs::remove_file(pipeline.team().join(".msg/supervisor.json")).unwrap();
    let mut client = pipeline.client();
    let recovered = client.supervise("init", json!({"role_spec": spec, "recovery": true}));
    assert_eq!(recovered["details"]["restored"], 3, "{recovered:#}");
    let end = client.supervise("shutdown", json!({"request_id": "r-1"}));
    assert_eq!(end["details"]["shutdown_response"]["approve"], true);
}

#[test]
fn decisions_in_artifacts_stand_in_for_role_states() {
    let pipeline = Pipeline {
        dir: tempfile::tempdir().unwrap(),
        layout: Layout::Older,
    };
    pipeline.write("notes/a.md", "## Decisions\n\n- database: Postgres\n");
    pipeline.write("notes/b.md", "## Key decisions\n\n- database: SQLite\n");
    fs::write(pipeline.root().join("own.toml"), OWN).unwrap();
    let mut client = pipeline.client();
    client.supervise("init", json!({"role_spec": "own.toml"}));
    let result = client.checkpoint("CHECKPOINT-100");
    assert!(
        result
            .to_string()
            .contains("database: \\\"SQLite\\\" against \\\"Postgres\\\""),
        "{result:#}"
    );
}
