//! The one check that a model decides: its answer counts only with citations that stand in the passages.

use std::fs;

use serde_json::{Value, json};

use super::session::{ID, Layout, Pipeline, TeamClient};

/// What a recorded model answers, and what the check comes to.
fn rows() -> Vec<(Value, &'static str)> {
    let file = |name: &str| format!(".workflow/.team/{ID}/spec/{name}");
    let database = json!({"file": file("architecture/ADR-001-postgres.md"), "line": 6, "quote": "One database."});
    let card = json!({"file": file("requirements/REQ-001-pay.md"), "line": 8, "quote": "A user pays an order by card."});
    let forged = json!({"file": file("requirements/REQ-001-pay.md"), "line": 8, "quote": "A user pays in gold."});
    let answer = |verdict: &str, cited: &[&Value]| json!({"verdict": verdict, "why": "cards against gold", "findings": cited});
    vec![
        (answer("violated", &[&database, &card]), "fail"),
        (answer("violated", &[&card]), "fail"),
        (answer("holds", &[&database, &card]), "pass"),
        (answer("holds", &[&card]), "pass"),
        (answer("unclear", &[]), "not_applicable"),
        // An answer without proof decides nothing, in either direction.
        (answer("violated", &[&forged]), "not_applicable"),
        (answer("holds", &[]), "not_applicable"),
    ]
}

#[test]
fn answer_counts_only_with_valid_citations() {
    for (answer, wanted) in rows() {
        let pipeline = Pipeline::sound(Layout::Older);
        let (answers, settings) = (
            pipeline.root().join("answers.jsonl"),
            pipeline.root().join("models.toml"),
        );
        fs::write(
            &answers,
            format!("{}\n", json!({"model": "small", "answer": answer})),
        )
        .unwrap();
        let chain = format!(
            "default_chain = [\"small\"]\nverifier = \"none\"\nattempts_per_tier = 1\n[backends.near]\nkind = \"replay\"\n\
             tier = \"local\"\nfile = \"{}\"\nmodels = [\"small\"]\n",
            answers.display()
        );
        fs::write(&settings, chain).unwrap();
        let env = [("SUPERVISOR_MODELS_FILE", settings.display().to_string())];
        let mut client = TeamClient::with_env(pipeline.root(), &env);
        client.init();
        let told = client.checkpoint("CHECKPOINT-002");
        let checks = told["details"]["checks"]
            .as_array()
            .unwrap_or_else(|| panic!("{told:#}"));
        let check = checks
            .iter()
            .find(|check| check["id"] == "decision_words")
            .unwrap();
        assert_eq!(check["result"], wanted, "{answer}: {check:#}");
        let report = pipeline.report("CHECKPOINT-002");
        assert_eq!(
            report.contains("REQ-001-pay.md:8"),
            wanted == "fail",
            "{answer}: {report}"
        );
    }
}
