//! Programs of other ecosystems that a test needs. Such a test is `#[ignore = "needs go"]`; when it is run all the same,
//! a missing program is a failure.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// Panics unless all of these are installed: programs by name, directories by absolute path.
pub fn require(needed: &[&str]) {
    let missing: Vec<&str> = needed
        .iter()
        .copied()
        .filter(|what| !is_installed(what))
        .collect();
    assert!(missing.is_empty(), "not installed: {}", missing.join(", "));
}

/// Where jest, vitest and mocha are installed, by `tests/ecosystems/install`.
pub fn node_modules() -> OsString {
    std::env::var_os("SUPERVISOR_TEST_NODE_MODULES")
        .expect("SUPERVISOR_TEST_NODE_MODULES is set by tests/ecosystems/install")
}

fn is_installed(what: &str) -> bool {
    if what.starts_with('/') {
        return Path::new(what).exists();
    }
    // The shim of a version manager can be there without the program behind it.
    let version = if what == "go" { "version" } else { "--version" };
    Command::new(what)
        .arg(version)
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success() || what == "tmux")
}
