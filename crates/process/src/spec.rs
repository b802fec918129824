//! What to run: argv, directory, environment, input, limits.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::{CaptureLimits, Confinement, Guard, LineSink};

/// What the program reads.
#[derive(Debug, Clone, Default)]
pub enum Stdin {
    #[default]
    Null,
    /// Written and then closed.
    Bytes(Vec<u8>),
}

/// One program to run. The environment is complete: nothing is inherited beside it but the tree's tag.
#[derive(Debug, Clone)]
pub struct Spec {
    pub argv: Vec<OsString>,
    pub cwd: PathBuf,
    pub env: BTreeMap<OsString, OsString>,
    pub stdin: Stdin,
    pub limit: Duration,
    /// Between the interrupt and the kill, for a program that does not heed the interrupt.
    pub grace: Duration,
    /// How much of each stream is kept.
    pub capture: CaptureLimits,
    /// Gets the lines of stdout as they appear.
    pub on_line: Option<LineSink>,
    /// Set when the program works in an armed project.
    pub guard: Option<Guard>,
    /// The walls around it; without one of these it runs free.
    pub confine: Option<Confinement>,
}

impl Spec {
    /// A program with an empty environment, nothing to read, ten minutes and two seconds of grace.
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

    /// The name for messages.
    pub(super) fn program(&self) -> String {
        self.argv
            .first()
            .map(|p| p.to_string_lossy().into_owned())
            .unwrap_or_default()
    }
}
