//! Helper processes: a test starts this test program again, with itself as the only test and a variable that tells it to
//! play a role instead.

use std::process::{Command, Stdio};

pub(crate) const VARIABLE: &str = "SUPERVISOR_TEST_ROLE";

/// This test program, running only that test, in its role.
pub(crate) fn command(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture"])
        .env(VARIABLE, test)
        .stdin(Stdio::null());
    command
}

/// True in the process that [`command`] started for this test.
pub(crate) fn is_asked_of(test: &str) -> bool {
    std::env::var_os(VARIABLE).is_some_and(|role| role == test)
}
