//! Which tests does a project have? By its manifests, in a fixed order, or by the command the caller names.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::command;
use super::outcome::{TestName, TestRun};
use super::runners::{self, Runner};
use super::session::{Bench, Judgement, Session};
use crate::words;

/// The family of tools a project belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ecosystem {
    Go,
    Node,
    Python,
    Rust,
    Ruby,
    Elixir,
}

/// The tests of a project: a command, where it runs, and who understands what it says.
#[derive(Debug, Clone)]
pub struct Suite {
    runner: &'static Runner,
    root: PathBuf,
    argv: Vec<String>,
    because: String,
    alternatives: Vec<Alternative>,
}

/// Another suite that could have been meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alternative {
    /// Relative to the project.
    pub manifest: PathBuf,
    pub command: String,
}

#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    #[error("`{}` is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("`{}` cannot be read: {why}", .root.display())]
    Unreadable { root: PathBuf, why: io::Error },
    #[error("`{}` lies outside the project `{}`", .file.display(), .root.display())]
    Outside { file: PathBuf, root: PathBuf },
    #[error(
        "no tests were found in `{}`: looked for {}{}{}; name the command as `test_cmd`",
        .root.display(), words::one_of(runners::manifests()), below(.nested), higher(.above.as_deref())
    )]
    Nothing { root: PathBuf, nested: Vec<Alternative>, above: Option<PathBuf> },
    #[error("`test_cmd` is not a command: {0}; write it as words, such as `cargo test -p api`")]
    BadCommand(String),
}

/// Finds the tests of `root`. The manifest nearest to `near` wins; `test_cmd` bypasses the search.
pub fn detect(root: &Path, near: Option<&Path>, test_cmd: Option<&str>) -> Result<Suite, DetectError> {
    let not_a_directory = |_: io::Error| DetectError::NotADirectory(root.to_owned());
    let root = root.canonicalize().map_err(not_a_directory)?;
    if !root.is_dir() {
        return Err(DetectError::NotADirectory(root));
    }
    // What may not be seen is not "nothing".
    if let Err(why) = root.read_dir() {
        return Err(DetectError::Unreadable { root, why });
    }
    if let Some(words) = test_cmd {
        let argv = shell_words::split(words).map_err(|e| DetectError::BadCommand(e.to_string()))?;
        if argv.is_empty() {
            return Err(DetectError::BadCommand(String::from("it is empty")));
        }
        let runner = runners::recognise(&argv);
        return Ok(Suite { runner, root, argv, because: String::from("test_cmd"), alternatives: Vec::new() });
    }
    let start = nearest_directory(&root, near)?;
    let mut found: Vec<(PathBuf, &'static str, &'static Runner)> = Vec::new();
    for dir in start.ancestors().take_while(|d| d.starts_with(&root)) {
        found.extend(runners::manifests_in(dir).map(|(manifest, runner)| (dir.to_owned(), manifest, runner)));
    }
    let mut found = found.into_iter();
    let Some((dir, manifest, runner)) = found.next() else {
        return Err(DetectError::Nothing { nested: nested(&root), above: above(&root), root });
    };
    let inside = |dir: &Path, manifest: &str| dir.strip_prefix(&root).unwrap_or(dir).join(manifest);
    let alternatives = found
        .map(|(dir, manifest, runner)| Alternative {
            manifest: inside(&dir, manifest),
            command: command::typed(&runner.argv()),
        })
        .collect();
    let because = inside(&dir, manifest).display().to_string();
    Ok(Suite { runner, argv: runner.argv(), root: dir, because, alternatives })
}

impl Suite {
    pub fn runner(&self) -> &'static str {
        self.runner.name
    }

    /// `None` for a command of no known runner.
    pub fn ecosystem(&self) -> Option<Ecosystem> {
        self.runner.ecosystem
    }

    /// Where the command runs: the directory of the manifest.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// The files that the command itself starts, as its words name them: what they say decides what a pass is.
    pub fn scripts(&self) -> Vec<PathBuf> {
        let own = command::script(&self.argv).map(str::to_owned);
        let named = own.into_iter().chain(runners::scripts_of(&self.argv, &self.root));
        named.map(|word| self.root.join(word)).filter(|path| path.is_file()).collect()
    }

    /// As a person would type it.
    pub fn command(&self) -> String {
        command::typed(&self.argv)
    }

    /// The manifest that decided, or `test_cmd`.
    pub fn because(&self) -> &str {
        &self.because
    }

    pub fn alternatives(&self) -> &[Alternative] {
        &self.alternatives
    }

    /// This suite narrowed to one test, where the runner can select.
    pub fn only(&self, name: &TestName) -> Option<Self> {
        let argv = (self.runner.only)(&self.argv, &name.0)?;
        Some(Self { argv, ..self.clone() })
    }

    /// Runs the tests and says what was seen. Never fails: what went wrong is an outcome.
    pub async fn run(&self, bench: &Bench, stop: &CancellationToken) -> TestRun {
        let began = std::time::Instant::now();
        let judgement = match Session::begin(bench, &self.root, stop) {
            Ok(session) => {
                let mut judgement = (self.runner.run)(self, &session).await;
                judgement.notes.extend(session.notes());
                judgement
            }
            Err(error) => Judgement::no_place(&error),
        };
        TestRun {
            command: self.command(),
            root: self.root.clone(),
            outcome: judgement.outcome,
            tests: judgement.tests,
            exit_code: judgement.exit_code,
            output: judgement.output,
            took: began.elapsed(),
            notes: judgement.notes,
        }
    }
}

fn nearest_directory(root: &Path, near: Option<&Path>) -> Result<PathBuf, DetectError> {
    let Some(near) = near else { return Ok(root.to_owned()) };
    let whole = root.join(near);
    // The file may not exist yet; the nearest directory that does is where the search begins.
    let existing = whole.ancestors().find(|p| p.is_dir()).unwrap_or(root);
    let outside = || DetectError::Outside { file: near.to_owned(), root: root.to_owned() };
    let existing = existing.canonicalize().map_err(|_| outside())?;
    if existing.starts_with(root) { Ok(existing) } else { Err(outside()) }
}

/// The nearest manifest above: somebody stands inside of the project. For the message only.
fn above(root: &Path) -> Option<PathBuf> {
    root.ancestors().skip(1).find_map(|dir| Some(dir.join(runners::manifests_in(dir).next()?.0)))
}

fn higher(above: Option<&Path>) -> String {
    above.map(|manifest| format!("; above it lies `{}`", manifest.display())).unwrap_or_default()
}

/// Manifests one level below, for the message only.
fn nested(root: &Path) -> Vec<Alternative> {
    let mut dirs: Vec<PathBuf> =
        std::fs::read_dir(root).into_iter().flatten().flatten().map(|e| e.path()).filter(|p| p.is_dir()).collect();
    dirs.sort();
    let hidden = |d: &Path| {
        let name = d.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with('.') || ["node_modules", "vendor", "target"].contains(&name.as_str())
    };
    dirs.iter()
        .filter(|d| !hidden(d))
        .flat_map(|dir| {
            runners::manifests_in(dir).map(|(manifest, runner)| Alternative {
                manifest: dir.strip_prefix(root).unwrap_or(dir).join(manifest),
                command: command::typed(&runner.argv()),
            })
        })
        .collect()
}

fn below(nested: &[Alternative]) -> String {
    if nested.is_empty() {
        return String::new();
    }
    let names: Vec<_> = nested.iter().take(5).map(|a| format!("`{}`", a.manifest.display())).collect();
    format!(" (found below it: {}; name a file near the one you mean)", names.join(", "))
}
