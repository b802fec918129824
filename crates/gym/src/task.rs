//! One task: a project as it stands before, what is asked, and how the answer is judged, also by tests that the worker
//! never sees.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What is asked of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// Write what a stub leaves open.
    Write,
    /// Find and repair a defect that a test shows.
    Fix,
    /// Improve code whose tests pass already, and keep what it does.
    Refactor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskLevel {
    Easy,
    Medium,
    Hard,
}

/// Files with whole new contents, by path below the project.
pub type FileTexts = BTreeMap<String, String>;

/// An answer that passes the tests the worker sees and is wrong all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongAnswer {
    /// What it gets wrong.
    pub why: String,
    pub files: FileTexts,
}

/// One task, whichever layout it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GymTask {
    /// `python/initials`: unique among the tasks of one run.
    pub name: String,
    /// `rust`, `python`, `javascript`, `go`, `ruby` or `elixir`.
    pub language: String,
    pub kind: TaskKind,
    /// Unknown for tasks of others.
    pub level: Option<TaskLevel>,
    /// What is asked, in words; empty where the tests say it all.
    pub spec: String,
    /// Everything that is there before, the visible tests included.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The file with the visible tests.
    pub test_path: String,
    /// The file that the answer changes.
    pub solution_path: String,
    /// An answer that is right.
    pub reference: FileTexts,
    /// Tests that are added once an answer was accepted; empty if the task has none.
    pub hidden: FileTexts,
    pub wrong: Vec<WrongAnswer>,
    /// Whether the reference needs dependencies that the manifest does not name yet.
    pub allow_dependencies: bool,
}

impl TaskKind {
    /// The tool that such a task is for.
    pub fn tool(self) -> &'static str {
        match self {
            Self::Write | Self::Fix => "tdd_green",
            Self::Refactor => "tdd_refactor",
        }
    }
}

impl GymTask {
    /// The tool that the task is for.
    pub fn tool(&self) -> &'static str {
        self.kind.tool()
    }

    /// Writes the project as it stands before.
    pub fn lay_out(&self, root: &Path) -> io::Result<()> {
        self.files
            .iter()
            .try_for_each(|(path, bytes)| write_below(root, path, bytes))
    }

    /// Adds the hidden tests.
    pub fn reveal(&self, root: &Path) -> io::Result<()> {
        self.hidden
            .iter()
            .try_for_each(|(path, text)| write_below(root, path, text.as_bytes()))
    }
}

/// Writes one file and the directories above it.
pub fn write_below(root: &Path, path: &str, bytes: &[u8]) -> io::Result<()> {
    let whole = root.join(path);
    if let Some(parent) = whole.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(whole, bytes)
}
