//! Every check of the three checkpoints, with at least two planted defects it finds and two clean inputs it passes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use supervisor_team::definition::{CheckRule, CheckpointDefinition};
use supervisor_team::verdict::CheckGroup;

use super::session::{Layout, Pipeline};

type Plant = fn(&Pipeline);

/// Checkpoint, check, what is done to a sound pipeline, and the outcomes that are right.
const ROWS: &[(&str, &str, Plant, &[&str])] = &[
    (
        "CHECKPOINT-001",
        "goal_trace",
        |p| p.replace("spec/product-brief.md", "| G-002 |", "| G-009 |"),
        &["fail"],
    ),
    (
        "CHECKPOINT-001",
        "goal_trace",
        |p| {
            p.replace(
                "spec/product-brief.md",
                "| G-001 | A user can pay | 99 % |\n",
                "| G-001 | A user can pay | 99 % |\n| G-003 | fast | 1 |\n",
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-001",
        "goal_trace",
        |p| p.remove("spec/requirements/REQ-003-mail.md"),
        &["pass"],
    ),
    ("CHECKPOINT-001", "goal_trace", |_| {}, &["pass"]),
    (
        "CHECKPOINT-001",
        "terminology",
        |p| {
            p.replace(
                "spec/requirements/REQ-001-pay.md",
                "A user pays",
                "A customer pays",
            );
        },
        &["warn"],
    ),
    (
        "CHECKPOINT-001",
        "terminology",
        |p| p.replace("spec/product-brief.md", "see an order", "see a purchase"),
        &["warn"],
    ),
    (
        "CHECKPOINT-001",
        "terminology",
        |p| {
            p.replace(
                "spec/requirements/REQ-001-pay.md",
                "A user pays",
                "Users pay",
            );
        },
        &["pass"],
    ),
    ("CHECKPOINT-001", "terminology", |_| {}, &["pass"]),
    (
        "CHECKPOINT-001",
        "scope",
        |p| {
            p.write(
                "spec/requirements/REQ-004-i.md",
                "---\nid: REQ-004\ntraces_to: [G-001]\n---\n# Paying by invoice\n",
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-001",
        "scope",
        |p| {
            p.replace(
                "spec/requirements/REQ-003-mail.md",
                "traces_to: [G-002]\n",
                "",
            );
        },
        &["warn"],
    ),
    (
        "CHECKPOINT-001",
        "scope",
        |p| {
            p.write(
                "spec/requirements/REQ-004-i.md",
                "---\ntraces_to: [G-001]\n---\n# Pay by card again\n",
            );
        },
        &["pass"],
    ),
    ("CHECKPOINT-001", "scope", |_| {}, &["pass"]),
    (
        "CHECKPOINT-001",
        "decision_continuity",
        |p| {
            state(
                p,
                "writer",
                "DRAFT-002",
                &json!({"decisions": ["database: SQLite"]}),
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-001",
        "decision_continuity",
        |p| {
            state(
                p,
                "writer",
                "DRAFT-002",
                &json!({"decisions": [{"key": "payment", "value": "invoice"}]}),
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-001",
        "decision_continuity",
        |p| {
            state(
                p,
                "writer",
                "DRAFT-002",
                &json!({"decisions": [{"key": "database", "value": "SQLite", "supersedes": "D-1"}]}),
            );
        },
        &["pass"],
    ),
    ("CHECKPOINT-001", "decision_continuity", |_| {}, &["pass"]),
    (
        "CHECKPOINT-001",
        "artifact_existence",
        |p| p.remove("spec/product-brief.md"),
        &["fail"],
    ),
    (
        "CHECKPOINT-001",
        "artifact_existence",
        |p| {
            p.write(
                "spec/requirements/REQ-001-pay.md",
                "---\nid: [broken\n---\n",
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-001",
        "artifact_existence",
        |p| p.write("spec/requirements/REQ-009-x.md", "plain text"),
        &["pass"],
    ),
    ("CHECKPOINT-001", "artifact_existence", |_| {}, &["pass"]),
    (
        "CHECKPOINT-002",
        "architecture_epics",
        |p| {
            p.replace(
                "spec/epics/EPIC-001-pay.md",
                "Checkout and Archive",
                "Checkout",
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-002",
        "architecture_epics",
        |p| {
            p.write(
                "spec/architecture/ADR-002-queue.md",
                "---\nid: ADR-002\n---\n# Queue\n",
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-002",
        "architecture_epics",
        |p| p.replace("spec/epics/EPIC-001-pay.md", "Archive", "archive"),
        &["pass"],
    ),
    ("CHECKPOINT-002", "architecture_epics", |_| {}, &["pass"]),
    (
        "CHECKPOINT-002",
        "decision_chain",
        |p| {
            state(
                p,
                "writer",
                "DRAFT-004",
                &json!({"decisions": ["database: MySQL"]}),
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-002",
        "decision_chain",
        |p| {
            state(
                p,
                "writer",
                "DRAFT-004",
                &json!({"decisions": ["payment: everything"]}),
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-002",
        "decision_chain",
        |p| {
            state(
                p,
                "writer",
                "DRAFT-004",
                &json!({"decisions": ["cache: none"]}),
            );
        },
        &["pass"],
    ),
    ("CHECKPOINT-002", "decision_chain", |_| {}, &["pass"]),
    (
        "CHECKPOINT-002",
        "quality_trend",
        |p| state(p, "writer", "DRAFT-003", &json!({"quality_self_score": 40})),
        &["fail"],
    ),
    (
        "CHECKPOINT-002",
        "quality_trend",
        |p| state(p, "writer", "DRAFT-004", &json!({"quality_self_score": 70})),
        &["fail"],
    ),
    (
        "CHECKPOINT-002",
        "quality_trend",
        |p| state(p, "writer", "DRAFT-004", &json!({"quality_self_score": 74})),
        &["pass"],
    ),
    ("CHECKPOINT-002", "quality_trend", |_| {}, &["pass"]),
    (
        "CHECKPOINT-002",
        "open_questions",
        |p| {
            p.replace(
                "spec/product-brief.md",
                "- [x] which provider?",
                "- [ ] critical: which provider?",
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-002",
        "open_questions",
        |p| {
            state(
                p,
                "writer",
                "DRAFT-004",
                &json!({"open_questions": [{"question": "who pays?", "severity": "critical"}]}),
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-002",
        "open_questions",
        |p| {
            state(
                p,
                "writer",
                "DRAFT-004",
                &json!({"open_questions": [{"question": "who pays?", "severity": "critical", "resolved": true}]}),
            );
        },
        &["pass"],
    ),
    ("CHECKPOINT-002", "open_questions", |_| {}, &["pass"]),
    (
        "CHECKPOINT-002",
        "wisdom",
        |p| p.write("wisdom/conventions.md", "- database: Mongo\n"),
        &["fail"],
    ),
    (
        "CHECKPOINT-002",
        "wisdom",
        |p| p.write("wisdom/learnings.md", "- payment: on delivery\n"),
        &["fail"],
    ),
    (
        "CHECKPOINT-002",
        "wisdom",
        |p| p.write("wisdom/conventions.md", "- naming: short\n"),
        &["pass"],
    ),
    ("CHECKPOINT-002", "wisdom", |_| {}, &["pass"]),
    (
        "CHECKPOINT-003",
        "plan_coverage",
        |p| p.replace("plan/plan.json", "\"REQ-002\"", "\"REQ-003\""),
        &["fail"],
    ),
    (
        "CHECKPOINT-003",
        "plan_coverage",
        |p| {
            p.write(
                "spec/requirements/REQ-004-x.md",
                "---\nid: REQ-004\npriority: Must\n---\n# X\n",
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-003",
        "plan_coverage",
        |p| {
            p.write(
                "spec/requirements/REQ-004-x.md",
                "---\nid: REQ-004\npriority: Could\n---\n# X\n",
            );
        },
        &["pass"],
    ),
    ("CHECKPOINT-003", "plan_coverage", |_| {}, &["pass"]),
    (
        "CHECKPOINT-003",
        "complexity",
        |p| {
            p.replace(
                "plan/plan.json",
                "\"src/pay/card.rs\"",
                "\"a/x.rs\", \"b/x.rs\", \"c/x.rs\", \"d/x.rs\"",
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-003",
        "complexity",
        |p| {
            p.replace("plan/plan.json", "\"Low\"", "\"High\"");
            p.replace("plan/plan.json", "src/orders/list.rs", "src/pay/list.rs");
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-003",
        "complexity",
        |p| p.replace("plan/plan.json", "src/orders/list.rs", "src/pay/list.rs"),
        &["pass"],
    ),
    ("CHECKPOINT-003", "complexity", |_| {}, &["pass"]),
    (
        "CHECKPOINT-003",
        "dependency_chain",
        |p| p.replace("plan/plan.json", "[\"TASK-001\"]", "[\"TASK-002\"]"),
        &["fail"],
    ),
    (
        "CHECKPOINT-003",
        "dependency_chain",
        |p| p.replace("plan/plan.json", "[\"TASK-001\"]", "[\"TASK-007\"]"),
        &["fail"],
    ),
    (
        "CHECKPOINT-003",
        "dependency_chain",
        |p| {
            p.write(
                "plan/.task/TASK-003.json",
                "{\"id\": \"TASK-003\", \"depends_on\": [\"TASK-001\", \"TASK-002\"]}",
            );
        },
        &["pass"],
    ),
    ("CHECKPOINT-003", "dependency_chain", |_| {}, &["pass"]),
    (
        "CHECKPOINT-003",
        "execution_method",
        |p| p.replace("plan/plan.json", "\"Agent\"", "\"CLI\""),
        &["warn"],
    ),
    (
        "CHECKPOINT-003",
        "execution_method",
        |p| p.replace("plan/plan.json", "\"Low\"", "\"Medium\""),
        &["warn"],
    ),
    (
        "CHECKPOINT-003",
        "execution_method",
        |p| {
            p.replace("plan/plan.json", "\"Low\"", "\"Medium\"");
            p.replace("plan/plan.json", "\"Agent\"", "\"CLI\"");
        },
        &["pass"],
    ),
    ("CHECKPOINT-003", "execution_method", |_| {}, &["pass"]),
    (
        "CHECKPOINT-003",
        "upstream_consumed",
        |p| p.replace("plan/plan.json", "\"architecture/ADR-001-postgres.md\"", ""),
        &["fail"],
    ),
    (
        "CHECKPOINT-003",
        "upstream_consumed",
        |p| {
            p.replace(
                "plan/plan.json",
                "architecture/ADR-001-postgres.md",
                "somewhere.md",
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-003",
        "upstream_consumed",
        |p| {
            p.replace(
                "plan/plan.json",
                "architecture/ADR-001-postgres.md",
                "ADR-001",
            );
        },
        &["pass"],
    ),
    ("CHECKPOINT-003", "upstream_consumed", |_| {}, &["pass"]),
    (
        "CHECKPOINT-001",
        "error_patterns",
        |p| (0..3).for_each(|n| p.message(20 + n, "writer", "error", &json!({}))),
        &["fail"],
    ),
    (
        "CHECKPOINT-001",
        "error_patterns",
        |p| (0..5).for_each(|n| p.message(20 + n, "tester", "error", &json!({}))),
        &["fail"],
    ),
    (
        "CHECKPOINT-001",
        "error_patterns",
        |p| (0..2).for_each(|n| p.message(20 + n, "writer", "error", &json!({}))),
        &["pass"],
    ),
    ("CHECKPOINT-001", "error_patterns", |_| {}, &["pass"]),
    (
        "CHECKPOINT-001",
        "activity",
        |p| {
            p.message(
                20,
                "writer",
                "progress",
                &json!({"task_id": "DRAFT-009", "status": "in_progress"}),
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-001",
        "activity",
        |p| {
            p.message(
                20,
                "executor",
                "progress",
                &json!({"task_id": "IMPL-1", "status": "running"}),
            );
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-001",
        "activity",
        |p| {
            p.message(
                20,
                "w",
                "progress",
                &json!({"task_id": "T", "status": "in_progress"}),
            );
            p.message(
                21,
                "w",
                "state_update",
                &json!({"task_id": "T", "status": "task_complete"}),
            );
        },
        &["pass"],
    ),
    ("CHECKPOINT-001", "activity", |_| {}, &["pass"]),
    (
        "CHECKPOINT-001",
        "spawns",
        |p| {
            p.message(20, "c", "fast_advance", &json!({"spawned": "W-1"}));
            p.message(21, "c", "fast_advance", &json!({"spawned": "W-1"}));
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-001",
        "spawns",
        |p| {
            for n in 20..23 {
                p.message(n, "c", "fast_advance", &json!({"next_task": "T-2"}));
            }
        },
        &["fail"],
    ),
    (
        "CHECKPOINT-001",
        "spawns",
        |p| {
            p.message(20, "c", "fast_advance", &json!({"spawned": "W-1"}));
            p.message(21, "c", "fast_advance", &json!({"spawned": "W-2"}));
        },
        &["pass"],
    ),
    ("CHECKPOINT-001", "spawns", |_| {}, &["pass"]),
    (
        "CHECKPOINT-002",
        "terminology",
        |p| {
            p.replace(
                "spec/architecture/_index.md",
                "keeps each order",
                "keeps each purchase",
            );
        },
        &["warn"],
    ),
    (
        "CHECKPOINT-002",
        "terminology",
        |p| p.write("spec/epics/EPIC-002-x.md", "# A customer logs\n"),
        &["warn"],
    ),
    (
        "CHECKPOINT-002",
        "terminology",
        |p| p.write("spec/epics/EPIC-002-x.md", "# Users and orders\n"),
        &["pass"],
    ),
    ("CHECKPOINT-002", "terminology", |_| {}, &["pass"]),
    (
        "CHECKPOINT-002",
        "artifact_existence",
        |p| p.remove("spec/epics"),
        &["fail"],
    ),
    (
        "CHECKPOINT-002",
        "artifact_existence",
        |p| p.write("spec/architecture/_index.md", ""),
        &["fail"],
    ),
    (
        "CHECKPOINT-002",
        "artifact_existence",
        |p| p.write("spec/epics/EPIC-003-x.md", "plain text"),
        &["pass"],
    ),
    ("CHECKPOINT-002", "artifact_existence", |_| {}, &["pass"]),
    (
        "CHECKPOINT-003",
        "artifact_existence",
        |p| p.remove("plan/plan.json"),
        &["fail"],
    ),
    (
        "CHECKPOINT-003",
        "artifact_existence",
        |p| p.write("plan/plan.json", ""),
        &["fail"],
    ),
    (
        "CHECKPOINT-003",
        "artifact_existence",
        |p| p.write("plan/.task/TASK-003.json", "{\"id\": \"TASK-003\"}"),
        &["pass"],
    ),
    ("CHECKPOINT-003", "artifact_existence", |_| {}, &["pass"]),
];

fn state(pipeline: &Pipeline, role: &str, task: &str, data: &Value) {
    let mut data = data.clone();
    data["task_id"] = json!(task);
    pipeline.message(30, role, "state_update", &data);
}

#[test]
fn every_check_finds_planted_defects() {
    let mut counts: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut shared = Pipeline::sound(Layout::Older).client();
    for (n, (checkpoint, check, plant, right)) in ROWS.iter().enumerate() {
        let pipeline = Pipeline::sound(if n % 2 == 0 {
            Layout::Older
        } else {
            Layout::Run
        });
        plant(&pipeline);
        shared.stand_in(pipeline.root());
        shared.init();
        let answer = shared.checkpoint(checkpoint);
        let found = answer["details"]["checks"]
            .as_array()
            .and_then(|all| all.iter().find(|c| c["id"] == **check))
            .cloned();
        let outcome = found
            .as_ref()
            .map_or("none", |c| c["result"].as_str().unwrap());
        if !right.contains(&outcome) {
            wrong.push(format!(
                "row {n} {check}: {outcome}, not {right:?}: {found:?} {answer}"
            ));
        }
        let count = counts.entry((checkpoint, check)).or_default();
        if right.contains(&"pass") {
            count.1 += 1;
        } else {
            count.0 += 1;
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    for checkpoint in CheckpointDefinition::built_in() {
        for check in &checkpoint.checks {
            // A question is put to a model; the health of the pipeline is the same check in all three.
            if matches!(check.rule, CheckRule::Question { .. }) {
                continue;
            }
            let of = if check.group == CheckGroup::Health {
                "CHECKPOINT-001"
            } else {
                checkpoint.id.as_str()
            };
            let (defects, clean) = counts
                .get(&(of, check.id.as_str()))
                .copied()
                .unwrap_or_default();
            assert!(
                defects >= 2 && clean >= 2,
                "{of} {}: {defects} defects and {clean} clean inputs",
                check.id
            );
        }
    }
}
