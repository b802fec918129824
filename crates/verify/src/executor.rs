//! Where a suite runs: on this machine, or on another one that has no access to the project.

use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio_util::sync::CancellationToken;

use super::outcome::TestRun;
use super::session::RunEnvironment;
use super::suite::Suite;

/// Runs suites. Never fails: every problem is reported as an outcome.
pub trait SuiteExecutor: fmt::Debug + Send + Sync {
    fn run<'a>(
        &'a self,
        suite: &'a Suite,
        environment: &'a RunEnvironment,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, TestRun>;
}

/// Runs suites on this machine.
#[derive(Debug)]
pub struct LocalExecutor;

impl SuiteExecutor for LocalExecutor {
    fn run<'a>(
        &'a self,
        suite: &'a Suite,
        environment: &'a RunEnvironment,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, TestRun> {
        suite.run_here(environment, stop).boxed()
    }
}

/// How the suites of one environment are executed. The default is on this machine.
#[derive(Debug, Clone)]
pub struct Execution {
    pub executor: Arc<dyn SuiteExecutor>,
    /// The run repeats another one to see whether the result differs, so it must not come from a cache.
    pub is_repetition: bool,
}

impl Execution {
    pub fn with(executor: Arc<dyn SuiteExecutor>) -> Self {
        Self {
            executor,
            is_repetition: false,
        }
    }
}

impl Default for Execution {
    fn default() -> Self {
        Self::with(Arc::new(LocalExecutor))
    }
}

impl RunEnvironment {
    /// The same environment for a run that repeats another one.
    #[must_use]
    pub fn for_repetition(&self) -> Self {
        let mut environment = self.clone();
        environment.execution.is_repetition = true;
        environment
    }
}
