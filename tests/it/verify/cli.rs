//! `supervisor verify`, as a person or a CI job runs it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use supervisor_test_support::suites::{file, rust_manifest};

fn verify(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
    for (name, _) in std::env::vars_os().filter(|(n, _)| n.to_string_lossy().starts_with("CARGO_"))
    {
        if name != "CARGO_HOME" {
            command.env_remove(name);
        }
    }
    command
        .arg("verify")
        .arg("--project")
        .arg(root)
        .stdin(Stdio::null());
    command
        .env("SUPERVISOR_STATE_DIR", root.join("state"))
        .env("RUST_BACKTRACE", "0");
    command
}

fn said(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn exit_code_distinguishes_passed_failed_and_unknown() {
    let dir = tempfile::tempdir().unwrap();
    for (words, code) in [
        ("true", 0),
        ("false", 1),
        ("no-such-runner-here", 2),
        ("sh -c 'kill -9 $$'", 2),
    ] {
        let (got, out, err) = said(verify(dir.path()).args(["--test-cmd", words]));
        assert_eq!(got, Some(code), "{words}: {out}{err}");
    }
    let (code, out, err) = said(&mut verify(dir.path()));
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(
        err.contains("Cargo.toml") && err.contains("test_cmd"),
        "{err}"
    );
}

#[test]
fn text_output_shows_command_reason_and_failures() {
    let dir = tempfile::tempdir().unwrap();
    rust_manifest(dir.path());
    file(
        dir.path(),
        "src/lib.rs",
        "#[test]\nfn right() {}\n#[test]\nfn wrong() { assert_eq!(1, 2, \"one is not two\"); }\n#[test]\nfn worse() { panic!(\"no\"); }\n",
    );
    let (code, out, _) = said(&mut verify(dir.path()));
    assert_eq!(code, Some(1), "{out}");
    let masked: Vec<String> = out
        .lines()
        .map(|l| match (l.rsplit_once(" ("), l.split_once("thread '")) {
            (Some((rest, time)), _) if time.ends_with(" s)") => format!("{rest} ([time] s)"),
            (_, Some((before, thread))) => {
                format!(
                    "{before}thread '{}' panicked{}",
                    thread.split('\'').next().unwrap(),
                    l.split(" panicked").nth(1).unwrap()
                )
            }
            _ => l.to_owned(),
        })
        .collect();
    insta::assert_snapshot!(masked.join("\n"), @r"
    tests    cargo test, because of Cargo.toml
    failed   `cargo test` failed: 1 passed, 2 failed, 0 skipped ([time] s)
      demo worse
        thread 'worse' panicked at src/lib.rs:6:14:
        no
      demo wrong
        thread 'wrong' panicked at src/lib.rs:4:14:
        assertion `left == right` failed: one is not two
          left: 1
         right: 2
    hint: run the first one alone: cargo test --lib -- --exact worse
    ");
}

#[test]
fn json_output_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    rust_manifest(dir.path());
    file(
        dir.path(),
        "src/lib.rs",
        "#[test]\nfn subtracts() { sub(); }\n",
    );
    let (code, out, _) = said(verify(dir.path()).arg("--json"));
    assert_eq!(code, Some(2));
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["outcome"]["is"], "did_not_build");
    let error = &value["outcome"]["errors"][0];
    assert_eq!(
        (&error["file"], &error["line"], &error["missing"][0]),
        (&"src/lib.rs".into(), &2.into(), &"sub".into())
    );
    assert_eq!(value["because"], "Cargo.toml");
}

#[test]
fn non_utf8_project_name_works_in_json() {
    use std::os::unix::ffi::OsStrExt as _;

    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join(std::ffi::OsStr::from_bytes(b"bad\xff"));
    std::fs::create_dir(&root).unwrap();
    let (code, out, err) = said(verify(&root).args(["--json", "--test-cmd", "true"]));
    assert_eq!(code, Some(0), "{err}");
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(
        value["root"].as_str().unwrap().ends_with("/bad\u{fffd}"),
        "{out}"
    );

    // Nor need what lies between be text. That nothing on this PATH runs is no matter.
    file(&root, "Cargo.toml", "");
    file(&root, "sub/go.mod", "module x\n");
    let (code, out, err) = said(
        verify(dir.path())
            .arg("--json")
            .arg("--near")
            .arg(root.join("sub"))
            .env("PATH", "/none"),
    );
    let value: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
    assert_eq!(
        (code, &value["alternatives"][0]["manifest"]),
        (Some(2), &"bad\u{fffd}/Cargo.toml".into()),
        "{out}"
    );
}

#[test]
fn missing_command_names_one_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let (_, out, _) = said(verify(dir.path()).args(["--test-cmd", "no-such-runner-here x"]));
    let sentence = "`no-such-runner-here x` could not run: `no-such-runner-here` was not found on the PATH; install \
                    `no-such-runner-here` or name another command as `test_cmd` (";
    assert!(out.contains(sentence), "{out}");
    let (code, _, err) = said(verify(dir.path()).args(["--near", "gone.rs"]));
    assert_eq!(
        (code, err.as_str()),
        (
            Some(2),
            "error: --near `gone.rs` is not there; give a file of the project\n"
        )
    );
}

#[test]
fn project_root_is_suggested_from_a_subdirectory() {
    let dir = tempfile::tempdir().unwrap();
    rust_manifest(dir.path());
    std::fs::create_dir(dir.path().join("src")).unwrap();
    let (code, _, err) = said(&mut verify(&dir.path().join("src")));
    let manifest = dir.path().canonicalize().unwrap().join("Cargo.toml");
    assert!(
        code == Some(2) && err.contains(&format!("; above it lies `{}`; name", manifest.display())),
        "{err}"
    );
}

#[test]
fn secrets_do_not_reach_the_tests() {
    let dir = tempfile::tempdir().unwrap();
    let seen = dir.path().join("seen");
    let words = format!("sh -c 'env > {}'", seen.display());
    let (code, out, err) = said(
        verify(dir.path())
            .args(["--test-cmd", &words])
            .env("ANTHROPIC_AUTH", "s3cret-1")
            .env("CLAUDE_CODE_X", "s3cret-2")
            .env("FOO_API_KEY", "s3cret-3")
            .env("GITHUB_TOKEN", "s3cret-4")
            .env("LITELLM_API_KEY", "s3cret-5")
            .env("ORDINARY", "stays"),
    );
    assert_eq!(code, Some(0), "{out}{err}");
    let env = std::fs::read_to_string(seen).unwrap();
    assert!(
        env.contains("ORDINARY=stays") && !env.contains("s3cret"),
        "{env}"
    );
}

#[test]
fn interrupt_ends_the_whole_tree() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    // The inner one leaves the session and ignores the interrupt.
    let words = format!(
        "sh -c 'echo $$ >> {0}; setsid sh -c \"trap : INT TERM; echo \\$\\$ >> {0}; while :; do sleep 1; done\" & wait; sleep 600'",
        pids.display()
    );
    let mut child: Child = verify(dir.path())
        .args(["--test-cmd", &words])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let read = || -> Vec<i32> {
        let text = std::fs::read_to_string(&pids).unwrap_or_default();
        text.lines().filter_map(|l| l.parse().ok()).collect()
    };
    wait_until("both have begun", || read().len() == 2);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    for pid in read() {
        wait_until("it has ended", || {
            !Path::new(&format!("/proc/{pid}")).exists()
        });
    }
}

/// As a script starts commands in the background.
#[cfg(target_os = "linux")]
fn with_interrupt_ignored(command: &Command) -> Command {
    let mut started = Command::new("sh");
    started
        .args(["-c", "trap '' INT; exec \"$0\" \"$@\""])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => started.env(name, value),
            None => started.env_remove(name),
        };
    }
    started
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    started
}

#[cfg(target_os = "linux")]
#[test]
fn interrupt_that_the_shell_ignores_is_ignored() {
    use rustix::process::Signal;

    let dir = tempfile::tempdir().unwrap();
    for (signals, code) in [
        (&[Signal::INT][..], Some(0)),
        (&[Signal::INT, Signal::TERM], Some(130)),
    ] {
        let (begun, go_on) = (dir.path().join("begun"), dir.path().join("go-on"));
        let _ = std::fs::remove_file(&begun);
        let words = format!(
            "sh -c 'touch {}; until [ -e {} ]; do sleep 0.1; done'",
            begun.display(),
            go_on.display()
        );
        let mut command = verify(dir.path());
        command.args(["--test-cmd", &words]);
        let mut child = with_interrupt_ignored(&command).spawn().unwrap();
        wait_until("the tests have begun", || begun.exists());
        for signal in signals {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, *signal).unwrap();
        }
        if code == Some(0) {
            std::fs::write(&go_on, "").unwrap();
        }
        assert_eq!(child.wait().unwrap().code(), code, "{signals:?}");
        let _ = std::fs::remove_file(&go_on);
    }
}

#[test]
fn next_run_removes_leftovers_of_killed_run() {
    let dir = tempfile::tempdir().unwrap();
    let (begun, temporary) = (dir.path().join("begun"), dir.path().join("tmp"));
    std::fs::create_dir(&temporary).unwrap();
    let words = format!("sh -c 'touch {}; sleep 600'", begun.display());
    let run = |words: &str| {
        let mut command = verify(dir.path());
        command
            .args(["--test-cmd", words])
            .env("TMPDIR", &temporary)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let left = || std::fs::read_dir(&temporary).unwrap().count();
    let mut killed = run(&words);
    wait_until("it has begun", || begun.exists());
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(left() > 0, "nobody could tidy up");
    // A program that another test is just starting may hold the dead one's lock for a moment.
    wait_until("it is gone", || {
        run("true").wait().unwrap().success() && left() == 0
    });
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn live_line_shows_running_tests_and_disappears() {
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");
    let words = format!("sh -c 'until [ -e {} ]; do sleep 0.05; done'", go.display());
    let mut command = verify(dir.path());
    command.args(["--test-cmd", &words]);
    let terminal = crate::support::terminal::Terminal::start(command, 24, 200);
    terminal.until(" s  running `sh -c ");
    std::fs::write(go, "").unwrap();
    let (code, rows, _) = terminal.finish();
    assert_eq!(code, Some(0), "{rows:?}");
    assert!(
        rows[0].starts_with("tests    sh -c ") && !rows.iter().any(|row| row.contains("running")),
        "{rows:?}"
    );
}

#[test]
fn remembered_command_is_used_from_then_on() {
    let (dir, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let settings = home.path().join("models.toml");
    std::fs::write(&settings, "# mine\nmax_workers = 1 # one is enough\n").unwrap();
    let in_home = |words: &[&str]| {
        let mut command = verify(dir.path());
        command
            .env("SUPERVISOR_MODELS_FILE", &settings)
            .env("HOME", home.path())
            .args(words);
        said(&mut command)
    };
    let before = std::fs::read_to_string(&settings).unwrap();
    let (code, out, err) = in_home(&["--test-cmd", "no-such-runner-here", "--remember"]);
    assert_eq!(code, Some(2), "{out}{err}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), before);

    let (code, out, err) = in_home(&["--test-cmd", "true", "--remember"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let root = dir.path().canonicalize().unwrap();
    let written = std::fs::read_to_string(&settings).unwrap();
    let table = format!("\n[projects.\"{}\"]\ntest_cmd = \"true\"\n", root.display());
    assert_eq!(written, before + &table, "{out}");
    // Without a command now.
    let (code, out, err) = in_home(&[]);
    assert_eq!(code, Some(0), "{out}{err}");
}
