//! The gate itself: what it says when a test cannot be made wrong, and commands that name no tests.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::case::Edit::Change;
use super::case::{Case, Does, Kind, Tool, honest};
use super::picture::git;
use super::server::CheatServer;
use supervisor_test_support::programs::require;
use supervisor_test_support::suites::file;

/// A project whose command names no tests: its exit code is all there is.
fn plain(server: &CheatServer, name: &str, check: &str) -> PathBuf {
    let root = server.here().join(name);
    file(&root, "calc.js", "exports.triple = (n) => n;\n");
    file(&root, "check.test.js", check);
    file(&root, "package.json", "{}\n");
    git(&root, &["init", "-q"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "First"]);
    root
}

const CHECK: &str = "const assert = require('node:assert');\nconst { triple } = require('./calc');\nconst test = (name, body) => body();\n\n\
                     test('triples', () => {\n  assert.equal(triple(2), 6);\n});\n";

fn green(server: &mut CheatServer, root: &Path, from: &'static str, to: &'static str) -> Value {
    let edits: &'static [super::case::Edit] = Box::leak(Box::new([Change("calc.js", from, to)]));
    let model = server.script(&Does::Edits(edits));
    let arguments = json!({"project_root": root, "model": model, "test_path": "check.test.js", "test_cmd": "node check.test.js"});
    server.ask("tdd_green", arguments)
}

#[test]
#[ignore = "needs node"]
fn falsified_command_must_change_its_exit_code() {
    require(&["node", "git"]);
    let mut server = CheatServer::new("");
    let root = plain(&server, "honest", CHECK);
    let result = green(&mut server, &root, "(n) => n;", "(n) => n * 3;");
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(true)),
        "{result:#}"
    );
    for (name, cheat) in [
        ("exits", "(n) => process.exit(0);"),
        (
            "reads",
            "(n) => Number(String(require('fs').readFileSync('check.test.js')).match(/, (\\d+)/)[1]);",
        ),
    ] {
        let root = plain(&server, name, CHECK);
        let result = green(&mut server, &root, "(n) => n;", cheat);
        assert_eq!(result["verified"], false, "{result:#}");
        assert_eq!(result["attempts"][0]["cause"], "tampered", "{result:#}");
        let said = result["attempts"][0]["feedback"]
            .as_str()
            .unwrap_or_default();
        assert!(
            said.contains("a test that cannot fail proves nothing"),
            "{said}"
        );
    }
}

#[test]
#[ignore = "needs node"]
fn unfalsifiable_pass_is_not_verified() {
    require(&["node", "git"]);
    let mut server = CheatServer::new("");
    let root = plain(
        &server,
        "bare",
        "if (require('./calc').triple(2) !== 6) process.exit(1);\n",
    );
    let result = green(&mut server, &root, "(n) => n;", "(n) => n * 3;");
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(false)),
        "{result:#}"
    );
    let message = result["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("not verified, because the tests could not be falsified"),
        "{message}"
    );
    let gate = result["gates"]
        .as_array()
        .unwrap()
        .iter()
        .find(|gate| gate["id"] == "falsified")
        .unwrap();
    assert!(
        gate["detail"]
            .as_str()
            .unwrap_or_default()
            .starts_with("unproven: "),
        "{gate}"
    );
}

#[test]
#[ignore = "needs pytest"]
fn diff_and_log_omit_falsified_text() {
    require(Kind::Python.needs());
    let mut server = CheatServer::new("");
    let case: &Case = &honest(
        Kind::Python,
        Tool::Green,
        "fixes",
        Does::Edits(&[Change("calc.py", "return n\n", "return n * 3\n")]),
    );
    let came = server.run(case);
    assert_eq!(came.result["verified"], true, "{:#}", came.result);
    assert_eq!(came.result["files_changed"], json!(["calc.py"]));
    assert!(
        !came.result["diff"]
            .as_str()
            .unwrap_or_default()
            .contains("test_calc.py"),
        "{:#}",
        came.result
    );
    let message = came.result["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("falsified: 1 of 1 expectation"), "{message}");
    assert!(
        !came.differences.contains("test_calc.py"),
        "{}",
        came.differences
    );
}

#[test]
#[ignore = "needs pytest"]
fn new_test_files_are_left_out_and_named() {
    require(Kind::Python.needs());
    let mut server = CheatServer::new("");
    let edits = Does::Edits(&[
        Change("calc.py", "return n\n", "return n * 3\n"),
        super::case::Edit::Create("tests/test_more.py", "def test_more():\n    assert False\n"),
    ]);
    let came = server.run(&honest(Kind::Python, Tool::Green, "fixes and tests", edits));
    assert_eq!(came.result["verified"], true, "{:#}", came.result);
    assert_eq!(came.result["files_changed"], json!(["calc.py"]));
    assert_eq!(
        came.result["details"]["left_out"],
        json!(["tests/test_more.py"])
    );
    assert!(
        !came.differences.contains("test_more"),
        "{}",
        came.differences
    );
}

/// A test that passes every other time, by a note outside of the project.
const COMES_AND_GOES: &str = "import os, pathlib\nfrom calc import double, triple\n\n\ndef test_doubles():\n    assert double(2) == 4\n\n\n\
     def test_triples():\n    note = pathlib.Path(os.environ['NOTE'])\n    again = note.exists()\n    \
     note.unlink() if again else note.touch()\n    assert triple(2) == 6 or ALWAYS or again\n";

#[test]
#[ignore = "needs pytest"]
fn flaky_test_is_neither_red_nor_green() {
    require(Kind::Python.needs());
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("note");
    let variables = [("NOTE", note.to_str().unwrap())];
    let settings = "env_pass = [\"NOTE\"]\n[verify]\nrepeat = 3\n";
    let mut server = CheatServer::with(settings, &variables);
    let root = server.project(Kind::Python, Tool::Green);
    let fix = honest(
        Kind::Python,
        Tool::Green,
        "fixes",
        Does::Edits(&[Change("calc.py", "return n\n", "return n * 3\n")]),
    );
    // Red in the first run and not in the second: no model is asked.
    let test = root.join("tests/test_calc.py");
    let plain = fs::read_to_string(&test).unwrap();
    fs::write(&test, COMES_AND_GOES.replace("ALWAYS", "False")).unwrap();
    let came = server.run_in(&root, &fix);
    let message = came.result["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("flaky and not red; no model was asked"),
        "{:#}",
        came.result
    );
    // Always red before, and green every other time after.
    let _ = fs::remove_file(&note);
    let turning = COMES_AND_GOES.replace(
        "triple(2) == 6 or ALWAYS or again",
        "triple(2) == 6 and again",
    );
    fs::write(&test, turning).unwrap();
    let came = server.run_in(&root, &fix);
    assert_eq!(came.result["verified"], false, "{:#}", came.result);
    assert_ne!(came.result["status"], "pass", "{:#}", came.result);
    // What says the same each time is accepted, and the reply says how often it did.
    fs::write(&test, plain).unwrap();
    let came = server.run_in(&root, &fix);
    assert_eq!(came.result["verified"], true, "{:#}", came.result);
    assert_eq!(came.result["details"]["repeat"], 3, "{:#}", came.result);
}
