//! What client and runner say to each other: a request in the input tree, a report among the output files.
//!
//! The command of an Action is this program itself, with the sub-command `run-suite`. It runs the suite on the worker and
//! writes what a local run would return. Reports of test runners stay at paths on the worker that nobody can predict, and
//! a suite of several commands is one Action.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use supervisor_process::{NetworkReach, SandboxReport};
use supervisor_verify::{Suite, TestRun};

/// The hidden sub-command.
pub(crate) const COMMAND: &str = "run-suite";
/// The program as the Action names it. `supervisor worker` starts itself instead; other workers have it on their PATH.
pub(crate) const PROGRAM: &str = "supervisor";
pub(crate) const REQUEST_FILE: &str = "request.json";
pub(crate) const REPORT_FILE: &str = "report.json";
/// The project, in the input root.
pub(crate) const PROJECT_DIR: &str = "project";
/// Changes with every incompatible change of what is below. Runners of another version refuse.
const FORMAT: u32 = 1;

/// Exit code of the runner if the suite passed, and if it ran and did not pass. Every other code means that there is no
/// result.
pub(crate) const EXIT_PASSED: i32 = 0;
pub(crate) const EXIT_NOT_PASSED: i32 = 1;

/// The version that request and report must have.
pub(crate) fn version() -> String {
    format!("{} {FORMAT}", env!("CARGO_PKG_VERSION"))
}

/// A suite to run, and how.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SuiteRequest {
    pub(crate) version: String,
    pub(crate) suite: Suite,
    /// Where the project is on the client's machine.
    pub(crate) root: PathBuf,
    /// Whether the suite depends on that path, as virtual environments do.
    pub(crate) needs_root: bool,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) limit_s: u64,
    pub(crate) network: Option<NetworkReach>,
    /// Links to make in the project, with absolute targets.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
}

/// What a run returned.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SuiteReport {
    pub(crate) version: String,
    pub(crate) run: TestRun,
    /// The weakest sandbox that the tests had.
    pub(crate) sandbox: Option<SandboxReport>,
    /// Whether the project was at its own path.
    pub(crate) at_root: bool,
}
