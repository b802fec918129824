//! The test suite of a project: its commands, the directories they run in, and running them. [`Suite`] is the entry point.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::command;
use super::compare;
use super::detect::{format_above, format_nested};
use super::outcome::{Outcome, TestName, TestRun};
use super::runners;
use super::session::{RunEnvironment, RunnerResult, Session};
use super::step::{StepTask, SuiteStep};
use super::steps::{StepResults, run_non_test_step};
use super::varying_names::{RowSelection, VaryingNames};
use supervisor_languages::Language;
use supervisor_text::words;

/// The tests of a project: which commands run, where, and how they were found. Serialized for a run on another machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Suite {
    pub(super) root: PathBuf,
    /// The single command a user would type to run everything.
    pub(super) argv: Vec<String>,
    /// The commands it consists of, in order. At least one of them runs tests.
    pub(super) steps: Vec<SuiteStep>,
    pub(super) found_by: String,
    /// Remarks for the reader about what is run and what is not.
    pub(super) notes: Vec<String>,
    #[serde(skip)]
    pub(super) alternatives: Vec<Alternative>,
    /// Set once it is found that names vary. Shared with the selections of this suite, so that all runs use the same names.
    #[serde(skip)]
    pub(super) varying_names: Arc<OnceLock<VaryingNames>>,
    /// Shared with the selections of this suite.
    #[serde(skip)]
    pub(super) run_counts: Arc<RunCounts>,
    pub(super) is_selection: bool,
}

/// How often a suite was run.
#[derive(Debug, Default, Serialize)]
pub struct RunCounts {
    whole: AtomicU32,
    /// Runs of some of its tests.
    selected: AtomicU32,
}

/// Another suite that was found but not chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alternative {
    /// Relative to the project root.
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
        .root.display(), format_nested(.nested), format_above(.above.as_deref()), words::one_of(runners::manifests())
    )]
    NoTestsFound {
        root: PathBuf,
        nested: Vec<Alternative>,
        above: Option<PathBuf>,
    },
    #[error("`test_cmd` is not a command: {0}; write it as words, such as `cargo test -p api`")]
    BadCommand(String),
    #[error("`test_report` is not a pattern of files: {0}; write it as `build/reports/**/*.xml`")]
    BadReportPattern(String),
}

impl Suite {
    /// The name of the test runner; the first, if there are several.
    pub fn runner(&self) -> &'static str {
        self.tests()
            .next()
            .map_or("generic", |(_, runner)| runner.name)
    }

    /// The language of the tests; `None` if no known runner is used.
    pub fn ecosystem(&self) -> Option<&'static Language> {
        self.tests().find_map(|(_, runner)| runner.ecosystem)
    }

    /// The directory the command runs in, which is that of the manifest.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// The script files that the commands start. Their contents decide what counts as a pass.
    pub fn scripts(&self) -> Vec<PathBuf> {
        self.steps
            .iter()
            .flat_map(|step| match compare::parse(&step.argv) {
                Some((check, _)) => {
                    let sealed = check.sealed(&step.dir).into_iter();
                    sealed.map(|path| step.dir.join(path)).collect()
                }
                None => step.script_files(),
            })
            .collect()
    }

    /// The command line as a user would type it.
    pub fn command(&self) -> String {
        if let Some((check, _)) = compare::parse(&self.argv) {
            let name = check.test_name().0;
            let others = self.argv.get(3..).unwrap_or_default();
            return match others {
                [] => name,
                words => format!("{name} && {}", command::to_command_line(words)),
            };
        }
        let patterns: Vec<String> = self
            .steps
            .iter()
            .flat_map(|step| step.patterns.iter().cloned())
            .collect();
        command::to_command_line_with_globs(&self.argv, &patterns)
    }

    /// The individual commands; empty if there is only one and it is the command itself.
    pub fn commands(&self) -> Vec<String> {
        match self.steps.as_slice() {
            [one] if one.argv == self.argv => Vec::new(),
            steps => steps.iter().map(SuiteStep::command_line).collect(),
        }
    }

    /// The manifest that the suite was detected from, or `test_cmd`.
    pub fn found_by(&self) -> &str {
        &self.found_by
    }

    /// Remarks for the reader about what is run and what is not.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub fn alternatives(&self) -> &[Alternative] {
        &self.alternatives
    }

    /// The tests whose names vary from run to run, if two runs of the same files showed some.
    pub fn varying_names(&self) -> Option<&VaryingNames> {
        self.varying_names.get()
    }

    /// From now on, runs of this suite and of its selections fold these names.
    pub fn set_varying_names(&self, varying: VaryingNames) {
        let _ = self.varying_names.set(varying);
    }

    /// Where this suite keeps the names that vary, for another suite of the same project and command.
    pub fn share_varying_names(&mut self, found: Arc<OnceLock<VaryingNames>>) {
        self.varying_names = found;
    }

    /// How often this suite and selections of it were run.
    pub fn run_counts(&self) -> &RunCounts {
        &self.run_counts
    }

    /// A run of this suite with names that stay the same.
    pub fn with_stable_names(&self, run: TestRun) -> TestRun {
        match self.varying_names() {
            Some(varying) => varying.fold(&run),
            None => run,
        }
    }

    /// This suite restricted to one test; `None` if the runner cannot select it.
    pub fn only(&self, name: &TestName) -> Option<Self> {
        self.select(std::slice::from_ref(name))
    }

    /// This suite restricted to these tests, in one run. `None` if the runner cannot select tests, cannot select several
    /// at once, or the tests belong to several commands. Other tests of the same name may run as well.
    pub fn select(&self, names: &[TestName]) -> Option<Self> {
        let mut selected: Vec<TestName> = Vec::new();
        for name in names {
            let varying = self.varying_names().map(|v| v.selection_of(&name.0));
            let name = match varying {
                None | Some(RowSelection::NotFolded) => name.clone(),
                Some(RowSelection::Function(function)) => TestName(function),
                Some(RowSelection::Impossible) => return None,
            };
            if !selected.contains(&name) {
                selected.push(name);
            }
        }
        let names = selected;
        let first = names.first()?;
        // The command with the longest matching prefix owns the test; the one at the root would match everything.
        let matches_prefix = |step: &SuiteStep| first.0.starts_with(&self.prefix_of(step));
        let is_check = |step: &SuiteStep| {
            compare::parse(&step.argv).is_some_and(|(check, _)| check.test_name() == *first)
        };
        let check = self.tests().find(|(step, _)| is_check(step));
        let others = self.tests().filter(|(s, _)| matches_prefix(s));
        let (step, runner) = check
            .into_iter()
            .chain(others.take(if check.is_some() { 0 } else { usize::MAX }))
            .max_by_key(|(s, _)| self.prefix_of(s).len())?;
        let prefix = self.prefix_of(step);
        let names_in_step: Option<Vec<&str>> = names
            .iter()
            .map(|n| n.0.strip_prefix(prefix.as_str()))
            .collect();
        let argv = (runner.select)(step, names_in_step?.as_slice())?;
        let narrowed = SuiteStep {
            argv: argv.clone(),
            shell: None,
            ..step.clone()
        };
        Some(Self {
            argv,
            steps: vec![narrowed],
            notes: Vec::new(),
            is_selection: true,
            ..self.clone()
        })
    }

    /// This suite with one more argument appended to its command.
    pub fn with_argument(&self, argument: &str) -> Self {
        let append = |argv: &[String]| {
            argv.iter()
                .cloned()
                .chain([argument.to_owned()])
                .collect::<Vec<_>>()
        };
        let extend_tests = |step: &SuiteStep| match step.runner() {
            Some(_) => SuiteStep {
                argv: append(&step.argv),
                ..step.clone()
            },
            None => step.clone(),
        };
        Self {
            argv: append(&self.argv),
            steps: self.steps.iter().map(extend_tests).collect(),
            ..self.clone()
        }
    }

    /// Runs the tests where the environment says. Never fails: every problem is reported as an outcome.
    pub async fn run(&self, bench: &RunEnvironment, stop: &CancellationToken) -> TestRun {
        let count = if self.is_selection {
            &self.run_counts.selected
        } else {
            &self.run_counts.whole
        };
        count.fetch_add(1, Ordering::Relaxed);
        let run = bench.execution.executor.run(self, bench, stop).await;
        self.with_stable_names(run)
    }

    /// Runs the tests on this machine. Names that vary are not folded.
    pub async fn run_here(&self, bench: &RunEnvironment, stop: &CancellationToken) -> TestRun {
        let began = Instant::now();
        let mut results = StepResults::default();
        for (at, step) in self.steps.iter().enumerate() {
            let session = match Session::for_step(bench, step, began, stop) {
                Ok(session) => session,
                Err(error) => {
                    results.add_tests(RunnerResult::no_report_dir(&error), "");
                    break;
                }
            };
            match step.task {
                StepTask::Tests(runner) => {
                    let mut judgement =
                        (runner.run)(&step.with_expanded_globs(&session.files_root()), &session)
                            .await;
                    judgement.notes.extend(session.notes());
                    if !judgement.outcome.is_passed() {
                        judgement.notes.extend(session.refusals(&judgement.output));
                    }
                    results.add_tests(judgement, &self.prefix_of(step));
                }
                StepTask::Build | StepTask::Check => {
                    let more_tests = self.steps[at + 1..].iter().any(|s| s.runner().is_some());
                    results.add_check(
                        run_non_test_step(
                            &step.with_expanded_globs(&session.files_root()),
                            &session,
                        )
                        .await,
                        more_tests,
                    );
                }
            }
            if results.is_over() {
                break;
            }
        }
        results.into_run(self, began.elapsed())
    }

    /// A run of this suite that was ended after its time limit, by somebody else than [`Self::run_here`].
    pub fn timed_out(&self, limit: Duration) -> TestRun {
        let outcome = Outcome::TimedOut {
            limit_s: limit.as_secs(),
        };
        let mut results = StepResults::default();
        results.add_tests(RunnerResult::not_run(outcome), "");
        results.into_run(self, limit)
    }

    /// Every absolute path that the commands of this suite depend on: arguments, directories, PATH and variables.
    pub fn absolute_paths(&self) -> Vec<PathBuf> {
        let words = self.steps.iter().flat_map(|step| {
            let variables = step.environment.variables.iter();
            let values = variables.flat_map(|(_, value)| value.split(':'));
            step.argv.iter().map(String::as_str).chain(values)
        });
        let programs = self.steps.iter().flat_map(|step| &step.environment.path);
        words
            .map(PathBuf::from)
            .chain(programs.cloned())
            .filter(|path| path.is_absolute())
            .collect()
    }

    fn tests(&self) -> impl Iterator<Item = (&SuiteStep, &'static super::runners::Runner)> {
        self.steps
            .iter()
            .filter_map(|step| Some((step, step.runner()?)))
    }

    /// The path to prepend to test names of a command that runs below the root, if its names begin with a path.
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
