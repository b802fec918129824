//! The hooks of the plugin, as Claude Code runs them: an event on stdin, an exit code, words on stderr for the model.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::skills::tdd::{ADD, ADD_TEST, MANIFEST, WRONG};

struct Desk {
    project: TempDir,
    state: TempDir,
}

impl Desk {
    fn new() -> Self {
        let desk = Self {
            project: tempfile::tempdir().unwrap(),
            state: tempfile::tempdir().unwrap(),
        };
        desk.write(MANIFEST.0, MANIFEST.1);
        desk.write("src/lib.rs", ADD);
        desk.write("tests/add.rs", ADD_TEST);
        // Red before, and so nobody's fault.
        desk.write(
            "tests/old.rs",
            "#[test]\nfn is_red_already() {\n    assert_eq!(demo::one(), 2);\n}\n",
        );
        desk
    }

    fn root(&self) -> PathBuf {
        self.project.path().canonicalize().unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let whole = self.project.path().join(path);
        fs::create_dir_all(whole.parent().unwrap()).unwrap();
        fs::write(whole, text).unwrap();
    }

    fn run(&self, program: &Path, words: &[&str], event: &Value, env: &[(&str, &str)]) -> Output {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if (name.starts_with("CARGO_") && name != "CARGO_HOME") || name.starts_with("NEXTEST") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .args(words)
            .current_dir(self.project.path())
            .env_remove("CLAUDE_PROJECT_DIR")
            .env("SUPERVISOR_STATE_DIR", self.state.path().join("state"))
            .env("SUPERVISOR_MODELS_FILE", "")
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A hook that is off reads nothing.
        let _ = child
            .stdin
            .take()
            .unwrap()
            .write_all(event.to_string().as_bytes());
        child.wait_with_output().unwrap()
    }

    /// One hook of the program: its exit code, and what the model is told.
    fn hook(&self, event: &str, more: &Value) -> (i32, String) {
        let mut input = json!({"session_id": "s", "cwd": self.root()});
        input
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let output = self.run(
            Path::new(env!("CARGO_BIN_EXE_supervisor")),
            &["hook", event],
            &input,
            &[],
        );
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }
}

#[test]
fn stop_hook_blocks_newly_red_tests_once() {
    let desk = Desk::new();
    assert_eq!(
        desk.hook("stop", &json!({})),
        (0, String::new()),
        "without a baseline nobody is held"
    );
    assert_eq!(desk.hook("start", &json!({})).0, 0);
    assert_eq!(desk.hook("stop", &json!({})).0, 0, "nothing has changed");

    desk.write("src/lib.rs", WRONG);
    let (code, said) = desk.hook("stop", &json!({}));
    assert_eq!(code, 2, "{said}");
    assert!(
        said.starts_with("Not done: ") && said.contains("adds_two_numbers"),
        "{said}"
    );
    assert!(!said.contains("is_red_already"), "{said}");
    assert_eq!(
        desk.hook("stop", &json!({"stop_hook_active": true})),
        (0, String::new())
    );

    desk.write("src/lib.rs", "pub fn one() -> i32 { 1 } pub fn add(");
    let (code, said) = desk.hook("stop", &json!({}));
    assert!(
        code == 2 && said.contains("does not build"),
        "{code} {said}"
    );

    desk.write("src/lib.rs", &format!("{ADD}\npub fn more() {{}}\n"));
    assert_eq!(
        desk.hook("stop", &json!({})),
        (0, String::new()),
        "what was red before is held against nobody"
    );

    let verify = |words: &[&str]| {
        let words = [&["verify"], words].concat();
        desk.run(
            Path::new(env!("CARGO_BIN_EXE_supervisor")),
            &words,
            &json!({}),
            &[],
        )
    };
    let output = verify(&["--against-baseline", "--session", "s"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && said.contains("no test was run"),
        "{said}"
    );
    let output = verify(&["--against-baseline", "--session", "unknown"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2) && said.contains("--record-baseline"),
        "{said}"
    );
}

#[test]
fn tdd_hook_wants_a_logged_red_test() {
    let desk = Desk::new();
    let edit = |path: &str, text: &str| {
        desk.hook(
            "edit",
            &json!({"tool_input": {"file_path": path, "new_string": text}}),
        )
    };
    let code = desk.root().join("src/lib.rs").display().to_string();
    let (refused, said) = edit(&code, "pub fn two() {}");
    assert_eq!(refused, 2, "{said}");
    assert!(
        said.contains("`src/lib.rs` is production code") && said.contains("call `tdd_red` with"),
        "{said}"
    );
    for (path, text) in [
        ("tests/two.rs", "x"),
        ("README.md", "x"),
        ("Cargo.toml", "x"),
        ("src/lib.rs", "#[test]\nfn two() {}"),
        ("/elsewhere/src/lib.rs", "x"),
    ] {
        assert_eq!(edit(path, text), (0, String::new()), "{path}");
    }
    let log = desk.state.path().join("state/sessions");
    fs::create_dir_all(&log).unwrap();
    let mut text = String::new();
    for (phase, minute, refused) in [("red", 1, 0), ("green", 2, 2), ("red", 3, 0)] {
        let entry = json!({"v": 1, "session_id": "a", "timestamp": format!("2026-01-02T03:0{minute}:00Z"), "attempts": [],
            "skill": format!("tdd_{phase}"), "phase": phase, "final_status": "pass", "project_root": desk.root()});
        text += &format!("{entry}\n");
        fs::write(log.join("a.jsonl"), &text).unwrap();
        assert_eq!(edit(&code, "pub fn two() {}").0, refused, "after a {phase}");
    }
}

#[test]
fn hooks_are_off_by_default() {
    let desk = Desk::new();
    let bin = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins/supervisor/bin");
    let ours = Path::new(env!("CARGO_BIN_EXE_supervisor"))
        .parent()
        .unwrap();
    let path = std::env::join_paths(
        std::iter::once(ours.to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let path = path.to_str().unwrap();
    let event = json!({"session_id": "s", "cwd": desk.root(), "tool_input": {"file_path": "src/lib.rs", "new_string": "x"}});
    for (env, code) in [
        (vec![("PATH", path)], 0),
        (
            vec![("PATH", path), ("CLAUDE_PLUGIN_OPTION_TDD_GUARD", "false")],
            0,
        ),
        (
            vec![("PATH", path), ("CLAUDE_PLUGIN_OPTION_TDD_GUARD", "true")],
            2,
        ),
        (vec![("PATH", path), ("SUPERVISOR_TDD_GUARD", "1")], 2),
    ] {
        let output = desk.run(&bin.join("hook"), &["edit"], &event, &env);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{env:?} {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    // Without the program the launcher says how to install it, as a server too.
    let launcher = bin.join("supervisor");
    let env = [("PATH", "/usr/bin:/bin")];
    let output = desk.run(&launcher, &["doctor"], &json!({}), &env);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(127) && said.contains("cargo install"),
        "{said}"
    );
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let output = desk.run(&launcher, &["serve"], &request, &env);
    let reply: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{reply}");
    let tool = &reply["result"]["tools"][0];
    assert_eq!(
        (&reply["id"], &tool["name"]),
        (&json!(1), &json!("install_supervisor"))
    );
    assert!(
        tool["description"]
            .as_str()
            .unwrap()
            .contains("cargo install"),
        "{reply}"
    );
}

/// A committed project, and the prove gate of one session in it.
fn gated() -> Desk {
    let desk = Desk::new();
    fs::remove_file(desk.project.path().join("tests/old.rs")).unwrap();
    desk.write(".gitignore", "target\nCargo.lock\n");
    git(&desk, &["init", "-q"]);
    git(&desk, &["add", "-A"]);
    git(&desk, &["commit", "-q", "-m", "base"]);
    let (code, said) = desk.prove_gate("start", &json!({}));
    assert_eq!(code, 0, "{said}");
    desk
}

fn git(desk: &Desk, words: &[&str]) {
    supervisor_test_support::project::git(&desk.root(), words);
}

impl Desk {
    fn prove_gate(&self, event: &str, more: &Value) -> (i32, String) {
        self.prove_gate_with(event, more, &[])
    }

    fn prove_gate_with(&self, event: &str, more: &Value, env: &[(&str, &str)]) -> (i32, String) {
        let mut input = json!({"session_id": "s", "cwd": self.root()});
        input
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let program = Path::new(env!("CARGO_BIN_EXE_supervisor"));
        let output = self.run(program, &["hook", "--prove", event], &input, env);
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }
}

#[test]
fn prove_gate_blocks_a_regression_even_if_committed() {
    let desk = gated();
    assert_eq!(desk.prove_gate("stop", &json!({})), (0, String::new()));
    desk.write("src/lib.rs", WRONG);
    git(&desk, &["commit", "-q", "-a", "-m", "wrong"]);
    let (code, said) = desk.prove_gate("stop", &json!({}));
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("adds_two_numbers"), "{said}");
    let (code, _) = desk.prove_gate("stop", &json!({"stop_hook_active": true}));
    assert_eq!(code, 0, "it blocks once");
}

#[test]
fn prove_gate_blocks_a_deleted_test() {
    let desk = gated();
    desk.write("src/lib.rs", WRONG);
    fs::remove_file(desk.project.path().join("tests/add.rs")).unwrap();
    desk.write("tests/other.rs", "#[test]\nfn holds() {}\n");
    let (code, said) = desk.prove_gate("stop", &json!({}));
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("deleted or weakened"), "{said}");
    let (code, said) = desk.prove_gate("stop", &json!({}));
    assert_eq!(code, 1, "it blocks each state of the files once: {said}");
    assert!(said.contains("was told before"), "{said}");
    desk.write("tests/other.rs", "#[test]\nfn holds_now() {}\n");
    assert_eq!(desk.prove_gate("stop", &json!({})).0, 2, "another state");
}

#[test]
fn prove_gate_takes_permission_from_the_user_only() {
    let desk = gated();
    fs::remove_file(desk.project.path().join("tests/add.rs")).unwrap();
    desk.write(
        "tests/other.rs",
        "#[test]\nfn holds() {\n    assert_eq!(demo::one(), 1);\n}\n",
    );
    let settings = "[verify]\nallow_test_change = [\"*\"]\n";
    let config = tempfile::tempdir().unwrap();
    let file = config.path().join("models.toml");
    fs::write(&file, settings).unwrap();
    desk.write("models.toml", settings);
    let of_project = desk.root().join("models.toml");
    for (name, value, code) in [
        ("SUPERVISOR_VERIFY__ALLOW_TEST_CHANGE", "*", 2),
        ("SUPERVISOR_MODELS_FILE", of_project.to_str().unwrap(), 1),
        ("SUPERVISOR_MODELS_FILE", file.to_str().unwrap(), 0),
    ] {
        let (found, said) = desk.prove_gate_with("stop", &json!({}), &[(name, value)]);
        assert_eq!(found, code, "{name}={value}: {said}");
    }
}

#[test]
fn prove_gate_only_reports_a_missing_test() {
    let desk = gated();
    desk.write(
        "src/lib.rs",
        &format!("{ADD}\npub fn spare() -> i32 {{\n    7\n}}\n"),
    );
    let (code, said) = desk.prove_gate("stop", &json!({}));
    assert_eq!(code, 1, "shown to the user, blocks nothing: {said}");
    assert!(said.contains("the change is not proven"), "{said}");
    assert!(!said.contains("could not check"), "{said}");
}

#[test]
fn prove_gate_that_cannot_tell_blocks_nothing() {
    let desk = Desk::new();
    let (code, said) = desk.prove_gate("stop", &json!({}));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("not in a git repository"), "{said}");
}
