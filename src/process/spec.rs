//! What to run: argv, directory, environment, input, limits.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What the program reads.
#[derive(Debug, Clone, Default)]
pub enum Stdin {
    #[default]
    Null,
    /// Written and then closed.
    Bytes(Vec<u8>),
}

/// One program to run. The environment is complete: nothing is inherited beside it.
#[derive(Debug, Clone)]
pub struct Spec {
    pub argv: Vec<OsString>,
    pub cwd: PathBuf,
    pub env: BTreeMap<OsString, OsString>,
    pub stdin: Stdin,
    pub limit: Duration,
    /// Between the interrupt and the kill.
    pub grace: Duration,
}

impl Spec {
    /// A program with an empty environment, nothing to read, ten minutes and two seconds of grace.
    pub fn new<A: Into<OsString>>(argv: impl IntoIterator<Item = A>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: cwd.into(),
            env: BTreeMap::new(),
            stdin: Stdin::Null,
            limit: Duration::from_secs(600),
            grace: Duration::from_secs(2),
        }
    }
}
