//! Runs test suites as Actions of the Remote Execution API, and the worker that executes them.
//!
//! [`RemoteExecutor`] sends the files of a project to an engine and has the suite run there; [`work`] is a worker for
//! BuildGrid. Both ends of a run are this program: the Action's command is [`run_if_suite_runner`].

mod action;
mod connection;
mod digest;
mod error;
mod executor;
mod hashes;
mod inputs;
mod runner;
mod storage;
mod suite_run;
mod tree;
mod worker;

pub use connection::EngineAddress;
pub use error::RemoteError;
pub use executor::{RemoteConfig, RemoteExecutor, RemoteMode};
pub use runner::run_if_suite_runner;
pub use worker::{WorkerConfig, work};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
