//! Starts a program with everything it may start, watches it, and ends the whole tree.
//! Knows argv, environments, pipes and signals. Does not know why a program is run.

mod capture;
mod plain;
mod spec;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use capture::Captured;
pub use spec::{Spec, Stdin};

/// Starts programs. In the running server the shim is this very program; tests name the built one.
#[derive(Debug, Clone)]
pub struct Launcher {
    shim: std::path::PathBuf,
}

impl Launcher {
    /// This program is its own shim. `/proc/self/exe` stays right when the file is replaced or deleted meanwhile.
    pub fn this_program() -> Self {
        Self { shim: "/proc/self/exe".into() }
    }

    /// Another program knows the shim's sub-command.
    pub fn at(shim: impl Into<std::path::PathBuf>) -> Self {
        Self { shim: shim.into() }
    }

    /// Runs a program to its end, its limit or the stop token, whichever comes first; then nothing of it is left.
    pub async fn run(&self, spec: Spec, stop: &CancellationToken) -> Finished {
        plain::run(spec, stop).await
    }
}

/// How a program ended. A time-out is an answer, not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    Cancelled,
    CouldNotStart(StartError),
}

/// Why a program could not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error("`{0}` was not found on the PATH")]
    NotFound(String),
    #[error("`{0}` may not be executed")]
    NotExecutable(String),
    #[error("`{0}` is not a directory that a program can be started in")]
    NoDirectory(String),
    #[error("`{program}` could not be started: {why}")]
    Other { program: String, why: String },
}

/// Everything seen of one run.
#[derive(Debug)]
pub struct Finished {
    pub end: End,
    pub stdout: Captured,
    pub stderr: Captured,
    pub took: Duration,
    /// Processes that were still there when the leader had ended, and were ended by us.
    pub leaked: usize,
    /// How firmly the tree was held.
    pub containment: Containment,
}

/// How firmly a tree can be held on this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// Every descendant, also those that left the session (Linux).
    Tree,
    /// The process group only; what calls `setsid` escapes.
    Group,
}
