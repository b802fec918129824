//! Where what is said goes: a full disk, a reader who leaves, a log that is no terminal; and how errors are said.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};

use supervisor_test_support::loopback::ClosedPort;

/// The built program of somebody with an empty home, in a project that passes.
fn program(home: &Path, closed: &ClosedPort, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
    command
        .args(words)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .current_dir(home);
    for name in ["ANTHROPIC_BASE_URL", "LITELLM_BASE_URL", "LLAMA_SWAP_URL"] {
        command.env(name, &closed.url);
    }
    command.env("SUPERVISOR_LOOK_AT", "none");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Each with the exit code it has when somebody reads.
const COMMANDS: &[(&[&str], i32)] = &[
    (&["doctor"], 1),
    (&["doctor", "--json"], 1),
    (&["explain"], 0),
    (&["explain", "--json"], 0),
    (&["stats"], 0),
    (&["stats", "--json"], 0),
    (&["recover"], 0),
    (&["call"], 0),
    (&["call", "tier", "--output", "json"], 0),
    (&["verify", "--test-cmd", "false"], 1),
    (&["verify", "--json", "--test-cmd", "false"], 1),
    (&["log", "list"], 0),
    (&["report"], 0),
    (&["uninstall"], 1),
    (&["jobs"], 0),
    (&["shadow", "status"], 0),
    (&["shadow", "report"], 0),
];

#[test]
fn closed_stdout_keeps_exit_code_and_stderr() {
    let (home, closed) = (tempfile::tempdir().unwrap(), ClosedPort::hold());
    for (words, code) in COMMANDS {
        let mut child = program(home.path(), &closed, words).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{words:?}: {said}");
        assert!(!said.contains("error"), "{words:?}: {said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_error_names_stdout() {
    let (home, closed) = (tempfile::tempdir().unwrap(), ClosedPort::hold());
    for (words, _) in COMMANDS {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = program(home.path(), &closed, words)
            .stdout(full)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        let last = said.lines().last().unwrap_or_default();
        assert_eq!(
            last, "error: writing to stdout: No space left on device (os error 28)",
            "{words:?}"
        );
    }
}

/// Nobody can write there, not even root.
#[cfg(target_os = "linux")]
#[test]
fn unwritable_home_is_named() {
    let (home, closed) = (tempfile::tempdir().unwrap(), ClosedPort::hold());
    let run = |words: &[&str]| {
        let mut command = program(home.path(), &closed, words);
        let output = command.env("HOME", "/proc/nohome").output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let root = format!("project_root={}", home.path().display());
    let red = ["call", "tdd_red", "--arg", "spec=x", "--arg", &root];
    for words in [&red[..], &["shadow", "on"]] {
        let (code, said) = run(words);
        assert_eq!(code, Some(2), "{words:?}: {said}");
        for part in ["/proc/nohome/", "$SUPERVISOR_STATE_DIR"] {
            assert!(said.contains(part), "{words:?}: {said}");
        }
    }
    assert_eq!(run(&["uninstall"]), (Some(1), String::new()));
}

#[test]
fn log_without_a_terminal_has_no_escapes() {
    let (home, closed) = (tempfile::tempdir().unwrap(), ClosedPort::hold());
    let output = program(home.path(), &closed, &["serve"])
        .env("SUPERVISOR_VERIFER", "x")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains(" WARN ") && said.contains("did you mean `SUPERVISOR_VERIFIER`?"),
        "{said}"
    );
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn start_is_logged_as_text_or_json() {
    let (home, closed) = (tempfile::tempdir().unwrap(), ClosedPort::hold());
    let serve = |format: &str| {
        let output = program(home.path(), &closed, &["serve"])
            .env("SUPERVISOR_LOG_FORMAT", format)
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(serve("").contains("supervisor starting version="));
    let said = serve("json");
    let line: serde_json::Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&line["level"], &line["msg"], &line["version"]),
        (
            &serde_json::json!("INFO"),
            &serde_json::json!("supervisor starting"),
            &serde_json::json!(env!("CARGO_PKG_VERSION"))
        ),
        "{said}"
    );
    let said = serve("xml");
    assert!(
        said.contains("$SUPERVISOR_LOG_FORMAT is `xml`; it can be"),
        "{said}"
    );
}

#[test]
fn invalid_log_level_is_reported() {
    let (home, closed) = (tempfile::tempdir().unwrap(), ClosedPort::hold());
    let output = program(home.path(), &closed, &["explain"])
        .env("SUPERVISOR_LOG", "a=b=c")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("$SUPERVISOR_LOG is `a=b=c`: ") && said.contains("write it as `debug`"),
        "{said}"
    );
}

#[test]
fn call_prints_settings_warnings_as_plain_lines() {
    let (home, closed) = (tempfile::tempdir().unwrap(), ClosedPort::hold());
    let output = program(home.path(), &closed, &["call", "tier"])
        .env("SUPERVISOR_VERIFER", "x")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("warning: $SUPERVISOR_VERIFER sets nothing"),
        "{said}"
    );
}

#[test]
fn cause_is_printed_once() {
    let (home, closed) = (tempfile::tempdir().unwrap(), ClosedPort::hold());
    let file = home.path().join("file");
    File::create(&file).unwrap();
    let output = program(home.path(), &closed, &["stats"])
        .env("SUPERVISOR_STATE_DIR", &file)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.matches("Not a directory").count(), 1, "{said}");
    let output = program(home.path(), &closed, &["recover"])
        .env("SUPERVISOR_STATE_DIR", &file)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("error: looking for killed calls in `") && said.contains("/file`: "),
        "{said}"
    );
}

#[test]
fn named_state_directory_must_exist() {
    let (home, closed) = (tempfile::tempdir().unwrap(), ClosedPort::hold());
    let output = program(home.path(), &closed, &["recover", "--state-dir", "no/such"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), said.as_str()),
        (Some(2), "error: --state-dir `no/such` is not a directory\n")
    );
    let output = program(home.path(), &closed, &["recover", "--state-dir", "."])
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(0), b"ok    nothing to recover\n".as_slice())
    );
}
