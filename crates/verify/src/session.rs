//! A session runs the commands of one test run: in which directory, with which time limit, and with a private directory
//! for the runner's report.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::executor::Execution;
use super::outcome::{Outcome, TestName, TestState, Tests};
use super::step::SuiteStep;
use supervisor_process::{
    ChildKind, CommandSpec, Confinement, Containment, End, FinishedProcess, Launcher, NetworkReach,
    ProjectGuard, SandboxLevel, SandboxRecord, SandboxReport, ScratchDir, StartError,
    explain_refusals,
};
use supervisor_text::words;

/// How much output of a run is kept.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;
/// How much of a failing test's message is kept.
pub(super) const MAX_MESSAGE_BYTES: usize = 2_000;
/// A report larger than this is not read.
const MAX_REPORT_BYTES: u64 = 256 * 1024 * 1024;

/// Everything a run needs from its caller: how to start programs, their environment, and the time limit.
#[derive(Debug, Clone)]
pub struct RunEnvironment {
    pub launcher: Launcher,
    /// The complete environment; nothing else is inherited.
    pub env: BTreeMap<OsString, OsString>,
    /// Time limit for the whole run, including builds.
    pub limit: Duration,
    /// Set while the project has an active snapshot: the tests must end before a restore.
    pub guard: Option<ProjectGuard>,
    pub sandbox: TestSandbox,
    pub execution: Execution,
}

/// Sandbox options for test commands, in addition to the settings.
#[derive(Debug, Clone, Default)]
pub struct TestSandbox {
    /// Network access, once the first run has shown what the tests need.
    pub network: Option<NetworkReach>,
    /// Hides the git repository from the commands, if the sandbox supports it.
    pub hides_git: bool,
    /// Pairs of a file and the absolute path at which the commands see it.
    pub replaced: Vec<(PathBuf, PathBuf)>,
    /// Collects which sandbox the commands had.
    pub record: SandboxRecord,
}

/// The state of one run.
pub(super) struct Session<'a> {
    environment: &'a RunEnvironment,
    stop: &'a CancellationToken,
    root: &'a Path,
    /// Variables in addition to the caller's environment.
    extra_env: Vec<(OsString, OsString)>,
    began: Instant,
    scratch: ScratchDir,
    /// Collected over all processes, for the notes at the end.
    processes: Mutex<ProcessSummary>,
}

#[derive(Debug, Default)]
struct ProcessSummary {
    leaked: usize,
    group_only: bool,
    sandbox: Option<SandboxReport>,
}

/// A runner's result of a run.
#[derive(Debug)]
pub(super) struct RunnerResult {
    pub(super) outcome: Outcome,
    pub(super) tests: Tests,
    pub(super) exit_code: Option<i32>,
    pub(super) output: String,
    pub(super) notes: Vec<String>,
}

impl<'a> Session<'a> {
    /// A session for one step of a suite. The time limit covers all steps, and the first one began at `began`.
    pub(super) fn for_step(
        environment: &'a RunEnvironment,
        step: &'a SuiteStep,
        began: Instant,
        stop: &'a CancellationToken,
    ) -> std::io::Result<Self> {
        let extra_env = step
            .environment
            .variables(environment.env.get(std::ffi::OsStr::new("PATH")));
        Self::new(environment, &step.dir, extra_env, began, stop)
    }

    /// A session for a command that is not part of a suite.
    pub(super) fn standalone(
        environment: &'a RunEnvironment,
        root: &'a Path,
        stop: &'a CancellationToken,
    ) -> std::io::Result<Self> {
        Self::new(environment, root, Vec::new(), Instant::now(), stop)
    }

    fn new(
        environment: &'a RunEnvironment,
        root: &'a Path,
        extra_env: Vec<(OsString, OsString)>,
        began: Instant,
        stop: &'a CancellationToken,
    ) -> std::io::Result<Self> {
        // The random name is secret, so the code under test cannot forge a report there.
        let scratch = ScratchDir::new("")?;
        Ok(Self {
            environment,
            stop,
            root,
            extra_env,
            began,
            scratch,
            processes: Mutex::default(),
        })
    }

    /// The directory in which the commands run, as they see it.
    pub(super) fn root(&self) -> &Path {
        self.root
    }

    /// The directory in which this process finds the files of [`Self::root`]. With an overlay, these are not in the
    /// project.
    pub(super) fn files_root(&self) -> PathBuf {
        let project = self
            .environment
            .guard
            .as_ref()
            .and_then(|guard| guard.project.as_ref());
        let in_overlay = project.and_then(|project| {
            let relative = self.root.strip_prefix(&project.root).ok()?;
            Some(project.overlay_files.as_ref()?.join(relative))
        });
        in_overlay.unwrap_or_else(|| self.root.to_owned())
    }

    /// The value of an environment variable in this run.
    pub(super) fn variable(&self, name: &str) -> Option<&OsString> {
        let own = self
            .extra_env
            .iter()
            .rfind(|(known, _)| known == name)
            .map(|(_, value)| value);
        own.or_else(|| self.environment.env.get(std::ffi::OsStr::new(name)))
    }

    /// A path in the private directory of this run.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Writes a program to the private directory and returns its path.
    pub(super) fn write_program(&self, name: &str, text: &str) -> std::io::Result<String> {
        let path = self.file(name);
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    }

    pub(super) fn program(&self) -> String {
        self.environment
            .launcher
            .executable()
            .to_string_lossy()
            .into_owned()
    }

    /// The text that the runner wrote to a private path; `None` if there is nothing to read.
    pub(super) fn report(&self, name: &str) -> Option<String> {
        read_report(&self.file(name))
    }

    pub(super) async fn run(&self, argv: &[String], env: &[(&str, String)]) -> FinishedProcess {
        let mut spec = CommandSpec::new(argv.iter().map(OsString::from), self.root);
        spec.env = self.environment.env.clone();
        spec.env.extend(self.extra_env.iter().cloned());
        spec.env.extend(
            env.iter()
                .map(|(k, v)| (OsString::from(k), OsString::from(v))),
        );
        spec.limit = self.environment.limit.saturating_sub(self.began.elapsed());
        spec.guard.clone_from(&self.environment.guard);
        spec.confine = Some(Confinement {
            write: vec![self.scratch.path().to_owned()],
            hides_git: self.environment.sandbox.hides_git,
            replaced: self.environment.sandbox.replaced.clone(),
            network: self.environment.sandbox.network,
            ..Confinement::new(ChildKind::Tests)
        });
        let finished = self.environment.launcher.run(spec, self.stop).await;
        let mut processes = self.processes.lock();
        processes.leaked += finished.leaked;
        processes.group_only |= finished.containment == Containment::Group;
        let sandbox = finished.sandbox.clone();
        let record = &self.environment.sandbox.record;
        record.note(ChildKind::Tests, &sandbox);
        processes.sandbox = Some(
            processes
                .sandbox
                .take()
                .map_or(sandbox.clone(), |known| known.weaker(sandbox)),
        );
        drop(processes);
        finished
    }

    /// Like [`Self::run`], but writes the complete standard output to a private file. The capture keeps only head and
    /// tail.
    pub(super) async fn run_into(
        &self,
        file: &str,
        argv: &[String],
        env: &[(&str, String)],
    ) -> FinishedProcess {
        let target = self.file(file).to_string_lossy().into_owned();
        let mut wrapped = vec![self.program(), "witness".into(), "capture".into(), target];
        wrapped.extend_from_slice(argv);
        self.run(&wrapped, env).await
    }

    /// The weakest sandbox in which a command of this run was started.
    pub(super) fn sandbox(&self) -> Option<SandboxReport> {
        let processes = self.processes.lock();
        processes
            .sandbox
            .clone()
            .filter(|report| report.level != SandboxLevel::None)
    }

    /// Explains failures in this output that the sandbox may have caused.
    pub(super) fn refusals(&self, output: &str) -> Option<String> {
        explain_refusals(&self.sandbox()?, output)
    }

    /// Remarks about the processes, for the reader.
    pub(super) fn notes(&self) -> Vec<String> {
        let state = self.processes.lock();
        let mut notes = Vec::new();
        if state.leaked > 0 {
            let processes = if state.leaked == 1 {
                "1 process"
            } else {
                &format!("{} processes", state.leaked)
            };
            notes.push(format!(
                "{processes} outlived the tests and had to be ended"
            ));
        }
        if state.group_only {
            notes.push(String::from(
                "on this system only the process group is ended; what left it may still run",
            ));
        }
        notes
    }

    /// The outcome of a command that did not exit by itself or could not be started; `None` if it exited normally.
    pub(super) fn abnormal_outcome(
        &self,
        finished: &FinishedProcess,
        program: &str,
    ) -> Option<Outcome> {
        let root = self.root();
        let lacks_node_modules = root.join("package.json").is_file()
            && !root
                .ancestors()
                .any(|dir| dir.join("node_modules").is_dir());
        let fix = if lacks_node_modules {
            String::from("install the project's packages first, there is no `node_modules`,")
        } else {
            format!("install `{program}`")
        };
        let missing = |why: String| Outcome::CouldNotRun {
            why,
            remedy: format!("{fix} or name another command as `test_cmd`"),
        };
        match &finished.end {
            End::Exited(127) => Some(missing(not_found(finished, program))),
            End::Exited(126) => Some(missing(format!("`{program}` may not be executed"))),
            End::Exited(_) => None,
            End::Signalled(signal) => Some(Outcome::Killed { signal: *signal }),
            End::TimedOut => Some(Outcome::TimedOut {
                limit_s: self.environment.limit.as_secs(),
            }),
            End::Cancelled => Some(Outcome::Cancelled),
            End::CouldNotStart(StartError::NoDirectory(dir)) => Some(Outcome::CouldNotRun {
                why: format!("`{dir}` is not a directory that a program can be started in"),
                remedy: String::from("name an existing project"),
            }),
            End::CouldNotStart(StartError::NotFound(name)) => {
                Some(missing(format!("`{name}` was not found on the PATH")))
            }
            End::CouldNotStart(error) => Some(missing(error.to_string())),
        }
    }
}

impl RunnerResult {
    /// A result without any test.
    pub(super) fn without_tests(outcome: Outcome, finished: &FinishedProcess) -> Self {
        Self {
            outcome,
            tests: Tests::Named(BTreeMap::new()),
            exit_code: exit_code(finished),
            output: output_of(finished),
            notes: Vec::new(),
        }
    }

    /// Nothing was run, for the reason given by `outcome`.
    pub(super) fn not_run(outcome: Outcome) -> Self {
        Self {
            outcome,
            tests: Tests::Named(BTreeMap::new()),
            exit_code: None,
            output: String::new(),
            notes: Vec::new(),
        }
    }

    /// Nothing could be run, because there is no directory for the report.
    pub(super) fn no_report_dir(error: &std::io::Error) -> Self {
        Self {
            outcome: Outcome::CouldNotRun {
                why: format!("no private directory for the report: {error}"),
                remedy: String::from("make the temporary directory (TMPDIR) writable"),
            },
            tests: Tests::Unknown,
            exit_code: None,
            output: String::new(),
            notes: Vec::new(),
        }
    }
}

/// The outcome of a run, from its report and its exit code. This is the only place where a run becomes green.
pub(super) fn decide_outcome(
    tests: &BTreeMap<TestName, TestState>,
    exit_code: Option<i32>,
) -> Outcome {
    let failed = tests
        .values()
        .filter(|s| matches!(s, TestState::Failed(_)))
        .count();
    let passed = tests
        .values()
        .filter(|s| matches!(s, TestState::Passed))
        .count();
    match exit_code {
        Some(0) if failed > 0 => Outcome::Unclear {
            why: format!(
                "the exit code is 0, but the report names {}",
                words::count(failed, "failed test")
            ),
        },
        Some(0) if passed == 0 => Outcome::NoTests,
        Some(0) => Outcome::Passed,
        _ if failed > 0 => Outcome::Failed,
        Some(code) => Outcome::Unclear {
            why: format!(
                "the exit code is {code}, but the report names no failed test ({passed} passed)"
            ),
        },
        None => Outcome::Unclear {
            why: String::from("the command did not end by itself"),
        },
    }
}

pub(super) fn exit_code(finished: &FinishedProcess) -> Option<i32> {
    match finished.end {
        End::Exited(code) => Some(code),
        _ => None,
    }
}

pub(super) fn output_of(finished: &FinishedProcess) -> String {
    let (out, err) = (finished.stdout.text(), finished.stderr.text());
    join_output([out.as_ref(), err.as_ref()])
}

/// Joins several streams into one text of limited length.
pub(super) fn join_output<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let text = parts
        .into_iter()
        .map(str::trim_end)
        .filter(|p| !p.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    words::cut_middle(&text, MAX_OUTPUT_BYTES).into_owned()
}

pub(super) fn read_report(path: &Path) -> Option<String> {
    let meta = std::fs::symlink_metadata(path)
        .ok()
        .filter(|m| m.is_file() && m.len() <= MAX_REPORT_BYTES)?;
    let bytes = std::fs::read(path)
        .ok()
        .filter(|b| b.len() as u64 >= meta.len())?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn not_found(finished: &FinishedProcess, program: &str) -> String {
    let stderr = finished.stderr.text();
    match stderr.lines().map(str::trim).rfind(|l| !l.is_empty()) {
        Some(line) => format!(
            "a command was not found: {}",
            words::cut_end(&words::plain(line), 300)
        ),
        None => format!("`{program}` was not found"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(states: &[TestState]) -> BTreeMap<TestName, TestState> {
        states
            .iter()
            .enumerate()
            .map(|(i, s)| (TestName(i.to_string()), s.clone()))
            .collect()
    }

    #[test]
    fn green_needs_clean_exit_and_passing_report() {
        let failed = TestState::Failed(String::new());
        for (states, code, green) in [
            (vec![TestState::Passed], Some(0), true),
            (vec![TestState::Passed, TestState::Skipped], Some(0), true),
            (vec![TestState::Passed], Some(1), false),
            (vec![TestState::Passed], None, false),
            (vec![TestState::Passed, failed.clone()], Some(0), false),
            (vec![TestState::Passed, failed], Some(1), false),
            (vec![TestState::Skipped], Some(0), false),
            (vec![], Some(0), false),
            (vec![], Some(5), false),
        ] {
            assert_eq!(
                decide_outcome(&tests(&states), code).is_passed(),
                green,
                "{states:?} {code:?}"
            );
        }
    }
}
