//! One task: the initial project, the request, and how the answer is judged, including hidden
//! tests.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is asked of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// Implement a stub.
    Write,
    /// Fix a defect shown by a test.
    Fix,
    /// Improve code whose tests already pass, without changing its behaviour.
    Refactor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskLevel {
    Easy,
    Medium,
    Hard,
}

/// New file contents, by path relative to the project.
pub type FileTexts = BTreeMap<String, String>;

/// An answer that passes the visible tests but is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongAnswer {
    /// What it gets wrong.
    pub why: String,
    pub files: FileTexts,
}

/// One task, from any layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GymTask {
    /// `python/initials`: unique among the tasks of one run.
    pub name: String,
    /// `rust`, `python`, `javascript`, `go`, `ruby` or `elixir`; with a check `sql`, `transformation`, `configuration` or
    /// `documentation`.
    pub language: String,
    pub kind: TaskKind,
    /// Unknown for third-party tasks.
    pub level: Option<TaskLevel>,
    /// The request as text; empty if the tests say it all.
    pub spec: String,
    /// All initial files, including the visible tests.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The file with the visible tests.
    pub test_path: String,
    /// The file that the answer changes.
    pub solution_path: String,
    /// A correct answer.
    pub reference: FileTexts,
    /// Tests that are added after an answer was accepted; empty if the task has none.
    pub hidden: FileTexts,
    pub wrong: Vec<WrongAnswer>,
    /// Whether the reference needs dependencies that the manifest does not have yet.
    pub allow_dependencies: bool,
    /// What decides in the place of tests.
    pub check: Option<TaskCheck>,
}

/// The checks of a task without tests, as the argument `check` of `tdd_green` has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCheck {
    /// Programs that must be on the PATH.
    pub needs: Vec<String>,
    pub visible: Value,
    /// With the hidden files.
    pub hidden: Value,
    pub cheats: Vec<WrongAnswer>,
}

impl TaskKind {
    /// The tool for such a task.
    pub fn tool(self) -> &'static str {
        match self {
            Self::Write | Self::Fix => "tdd_green",
            Self::Refactor => "tdd_refactor",
        }
    }
}

impl GymTask {
    /// The tool for this task.
    pub fn tool(&self) -> &'static str {
        self.kind.tool()
    }

    /// Writes the initial project.
    pub fn write_project(&self, root: &Path) -> io::Result<()> {
        self.files
            .iter()
            .try_for_each(|(path, bytes)| write_below(root, path, bytes))
    }

    /// Adds the hidden tests.
    pub fn add_hidden_tests(&self, root: &Path) -> io::Result<()> {
        self.hidden
            .iter()
            .try_for_each(|(path, text)| write_below(root, path, text.as_bytes()))
    }
}

/// Writes one file and creates its parent directories.
pub fn write_below(root: &Path, path: &str, bytes: &[u8]) -> io::Result<()> {
    let whole = root.join(path);
    if let Some(parent) = whole.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(whole, bytes)
}
