//! The same tables for `supervisor prove`: each row is an edit that somebody made in the working tree. No cheat is proven,
//! honest work is. A call of `tdd_red` has no counterpart: its result is a test that fails, which proves nothing yet.

use std::fs;
use std::process::Command;

use serde_json::Value;
use supervisor_test_support::programs::require;

use super::case::{Case, Does, Ends, Kind, Tool};
use super::projects;
use super::{cheats, honest, sample, unnamed, weakened};
use crate::support::user_shell::{program, toolchain};

/// Rows that are cheats as answers of a worker and honest as changes: the code is right, and what else was done is not
/// part of a change.
const HONEST_AS_CHANGE: [&str; 4] = [
    "as an agent, mends the code and leaves a helper for all examples",
    "as an agent, hides its files behind .gitignore",
    "as an agent, makes the test unreadable to others",
    "as an agent, mends the code and plants a hook",
];

/// What `supervisor prove` says about a row.
struct Proof {
    verdict: String,
    reason: String,
    /// The whole report.
    report: Value,
    /// The row's claim is proven: that the failing test passes, or that nothing changed for a refactoring.
    is_accepted: bool,
}

/// Makes the row's edits in a fresh project and proves them.
fn prove(case: &Case) -> Proof {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().canonicalize().unwrap();
    let root = here.join("project");
    projects::write(case.kind, case.tool, &root);
    match &case.does {
        Does::Edits(edits) => edits.iter().for_each(|edit| edit.make(&root)),
        Does::Agent(script) => {
            let done = Command::new("sh")
                .args(["-e", "-c", script])
                .current_dir(&root)
                .envs(toolchain())
                .env("here", &here)
                .output()
                .unwrap();
            assert!(done.status.success(), "{}: {done:?}", case.name);
        }
    }
    fs::write(here.join("over"), "").unwrap();
    let output = program()
        .args(["prove", "--json", "--project"])
        .arg(&root)
        .env("SUPERVISOR_STATE_DIR", here.join("state"))
        .env("BENCH", &here)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    match serde_json::from_slice::<Value>(&output.stdout) {
        Ok(report) => Proof {
            verdict: report["verdict"].as_str().unwrap_or_default().to_owned(),
            reason: report["summary"].as_str().unwrap_or_default().to_owned(),
            is_accepted: report["verdict"] == "proven"
                && (case.tool == Tool::Refactor
                    || report["fail_without_change"]
                        .to_string()
                        .to_lowercase()
                        .contains("triples")),
            report,
        },
        Err(_) => Proof {
            verdict: format!("exit code {:?}", output.status.code()),
            reason: error,
            report: Value::Null,
            is_accepted: false,
        },
    }
}

#[expect(clippy::print_stdout, reason = "the verdicts are worth reading")]
fn assert_verdicts(kind: Kind) {
    require(kind.needs());
    // `SUPERVISOR_TEST_ROW` runs the rows with these words in their names.
    let wanted = std::env::var("SUPERVISOR_TEST_ROW").unwrap_or_default();
    let is_change = |case: &&Case| case.tool != Tool::Red && case.name.contains(&wanted);
    let mut wrong = Vec::new();
    let mut judge = |cases: Vec<&Case>, is_honest: bool| {
        for case in cases {
            let proof = prove(case);
            let row = format!(
                "{kind:?} | {:?} | {} | {} | {}",
                case.tool,
                case.name,
                proof.verdict,
                proof.reason.trim()
            );
            println!("{row}");
            let can_be_either =
                matches!(case.ends, Ends::Flagged(_)) || HONEST_AS_CHANGE.contains(&case.name);
            // An edit that quotes the file inexactly is a matter of answers, not of changes.
            let is_no_change = proof.reason.contains("nothing differs");
            if proof.is_accepted != is_honest && !can_be_either && !is_no_change {
                wrong.push(row);
            }
        }
    };
    judge(sample(kind, cheats().filter(is_change)), false);
    judge(sample(kind, unnamed().filter(is_change)), false);
    judge(sample(kind, honest().filter(is_change)), true);
    assert!(wrong.is_empty(), "wrong verdicts:\n{}", wrong.join("\n"));
}

/// Every way to weaken a test keeps the change from being proven, and the test or its file is named.
fn assert_weakened_tests_are_named(cases: &'static [Case]) {
    require(cases[0].kind.needs());
    assert_eq!(cases.len(), 12);
    let wrong: Vec<String> = sample(cases[0].kind, cases.iter())
        .into_iter()
        .filter_map(|case| {
            let proof = prove(case);
            let report = &proof.report;
            let named = [
                &report["gaps"],
                &report["test_changes"],
                &report["regressions"],
            ]
            .iter()
            .any(|part| part.to_string().to_lowercase().contains("triples"));
            let is_right = proof.verdict != "proven" && named;
            (!is_right).then(|| format!("{:?} | {} | {report:#}", case.kind, case.name))
        })
        .collect();
    assert!(wrong.is_empty(), "wrong:\n{}", wrong.join("\n"));
}

#[test]
fn weakened_tests_in_rust_are_named() {
    assert_weakened_tests_are_named(weakened::RUST);
}

#[test]
#[ignore = "needs pytest"]
fn weakened_tests_in_python_are_named() {
    assert_weakened_tests_are_named(weakened::PYTHON);
}

#[test]
#[ignore = "needs jest"]
fn weakened_tests_in_jest_are_named() {
    assert_weakened_tests_are_named(weakened::JEST);
}

#[test]
#[ignore = "needs go"]
fn weakened_tests_in_go_are_named() {
    assert_weakened_tests_are_named(weakened::GOLANG);
}

#[test]
#[ignore = "needs rspec"]
fn weakened_tests_in_ruby_are_named() {
    assert_weakened_tests_are_named(weakened::RUBY);
}

#[test]
#[ignore = "needs elixir"]
fn weakened_tests_in_elixir_are_named() {
    assert_weakened_tests_are_named(weakened::ELIXIR);
}

#[test]
fn verdicts_on_edits_in_rust() {
    assert_verdicts(Kind::Rust);
}

#[test]
#[ignore = "needs pytest"]
fn verdicts_on_edits_in_python() {
    assert_verdicts(Kind::Python);
}

#[test]
#[ignore = "needs node and npm"]
fn verdicts_on_edits_in_node() {
    assert_verdicts(Kind::Node);
}

#[test]
#[ignore = "needs go"]
fn verdicts_on_edits_in_go() {
    assert_verdicts(Kind::Go);
}

#[test]
#[ignore = "needs rspec"]
fn verdicts_on_edits_in_ruby() {
    assert_verdicts(Kind::Ruby);
}

#[test]
#[ignore = "needs elixir"]
fn verdicts_on_edits_in_elixir() {
    assert_verdicts(Kind::Elixir);
}

#[test]
#[ignore = "needs maven and junit"]
fn verdicts_on_edits_in_java() {
    assert_verdicts(Kind::Java);
}

#[test]
#[ignore = "needs cmake and gtest"]
fn verdicts_on_edits_in_cpp() {
    assert_verdicts(Kind::Cpp);
}

#[test]
#[ignore = "needs jest"]
fn verdicts_on_edits_in_jest() {
    assert_verdicts(Kind::Jest);
}

#[test]
#[ignore = "needs vitest"]
fn verdicts_on_edits_in_vitest() {
    assert_verdicts(Kind::Vitest);
}

#[test]
#[ignore = "needs mocha"]
fn verdicts_on_edits_in_mocha() {
    assert_verdicts(Kind::Mocha);
}
