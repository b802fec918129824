//! One run in the making: where it runs, until when, and a private place for the runner's report.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::outcome::{Outcome, TestName, TestState, Tests};
use super::step::SuiteStep;
use supervisor_process::{
    ChildKind, Confinement, Containment, End, FinishedProcess, Guard, Launcher, NetworkReach,
    SandboxLevel, SandboxReport, Scratch, Spec, StartError, explain_refusals,
};
use supervisor_text::words;

/// Kept of what a run wrote; the whole of it is of no use to a reader.
const OUTPUT: usize = 64 * 1024;
/// Kept of what one failing test said.
pub(super) const MESSAGE: usize = 2_000;
/// A report larger than this is not read.
const REPORT: u64 = 256 * 1024 * 1024;

/// What a run needs from outside: how to start programs, with which environment, and for how long.
#[derive(Debug, Clone)]
pub struct Bench {
    pub launcher: Launcher,
    /// Complete: nothing is inherited beside it.
    pub env: BTreeMap<OsString, OsString>,
    /// For the whole run, builds included.
    pub limit: Duration,
    /// Set when the project is armed: the tests are part of what must end before a restore.
    pub guard: Option<Guard>,
    pub walls: TestWalls,
}

/// What the walls around test commands are told besides the settings.
#[derive(Debug, Clone, Default)]
pub struct TestWalls {
    /// How far the network reaches, once the first run has shown what the tests need.
    pub network: Option<NetworkReach>,
    /// The commands find no repository, where walls can hide it.
    pub hides_git: bool,
    /// The file on the left stands at the absolute path on the right, for the commands alone.
    pub replaced: Vec<(PathBuf, PathBuf)>,
}

/// A bench during one run.
pub(super) struct Session<'a> {
    bench: &'a Bench,
    stop: &'a CancellationToken,
    root: &'a Path,
    /// What the command finds around it, beside the environment of the bench.
    around: Vec<(OsString, OsString)>,
    began: Instant,
    scratch: Scratch,
    /// What the processes left behind, told in the end.
    left: Mutex<RunRemains>,
}

#[derive(Debug, Default)]
struct RunRemains {
    leaked: usize,
    group_only: bool,
    sandbox: Option<SandboxReport>,
}

/// What a runner makes of a run.
#[derive(Debug)]
pub(super) struct Judgement {
    pub(super) outcome: Outcome,
    pub(super) tests: Tests,
    pub(super) exit_code: Option<i32>,
    pub(super) output: String,
    pub(super) notes: Vec<String>,
}

impl<'a> Session<'a> {
    /// A command of a suite whose first one began at `began`: the limit is for all of them.
    pub(super) fn begin(
        bench: &'a Bench,
        step: &'a SuiteStep,
        began: Instant,
        stop: &'a CancellationToken,
    ) -> std::io::Result<Self> {
        let around = step
            .surroundings
            .variables(bench.env.get(std::ffi::OsStr::new("PATH")));
        Self::at(bench, &step.dir, around, began, stop)
    }

    /// A command that is no part of a suite.
    pub(super) fn alone(
        bench: &'a Bench,
        root: &'a Path,
        stop: &'a CancellationToken,
    ) -> std::io::Result<Self> {
        Self::at(bench, root, Vec::new(), Instant::now(), stop)
    }

    fn at(
        bench: &'a Bench,
        root: &'a Path,
        around: Vec<(OsString, OsString)>,
        began: Instant,
        stop: &'a CancellationToken,
    ) -> std::io::Result<Self> {
        // The name is the secret: what is being tested cannot write a report to a place it does not know.
        let scratch = Scratch::new("")?;
        Ok(Self {
            bench,
            stop,
            root,
            around,
            began,
            scratch,
            left: Mutex::default(),
        })
    }

    /// Where the commands run, as they name it themselves.
    pub(super) fn root(&self) -> &Path {
        self.root
    }

    /// Where this process reads the files that the commands see and write there: in a private view they are not in the
    /// project.
    pub(super) fn files(&self) -> PathBuf {
        let project = self
            .bench
            .guard
            .as_ref()
            .and_then(|guard| guard.project.as_ref());
        let in_view = project.and_then(|project| {
            let below = self.root.strip_prefix(&project.root).ok()?;
            Some(project.view_files.as_ref()?.join(below))
        });
        in_view.unwrap_or_else(|| self.root.to_owned())
    }

    /// What a variable says in the environment of this run.
    pub(super) fn variable(&self, name: &str) -> Option<&OsString> {
        let set = self
            .around
            .iter()
            .rfind(|(known, _)| known == name)
            .map(|(_, value)| value);
        set.or_else(|| self.bench.env.get(std::ffi::OsStr::new(name)))
    }

    /// A private path for this run.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(super) fn program(&self) -> String {
        self.bench.launcher.program().to_string_lossy().into_owned()
    }

    /// What the runner wrote to a private path; `None` if there is nothing to read.
    pub(super) fn report(&self, name: &str) -> Option<String> {
        read_report(&self.file(name))
    }

    pub(super) async fn run(&self, argv: &[String], env: &[(&str, String)]) -> FinishedProcess {
        let mut spec = Spec::new(argv.iter().map(OsString::from), self.root);
        spec.env = self.bench.env.clone();
        spec.env.extend(self.around.iter().cloned());
        spec.env.extend(
            env.iter()
                .map(|(k, v)| (OsString::from(k), OsString::from(v))),
        );
        spec.limit = self.bench.limit.saturating_sub(self.began.elapsed());
        spec.guard.clone_from(&self.bench.guard);
        spec.confine = Some(Confinement {
            write: vec![self.scratch.path().to_owned()],
            hides_git: self.bench.walls.hides_git,
            replaced: self.bench.walls.replaced.clone(),
            network: self.bench.walls.network,
            ..Confinement::new(ChildKind::Tests)
        });
        let finished = self.bench.launcher.run(spec, self.stop).await;
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.leaked += finished.leaked;
        left.group_only |= finished.containment == Containment::Group;
        let seen = finished.sandbox.clone();
        left.sandbox = Some(
            left.sandbox
                .take()
                .map_or(seen.clone(), |known| known.weaker(seen)),
        );
        drop(left);
        finished
    }

    /// As [`Self::run`], with standard output in a private file: whole, where the capture keeps only head and tail.
    pub(super) async fn run_into(
        &self,
        file: &str,
        argv: &[String],
        env: &[(&str, String)],
    ) -> FinishedProcess {
        let into = self.file(file).to_string_lossy().into_owned();
        let mut whole = vec![self.program(), "witness".into(), "capture".into(), into];
        whole.extend_from_slice(argv);
        self.run(&whole, env).await
    }

    /// The weakest walls that stood around a command of this run.
    pub(super) fn sandbox(&self) -> Option<SandboxReport> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.sandbox
            .clone()
            .filter(|report| report.level != SandboxLevel::None)
    }

    /// What in this output the walls may be to blame for.
    pub(super) fn refusals(&self, output: &str) -> Option<String> {
        explain_refusals(&self.sandbox()?, output)
    }

    /// What a reader should know about the processes.
    pub(super) fn notes(&self) -> Vec<String> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notes = Vec::new();
        if left.leaked > 0 {
            let processes = if left.leaked == 1 {
                "1 process"
            } else {
                &format!("{} processes", left.leaked)
            };
            notes.push(format!(
                "{processes} outlived the tests and had to be ended"
            ));
        }
        if left.group_only {
            notes.push(String::from(
                "on this system only the process group is ended; what left it may still run",
            ));
        }
        notes
    }

    /// The outcome of a command that did not end by itself, or was not there.
    pub(super) fn cut_short(&self, finished: &FinishedProcess, program: &str) -> Option<Outcome> {
        let root = self.root();
        let is_bare = root.join("package.json").is_file()
            && !root
                .ancestors()
                .any(|dir| dir.join("node_modules").is_dir());
        let first = if is_bare {
            String::from("install the project's packages first, there is no `node_modules`,")
        } else {
            format!("install `{program}`")
        };
        let missing = |why: String| Outcome::CouldNotRun {
            why,
            remedy: format!("{first} or name another command as `test_cmd`"),
        };
        match &finished.end {
            End::Exited(127) => Some(missing(not_found(finished, program))),
            End::Exited(126) => Some(missing(format!("`{program}` may not be executed"))),
            End::Exited(_) => None,
            End::Signalled(signal) => Some(Outcome::Killed { signal: *signal }),
            End::TimedOut => Some(Outcome::TimedOut {
                limit_s: self.bench.limit.as_secs(),
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

impl Judgement {
    /// No test result is known.
    pub(super) fn without_tests(outcome: Outcome, finished: &FinishedProcess) -> Self {
        Self {
            outcome,
            tests: Tests::Named(BTreeMap::new()),
            exit_code: exit_code(finished),
            output: output_of(finished),
            notes: Vec::new(),
        }
    }

    /// Nothing was run, and this is why.
    pub(super) fn not_run(outcome: Outcome) -> Self {
        Self {
            outcome,
            tests: Tests::Named(BTreeMap::new()),
            exit_code: None,
            output: String::new(),
            notes: Vec::new(),
        }
    }

    /// Nothing could be run, because there is no place for the report.
    pub(super) fn no_place(error: &std::io::Error) -> Self {
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

/// The one place where a run becomes green.
pub(super) fn agree(tests: &BTreeMap<TestName, TestState>, exit_code: Option<i32>) -> Outcome {
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

/// Several streams as one bounded text.
pub(super) fn join_output<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let text = parts
        .into_iter()
        .map(str::trim_end)
        .filter(|p| !p.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    words::cut_middle(&text, OUTPUT).into_owned()
}

pub(super) fn read_report(path: &Path) -> Option<String> {
    let meta = std::fs::symlink_metadata(path)
        .ok()
        .filter(|m| m.is_file() && m.len() <= REPORT)?;
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
    fn only_a_clean_exit_with_a_passed_test_and_no_failed_one_is_green() {
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
                agree(&tests(&states), code).is_passed(),
                green,
                "{states:?} {code:?}"
            );
        }
    }
}
