//! Suites on an engine: a fake one that misbehaves, with the generated server traits and the real worker.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says where it failed"
)]

use std::process::ExitCode;

mod bots;
mod engine;
mod false_greens;
mod setup;
mod trouble;

/// The worker starts this program as the runner of a suite.
fn act_as_runner() {
    if let Some(code) = supervisor_remote::run_if_suite_runner() {
        // `ExitCode::exit_process` is not stable yet.
        let number = (0..=255_u8).find(|n| ExitCode::from(*n) == code);
        std::process::exit(number.map_or(255, i32::from));
    }
}

supervisor_test_support::before_tests!(act_as_runner);
