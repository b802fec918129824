//! Programs of other ecosystems that a test needs. Such a test is `#[ignore = "needs go"]`; when it is run all the same,
//! a missing program is a failure.

use std::ffi::OsString;
use std::fs;
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

/// Panics unless Ruby is installed and can load this library.
pub fn require_ruby_library(name: &str) {
    require(&["ruby"]);
    let script = format!("require '{name}'; exit!(true)");
    let loaded = Command::new("ruby").args(["-e", &script]).output();
    assert!(
        loaded.is_ok_and(|output| output.status.success()),
        "Ruby has no {name}"
    );
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
        .is_ok_and(|output| output.status.success() || ["tmux", "ssh-keygen"].contains(&what))
}

/// Runs the tests of this test program that match one of these filters, also ignored ones, as the user `nobody`. Needs
/// root and `setpriv`.
pub fn run_tests_as_nobody(filters: &[&str]) {
    assert!(
        rustix::process::geteuid().is_root(),
        "run this test as root"
    );
    require(&["setpriv"]);
    // The build directory may be private, so the test program is copied to where anybody may read it.
    let place = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()
        .unwrap();
    let program = place.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let own = place.path().join("own");
    fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(65534), Some(65534)).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(filters)
        .args(["--include-ignored", "--nocapture", "--test-threads=2"])
        .current_dir(&own)
        .env("TMPDIR", &own)
        .env("HOME", &own)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!printed.contains(" 0 passed"), "{printed}");
}
