//! Real runs in each ecosystem: all green, one failing, does not build, no tests, times out; and output that lies.
//! What is not installed is skipped by name, or fails where `SUPERVISOR_TEST_NO_SKIP` is set.

mod field;
pub(crate) mod fixtures;
mod forged;
mod javascript;

use supervisor_test_support::programs::require;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use supervisor_process::Launcher;
use supervisor_verify::{Outcome, RunEnvironment, TestRun, TestSandbox, detect};
use tokio_util::sync::CancellationToken;

use fixtures::{ALL, Case, Fixture};

/// One cell of the table: what was seen, or why it is not what it should be.
fn cell(fixture: &Fixture, case: Case) -> Result<String, String> {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("exists");
    (fixture.write)(&root, case);
    if case == Case::TimesOut {
        return times_out(&root);
    }
    let seen = run(&root);
    let named = |what: &str, names: Vec<&str>| -> Result<String, String> {
        match names.iter().any(|n| n.contains(what)) {
            true => Ok(seen.counts()),
            false => Err(format!("`{what}` is not in {names:?}: {seen:#?}")),
        }
    };
    let failed = || seen.failed().map(|(name, _)| name.0.as_str()).collect();
    let passed = || seen.passed().map(|name| name.0.as_str()).collect();
    match (case, seen.outcome()) {
        (Case::Green, Outcome::Passed) => named("adds", passed()),
        (Case::OneFails, Outcome::Failed) if seen.failed().count() == 1 => named("wrong", failed()),
        (Case::DoesNotBuild, Outcome::DidNotBuild { errors }) => {
            let error = errors.first().map(ToString::to_string).unwrap_or_default();
            if errors.iter().any(|e| e.file.is_some()) {
                Ok(error)
            } else {
                Err(format!("no file in {errors:?}"))
            }
        }
        (Case::NoTests, Outcome::NoTests) => Ok(String::from("no tests")),
        _ => Err(format!("{seen:#?}")),
    }
}

/// The limit doubles until the hanging test was reached before it: a slow build is no proof.
fn times_out(root: &Path) -> Result<String, String> {
    let mut limit = Duration::from_secs(4);
    while limit < PLENTY {
        let _ = std::fs::remove_file(root.join("began"));
        let seen = run_within(root, None, limit);
        if !matches!(seen.outcome(), Outcome::TimedOut { .. }) {
            return Err(format!("{seen:#?}"));
        }
        if root.join("began").exists() {
            return Ok(format!("ended after {} s", limit.as_secs()));
        }
        limit *= 2;
    }
    Err(String::from("the hanging test was never reached"))
}

fn row(name: &str) {
    let fixture = ALL.iter().find(|f| f.name == name).expect("in the table");
    require(fixture.needs);
    for case in Case::ALL {
        if let Err(why) = cell(fixture, case) {
            panic!("{name}, {case:?}: {why}");
        }
    }
}

#[test]
fn runs_of_rust_are_told_apart() {
    row("rust");
}

#[test]
fn runs_of_python_are_told_apart() {
    row("python");
}

#[test]
fn runs_of_node_are_told_apart() {
    row("node");
}

#[test]
fn runs_of_go_are_told_apart() {
    row("go");
}

#[test]
fn runs_of_ruby_are_told_apart() {
    row("ruby");
}

#[test]
fn runs_of_elixir_are_told_apart() {
    row("elixir");
}

#[test]
fn runs_of_java_are_told_apart() {
    row("java");
}

#[test]
fn runs_of_cpp_are_told_apart() {
    row("cpp");
}

/// One cell for each outcome, those of Gradle only here because each start of it takes long; one that is empty names what is not installed and counts as not shown.
#[test]
#[ignore = "prints the whole table, for `tests/ecosystems/table`"]
#[expect(clippy::print_stdout, reason = "the table is what it is for")]
fn the_table() {
    let (mut shown, mut wrong, mut absent) = (0, 0, Vec::new());
    println!(
        "| ecosystem | {} |",
        Case::ALL.map(|c| format!("{c:?}")).join(" | ")
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for fixture in ALL {
        let missing: Vec<&str> = fixture
            .needs
            .iter()
            .copied()
            .filter(|p| !is_there(p))
            .collect();
        let cells = Case::ALL.map(|case| {
            if !missing.is_empty() {
                return format!("NOT SHOWN: not installed: {}", missing.join(", "));
            }
            match cell(fixture, case) {
                Ok(what) => {
                    shown += 1;
                    format!("ok: {}", what.replace('|', "/"))
                }
                Err(why) => {
                    wrong += 1;
                    format!(
                        "NOT SHOWN: {}",
                        why.lines()
                            .take(40)
                            .collect::<Vec<_>>()
                            .join(" ")
                            .replace('|', "/")
                    )
                }
            }
        });
        println!("| {} | {} |", fixture.name, cells.join(" | "));
        absent.extend(missing);
    }
    println!("{shown} of {} cells shown", ALL.len() * Case::ALL.len());
    assert_eq!(wrong, 0, "cells that show something else");
    if !absent.is_empty() {
        skip(&format!("not installed: {}", absent.join(", ")));
    }
}
