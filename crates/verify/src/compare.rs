//! Checks of work that has no unit tests: rows of a query, files that a command writes, the exit code of a validator,
//! links of a document. [`ResultCheck`] describes one; as the step of a [`Suite`] it is a test like any other, so that
//! baseline, regressions and [`crate::Proof`] need no second form.

pub(super) mod files;
mod links;
mod reduce;
mod rows;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command;
use super::outcome::{Outcome, TestName, TestState, Tests};
use super::runners::check_runner;
use super::session::{RunnerResult, Session, exit_code, output_of};
use super::step::SuiteStep;
use super::suite::Suite;
use supervisor_process::FinishedProcess;
use supervisor_text::words;

pub use reduce::{Reduction, Trial};
pub(super) use rows::run_query;

/// The first word of the step's command.
pub(super) const PROGRAM: &str = "check";
/// A file larger than this is not compared.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// What decides whether work is right, in the place of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "lowercase",
    deny_unknown_fields,
    expecting = "an object with `kind`"
)]
pub enum ResultCheck {
    /// A query on a SQLite database returns these rows.
    Rows {
        /// File with the SQL; the last statement that returns rows counts.
        query: String,
        /// A script of SQL statements, or a SQLite file.
        database: String,
        /// CSV with a header, or a JSON array of arrays.
        expected: String,
        /// Whether the order of the rows counts.
        #[serde(default)]
        ordered: bool,
        #[serde(default)]
        tolerance: f64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
    },
    /// A command prints, or writes to `actual`, what `expected` holds.
    Files {
        command: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actual: Option<String>,
        expected: String,
        /// The data that the command reads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<String>,
        #[serde(default)]
        tolerance: f64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
    },
    /// A command, such as a validator, exits with 0.
    Command {
        command: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
    },
    /// The relative links of a Markdown file lead somewhere, and `command` (its snippets, say) exits with 0.
    Docs {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
    },
}

/// Why a check cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    #[error("check: there is no file `{0}` in the project; give a path relative to it")]
    NoFile(String),
    #[error("check: `{0}` leads out of the project")]
    Outside(String),
    #[error(
        "check: `{command}` is not a command: {why}; write it as words, such as `python3 build.py in.csv`"
    )]
    BadCommand { command: String, why: String },
    #[error(
        "check: `{0}` holds no row, so that a query without data would pass; expect at least one"
    )]
    NoRows(String),
    #[error("check: {0}")]
    Unreadable(String),
}

impl ResultCheck {
    /// Fails if something that it names does not exist.
    pub fn validate(&self, root: &Path) -> Result<(), CheckError> {
        for path in self.needed() {
            is_inside(path)?;
            if !root.join(path).is_file() {
                return Err(CheckError::NoFile(path.to_owned()));
            }
        }
        for path in self.written().into_iter().chain(self.paths()) {
            is_inside(path)?;
        }
        if let Some(line) = self.command_line() {
            let bad = |why: String| CheckError::BadCommand {
                command: line.to_owned(),
                why,
            };
            let words = shell_words::split(line).map_err(|e| bad(e.to_string()))?;
            if words.is_empty() {
                return Err(bad(String::from("it is empty")));
            }
        }
        if let Self::Rows { expected, .. } = self {
            let rows = table::read(&root.join(expected)).map_err(CheckError::Unreadable)?;
            if rows.is_empty() {
                return Err(CheckError::NoRows(expected.clone()));
            }
        }
        Ok(())
    }

    /// The name of its test.
    pub fn test_name(&self) -> TestName {
        TestName(match self {
            Self::Rows { query, .. } => format!("check: rows of {query}"),
            Self::Files { expected, .. } => format!("check: output is {expected}"),
            Self::Command { command, .. } => format!("check: {command} succeeds"),
            Self::Docs { path, .. } => format!("check: {path} holds"),
        })
    }

    /// What kind of work it is, for figures by kind.
    pub fn work_kind(&self) -> &'static str {
        match self {
            Self::Rows { .. } => "sql",
            Self::Files { .. } => "transformation",
            Self::Command { .. } => "configuration",
            Self::Docs { .. } => "documentation",
        }
    }

    /// The file that stands for the test: what is expected where there is such a file.
    pub fn main_file(&self) -> &str {
        match self {
            Self::Rows { expected, .. } | Self::Files { expected, .. } => expected,
            Self::Command { paths, .. } => paths.first().map_or("", String::as_str),
            Self::Docs { path, .. } => path,
        }
    }

    /// Files that a model needs to see for the work.
    pub fn shown_files(&self) -> Vec<&str> {
        let mut shown = self.needed();
        shown.extend(self.paths());
        shown
    }

    /// Files that the work may not change, because they decide the outcome.
    pub fn sealed(&self, root: &Path) -> Vec<PathBuf> {
        let mut sealed: Vec<PathBuf> = match self {
            Self::Rows {
                database, expected, ..
            } => vec![database.into(), expected.into()],
            Self::Files {
                expected, input, ..
            } => {
                let named = input.iter().map(PathBuf::from);
                named.chain([PathBuf::from(expected)]).collect()
            }
            Self::Command { .. } | Self::Docs { .. } => Vec::new(),
        };
        // A transformation is the script that its command starts; a validator is not.
        if !matches!(self, Self::Files { .. })
            && let Some(argv) = self.argv()
            && let Some(script) = command::script_file(&argv)
            && root.join(script).is_file()
        {
            sealed.push(script.into());
        }
        sealed.retain(|path| !self.paths().any(|open| Path::new(open) == path));
        sealed
    }

    /// Whether the work may change this file; `None` if every file of code may be changed.
    pub fn may_change(&self, path: &Path) -> Option<bool> {
        let mut named = self.paths().peekable();
        named.peek()?;
        Some(named.any(|open| Path::new(open) == path))
    }

    /// What a document lost: a heading, an example or a link.
    pub fn lost(&self, path: &Path, before: &str, after: &str) -> Option<String> {
        match self {
            Self::Docs { path: own, .. } if Path::new(own) == path => links::lost(before, after),
            _ => None,
        }
    }

    /// The files that the work is about, where only those may be changed.
    fn paths(&self) -> impl Iterator<Item = &str> {
        let (own, named): (Option<&String>, &[String]) = match self {
            Self::Rows { query, paths, .. } => (Some(query), paths),
            Self::Docs { path, .. } => (Some(path), &[]),
            Self::Files { paths, .. } | Self::Command { paths, .. } => (None, paths),
        };
        own.into_iter().chain(named).map(String::as_str)
    }

    fn needed(&self) -> Vec<&str> {
        match self {
            Self::Rows {
                database, expected, ..
            } => vec![database, expected],
            Self::Files {
                expected, input, ..
            } => [expected.as_str()]
                .into_iter()
                .chain(input.as_deref())
                .collect(),
            Self::Command { .. } => Vec::new(),
            Self::Docs { path, .. } => vec![path],
        }
    }

    fn written(&self) -> Option<&str> {
        match self {
            Self::Files { actual, .. } => actual.as_deref(),
            _ => None,
        }
    }

    fn command_line(&self) -> Option<&str> {
        match self {
            Self::Rows { .. } => None,
            Self::Files { command, .. } | Self::Command { command, .. } => Some(command),
            Self::Docs { command, .. } => command.as_deref(),
        }
    }

    /// The words of its command.
    pub fn argv(&self) -> Option<Vec<String>> {
        shell_words::split(self.command_line()?).ok()
    }
}

fn is_inside(path: &str) -> Result<(), CheckError> {
    let is_plain = |part| {
        matches!(
            part,
            std::path::Component::Normal(_) | std::path::Component::CurDir
        )
    };
    match !path.is_empty() && Path::new(path).components().all(is_plain) {
        true => Ok(()),
        false => Err(CheckError::Outside(path.to_owned())),
    }
}

impl Suite {
    /// A suite with this check as its only test. `root` is the canonical path of the project.
    pub fn of_check(root: &Path, check: &ResultCheck) -> Self {
        Self::of_reduced_check(root, check, Reduction::None)
    }

    /// The check with less data than it has.
    pub fn of_reduced_check(root: &Path, check: &ResultCheck, reduction: Reduction) -> Self {
        let spec = serde_json::to_string(check).expect("a check is written as JSON");
        let argv = vec![PROGRAM.to_owned(), spec, reduction.to_word()];
        Self {
            root: root.to_owned(),
            argv: argv.clone(),
            steps: vec![SuiteStep::new(argv, root).with_runner(check_runner())],
            found_by: String::from("check"),
            notes: Vec::new(),
            alternatives: Vec::new(),
            varying_names: Arc::default(),
            run_counts: Arc::default(),
            is_selection: false,
        }
    }

    /// This suite and the check, which is its first test.
    pub fn with_check(&self, check: &ResultCheck) -> Self {
        let mut suite = self.clone();
        let own = Self::of_check(&self.root, check);
        suite.steps.splice(0..0, own.steps);
        suite.argv = own.argv.into_iter().chain(suite.argv).collect();
        suite
    }
}

/// The check behind the arguments of a step.
pub(super) fn parse(argv: &[String]) -> Option<(ResultCheck, Reduction)> {
    match argv {
        [program, spec, reduction, ..] if program == PROGRAM => Some((
            serde_json::from_str(spec).ok()?,
            Reduction::from_word(reduction)?,
        )),
        _ => None,
    }
}

/// Makes the check once.
pub(super) async fn run(step: &SuiteStep, session: &Session<'_>) -> RunnerResult {
    let Some((check, reduction)) = parse(&step.argv) else {
        return RunnerResult::not_run(Outcome::CouldNotRun {
            why: String::from("the check cannot be read"),
            remedy: String::from("give `check` as the documentation of `tdd_green` describes it"),
        });
    };
    let files = session.files_root();
    // Read before anything runs: a command may write wherever it can.
    let expected = match &check {
        ResultCheck::Files { expected, .. } | ResultCheck::Rows { expected, .. } => {
            read(&files.join(expected))
        }
        ResultCheck::Command { .. } | ResultCheck::Docs { .. } => Ok(Vec::new()),
    };
    let expected = match expected {
        Ok(bytes) => bytes,
        Err(why) => return judged(&check, Err(why), Some(1), String::new()),
    };
    match &check {
        ResultCheck::Rows {
            query,
            database,
            ordered,
            tolerance,
            expected: name,
            ..
        } => {
            if !files.join(query).is_file() {
                let why = format!("there is no file `{query}`");
                return judged(&check, Err(why), Some(1), String::new());
            }
            let report = session.file("rows.json");
            let argv = [
                session.program(),
                String::from("witness"),
                String::from("rows"),
                report.display().to_string(),
                database.clone(),
                query.clone(),
                reduction.to_word(),
            ];
            let finished = session.run(&argv, &[]).await;
            if let Some(outcome) = session.abnormal_outcome(&finished, "sqlite") {
                return RunnerResult::not_run(outcome);
            }
            let verdict = match session.report("rows.json") {
                Some(text) => table::parse(Path::new(name), &expected)
                    .and_then(|wanted| rows::compare(&text, &wanted, *ordered, *tolerance)),
                None => Err(output_of(&finished)),
            };
            judged(&check, verdict, exit_code(&finished), output_of(&finished))
        }
        ResultCheck::Files {
            actual,
            expected: name,
            tolerance,
            ..
        } => {
            if let Some(actual) = actual {
                let _ = std::fs::remove_file(files.join(actual));
            }
            let finished = run_command(&check, session, "output").await;
            if let Some(outcome) = abnormal(&check, session, &finished) {
                return RunnerResult::not_run(outcome);
            }
            let verdict = match exit_code(&finished) {
                Some(0) => match actual {
                    Some(actual) => read(&files.join(actual)),
                    None => read(&session.file("output")),
                }
                .and_then(|got| files::compare(Path::new(name), &got, &expected, *tolerance)),
                _ => Err(failed(&check, &finished)),
            };
            judged(&check, verdict, exit_code(&finished), output_of(&finished))
        }
        ResultCheck::Command { .. } => {
            let finished = run_command(&check, session, "output").await;
            if let Some(outcome) = abnormal(&check, session, &finished) {
                return RunnerResult::not_run(outcome);
            }
            let verdict = match exit_code(&finished) {
                Some(0) => Ok(()),
                _ => Err(failed(&check, &finished)),
            };
            let printed = session.report("output").unwrap_or_default();
            let output = format!("{printed}{}", output_of(&finished));
            judged(&check, verdict, exit_code(&finished), output)
        }
        ResultCheck::Docs { path, command } => {
            let mut verdict = links::check(&files, Path::new(path));
            let mut output = String::new();
            if command.is_some() && verdict.is_ok() {
                let finished = run_command(&check, session, "output").await;
                if let Some(outcome) = abnormal(&check, session, &finished) {
                    return RunnerResult::not_run(outcome);
                }
                output = session.report("output").unwrap_or_default() + &output_of(&finished);
                if exit_code(&finished) != Some(0) {
                    let why = words::cut_middle(output.trim(), 1_000);
                    verdict = Err(format!(
                        "`{}` failed: {why}",
                        command.as_deref().unwrap_or_default()
                    ));
                }
            }
            judged(&check, verdict, Some(0), output)
        }
    }
}

async fn run_command(check: &ResultCheck, session: &Session<'_>, into: &str) -> FinishedProcess {
    session
        .run_into(into, &check.argv().unwrap_or_default(), &[])
        .await
}

fn abnormal(
    check: &ResultCheck,
    session: &Session<'_>,
    finished: &FinishedProcess,
) -> Option<Outcome> {
    let argv = check.argv().unwrap_or_default();
    session.abnormal_outcome(finished, command::program(&argv))
}

fn failed(check: &ResultCheck, finished: &FinishedProcess) -> String {
    let code =
        exit_code(finished).map_or_else(|| String::from("a signal"), |code| code.to_string());
    let said = output_of(finished);
    let said = words::cut_middle(said.trim(), 1_000);
    let command = check.command_line().unwrap_or_default();
    format!("`{command}` ended with {code}: {said}")
}

fn judged(
    check: &ResultCheck,
    verdict: Result<(), String>,
    code: Option<i32>,
    output: String,
) -> RunnerResult {
    let (outcome, state, output) = match verdict {
        Ok(()) => (Outcome::Passed, TestState::Passed, output),
        Err(why) => {
            let why = words::cut_middle(&why, super::session::MAX_MESSAGE_BYTES).into_owned();
            let output = match output.trim().is_empty() {
                true => why.clone(),
                false => format!("{why}\n{output}"),
            };
            (Outcome::Failed, TestState::Failed(why), output)
        }
    };
    RunnerResult {
        exit_code: Some(match outcome {
            Outcome::Passed => 0,
            _ => code.filter(|code| *code != 0).unwrap_or(1),
        }),
        outcome,
        tests: Tests::Named([(check.test_name(), state)].into()),
        output,
        notes: Vec::new(),
    }
}

/// The bytes of a regular file that is not too large.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let meta = path
        .symlink_metadata()
        .map_err(|_| format!("`{name}` was not written"))?;
    if !meta.is_file() || meta.len() > MAX_FILE_BYTES {
        return Err(format!(
            "`{name}` is not a file of at most {MAX_FILE_BYTES} bytes"
        ));
    }
    std::fs::read(path).map_err(|e| format!("`{name}` cannot be read: {e}"))
}
