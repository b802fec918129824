//! Did it work? The only module that may say yes: it runs the project's own tests and believes what it saw.
//! Knows runners, their reports and how they can be deceived. Does not know who wrote the code, nor why.
//!
//! [`detect`] finds the [`Suite`] of a project, [`Suite::run`] answers with a [`TestRun`]. Standard output is never
//! evidence, since the code under test can write there too: results come from a report at a path that code could not
//! know beforehand, and must agree with the exit code.

pub mod awareness;
mod baseline;
mod build;
mod command;
mod dependencies;
mod detect;
pub mod falsify;
mod flags;
#[doc(hidden)]
pub mod fuzz;
#[cfg(test)]
mod garbage;
mod junit;
mod lab;
mod memo;
mod network;
mod outcome;
mod proof;
mod recheck;
mod regions;
mod report;
mod repro;
pub mod runners;
mod scripts;
pub mod sealed;
mod session;
mod settle;
mod signature;
mod step;
mod steps;
mod suite;
mod tap;
mod titles;
pub mod witness;

pub use baseline::{Baseline, BaselineOrigin, compare};
pub use build::{BuildBlame, BuildError, blame};
pub use dependencies::{DependencyFile, dependency_file};
pub use detect::{DetectRequest, detect};
pub use flags::{Flag, Flags, TWIN_FLAG};
pub use lab::TestLab;
pub use memo::{KnownOutcome, Memo, OutcomeKey};
pub use network::run_first;
pub use outcome::{Outcome, TestName, TestRun, TestState, Tests, counted_as_written};
pub use proof::{Check, Proof, Refusal};
pub use recheck::Recheck;
pub use regions::{SameTests, rust_regions, same_tests};
pub use repro::{Repro, ReproCommand, ReproOutcome};
pub use session::{Bench, TestWalls};
pub use settle::{SettledRun, run_settled};
pub use signature::Signature;
pub use suite::{Alternative, Suite};
