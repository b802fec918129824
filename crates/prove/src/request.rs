//! What to prove, and why there may be no verdict.

use std::path::Path;
use std::time::Duration;

use supervisor_process::{Launcher, SandboxMode, SandboxRules};
use supervisor_verify::{DetectRequest, Execution, RunEnvironment, Suite, TestSandbox};
use supervisor_workspace::state::StateDir;
use tokio::time::Instant;

use crate::change::{ChangeError, Comparand};
use crate::project_copy::CopyError;

/// Of one test run, unless the request says otherwise.
const DEFAULT_LIMIT: Duration = Duration::from_secs(600);

/// What to prove, and with what.
pub struct ProveRequest<'a> {
    pub root: &'a Path,
    /// A commit, such as `HEAD`.
    pub base: &'a str,
    pub comparand: Comparand,
    /// The test command, if the detected one is not right.
    pub test_cmd: Option<&'a str>,
    pub test_report: Option<&'a str>,
    /// Tests or test files that the user allows to be deleted, skipped or changed.
    pub allow_test_change: &'a [String],
    /// Names of tests or test files that must prove the change: each must fail without it.
    pub tests: &'a [String],
    /// Commands such as linters: clean on the base, they must be clean with the change.
    pub checks: &'a [String],
    /// Skip the base where nothing fails with the change and no existing test was edited.
    pub fast: bool,
    /// Run mutants of the changed lines.
    pub mutants: MutantMode,
    /// When to stop. What was not checked until then is a gap of the report.
    pub deadline: Option<Instant>,
    /// How tests are run; its `guard` is not used.
    pub environment: RunEnvironment,
    /// Where locks, snapshots and baselines are kept.
    pub state: &'a StateDir,
    /// Called before each step.
    pub on_step: &'a (dyn Fn(&str) + Sync),
}

impl<'a> ProveRequest<'a> {
    /// The uncommitted change of a project, with the detected test command, this program's environment and a sandbox where
    /// the system has one.
    pub fn new(root: &'a Path, state: &'a StateDir) -> Self {
        let rules = SandboxRules {
            mode: SandboxMode::Auto,
            ..SandboxRules::default()
        };
        Self {
            root,
            base: "HEAD",
            comparand: Comparand::WorkingTree,
            test_cmd: None,
            test_report: None,
            allow_test_change: &[],
            tests: &[],
            checks: &[],
            fast: false,
            mutants: MutantMode::default(),
            deadline: None,
            environment: RunEnvironment {
                launcher: Launcher::this_program().with_rules(rules),
                env: std::env::vars_os().collect(),
                limit: DEFAULT_LIMIT,
                guard: None,
                sandbox: TestSandbox::default(),
                execution: Execution::default(),
            },
            state,
            on_step: &|_| {},
        }
    }

    pub(crate) fn detect(&self) -> Result<Suite, ProveError> {
        let detect = DetectRequest {
            root: self.root,
            near: None,
            test_cmd: self.test_cmd,
            test_report: self.test_report,
            path: None,
        };
        detect
            .detect()
            .map_err(|error| ProveError::NoSuite(error.to_string()))
    }
}

/// When mutants of the changed lines run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MutantMode {
    Never,
    /// Only where nothing else can prove the change: code without a test that fails on the base.
    #[default]
    IfNeeded,
    /// Always, within this time; by default three times what the tests take, at least 30 s.
    Always(Option<Duration>),
}

/// Why there is no verdict. The project is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    #[error(transparent)]
    Change(#[from] ChangeError),
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error("{0}")]
    NoSuite(String),
    #[error("the tests say nothing about {state}: {reason}")]
    Inconclusive { state: &'static str, reason: String },
    #[error(
        "`{command}` fails with and without the change and names no tests, so it says nothing about the change; \
         make it pass on the base, or name another command with --test-cmd. It printed:\n{output}"
    )]
    FailsAnyway { command: String, output: String },
    #[error("Cancelled. Your files are as they were.")]
    Cancelled,
}
