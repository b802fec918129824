//! Measures models: tasks with hidden tests, results of running them through the real engine, a
//! record per model, and simulations of policies over these records.

mod check_task;
pub mod contradiction;
pub mod exercism;
pub mod mutant;
pub mod passport;
pub mod results;
pub mod score;
pub mod simulate;
pub mod task;
pub mod task_set;
pub mod verifier;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
