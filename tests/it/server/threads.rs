//! Where the system gives no more threads or processes, a client has an answer, or a reason on stderr: never a panic, and
//! never silence.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use supervisor_test_support::programs::require;

/// Long enough for a debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

struct Ended {
    code: Option<i32>,
    replies: Vec<Value>,
    stderr: String,
}

/// One session of a user who may have so many processes and threads.
fn session(most: usize, requests: &[Value]) -> Ended {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("run.sh"), "exit 1\n").unwrap();
    // A user whom nobody else is: limits count all processes of a user.
    let user = 60_000 + (std::process::id() % 5_000) * 16 + u32::try_from(most).unwrap();
    for path in [dir.path(), &project, &project.join("run.sh")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(path, Some(user), Some(user)).expect("run as root");
    }
    let mut command = Command::new("setpriv");
    command.args([
        format!("--reuid={user}"),
        format!("--regid={user}"),
        "--clear-groups".into(),
    ]);
    command.args([
        "prlimit",
        &format!("--nproc={most}"),
        env!("CARGO_BIN_EXE_supervisor"),
    ]);
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", dir.path());
    command.env("SUPERVISOR_STATE_DIR", dir.path().join("state"));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for request in requests {
        let mut text = request
            .to_string()
            .replace("[PROJECT]", &project.display().to_string());
        text.push('\n');
        // One that has ended already says why on stderr.
        let _ = stdin.write_all(text.as_bytes());
    }
    drop(stdin);
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let stdout = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = out.read_to_string(&mut text);
        text
    });
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("with {most} processes there was neither an answer nor an end");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut stderr = String::new();
    err.read_to_string(&mut stderr).unwrap();
    let replies = stdout
        .join()
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    Ended {
        code: status.code(),
        replies,
        stderr,
    }
}

#[test]
#[ignore = "needs root, setpriv and prlimit"]
fn without_threads_there_is_no_panic() {
    require(&["setpriv", "prlimit"]);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let green = json!({"name": "tdd_green", "arguments": {
        "project_root": "[PROJECT]", "test_path": "run.sh", "test_cmd": "sh run.sh", "model": "nobody/nothing"}});
    let log = json!({"name": "session_log", "arguments": {"operation": "list"}});
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": green}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": log}),
    ];
    let mut answered = 0;
    for most in 0..14 {
        let Ended {
            code,
            replies,
            stderr,
        } = session(most, &requests);
        assert!(
            !stderr.contains("setpriv:") && !stderr.contains("prlimit:"),
            "the limit of another user cannot be set: {stderr}"
        );
        assert!(!stderr.contains("panicked"), "{most}: {stderr}");
        if replies.is_empty() {
            assert_eq!(code, Some(2), "{most}: {stderr}");
            assert!(
                stderr.contains("no more threads or processes can be started"),
                "{most}: {stderr}"
            );
        } else {
            let ids: Vec<i64> = replies
                .iter()
                .filter_map(|reply| reply["id"].as_i64())
                .collect();
            assert!(
                [1, 2, 3].iter().all(|id| ids.contains(id)),
                "{most}: {replies:?} {stderr}"
            );
            answered += 1;
        }
    }
    assert!(
        (1..14).contains(&answered),
        "of fourteen limits {answered} left room for an answer"
    );
}
