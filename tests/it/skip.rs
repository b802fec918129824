//! What cannot be tested on this machine is said aloud, past the capture of the test harness.
//! With `SUPERVISOR_TEST_NO_SKIP=1`, where everything should be there, it is a failure.

use std::io::Write as _;
use std::process::{Command, Stdio};

pub(crate) fn skip(what: &str) {
    assert!(std::env::var_os("SUPERVISOR_TEST_NO_SKIP").is_none_or(|v| v != "1"), "would be skipped: {what}");
    // Not `eprintln!`, which is kept back for tests that pass.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

/// True, and said aloud, if there is no such program on the PATH.
pub(crate) fn is_missing(program: &str) -> bool {
    if Command::new(program).arg("--version").stdin(Stdio::null()).output().is_ok() {
        return false;
    }
    skip(&format!("`{program}` is missing"));
    true
}
