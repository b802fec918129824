//! What cannot be tested on this machine is said aloud, past the capture of the test harness.
//! With `SUPERVISOR_TEST_NO_SKIP=1`, where everything should be there, it is a failure. With `0` the ecosystems that are
//! installed are tried; without the variable only Rust is.

use std::io::Write as _;
use std::process::{Command, Stdio};

pub(crate) fn skip(what: &str) {
    assert!(
        std::env::var_os("SUPERVISOR_TEST_NO_SKIP").is_none_or(|v| v != "1"),
        "would be skipped: {what}"
    );
    // Not `eprintln!`, which is kept back for tests that pass.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
    // The test's own thread bears its name. CI runs by name, with everything installed, what was skipped before.
    if let (Some(file), Some(test)) = (
        std::env::var_os("SUPERVISOR_TEST_SKIPPED"),
        std::thread::current().name(),
    ) {
        let list = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file);
        list.and_then(|mut list| list.write_all(format!("{test}\n").as_bytes()))
            .expect("the list can be written");
    }
}

/// True, and said aloud, if there is no such program on the PATH.
pub(crate) fn is_missing(program: &str) -> bool {
    if Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .is_ok()
    {
        return false;
    }
    skip(&format!("`{program}` is missing"));
    true
}

/// Are tests wanted that start the tools of other ecosystems than Rust?
pub(crate) fn other_ecosystems_are_wanted() -> bool {
    std::env::var_os("SUPERVISOR_TEST_NO_SKIP").is_some()
}
