//! Describes a program to run: arguments, directory, environment, input and limits.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::{CaptureLimits, Confinement, LineSink, ProjectGuard};

/// The stdin of a program.
#[derive(Debug, Clone, Default)]
pub enum Stdin {
    #[default]
    Null,
    /// Written, then closed.
    Bytes(Vec<u8>),
}

/// A program to run. The environment is complete: nothing else is inherited except the tag of the
/// tree.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    pub argv: Vec<OsString>,
    pub cwd: PathBuf,
    pub env: BTreeMap<OsString, OsString>,
    pub stdin: Stdin,
    pub limit: Duration,
    /// Time between interrupt and kill.
    pub grace: Duration,
    /// How much of each stream to keep.
    pub capture: CaptureLimits,
    /// Receives the lines of stdout while the program runs.
    pub on_line: Option<LineSink>,
    /// Set when the program works in a project with an active snapshot.
    pub guard: Option<ProjectGuard>,
    /// The sandbox; `None` runs the program without one.
    pub confine: Option<Confinement>,
}

impl CommandSpec {
    /// Creates a spec with an empty environment, no input, a limit of ten minutes and a grace
    /// period of two seconds.
    pub fn new<A: Into<OsString>>(
        argv: impl IntoIterator<Item = A>,
        cwd: impl Into<PathBuf>,
    ) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: cwd.into(),
            env: BTreeMap::new(),
            stdin: Stdin::Null,
            limit: Duration::from_secs(600),
            grace: Duration::from_secs(2),
            capture: CaptureLimits::default(),
            on_line: None,
            guard: None,
            confine: None,
        }
    }

    /// Returns the program's name for messages.
    pub(super) fn program(&self) -> String {
        self.argv
            .first()
            .map(|p| p.to_string_lossy().into_owned())
            .unwrap_or_default()
    }
}
