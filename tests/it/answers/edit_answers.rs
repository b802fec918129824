//! The same change in every shape that models write, in six languages. All shapes are read without
//! running anything; what is read is then held to the project's own tests, for a sample of them by default and for all
//! with `SUPERVISOR_TEST_LONG=1`.

mod follow_up;
mod projects;
mod real_llama;
mod shapes;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use projects::LanguageProject;
use serde_json::json;
use shapes::{Fate, SHAPES, Shape, ShapedChange};
use supervisor_edits::{
    EditAnswer, EditAnswerError, EditProposal, ParseRule, ProjectFacts, read_edit_answer,
};
use supervisor_workspace::Edit;

use crate::support::scenario::{Scenario, trail};
use supervisor_test_support::programs::require;

const ROOT: &str = "/home/somebody/projects/demo";

/// A project in memory.
struct Facts<'a> {
    project: &'a LanguageProject,
    paths: Vec<String>,
    editable: Vec<String>,
}

impl<'a> Facts<'a> {
    fn of(project: &'a LanguageProject) -> Self {
        let paths = project
            .files
            .iter()
            .map(|(path, _)| (*path).to_owned())
            .collect();
        Self {
            project,
            paths,
            editable: vec![project.code_path.to_owned()],
        }
    }
}

impl ProjectFacts for Facts<'_> {
    fn root(&self) -> &Path {
        Path::new(ROOT)
    }

    fn paths(&self) -> &[String] {
        &self.paths
    }

    fn text(&self, path: &str) -> Option<String> {
        self.project
            .files
            .iter()
            .find(|(name, _)| *name == path)
            .map(|(_, text)| (*text).to_owned())
    }

    fn is_protected(&self, path: &str) -> bool {
        path == self.project.test_path
    }

    fn editable(&self) -> &[String] {
        &self.editable
    }
}

fn read(shape: &Shape, project: &LanguageProject) -> Result<EditAnswer, EditAnswerError> {
    let change = ShapedChange {
        project,
        line: project.right_line,
        root: ROOT,
    };
    read_edit_answer(&shape.2(&change), &Facts::of(project))
}

/// The code after these edits, made as the workspace makes them: one place, white space around lines aside.
fn after(edits: &[Edit], project: &LanguageProject) -> Option<String> {
    let mut text = project.old().to_owned();
    for edit in edits.iter().filter(|edit| edit.path() == project.code_path) {
        match edit {
            Edit::Create { contents, .. } | Edit::Replace { contents, .. } => {
                text = String::from_utf8(contents.clone()).ok()?;
            }
            Edit::Delete { .. } => return None,
            Edit::Change {
                search, replace, ..
            } if text.matches(search.as_str()).count() == 1 => {
                text = text.replace(search, replace);
            }
            Edit::Change {
                search, replace, ..
            } => {
                let (search, replace) = (search.trim(), replace.trim());
                (text.matches(search).count() == 1).then_some(())?;
                text = text.replace(search, replace);
            }
        }
    }
    Some(text)
}

#[test]
fn every_answer_shape_is_read_or_refused() {
    assert!(SHAPES.len() >= 60 && SHAPES.iter().filter(|s| s.1 == Fate::Read).count() >= 55);
    let mut wrong = Vec::new();
    for project in projects::ALL {
        for shape in SHAPES {
            let said = match (shape.1, read(shape, project)) {
                (Fate::Refused(words), Err(why)) if why.to_string().contains(words) => continue,
                (
                    Fate::Read,
                    Ok(EditAnswer {
                        proposal: EditProposal::Edits(edits),
                        ..
                    }),
                ) => {
                    let touches_sealed = edits.iter().any(|edit| edit.path() == project.test_path);
                    match after(&edits, project) {
                        Some(text)
                            if text == project.with(project.right_line) && !touches_sealed =>
                        {
                            continue;
                        }
                        _ => format!("{edits:?}"),
                    }
                }
                (_, other) => format!("{other:?}"),
            };
            wrong.push(format!("{} · {}: {said}", project.language, shape.0));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        SHAPES.len() * 6,
        wrong.join("\n")
    );
}

#[test]
fn every_parse_rule_is_used_by_some_shape() {
    let used: BTreeSet<ParseRule> = SHAPES
        .iter()
        .filter_map(|shape| read(shape, projects::ALL[0]).ok())
        .flat_map(|answer| answer.rules)
        .collect();
    let unused: Vec<&str> = ParseRule::ALL
        .iter()
        .filter(|rule| !used.contains(rule))
        .map(|rule| rule.name())
        .collect();
    assert!(unused.is_empty(), "no fixture for {unused:?}");
}

/// Wrong code in this shape is rejected by the tests, then right code in the same shape is accepted.
fn holds_in_a_call(shape: &Shape, project: &LanguageProject) -> Result<(), String> {
    let mut scenario = Scenario::chain(&["small", "large"], project.files);
    let root = scenario.root();
    for (model, line) in [("small", project.wrong_line), ("large", project.right_line)] {
        let change = ShapedChange {
            project,
            line,
            root: root.to_str().unwrap(),
        };
        scenario.line(&json!({"model": model, "text": shape.2(&change)}));
    }
    let result = scenario.call("tdd_green", json!({"test_path": project.test_path}));
    let trail = trail(&result);
    let fine = trail.starts_with("small rejected")
        && trail.ends_with("large accepted")
        && result["status"] == "pass";
    let text = scenario.read(project.code_path);
    if fine
        && text == project.with(project.right_line)
        && scenario.read(project.test_path) == project.text(project.test_path)
    {
        return Ok(());
    }
    Err(format!(
        "{} · {}: {trail}: {}\n{text}",
        project.language, shape.0, result["message"]
    ))
}

/// Every n-th shape by default, all of them in a long run.
fn sample(project: &LanguageProject, every: usize, from: usize) {
    require(project.needs);
    let every = if std::env::var("SUPERVISOR_TEST_LONG").is_ok_and(|v| v == "1") {
        1
    } else {
        every
    };
    let shapes = SHAPES
        .iter()
        .filter(|shape| shape.1 == Fate::Read)
        .skip(if every == 1 { 0 } else { from })
        .step_by(every);
    let wrong: Vec<String> = shapes
        .filter_map(|shape| holds_in_a_call(shape, project).err())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn shapes_hold_in_rust() {
    sample(&projects::RUST, 37, 0);
}

#[test]
#[ignore = "needs python3 and pytest"]
fn shapes_hold_in_python() {
    sample(&projects::PYTHON, 13, 1);
}

#[test]
#[ignore = "needs node and npm"]
fn shapes_hold_in_node() {
    sample(&projects::NODE, 17, 2);
}

#[test]
#[ignore = "needs go"]
fn shapes_hold_in_go() {
    sample(&projects::GO, 37, 5);
}

#[test]
#[ignore = "needs rspec"]
fn shapes_hold_in_ruby() {
    sample(&projects::RUBY, 31, 8);
}

#[test]
#[ignore = "needs elixir"]
fn shapes_hold_in_elixir() {
    sample(&projects::ELIXIR, 37, 11);
}

/// Files below a directory, for what a call kept.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files_below(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}
