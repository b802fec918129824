//! Runs the project's own tests and decides whether a change works. Only this module can create a [`Proof`].
//!
//! [`detect`] finds the [`Suite`] of a project and [`Suite::run`] returns a [`TestRun`]. Standard output is never
//! evidence, because the code under test can write there too. Results come from a report at a path that this code
//! cannot predict, and they must agree with the exit code.

mod baseline;
mod build;
pub mod caches;
mod command;
mod compare;
mod dependencies;
mod detect;
mod executor;
pub mod falsify;
mod flags;
#[doc(hidden)]
pub mod fuzz;
#[cfg(test)]
mod garbage;
mod junit;
mod named_test;
mod network;
mod outcome;
mod outcome_cache;
mod proof;
pub mod protected;
mod recheck;
mod report;
mod report_lines;
mod repro;
mod retry;
pub mod runners;
mod scripts;
mod session;
mod signature;
mod step;
mod steps;
mod suite;
mod tap;
pub mod test_awareness;
mod test_regions;
mod test_titles;
pub mod test_wrapper;
pub mod vacuous;
mod varying_names;

pub use baseline::{Baseline, BaselineOrigin, compare};
pub use build::{BuildBlame, BuildError, blame};
pub use compare::{CheckError, Reduction, ResultCheck, Trial};
pub use dependencies::{DependencyFile, dependency_file};
pub use detect::{DetectRequest, detect};
pub use executor::{Execution, LocalExecutor, SuiteExecutor};
pub use flags::{Flag, Flags, HIDDEN_TEST_FLAG};
pub use named_test::NamedTestRunner;
pub use network::{KnownNetwork, run_first};
pub use outcome::{Outcome, TestName, TestRun, TestState, Tests, distinct_written_tests};
pub use outcome_cache::{CachedOutcome, OutcomeCache, OutcomeKey};
pub use proof::{Check, Proof, ProofError};
pub use recheck::Recheck;
pub use repro::{Repro, ReproCommand, ReproOutcome};
pub use retry::{RetryOutcome, repeat_if_unexpected, run_with_retry};
pub use session::{RunEnvironment, TestSandbox};
pub use signature::{ErrorSignature, without_varying_parts};
pub use suite::{Alternative, DetectError, Suite};
pub use test_regions::{TestRegionComparison, rust_regions, same_tests};
pub use varying_names::VaryingNames;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
