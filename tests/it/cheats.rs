//! Cheating does not pay. Each table has a row per cheat: in which project, what the model does, with which cause it is
//! refused; the project is then equal to before in every byte, mode and type. Honest work of many shapes is accepted.
//! Over stdio with the built program and real test runs; only the models are recorded.

mod bench;
mod case;
mod elixir;
mod go;
mod honest;
mod honest_more;
mod javascript;
mod node;
mod not_red;
mod picture;
mod projects;
mod python;
mod ruby;
mod rust;
mod started;

use std::collections::BTreeSet;

use bench::Bench;
use case::{Case, Ends, Kind, Tool};

use crate::ecosystems::run;

const ALL: [Kind; 9] =
    [Kind::Rust, Kind::Python, Kind::Node, Kind::Go, Kind::Ruby, Kind::Elixir, Kind::Jest, Kind::Vitest, Kind::Mocha];

fn cheats() -> impl Iterator<Item = &'static Case> {
    let compiled = rust::CASES.iter().chain(go::CASES).chain(elixir::CASES);
    let scripted = python::CASES.iter().chain(ruby::CASES).chain(node::CASES);
    compiled.chain(scripted).chain(javascript::JEST).chain(javascript::VITEST).chain(javascript::MOCHA)
}

fn honest() -> impl Iterator<Item = &'static Case> {
    honest::CASES.iter().chain(honest_more::CASES)
}

#[test]
fn no_row_of_the_tables_is_missing() {
    let all = |cases: &[&Case]| {
        let names: BTreeSet<_> = cases.iter().map(|c| (c.kind, c.name)).collect();
        assert_eq!(names.len(), cases.len(), "names are unique");
        let kinds: BTreeSet<_> = cases.iter().map(|c| c.kind).collect();
        (cases.len(), kinds.len())
    };
    let (cheats, kinds) = all(&cheats().collect::<Vec<_>>());
    assert!(cheats >= 200 && kinds == ALL.len(), "{cheats} cheats of {kinds} kinds");
    let (honest, kinds) = all(&honest().collect::<Vec<_>>());
    assert!(honest >= 60 && kinds == ALL.len(), "{honest} honest ones of {kinds} kinds");
}

#[test]
fn the_projects_are_red_and_green_as_their_names_say() {
    for kind in ALL {
        if kind.skips() {
            continue;
        }
        for (tool, failing) in [(Tool::Green, 1), (Tool::Red, 0)] {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("project");
            projects::write(kind, tool, &root);
            let seen = run(&root);
            let failed: Vec<_> = seen.failed().map(|(name, _)| name.0.clone()).collect();
            assert_eq!(failed.len(), failing, "{kind:?}: {seen:#?}");
            assert!(failed.iter().all(|name| name.to_lowercase().contains("triples")), "{failed:?}");
        }
    }
}

#[test]
fn no_cheat_in_rust_is_accepted() {
    table(Kind::Rust, cheats());
}

#[test]
fn no_cheat_in_python_is_accepted() {
    table(Kind::Python, cheats());
}

#[test]
fn no_cheat_in_node_is_accepted() {
    table(Kind::Node, cheats());
}

#[test]
fn no_cheat_in_go_is_accepted() {
    table(Kind::Go, cheats());
}

#[test]
fn no_cheat_in_ruby_is_accepted() {
    table(Kind::Ruby, cheats());
}

#[test]
fn no_cheat_in_elixir_is_accepted() {
    table(Kind::Elixir, cheats());
}

#[test]
fn no_cheat_in_jest_is_accepted() {
    table(Kind::Jest, cheats());
}

#[test]
fn no_cheat_in_vitest_is_accepted() {
    table(Kind::Vitest, cheats());
}

#[test]
fn no_cheat_in_mocha_is_accepted() {
    table(Kind::Mocha, cheats());
}

#[test]
fn honest_work_in_rust_is_accepted() {
    table(Kind::Rust, honest());
}

#[test]
fn honest_work_in_python_is_accepted() {
    table(Kind::Python, honest());
}

#[test]
fn honest_work_in_node_is_accepted() {
    table(Kind::Node, honest());
}

#[test]
fn honest_work_in_go_is_accepted() {
    table(Kind::Go, honest());
}

#[test]
fn honest_work_in_ruby_is_accepted() {
    table(Kind::Ruby, honest());
}

#[test]
fn honest_work_in_elixir_is_accepted() {
    table(Kind::Elixir, honest());
}

#[test]
fn honest_work_in_jest_is_accepted() {
    table(Kind::Jest, honest());
}

#[test]
fn honest_work_in_vitest_is_accepted() {
    table(Kind::Vitest, honest());
}

#[test]
fn honest_work_in_mocha_is_accepted() {
    table(Kind::Mocha, honest());
}

/// All rows of one ecosystem, so that a failure shows every row that is wrong.
fn table(kind: Kind, cases: impl Iterator<Item = &'static Case>) {
    if kind.skips() {
        return;
    }
    let mut bench = Bench::new("");
    let wrong: Vec<String> = cases.filter(|c| c.kind == kind).filter_map(|c| row(&mut bench, c).err()).collect();
    assert!(wrong.is_empty(), "{} rows are wrong\n\n{}", wrong.len(), wrong.join("\n\n"));
}

fn row(bench: &mut Bench, case: &Case) -> Result<(), String> {
    let came = bench.run(case);
    let attempt = came.attempt();
    let wrong = |what: &str| {
        let shown = serde_json::to_string_pretty(&came.result).unwrap_or_default();
        Err(format!("{:?}, {:?}, {}: {what}\n{shown}\n{}", case.kind, case.tool, case.name, came.differences))
    };
    match case.ends {
        Ends::Accepted => {
            if came.result["status"] != "pass" || came.result["verified"] != true || attempt["cause"] != "accepted" {
                return wrong("it was not accepted");
            }
            if came.differences.is_empty() {
                return wrong("nothing is different");
            }
        }
        Ends::Refused(cause, names) => {
            if came.result["status"] == "pass" || came.result["verified"] == true {
                return wrong("IT WAS ACCEPTED");
            }
            if !came.differences.is_empty() {
                return wrong("the project is not as it was");
            }
            if attempt["cause"] != cause {
                return wrong(&format!("the cause should be {cause}"));
            }
            if !attempt["feedback"].as_str().unwrap_or_default().contains(names) {
                return wrong(&format!("`{names}` is not named"));
            }
        }
    }
    Ok(())
}
