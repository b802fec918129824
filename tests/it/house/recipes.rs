//! What the README and the pages beside it tell people to write down is tried: every block of settings is loaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const BINARY: &str = env!("CARGO_BIN_EXE_supervisor");

#[test]
fn every_settings_block_in_docs_loads() {
    let mut tried = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for block in blocks(&text, "toml") {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("models.toml");
            fs::write(&file, &block).unwrap();
            let output = Command::new(BINARY)
                .arg("explain")
                .arg("--config")
                .arg(&file)
                .env_clear()
                .env("HOME", dir.path())
                .current_dir(dir.path())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            // A plain build has not compiled what some pages describe, and says so.
            let is_left_out = said.contains("needs a program built with");
            assert!(
                output.status.success() || is_left_out,
                "{}: {said}\n{block}",
                page.display()
            );
            tried += 1;
        }
    }
    assert!(tried >= 4, "the recipes are gone: {tried}");
}

#[test]
fn every_link_in_docs_exists() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            assert!(
                page.parent().unwrap().join(path).exists(),
                "{}: `{target}` leads nowhere",
                page.display()
            );
        }
    }
}

#[test]
fn recipe_replays_recorded_answers() {
    let docs =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md"))
            .unwrap();
    let [line] = blocks(&docs, "json")
        .try_into()
        .expect("one line as an example");
    let _: supervisor_models::replay::ReplayLine = serde_json::from_str(&line).unwrap();

    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let readme =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/recipes.md")).unwrap();
    let recipe = blocks(&readme, "toml")
        .into_iter()
        .find(|block| block.contains("\"replay\""))
        .unwrap();
    let answers = at("answers.jsonl");
    fs::write(
        at("models.toml"),
        recipe.replace("/srv/ci/answers.jsonl", answers.to_str().unwrap()),
    )
    .unwrap();
    let edits =
        serde_json::json!([{"path": "code.txt", "action": "replace", "content": "right\n"}]);
    let recorded = serde_json::json!({"model": "qwen3.6:27b", "answer": {"edits": edits}});
    fs::write(&answers, format!("{recorded}\n")).unwrap();
    fs::create_dir(at("project")).unwrap();
    fs::write(at("project/code.txt"), "wrong\n").unwrap();
    fs::write(at("project/test.sh"), "grep -q right code.txt\n").unwrap();
    let output = Command::new(BINARY)
        .args([
            "call",
            "tdd_green",
            "--arg",
            "test_path=test.sh",
            "--arg",
            "test_cmd=sh test.sh",
        ])
        .arg("--config")
        .arg(at("models.toml"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", at("home"))
        .current_dir(at("project"))
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        fs::read_to_string(at("project/code.txt")).unwrap(),
        "right\n"
    );
    assert!(at("answers.jsonl.asked").exists());
}

/// The README and everything in `docs/` that is Markdown.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<PathBuf> = fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    pages.retain(|page| page.extension().is_some_and(|e| e == "md"));
    pages.push(root.join("README.md"));
    pages
}

/// The fenced blocks of one language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let open = format!("```{language}\n");
    text.split(&open)
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next())
        .map(str::to_owned)
        .collect()
}
