//! The tests of a project: commands, where they run, and what all of them together showed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::command;
use super::detect::{below, higher};
use super::outcome::{TestName, TestRun};
use super::runners;
use super::session::{Bench, Judgement, Session};
use super::step::{StepTask, SuiteStep};
use super::steps::{Findings, run_beside};
use supervisor_languages::Language;
use supervisor_text::words;

/// The tests of a project: what is run, where, and why these.
#[derive(Debug, Clone)]
pub struct Suite {
    pub(super) root: PathBuf,
    /// As a person would start all of it.
    pub(super) argv: Vec<String>,
    /// What that comes to, in order; at least one of them is about tests.
    pub(super) steps: Vec<SuiteStep>,
    pub(super) because: String,
    /// What a reader should know about what is run and what is not.
    pub(super) notes: Vec<String>,
    pub(super) alternatives: Vec<Alternative>,
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
        "no tests were found in `{}`{}{}; name the command as `test_cmd` (looked for {}, and for test files by their names)",
        .root.display(), below(.nested), higher(.above.as_deref()), words::one_of(runners::manifests())
    )]
    Nothing {
        root: PathBuf,
        nested: Vec<Alternative>,
        above: Option<PathBuf>,
    },
    #[error("`test_cmd` is not a command: {0}; write it as words, such as `cargo test -p api`")]
    BadCommand(String),
    #[error("`test_report` is not a pattern of files: {0}; write it as `build/reports/**/*.xml`")]
    BadReports(String),
}

impl Suite {
    /// The runner that speaks of tests; the first, if there are several.
    pub fn runner(&self) -> &'static str {
        self.tests()
            .next()
            .map_or("generic", |(_, runner)| runner.name)
    }

    /// `None` for a command of no known runner.
    pub fn ecosystem(&self) -> Option<&'static Language> {
        self.tests().find_map(|(_, runner)| runner.ecosystem)
    }

    /// Where the command runs: the directory of the manifest.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// The files that the commands themselves start, as their words name them: what they say decides what a pass is.
    pub fn scripts(&self) -> Vec<PathBuf> {
        self.steps.iter().flat_map(SuiteStep::scripts).collect()
    }

    /// As a person would type it.
    pub fn command(&self) -> String {
        let patterns: Vec<String> = self
            .steps
            .iter()
            .flat_map(|step| step.patterns.iter().cloned())
            .collect();
        command::typed_with(&self.argv, &patterns)
    }

    /// What it comes to, command by command, where that is not what was typed.
    pub fn commands(&self) -> Vec<String> {
        match self.steps.as_slice() {
            [one] if one.argv == self.argv => Vec::new(),
            steps => steps.iter().map(SuiteStep::typed).collect(),
        }
    }

    /// The manifest that decided, or `test_cmd`.
    pub fn because(&self) -> &str {
        &self.because
    }

    /// What is run and what is not, where that is worth saying.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub fn alternatives(&self) -> &[Alternative] {
        &self.alternatives
    }

    /// This suite narrowed to one test, where the runner can select.
    pub fn only(&self, name: &TestName) -> Option<Self> {
        self.selecting(std::slice::from_ref(name))
    }

    /// This suite narrowed to these tests, in one run. `None` where that cannot be said: the runner selects no tests,
    /// or not several at once, or they belong to several commands. Other tests of the same name may come along.
    pub fn selecting(&self, names: &[TestName]) -> Option<Self> {
        let first = names.first()?;
        // A command below the root claims what stands there; the one at the root would claim everything.
        let claims = |step: &SuiteStep| first.0.starts_with(&self.prefix_of(step));
        let (step, runner) = self
            .tests()
            .filter(|(s, _)| claims(s))
            .max_by_key(|(s, _)| self.prefix_of(s).len())?;
        let prefix = self.prefix_of(step);
        let inside: Option<Vec<&str>> = names
            .iter()
            .map(|n| n.0.strip_prefix(prefix.as_str()))
            .collect();
        let argv = (runner.select)(step, inside?.as_slice())?;
        let narrowed = SuiteStep {
            argv: argv.clone(),
            shell: None,
            ..step.clone()
        };
        Some(Self {
            argv,
            steps: vec![narrowed],
            notes: Vec::new(),
            ..self.clone()
        })
    }

    /// This suite with one more word behind its command.
    pub fn with_word(&self, word: &str) -> Self {
        let with = |argv: &[String]| {
            argv.iter()
                .cloned()
                .chain([word.to_owned()])
                .collect::<Vec<_>>()
        };
        let of_tests = |step: &SuiteStep| match step.runner() {
            Some(_) => SuiteStep {
                argv: with(&step.argv),
                ..step.clone()
            },
            None => step.clone(),
        };
        Self {
            argv: with(&self.argv),
            steps: self.steps.iter().map(of_tests).collect(),
            ..self.clone()
        }
    }

    /// Runs the tests and says what was seen. Never fails: what went wrong is an outcome.
    pub async fn run(&self, bench: &Bench, stop: &CancellationToken) -> TestRun {
        let began = Instant::now();
        let mut findings = Findings::default();
        for (at, step) in self.steps.iter().enumerate() {
            let session = match Session::begin(bench, step, began, stop) {
                Ok(session) => session,
                Err(error) => {
                    findings.add_tests(Judgement::no_place(&error), "");
                    break;
                }
            };
            match step.task {
                StepTask::Tests(runner) => {
                    let mut judgement =
                        (runner.run)(&step.with_files_of(&session.files()), &session).await;
                    judgement.notes.extend(session.notes());
                    if !judgement.outcome.is_passed() {
                        judgement.notes.extend(session.refusals(&judgement.output));
                    }
                    findings.add_tests(judgement, &self.prefix_of(step));
                }
                StepTask::Build | StepTask::Check => {
                    let more_tests = self.steps[at + 1..].iter().any(|s| s.runner().is_some());
                    findings.add_check(
                        run_beside(&step.with_files_of(&session.files()), &session).await,
                        more_tests,
                    );
                }
            }
            if findings.is_over() {
                break;
            }
        }
        findings.into_run(self, began.elapsed())
    }

    fn tests(&self) -> impl Iterator<Item = (&SuiteStep, &'static super::runners::Runner)> {
        self.steps
            .iter()
            .filter_map(|step| Some((step, step.runner()?)))
    }

    /// What goes before the names of a command that runs below the root, where names begin with a path.
    fn prefix_of(&self, step: &SuiteStep) -> String {
        let below = step
            .dir
            .strip_prefix(&self.root)
            .ok()
            .filter(|d| !d.as_os_str().is_empty());
        match (step.runner(), below) {
            (Some(runner), Some(dir)) if runner.names_are_paths => format!("{}/", dir.display()),
            _ => String::new(),
        }
    }
}
