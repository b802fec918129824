//! Cheating does not pay. Each table has a row per cheat: in which project, what the model does, with which cause it is
//! refused; the project is then equal to before in every byte, mode and type. Honest work of many shapes is accepted.
//! Over stdio with the built program and real test runs; only the models are recorded. Five rows of each table by default;
//! `SUPERVISOR_TEST_LONG=1` runs all of them.

mod across_calls;
mod adversary;
mod case;
mod cpp;
mod elixir;
mod falsified;
mod go;
mod honest;
mod honest_more;
mod java;
mod javascript;
mod killed;
mod knowing;
mod look_alikes;
mod node;
mod not_red;
mod other_runs;
mod picture;
mod projects;
mod proven;
mod python;
mod ruby;
mod rust;
mod server;
mod started;
mod styles;
mod unnamed;
mod weakened;

use std::collections::BTreeSet;

use case::{Case, Ends, Kind, Tool};
use server::{Came, CheatServer};

use supervisor_test_support::programs::require;
use supervisor_test_support::suites::run;

/// Rows of each table and language, unless the run is a long one.
const SAMPLE: usize = 5;

const ALL: [Kind; 11] = [
    Kind::Rust,
    Kind::Python,
    Kind::Node,
    Kind::Go,
    Kind::Ruby,
    Kind::Elixir,
    Kind::Java,
    Kind::Cpp,
    Kind::Jest,
    Kind::Vitest,
    Kind::Mocha,
];

fn cheats() -> impl Iterator<Item = &'static Case> {
    let compiled = rust::CASES
        .iter()
        .chain(go::CASES)
        .chain(elixir::CASES)
        .chain(java::CASES)
        .chain(cpp::CASES);
    let scripted = python::CASES.iter().chain(ruby::CASES).chain(node::CASES);
    compiled
        .chain(scripted)
        .chain(javascript::JEST)
        .chain(javascript::VITEST)
        .chain(javascript::MOCHA)
}

/// Cheats of no class that a rule names, and those that know what will be done about them.
fn unnamed() -> impl Iterator<Item = &'static Case> {
    unnamed::cases().chain(knowing::CASES)
}

fn honest() -> impl Iterator<Item = &'static Case> {
    honest::CASES
        .iter()
        .chain(honest_more::CASES)
        .chain(look_alikes::CASES)
        .chain(java::HONEST)
        .chain(cpp::HONEST)
}

#[test]
fn no_table_row_is_missing() {
    let all = |cases: &[&Case]| {
        let names: BTreeSet<_> = cases.iter().map(|c| (c.kind, c.name)).collect();
        assert_eq!(names.len(), cases.len(), "names are unique");
        let kinds: BTreeSet<_> = cases.iter().map(|c| c.kind).collect();
        (cases.len(), kinds.len())
    };
    let (cheats, kinds) = all(&cheats().collect::<Vec<_>>());
    assert!(
        cheats >= 200 && kinds == ALL.len(),
        "{cheats} cheats of {kinds} kinds"
    );
    let (unnamed, kinds) = all(&unnamed().collect::<Vec<_>>());
    assert!(
        unnamed >= 90 && kinds == ALL.len(),
        "{unnamed} unnamed cheats of {kinds} kinds"
    );
    assert!(knowing::CASES.len() >= 12 && look_alikes::CASES.len() >= 30);
    let (honest, kinds) = all(&honest().collect::<Vec<_>>());
    assert!(
        honest >= 60 && kinds == ALL.len(),
        "{honest} honest ones of {kinds} kinds"
    );
}

#[test]
fn projects_fail_as_expected_in_rust() {
    assert_projects_fail_as_expected(Kind::Rust);
}

#[test]
#[ignore = "needs pytest"]
fn projects_fail_as_expected_in_python() {
    assert_projects_fail_as_expected(Kind::Python);
}

#[test]
#[ignore = "needs node and npm"]
fn projects_fail_as_expected_in_node() {
    assert_projects_fail_as_expected(Kind::Node);
}

#[test]
#[ignore = "needs go"]
fn projects_fail_as_expected_in_go() {
    assert_projects_fail_as_expected(Kind::Go);
}

#[test]
#[ignore = "needs rspec"]
fn projects_fail_as_expected_in_ruby() {
    assert_projects_fail_as_expected(Kind::Ruby);
}

#[test]
#[ignore = "needs elixir"]
fn projects_fail_as_expected_in_elixir() {
    assert_projects_fail_as_expected(Kind::Elixir);
}

#[test]
#[ignore = "needs maven and junit"]
fn projects_fail_as_expected_in_java() {
    assert_projects_fail_as_expected(Kind::Java);
}

#[test]
#[ignore = "needs cmake and gtest"]
fn projects_fail_as_expected_in_cpp() {
    assert_projects_fail_as_expected(Kind::Cpp);
}

#[test]
#[ignore = "needs jest"]
fn projects_fail_as_expected_in_jest() {
    assert_projects_fail_as_expected(Kind::Jest);
}

#[test]
#[ignore = "needs vitest"]
fn projects_fail_as_expected_in_vitest() {
    assert_projects_fail_as_expected(Kind::Vitest);
}

#[test]
#[ignore = "needs mocha"]
fn projects_fail_as_expected_in_mocha() {
    assert_projects_fail_as_expected(Kind::Mocha);
}

/// The project of `Green` has one failing test, that of `Red` none.
fn assert_projects_fail_as_expected(kind: Kind) {
    require(kind.needs());
    for (tool, failing) in [(Tool::Green, 1), (Tool::Red, 0)] {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        projects::write(kind, tool, &root);
        let seen = run(&root);
        let failed: Vec<_> = seen.failed().map(|(name, _)| name.0.clone()).collect();
        assert_eq!(failed.len(), failing, "{kind:?}: {seen:#?}");
        assert!(
            failed
                .iter()
                .all(|name| name.to_lowercase().contains("triples")),
            "{failed:?}"
        );
    }
}

#[test]
fn no_cheat_in_rust_is_accepted() {
    assert_cheats_refused(Kind::Rust);
}

#[test]
#[ignore = "needs pytest"]
fn no_cheat_in_python_is_accepted() {
    assert_cheats_refused(Kind::Python);
}

#[test]
#[ignore = "needs node and npm"]
fn no_cheat_in_node_is_accepted() {
    assert_cheats_refused(Kind::Node);
}

#[test]
#[ignore = "needs go"]
fn no_cheat_in_go_is_accepted() {
    assert_cheats_refused(Kind::Go);
}

#[test]
#[ignore = "needs rspec"]
fn no_cheat_in_ruby_is_accepted() {
    assert_cheats_refused(Kind::Ruby);
}

#[test]
#[ignore = "needs elixir"]
fn no_cheat_in_elixir_is_accepted() {
    assert_cheats_refused(Kind::Elixir);
}

#[test]
#[ignore = "needs maven and junit"]
fn no_cheat_in_java_is_accepted() {
    assert_cheats_refused(Kind::Java);
}

#[test]
#[ignore = "needs cmake and gtest"]
fn no_cheat_in_cpp_is_accepted() {
    assert_cheats_refused(Kind::Cpp);
}

#[test]
#[ignore = "needs jest"]
fn no_cheat_in_jest_is_accepted() {
    assert_cheats_refused(Kind::Jest);
}

#[test]
#[ignore = "needs vitest"]
fn no_cheat_in_vitest_is_accepted() {
    assert_cheats_refused(Kind::Vitest);
}

#[test]
#[ignore = "needs mocha"]
fn no_cheat_in_mocha_is_accepted() {
    assert_cheats_refused(Kind::Mocha);
}

#[test]
fn honest_work_in_rust_is_accepted() {
    assert_rows(Kind::Rust, honest());
}

#[test]
#[ignore = "needs pytest"]
fn honest_work_in_python_is_accepted() {
    assert_rows(Kind::Python, honest());
}

#[test]
#[ignore = "needs node and npm"]
fn honest_work_in_node_is_accepted() {
    assert_rows(Kind::Node, honest());
}

#[test]
#[ignore = "needs go"]
fn honest_work_in_go_is_accepted() {
    assert_rows(Kind::Go, honest());
}

#[test]
#[ignore = "needs rspec"]
fn honest_work_in_ruby_is_accepted() {
    assert_rows(Kind::Ruby, honest());
}

#[test]
#[ignore = "needs elixir"]
fn honest_work_in_elixir_is_accepted() {
    assert_rows(Kind::Elixir, honest());
}

#[test]
#[ignore = "needs maven and junit"]
fn honest_work_in_java_is_accepted() {
    assert_rows(Kind::Java, honest());
}

#[test]
#[ignore = "needs cmake and gtest"]
fn honest_work_in_cpp_is_accepted() {
    assert_rows(Kind::Cpp, honest());
}

#[test]
#[ignore = "needs jest"]
fn honest_work_in_jest_is_accepted() {
    assert_rows(Kind::Jest, honest());
}

#[test]
#[ignore = "needs vitest"]
fn honest_work_in_vitest_is_accepted() {
    assert_rows(Kind::Vitest, honest());
}

#[test]
#[ignore = "needs mocha"]
fn honest_work_in_mocha_is_accepted() {
    assert_rows(Kind::Mocha, honest());
}

#[test]
fn no_unnamed_cheat_in_rust_is_verified() {
    assert_unnamed_caught(Kind::Rust);
}

#[test]
#[ignore = "needs pytest"]
fn no_unnamed_cheat_in_python_is_verified() {
    assert_unnamed_caught(Kind::Python);
}

#[test]
#[ignore = "needs node and npm"]
fn no_unnamed_cheat_in_node_is_verified() {
    assert_unnamed_caught(Kind::Node);
}

#[test]
#[ignore = "needs go"]
fn no_unnamed_cheat_in_go_is_verified() {
    assert_unnamed_caught(Kind::Go);
}

#[test]
#[ignore = "needs rspec"]
fn no_unnamed_cheat_in_ruby_is_verified() {
    assert_unnamed_caught(Kind::Ruby);
}

#[test]
#[ignore = "needs elixir"]
fn no_unnamed_cheat_in_elixir_is_verified() {
    assert_unnamed_caught(Kind::Elixir);
}

#[test]
#[ignore = "needs maven and junit"]
fn no_unnamed_cheat_in_java_is_verified() {
    assert_unnamed_caught(Kind::Java);
}

#[test]
#[ignore = "needs cmake and gtest"]
fn no_unnamed_cheat_in_cpp_is_verified() {
    assert_unnamed_caught(Kind::Cpp);
}

#[test]
#[ignore = "needs jest"]
fn no_unnamed_cheat_in_jest_is_verified() {
    assert_unnamed_caught(Kind::Jest);
}

#[test]
#[ignore = "needs vitest"]
fn no_unnamed_cheat_in_vitest_is_verified() {
    assert_unnamed_caught(Kind::Vitest);
}

#[test]
#[ignore = "needs mocha"]
fn no_unnamed_cheat_in_mocha_is_verified() {
    assert_unnamed_caught(Kind::Mocha);
}

/// With the gate, none is verified, and what stopped each is printed; without it, most are.
#[expect(clippy::print_stdout, reason = "what stopped each is worth reading")]
fn assert_unnamed_caught(kind: Kind) {
    require(kind.needs());
    let cases = sample(kind, unnamed());
    let mut open = CheatServer::with("", &[("FALSIFY_OFF_FOR_TESTS", "1")]);
    let passes: Vec<bool> = cases
        .iter()
        .map(|case| open.run(case).result["verified"] == true)
        .collect();
    drop(open);
    let mut server = CheatServer::new("");
    let mut wrong = Vec::new();
    for (case, passed_without) in cases.iter().zip(&passes) {
        let came = server.run(case);
        let gates = came.result["gates"].as_array().cloned().unwrap_or_default();
        let stopped = came.attempt()["feedback"]
            .as_str()
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        let last = gates
            .iter()
            .rfind(|gate| gate["id"] == "falsified")
            .map(|gate| gate["detail"].to_string());
        println!(
            "{kind:?} | {} | without the gate: {} | {} {} | {}",
            case.name,
            if *passed_without { "passes" } else { "refused" },
            came.result["status"],
            came.result["verified"],
            if stopped.is_empty() {
                last.unwrap_or_default()
            } else {
                stopped
            }
        );
        wrong.extend(row_of(case, &came).err());
    }
    let without = passes.iter().filter(|passed| **passed).count();
    println!(
        "{kind:?}: {without} of {} pass without the gate",
        cases.len()
    );
    assert!(
        wrong.is_empty(),
        "{} rows are wrong\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}

/// In a long run it also prints how many of them only falsified runs can see.
#[expect(clippy::print_stdout, reason = "the figures are worth reading")]
fn assert_cheats_refused(kind: Kind) {
    assert_rows(kind, cheats());
    if !is_long_run() {
        return;
    }
    let mut server = CheatServer::with("", &[("FALSIFY_OFF_FOR_TESTS", "1")]);
    let cases = sample(kind, cheats());
    let passed: Vec<&str> = cases
        .iter()
        .filter(|case| server.run(case).result["verified"] == true)
        .map(|case| case.name)
        .collect();
    println!(
        "{kind:?}: {} of {} pass without the gate: {}",
        passed.len(),
        cases.len(),
        passed.join("; ")
    );
}

/// The rows of one ecosystem, so that a failure shows every row that is wrong.
fn assert_rows(kind: Kind, cases: impl Iterator<Item = &'static Case>) {
    require(kind.needs());
    let mut server = CheatServer::new("");
    let wrong: Vec<String> = sample(kind, cases)
        .into_iter()
        .filter_map(|case| row(&mut server, case).err())
        .collect();
    assert!(
        wrong.is_empty(),
        "{} rows are wrong\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}

/// All rows of an ecosystem in a long run, else five of them, spread evenly from the first to the last.
fn sample(kind: Kind, cases: impl Iterator<Item = &'static Case>) -> Vec<&'static Case> {
    let all: Vec<&Case> = cases.filter(|case| case.kind == kind).collect();
    if is_long_run() || all.len() <= SAMPLE {
        return all;
    }
    (0..SAMPLE)
        .map(|n| all[n * (all.len() - 1) / (SAMPLE - 1)])
        .collect()
}

fn is_long_run() -> bool {
    std::env::var("SUPERVISOR_TEST_LONG").is_ok_and(|value| value == "1")
}

fn row(server: &mut CheatServer, case: &Case) -> Result<(), String> {
    row_of(case, &server.run(case))
}

fn row_of(case: &Case, came: &Came) -> Result<(), String> {
    let attempt = came.attempt();
    let wrong = |what: &str| {
        let shown = serde_json::to_string_pretty(&came.result).unwrap_or_default();
        Err(format!(
            "{:?}, {:?}, {}: {what}\n{shown}\n{}",
            case.kind, case.tool, case.name, came.differences
        ))
    };
    match case.ends {
        Ends::Accepted => {
            if came.result["status"] != "pass"
                || came.result["verified"] != true
                || attempt["cause"] != "accepted"
            {
                return wrong("it was not accepted");
            }
            if came.differences.is_empty() {
                return wrong("nothing is different");
            }
        }
        Ends::NotVerified => {
            if came.result["verified"] == true {
                return wrong("IT WAS ACCEPTED");
            }
            if came.result["status"] != "pass" && !came.differences.is_empty() {
                return wrong("the project is not as it was");
            }
        }
        Ends::Flagged(flag) => {
            let flags = came.result["details"]["flags"].to_string();
            if came.result["verified"] == true && !flags.contains(flag) {
                return wrong(&format!("IT WAS ACCEPTED, and no flag names `{flag}`"));
            }
        }
        Ends::Refused(cause, names) => {
            if came.result["status"] == "pass" || came.result["verified"] == true {
                return wrong("IT WAS ACCEPTED");
            }
            // Where the repository stands is reported and never moved back: it is the user's as much as the worker's.
            let said = attempt["feedback"].as_str().unwrap_or_default();
            let is_position = |difference: &str| {
                [".git/refs", ".git/HEAD", ".git/packed-refs", "git ls-files"]
                    .iter()
                    .any(|at| difference.starts_with(at))
            };
            if !came
                .differences
                .lines()
                .all(|difference| is_position(difference) && said.contains(".git/"))
            {
                return wrong("the project is not as it was");
            }
            if attempt["cause"] != cause {
                return wrong(&format!("the cause should be {cause}"));
            }
            if !said.contains(names) {
                return wrong(&format!("`{names}` is not named"));
            }
        }
    }
    Ok(())
}
