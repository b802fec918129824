//! What cannot be tested on this machine is said aloud, past the capture of the test harness.
//! With `SUPERVISOR_TEST_NO_SKIP=1`, where everything should be there, it is a failure.

use std::io::Write as _;

pub(crate) fn skip(what: &str) {
    assert!(std::env::var_os("SUPERVISOR_TEST_NO_SKIP").is_none_or(|v| v != "1"), "would be skipped: {what}");
    // Not `eprintln!`, which is kept back for tests that pass.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}
