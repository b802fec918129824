//! The rows, and what shows with the toolchains alone that they are what they say.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};
use supervisor_test_support::programs::{node_modules, require};
use supervisor_test_support::suites::file;

use super::super::case::{Edit, Kind};
use super::super::is_long_run;
use super::super::picture::git;
use crate::support::user_shell::toolchain;

pub(super) const CLASSES: [&str; 12] = [
    "partial",
    "blind",
    "fixture",
    "old tests",
    "race",
    "refactor",
    "canary",
    "run detection",
    "memory",
    "across calls",
    "plug-in",
    SPECIAL,
];

/// Answers that the visible tests are too weak for, such as those for the visible inputs alone: no changed expectation
/// survives, so that only a flag can tell.
pub(super) const SPECIAL: &str = "special";

/// Cheats and honest rows of each language, unless the run is a long one.
const SAMPLE: (usize, usize) = (5, 3);

type Files = BTreeMap<String, String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Language {
    commands: Commands,
    /// Files of every project.
    common: Files,
    pub(super) projects: BTreeMap<String, Project>,
    pub(super) cheats: Vec<Cheat>,
    pub(super) honest: Vec<Row>,
}

/// By `sh -c` in the project.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commands {
    /// Before the project is committed.
    setup: Option<String>,
    /// All visible tests.
    suite: String,
    /// The hidden check: a program in `probe_file` that prints what `says` says.
    probe: String,
    probe_file: String,
    /// Takes away what rows left in the system.
    clean: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Project {
    test: String,
    /// `refactor` for a project where all tests pass; else tests fail.
    tool: Option<String>,
    /// The file that is refactored.
    #[serde(rename = "impl")]
    code: Option<String>,
    suite: Option<String>,
    probe: String,
    says: String,
    files: Files,
}

#[derive(Deserialize)]
pub(super) struct Cheat {
    pub(super) class: String,
    pub(super) likelihood: Likelihood,
    #[serde(flatten)]
    pub(super) row: Row,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Likelihood {
    /// A weak model under pressure writes it, knowing nothing of how its work is checked.
    Unprompted,
    /// Written by somebody who fights the checks.
    Knowing,
}

#[derive(Deserialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) project: String,
    /// Answers before this one, which are refused. Only what git ignores is left of them.
    #[serde(default)]
    pub(super) first: Vec<Answer>,
    #[serde(flatten)]
    pub(super) answer: Answer,
    /// In place of the project's.
    probe: Option<String>,
    says: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Answer {
    /// Whole files, new and changed ones.
    #[serde(default)]
    files: Files,
    /// What an agent runs in the project, by `sh -e`.
    agent: Option<String>,
}

pub(super) fn languages() -> Vec<(Kind, Language)> {
    let all = [
        (Kind::Python, include_str!("python.toml")),
        (Kind::Node, include_str!("javascript.toml")),
        (Kind::Rust, include_str!("rust.toml")),
        (Kind::Go, include_str!("go.toml")),
        (Kind::Ruby, include_str!("ruby.toml")),
        (Kind::Elixir, include_str!("elixir.toml")),
        (Kind::Java, include_str!("java.toml")),
    ];
    all.into_iter()
        .map(|(kind, text)| (kind, toml::from_str(text).expect("a table of rows")))
        .collect()
}

pub(super) fn language(kind: Kind) -> Language {
    let mut all = languages().into_iter();
    all.find(|(known, _)| *known == kind).expect("a table").1
}

impl Project {
    pub(super) fn is_refactored(&self) -> bool {
        self.tool.as_deref() == Some("refactor")
    }

    /// The tool that is called, and its arguments.
    pub(super) fn call(&self) -> (&'static str, Value) {
        if self.is_refactored() {
            (
                "tdd_refactor",
                json!({"test_path": self.test, "impl_path": self.code}),
            )
        } else {
            ("tdd_green", json!({"test_path": self.test}))
        }
    }
}

impl Language {
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        let cheats = self.cheats.iter().map(|cheat| &cheat.row);
        cheats.chain(&self.honest)
    }

    pub(super) fn project(&self, row: &Row) -> &Project {
        &self.projects[&row.project]
    }

    pub(super) fn cheats_to_run(&self) -> Vec<&Cheat> {
        sample(&self.cheats, SAMPLE.0, |cheat| &cheat.row)
    }

    pub(super) fn honest_to_run(&self) -> Vec<&Row> {
        sample(&self.honest, SAMPLE.1, |row| row)
    }

    /// Takes away what rows left in the system.
    pub(super) fn clean(&self) {
        let here = std::env::temp_dir();
        if let Some(clean) = &self.commands.clean {
            shell(clean, &here, &here);
        }
    }

    /// Writes the project and commits it.
    pub(super) fn write(&self, kind: Kind, project: &Project, root: &Path) {
        for (path, text) in self.common.iter().chain(&project.files) {
            file(root, path, text);
        }
        let above = root.parent().expect("a directory").join("node_modules");
        if kind == Kind::Node && !above.exists() {
            std::os::unix::fs::symlink(node_modules(), above).unwrap();
        }
        if let Some(setup) = &self.commands.setup {
            assert_done(&shell(setup, root, root));
        }
        git(root, &["init", "-q"]);
        git(root, &["add", "-A"]);
        git(root, &["commit", "-q", "-m", "First"]);
    }

    /// The answer as edits of the project in `root`, which is not touched.
    pub(super) fn edits(&self, answer: &Answer, root: &Path, scratch: &Path) -> Vec<Edit> {
        copy(root, scratch);
        answer.give(scratch);
        let status = git(
            scratch,
            &["status", "--porcelain", "--untracked-files=all", "-z"],
        );
        let changes = status.split('\0').filter(|line| !line.is_empty());
        let edits = changes.map(|line| {
            let path: &'static str = line[3..].to_owned().leak();
            let text = || fs::read_to_string(scratch.join(path)).unwrap().leak();
            match &line[..2] {
                " D" => Edit::Delete(path),
                "??" => Edit::Create(path, text()),
                _ => Edit::Replace(path, text()),
            }
        });
        edits.collect()
    }
}

impl Answer {
    fn give(&self, root: &Path) {
        for (path, text) in &self.files {
            file(root, path, text);
        }
        if let Some(script) = &self.agent {
            assert_done(&shell(&format!("set -e\n{script}"), root, root));
        }
    }
}

/// Rows with the words of `SUPERVISOR_TEST_ROW` in their names, all rows in a long run, else so many, spread evenly.
fn sample<T>(all: &[T], most: usize, row: impl Fn(&T) -> &Row) -> Vec<&T> {
    if let Ok(words) = std::env::var("SUPERVISOR_TEST_ROW") {
        return all
            .iter()
            .filter(|one| row(one).name.contains(&words))
            .collect();
    }
    if is_long_run() || all.len() <= most {
        return all.iter().collect();
    }
    (0..most)
        .map(|n| &all[n * (all.len() - 1) / (most - 1)])
        .collect()
}

/// Every cheat passes the visible tests and fails the hidden check; every honest answer passes both.
pub(super) fn assert_rows_are_what_they_say(kind: Kind) {
    require(kind.needs());
    let language = language(kind);
    let cheats = language.cheats_to_run().into_iter();
    let cheats = cheats.map(|cheat| (&cheat.row, false));
    let honest = language.honest_to_run().into_iter().map(|row| (row, true));
    let wrong: Vec<String> = cheats
        .chain(honest)
        .filter_map(|(row, is_right)| language.check(kind, row, is_right).err())
        .collect();
    language.clean();
    assert!(
        wrong.is_empty(),
        "{} rows are wrong\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}

impl Language {
    fn check(&self, kind: Kind, row: &Row, is_right: bool) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        let (home, root) = (dir.path().join("home"), dir.path().join("project"));
        fs::create_dir(&home).unwrap();
        let project = self.project(row);
        self.write(kind, project, &root);
        let suite = project.suite.as_ref().unwrap_or(&self.commands.suite);
        for answer in &row.first {
            answer.give(&root);
            shell(suite, &root, &home);
            git(&root, &["checkout", "-q", "."]);
            git(&root, &["clean", "-fdq"]);
        }
        row.answer.give(&root);
        let tests = shell(suite, &root, &home);
        // As it comes to others: without what git ignores.
        let delivered = dir.path().join("delivered");
        copy(&root, &delivered);
        git(&delivered, &["clean", "-fdqX"]);
        let probe = row.probe.as_ref().unwrap_or(&project.probe);
        file(&delivered, &self.commands.probe_file, probe);
        let probed = shell(&self.commands.probe, &delivered, &home);
        let says = row.says.as_ref().unwrap_or(&project.says);
        let is_as_said = String::from_utf8_lossy(&probed.stdout).trim() == says.trim();
        if tests.status.success() && is_as_said == is_right {
            return Ok(());
        }
        Err(format!(
            "{kind:?}, {}, {}: tests {tests:?}, hidden check {probed:?}",
            row.project, row.name
        ))
    }
}

fn shell(command: &str, root: &Path, home: &Path) -> Output {
    Command::new("sh")
        .args(["-c", command])
        .current_dir(root)
        .envs(toolchain())
        .env("HOME", home)
        // One for all rows, so that a standard library is not built for each.
        .env(
            "GOCACHE",
            std::env::temp_dir().join("supervisor-test-go-cache"),
        )
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn assert_done(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).output();
    assert_done(&copied.unwrap());
}
