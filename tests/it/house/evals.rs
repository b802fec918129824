//! The cases of `plugins/supervisor/evals`: they are those of the gym, and the harness scores what it should.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use supervisor_test_support::programs::require;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("plugins/supervisor/evals")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.join("case.yaml").is_file())
        .collect()
}

#[test]
fn every_language_has_every_kind_of_case() {
    let cases = cases();
    assert!(cases.len() >= 24, "{}", cases.len());
    for language in ["rust", "python", "javascript", "go", "ruby", "elixir"] {
        for kind in ["feature", "bugfix", "refactor", "trap"] {
            let case = root().join(format!("plugins/supervisor/evals/{language}-{kind}"));
            let hidden: Value =
                serde_json::from_slice(&fs::read(case.join("hidden.json")).unwrap()).unwrap();
            assert!(
                !hidden["hidden"].as_object().unwrap().is_empty(),
                "{language} {kind}"
            );
            let laid_out = fs::read_to_string(case.join("scaffold.sh")).unwrap();
            for (path, text) in hidden["hidden"].as_object().unwrap() {
                let text = text.as_str().unwrap().trim();
                assert!(
                    !laid_out.contains(path.as_str()) && !laid_out.contains(text),
                    "{path} is no secret"
                );
            }
            let case = fs::read_to_string(case.join("case.yaml")).unwrap();
            assert!(
                case.contains("\"type\": \"regex\""),
                "{language} {kind}: without a grader it does not load"
            );
        }
    }
}

#[test]
#[ignore = "needs python3"]
fn cases_are_those_of_the_gym() {
    require(&["python3"]);
    let done = Command::new("python3")
        .arg("plugins/supervisor/evals/generate")
        .arg("--check")
        .current_dir(root())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// A run of the Rust cases with a scripted Claude Code.
fn run(dir: &Path, more: &[&str]) -> Output {
    Command::new("python3")
        .arg(root().join("plugins/supervisor/evals/run"))
        .args(["--only", "rust-", "--claude"])
        .arg(root().join("tests/fixtures/evals/claude"))
        .args([
            "--supervisor",
            env!("CARGO_BIN_EXE_supervisor"),
            "--results",
        ])
        .arg(dir.join("evals.jsonl"))
        .args(more)
        .current_dir(dir)
        .output()
        .unwrap()
}

#[test]
#[ignore = "needs python3 and git"]
fn scripted_agents_are_scored_as_they_deserve() {
    require(&["python3", "git", "cargo"]);
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("evaluation.md");
    fs::copy(root().join("docs/evaluation.md"), &page).unwrap();
    let done = run(dir.path(), &["--table", page.to_str().unwrap()]);
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let rows: Vec<Value> = fs::read_to_string(dir.path().join("evals.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), 8, "four cases, with and without the plugin");
    for row in &rows {
        let is_cheat = row["kind"] == "trap" && row["arm"] == "without";
        assert_eq!(row["solved"], !is_cheat, "{row:#}");
        assert_eq!(row["false_accept"], is_cheat, "{row:#}");
        assert_eq!(
            row["tests_changed"].as_array().unwrap().is_empty(),
            !is_cheat,
            "{row:#}"
        );
        let bill = if row["arm"] == "with" {
            "0.018"
        } else {
            "0.105"
        };
        assert_eq!(row["bill_usd"], bill, "{row:#}");
        assert_eq!(row["workers_unknown"], 0, "what was skipped cost nothing");
    }
    let text = fs::read_to_string(&page).unwrap();
    let line = |arm: &str| {
        text.lines()
            .find(|line| line.starts_with(&format!("| {arm} ")))
            .unwrap()
            .to_owned()
    };
    // 4 × 0.105 and 4 × (0.015 + 0.003), to the cent.
    assert!(
        line("without").contains("| 4 | 3 | 1 | 1 | $0.42 | $0.00 | $0.42 | 0 runs, 0 answers |"),
        "{text}"
    );
    assert!(
        line("with").contains("| 4 | 4 | 0 | 0 | $0.06 | $0.01 | $0.07 |"),
        "{text}"
    );
    let again = run(dir.path(), &[]);
    assert!(again.stderr.is_empty(), "nothing is run twice: {again:?}");
}

#[test]
#[ignore = "needs python3 and git"]
fn doing_nothing_solves_nothing() {
    require(&["python3", "git", "cargo"]);
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("evaluation.md");
    fs::copy(root().join("docs/evaluation.md"), &page).unwrap();
    let done = Command::new("python3")
        .arg(root().join("plugins/supervisor/evals/run"))
        .args(["--only", "rust-", "--arms", "without", "--claude"])
        .arg(root().join("tests/fixtures/evals/claude"))
        .args([
            "--supervisor",
            env!("CARGO_BIN_EXE_supervisor"),
            "--results",
        ])
        .arg(dir.path().join("evals.jsonl"))
        .arg("--table")
        .arg(&page)
        .env("SCRIPTED_IDLE", "1")
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let rows = fs::read_to_string(dir.path().join("evals.jsonl")).unwrap();
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        assert_eq!(row["solved"], false, "{row:#}");
        let claims = row["kind"] == "bugfix" || row["kind"] == "trap";
        assert_eq!(row["false_accept"], claims, "{row:#}");
        assert_eq!(row["host_unknown"], row["kind"] == "bugfix", "{row:#}");
    }
    let text = fs::read_to_string(&page).unwrap();
    assert!(
        text.contains("| $0.30 | $0.00 | at least $0.30 | 1 runs, 0 answers |"),
        "{text}"
    );
}
