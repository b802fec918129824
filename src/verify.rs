//! Did it work? The only module that may say yes: it runs the project's own tests and believes what it saw.
//! Knows runners, their reports and how they can be deceived. Does not know who wrote the code, nor why.
//!
//! [`detect`] finds the [`Suite`] of a project, [`Suite::run`] answers with a [`TestRun`]. Standard output is never
//! evidence, since the code under test can write there too: results come from a report at a path nobody could know
//! beforehand, and must agree with the exit code.

mod build;
mod command;
mod outcome;
mod report;
pub mod runners;
mod session;
mod suite;
pub mod witness;

pub use build::{Blame, BuildError, blame};
pub use outcome::{Outcome, State, TestName, TestRun, Tests};
pub use session::Bench;
pub use suite::{Alternative, DetectError, Ecosystem, Suite, detect};
