//! How a session ends: input, output or a signal. Nothing that was asked is lost, and nothing outlives its client.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use supervisor_test_support::programs::require;

use crate::support::mcp_session::{
    Session, Which, Wire, command, initialize, result_of, until, wait,
};

fn ping(id: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

/// Runs the real program over files, to its end.
fn over_files(input: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("in"), input).unwrap();
    let mut process = command(Which::Real)
        .stdin(File::open(dir.path().join("in")).unwrap())
        .stdout(File::create(dir.path().join("out")).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    (
        wait(&mut process),
        std::fs::read_to_string(dir.path().join("out")).unwrap(),
    )
}

#[test]
fn eof_at_any_point_is_exit_code_0() {
    let init = initialize("2025-11-25");
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let cases = [
        ("nothing at all", String::new(), 0),
        ("an empty line", String::from("\n"), 0),
        ("half a line", String::from("{\"jsonrpc\":"), 1),
        (
            "a notification",
            String::from("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"),
            0,
        ),
        ("a ping before initialize", format!("{}\n", ping(1)), 1),
        ("initialize alone", format!("{init}\n"), 1),
        ("initialize without a newline", format!("{init}"), 1),
        ("a whole session", format!("{init}\n{list}\n"), 2),
        (
            "a whole session without the last newline",
            format!("{init}\n{list}"),
            2,
        ),
        (
            "a request that breaks off",
            format!("{init}\n{list}\n{}", &ping(3).to_string()[..20]),
            3,
        ),
    ];
    for (name, input, replies) in cases {
        let mut session = Session::real();
        session.say_raw(input.as_bytes());
        let end = session.finish();
        assert_eq!(
            (end.code, end.rest.len()),
            (Some(0), replies),
            "{name} by pipe: {:?}",
            end.rest
        );
        let (code, output) = over_files(&input);
        assert_eq!(
            (code, output.lines().count()),
            (Some(0), replies),
            "{name} by file: {output}"
        );
    }
}

#[test]
fn stdin_from_dev_null_ends_at_once() {
    let mut process = command(Which::Real)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(wait(&mut process), Some(0));
}

#[test]
fn pipes_and_sockets_serve_alike() {
    for wire in [Wire::Pipes, Wire::Sockets] {
        let mut session = Session::start(Which::MisbehavingTools, wire);
        session.initialize("2025-11-25");
        session.call(1, "echo", json!({"text": "x".repeat(1_000_000)}));
        assert_eq!(result_of(&session.reply(1))["status"], "pass", "{wire:?}");
        session.call(2, "sleeps", json!({"ms": 50, "progress_ms": 5}));
        let end = session.finish();
        assert_eq!(end.code, Some(0), "{wire:?}");
        assert!(
            end.rest.iter().any(|m| m["id"] == 2),
            "{wire:?}: answered after the end of input"
        );
    }
}

#[test]
fn long_call_is_answered_after_eof() {
    let mut session = Session::misbehaving();
    session.call(1, "sleeps", json!({"ms": 6_000, "progress_ms": 20}));
    session.call(2, "sleeps", json!({"ms": 100}));
    session.progress();
    session.eof();
    assert_eq!(result_of(&session.reply(1))["message"], "slept");
    session.reply(2);
    assert_eq!(session.ended().code, Some(0));
}

#[test]
fn call_directly_before_eof_is_answered() {
    for _ in 0..20 {
        let mut session = Session::start(Which::MisbehavingTools, Wire::Pipes);
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "sleeps", "arguments": {"ms": 5}}});
        session.say_raw(format!("{}\n{call}", initialize("2025-11-25")).as_bytes());
        let end = session.finish();
        assert_eq!(end.code, Some(0));
        assert!(
            end.rest
                .iter()
                .any(|m| m["id"] == 1 && m["result"]["isError"] == false),
            "{:?}",
            end.rest
        );
    }
}

#[test]
fn cancelled_call_does_not_delay_eof() {
    let dir = tempfile::tempdir().unwrap();
    let stopped = dir.path().join("stopped");
    let mut session = Session::misbehaving();
    session.call(
        1,
        "sleeps",
        json!({"ms": 600_000, "progress_ms": 5, "on_stop": stopped}),
    );
    session.progress();
    session.cancel(1);
    let end = session.finish();
    assert_eq!(end.code, Some(0));
    assert!(stopped.exists());
    assert!(!end.rest.iter().any(|m| m["id"] == 1), "{:?}", end.rest);
}

#[test]
fn dead_client_ends_server_and_calls() {
    for wire in [Wire::Pipes, Wire::Sockets] {
        for idle in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let stopped = dir.path().join("stopped");
            let mut command = command(Which::MisbehavingTools);
            command.stderr(Stdio::null());
            // Stdin stays open on purpose: somebody else may hold it. Only the reader of stdout leaves.
            let (mut process, mut stdin, mut stdout): (_, OwnedFd, OwnedFd) = match wire {
                Wire::Pipes => {
                    let mut process = command
                        .stdin(Stdio::piped())
                        .stdout(Stdio::piped())
                        .spawn()
                        .unwrap();
                    let (stdin, stdout) = (
                        process.stdin.take().unwrap(),
                        process.stdout.take().unwrap(),
                    );
                    (process, stdin.into(), stdout.into())
                }
                Wire::Sockets => {
                    use std::os::unix::net::UnixStream;
                    let ((ours_in, theirs_in), (ours_out, theirs_out)) =
                        (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
                    let process = command
                        .stdin(OwnedFd::from(theirs_in))
                        .stdout(OwnedFd::from(theirs_out))
                        .spawn()
                        .unwrap();
                    drop(command);
                    (process, ours_in.into(), ours_out.into())
                }
            };
            let mut input = File::from(stdin.try_clone().unwrap());
            writeln!(input, "{}", initialize("2025-11-25")).unwrap();
            if !idle {
                let arguments = json!({"ms": 600_000, "on_stop": stopped, "progress_ms": 10});
                let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": {"name": "sleeps", "arguments": arguments, "_meta": {"progressToken": 1}}});
                writeln!(input, "{call}").unwrap();
            }
            let mut output = File::from(stdout.try_clone().unwrap());
            let mut seen = String::new();
            let wanted = if idle { "serverInfo" } else { "still asleep" };
            while !seen.contains(wanted) {
                let mut buffer = [0; 4096];
                let count = output.read(&mut buffer).unwrap();
                seen += &String::from_utf8_lossy(&buffer[..count]);
            }
            drop((
                output,
                std::mem::replace(&mut stdout, File::open("/dev/null").unwrap().into()),
            ));
            assert_eq!(wait(&mut process), Some(0), "{wire:?}, idle: {idle}");
            assert!(
                idle || stopped.exists(),
                "{wire:?}: the call was told to stop"
            );
            drop((
                input,
                std::mem::replace(&mut stdin, File::open("/dev/null").unwrap().into()),
            ));
        }
    }
}

#[test]
fn client_death_after_eof_ends_running_calls() {
    let mut process = command(Which::MisbehavingTools)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "sleeps", "arguments": {"ms": 600_000}}});
    writeln!(stdin, "{}\n{call}", initialize("2025-11-25")).unwrap();
    drop(stdin);
    let mut stdout = process.stdout.take().unwrap();
    let mut seen = String::new();
    while !seen.contains("serverInfo") {
        let mut buffer = [0; 4096];
        let count = stdout.read(&mut buffer).unwrap();
        seen += &String::from_utf8_lossy(&buffer[..count]);
    }
    drop(stdout);
    assert_eq!(wait(&mut process), Some(0));
}

#[test]
fn signal_ends_work_with_128_plus_number() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let dir = tempfile::tempdir().unwrap();
        let stopped = dir.path().join("stopped");
        let mut session = Session::misbehaving();
        session.call(
            1,
            "sleeps",
            json!({"ms": 600_000, "progress_ms": 5, "on_stop": stopped}),
        );
        session.progress();
        session.signal(signal);
        until("the call to be told", || stopped.exists());
        assert_eq!(session.ended().code, Some(code), "{signal:?}");
    }
}

#[test]
fn signal_ends_an_idle_server() {
    for stage in [
        "before initialize",
        "after initialize",
        "after the end of input",
    ] {
        let mut session = Session::start(Which::MisbehavingTools, Wire::Pipes);
        session.request("early", "ping", json!({}));
        session.reply("early"); // it listens
        if stage != "before initialize" {
            session.initialize("2025-11-25");
        }
        if stage == "after the end of input" {
            session.call(1, "sleeps", json!({"ms": 600_000, "progress_ms": 5}));
            session.progress();
            session.eof();
        }
        session.signal(Signal::TERM);
        assert_eq!(session.ended().code, Some(143), "{stage}");
    }
}

#[test]
fn stubborn_call_does_not_delay_a_signal() {
    let mut session = Session::misbehaving();
    for id in 0..10 {
        session.call(
            id,
            "sleeps",
            json!({"ms": 600_000, "progress_ms": 5, "stubborn": true}),
        );
    }
    session.progress();
    // As Claude Code does it: SIGINT, and SIGTERM 100 ms later.
    session.signal(Signal::INT);
    session.signal(Signal::TERM);
    let code = session.ended().code;
    assert!(
        code == Some(130) || code == Some(143),
        "{code:?}: whichever was seen first"
    );
}

#[test]
fn signal_ends_server_with_stuck_reader() {
    let mut process = command(Which::MisbehavingTools)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    writeln!(stdin, "{}", initialize("2025-11-25")).unwrap();
    for id in 0..20 {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": "x".repeat(30_000)}}});
        writeln!(stdin, "{call}").unwrap();
    }
    drop(stdin);
    // The pipe is full and nobody reads. The first bytes show that the server is up.
    let mut stdout = process.stdout.take().unwrap();
    let mut first = [0; 1];
    stdout.read_exact(&mut first).unwrap();
    let pid = rustix::process::Pid::from_child(&process);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(wait(&mut process), Some(143));
}

#[test]
#[ignore = "needs script"]
fn terminal_gets_a_hint_and_is_served() {
    require(&["script"]);
    let dir = tempfile::tempdir().unwrap();
    let (out, err) = (dir.path().join("out"), dir.path().join("err"));
    let program = env!("CARGO_BIN_EXE_supervisor");
    let line = format!(
        "{} >{} 2>{}",
        shell_words::quote(program),
        out.display(),
        err.display()
    );
    let mut process = std::process::Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut terminal = process.stdin.take().unwrap();
    until("the greeting", || {
        std::fs::read_to_string(&err).is_ok_and(|text| text.contains("Ctrl-D"))
    });
    writeln!(terminal, "{}", ping(5)).unwrap();
    until("the reply", || {
        std::fs::read_to_string(&out).is_ok_and(|text| text.contains("\"id\":5"))
    });
    terminal.write_all(&[4]).unwrap(); // Ctrl-D
    assert_eq!(wait(&mut process), Some(0));
    let greeting = std::fs::read_to_string(&err).unwrap();
    assert!(
        greeting.contains(&format!("claude mcp add supervisor -- {program}")),
        "{greeting}"
    );
    assert_eq!(
        std::fs::read_to_string(&out).unwrap().lines().count(),
        1,
        "only the reply is on stdout"
    );
}

#[test]
fn no_hint_without_a_terminal() {
    let mut session = Session::real();
    session.initialize("2025-11-25");
    let said = session.finish().stderr;
    assert!(
        said.lines().count() == 1 && said.contains("supervisor starting"),
        "{said}"
    );
}

#[test]
fn serve_is_the_default_command() {
    let mut named = command(Which::Real);
    let process = named
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut process = process.unwrap();
    let (stdin, stdout) = (
        process.stdin.take().unwrap(),
        process.stdout.take().unwrap(),
    );
    let mut session = Session::with(process, Some(Box::new(stdin)), Box::new(stdout));
    assert_eq!(
        session.initialize("2025-11-25")["result"]["serverInfo"]["name"],
        "supervisor"
    );
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn broken_settings_end_the_server_with_1() {
    let dir = tempfile::tempdir().unwrap();
    let broken = dir.path().join("models.toml");
    std::fs::write(&broken, "default_chian = []\n").unwrap();
    for path in [broken, dir.path().join("missing.toml")] {
        for by_variable in [true, false] {
            let mut command = command(Which::Real);
            match by_variable {
                true => command.env("SUPERVISOR_MODELS_FILE", &path),
                false => command.arg("--config").arg(&path),
            };
            let done = command.stdin(Stdio::null()).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(1), "{said}");
            assert!(
                said.contains(&path.display().to_string()),
                "the file is named: {said}"
            );
            assert_eq!(done.stdout, b"", "stdout belongs to the protocol");
        }
    }
}
