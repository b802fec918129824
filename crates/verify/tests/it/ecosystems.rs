//! Real runs in each ecosystem: all pass, one fails, does not build, no tests, times out; and forged results.

mod fixtures;
mod forged_results;
mod javascript;
mod projects;

use std::path::Path;
use std::time::Duration;

use supervisor_test_support::process::say;
use supervisor_test_support::programs::require;
use supervisor_test_support::suites::{PLENTY, run, run_within};
use supervisor_verify::Outcome;

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

/// Runs every case and prints the row of the table that `tests/ecosystems/table` shows.
fn check_outcomes(name: &str) {
    let fixture = ALL.iter().find(|f| f.name == name).expect("in the table");
    require(fixture.needs);
    let cells = Case::ALL.map(|case| cell(fixture, case));
    let row = cells.each_ref().map(|cell| match cell {
        Ok(what) => format!("ok: {}", what.replace('|', "/")),
        Err(_) => String::from("WRONG"),
    });
    say(&format!("\n| {name} | {} |", row.join(" | ")));
    for (case, cell) in Case::ALL.iter().zip(cells) {
        if let Err(why) = cell {
            panic!("{name}, {case:?}: {why}");
        }
    }
}

#[test]
fn rust_outcomes_are_distinguished() {
    check_outcomes("rust");
}

#[test]
#[ignore = "needs pytest"]
fn python_outcomes_are_distinguished() {
    check_outcomes("python");
}

#[test]
#[ignore = "needs node and npm"]
fn node_outcomes_are_distinguished() {
    check_outcomes("node");
}

#[test]
#[ignore = "needs go"]
fn go_outcomes_are_distinguished() {
    check_outcomes("go");
}

#[test]
#[ignore = "needs bundle and rspec"]
fn ruby_outcomes_are_distinguished() {
    check_outcomes("ruby");
}

#[test]
#[ignore = "needs mix and elixir"]
fn elixir_outcomes_are_distinguished() {
    check_outcomes("elixir");
}

#[test]
#[ignore = "needs mvn and JUnit"]
fn java_outcomes_are_distinguished() {
    check_outcomes("java");
}

#[test]
#[ignore = "needs cmake and GoogleTest"]
fn cpp_outcomes_are_distinguished() {
    check_outcomes("cpp");
}

#[test]
#[ignore = "needs gradle and JUnit"]
fn gradle_outcomes_are_distinguished() {
    check_outcomes("gradle");
}
