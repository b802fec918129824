//! The `supervisor` program: argument parsing and one file per command. Everything else is in `crates/`.

pub mod built_in;
mod commands;

/// Runs the program: arguments in, exit code out.
pub use commands::main;

/// For the tests of this package.
#[doc(hidden)]
pub use commands::{doctor, serve};
