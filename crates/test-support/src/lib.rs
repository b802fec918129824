//! What the tests of several crates share. Only ever a dev-dependency.
//!
//! Linking this crate makes a test program its own shim: commands that it starts through
//! `Launcher::this_program()` run below a copy of the test program, which must act as the shim before the test
//! harness sees its arguments. A constructor that runs before `main` does that.

use std::process::ExitCode;

#[ctor::ctor(unsafe)]
fn act_as_helper_process() {
    let code = supervisor_workspace::run_if_shim()
        .or_else(supervisor_verify::test_wrapper::run_if_witness);
    if let Some(code) = code {
        std::process::exit(number_of(code));
    }
}

/// `ExitCode::exit_process` is not stable yet.
fn number_of(code: ExitCode) -> i32 {
    (0..=255u8)
        .find(|n| ExitCode::from(*n) == code)
        .map_or(255, i32::from)
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
