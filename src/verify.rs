//! Did it work? The only module that may say yes: it runs the project's own tests and believes what it saw.
//! Knows runners, their reports and how they can be deceived. Does not know who wrote the code, nor why.
//!
//! [`detect`] finds the [`Suite`] of a project, [`Suite::run`] answers with a [`TestRun`]. Standard output is never
//! evidence, since the code under test can write there too: results come from a report at a path nobody could know
//! beforehand, and must agree with the exit code.

mod baseline;
mod build;
mod citations;
mod command;
pub mod findings;
#[cfg(test)]
mod garbage;
pub mod hypotheses;
mod memo;
mod outcome;
mod proof;
mod regions;
mod report;
mod repro;
pub mod runners;
pub mod scan;
pub mod sealed;
mod session;
mod settle;
mod signature;
pub mod specification;
mod suite;
mod suspicious;
pub mod witness;

pub use baseline::{Baseline, Comparison, Origin, compare};
pub use build::{Blame, BuildError, blame};
pub use citations::{BadCitation, Cited, Source, Sources};
pub use memo::{Memo, OutcomeKey};
pub use outcome::{Outcome, State, TestName, TestRun, Tests};
pub use proof::{Check, Proof, Refusal};
pub use regions::{Regions, SameTests, rust_regions, same_tests};
pub use repro::{NoCommand, Repro, ReproCommand, Showed};
pub use session::Bench;
pub use settle::{Settled, run_settled};
pub use signature::Signature;
pub use suite::{Alternative, DetectError, Ecosystem, Suite, detect};
pub use suspicious::{Added, Finding, Smell, Weight, suspicious_additions};
