//! Supervision of a multi-agent team: its message bus, the folder of its session, checkpoints over
//! the files it wrote, and the reports about them. Checks are decided by code where possible;
//! questions that only a model can answer are returned to the caller. Writes nothing but reports,
//! their sidecars, wisdom and the bus.

pub mod artifact_hashes;
pub mod bus;
pub mod check;
pub mod checks;
pub mod crash_points;
pub mod definition;
pub mod document;
pub mod message;
pub mod observer;
pub mod plan;
pub mod report;
pub mod report_format;
pub mod request;
pub mod role_spec;
mod scope;
pub mod session_file;
pub mod sidecar;
pub mod team_dirs;
pub mod terms;
pub mod verdict;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
