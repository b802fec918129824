//! `action/prove`, as the steps of `action.yml` run it.

use std::fs;
use std::path::Path;
use std::process::Command;

use supervisor_test_support::project::{TestProject, git};

use crate::skills::tdd::{ADD, ADD_TEST, MANIFEST, WRONG};

/// The exit code, the job's summary and its outputs for a change of `src/lib.rs` and, if wanted, of the test.
fn run(code: &str, test: Option<&str>, labels: &str) -> (i32, String, String) {
    let project = TestProject::with(&[
        (MANIFEST.0, MANIFEST.1),
        (".gitignore", "target\nCargo.lock\n"),
        ("src/lib.rs", ADD),
        ("tests/add.rs", ADD_TEST),
    ]);
    let root = project.root();
    project.git(&["init", "-q"]);
    let commit = |message: &str| {
        git(&root, &["add", "-A"]);
        git(&root, &["commit", "-q", "-m", message]);
    };
    commit("base");
    project.write("src/lib.rs", code);
    match test {
        Some(text) => project.write("tests/add.rs", text),
        None => fs::remove_file(root.join("tests/add.rs")).unwrap(),
    }
    commit("change");
    let files = tempfile::tempdir().unwrap();
    let (summary, output) = (files.path().join("summary"), files.path().join("output"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("action/prove");
    let status = Command::new(script)
        .current_dir(&root)
        .env("SUPERVISOR", env!("CARGO_BIN_EXE_supervisor"))
        .env("SUPERVISOR_STATE_DIR", files.path().join("state"))
        .env("SUPERVISOR_MODELS_FILE", "")
        .env("BASE", "HEAD~1")
        .env("LABELS", labels)
        .env("ALLOW_LABEL", "test-change-allowed")
        .env("GITHUB_STEP_SUMMARY", &summary)
        .env("GITHUB_OUTPUT", &output)
        .env_remove("GH_TOKEN")
        .status()
        .unwrap();
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    (status.code().unwrap(), read(&summary), read(&output))
}

#[test]
fn action_fails_on_a_regression() {
    let (code, summary, output) = run(WRONG, Some(ADD_TEST), "[]");
    assert_eq!(
        (code, output.as_str()),
        (1, "verdict=broken\n"),
        "{summary}"
    );
    assert!(summary.starts_with("**broken**"), "{summary}");
}

#[test]
fn only_a_label_allows_test_changes() {
    let weaker = ADD_TEST.replace("assert_eq!", "let _ = (); assert_eq!");
    let (code, summary, output) = run(ADD, Some(&format!("{weaker}// edited\n")), "[]");
    assert_eq!(code, 0, "{summary}");
    assert!(output.starts_with("verdict="), "{output}");
    let (_, refused, _) = run(WRONG, None, "[]");
    assert!(!refused.starts_with("**proven**"), "{refused}");
    let (_, _, allowed) = run(ADD, None, r#"["test-change-allowed"]"#);
    assert_ne!(allowed, "verdict=broken\n");
}
