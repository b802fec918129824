//! `wake`: cost of a wake with one new message on a bus of 50,000 messages, relative to a plain
//! read of the whole file. Runs the program over stdio. Each wake also writes and syncs its report,
//! state and memory; the last figure compares with the same wake on a bus of a few messages, which
//! cancels that out.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const MESSAGES: usize = 50_000;
const FEW_MESSAGES: usize = 10;
const ROUNDS: usize = 21;
const TEAM: &str = "bench";

pub(super) fn run() {
    let large = measure(MESSAGES);
    let small = measure(FEW_MESSAGES);
    let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
    println!("the file: {} messages, {} kB", MESSAGES, large.size / 1000);
    println!(
        "plain read p50 {:.1?}; read and parsed p50 {:.1?}",
        large.read, large.parsed
    );
    println!(
        "init {:.1?}; wake p50 {:.1?}: {:.2} × a plain read, {:.2} × read and parsed; {} bytes of the bus read",
        large.init,
        large.wake,
        ratio(large.wake, large.read),
        ratio(large.wake, large.parsed),
        large.bytes
    );
    println!(
        "wake on {FEW_MESSAGES} messages p50 {:.1?}: {MESSAGES} cost {:.2} ×",
        small.wake,
        ratio(large.wake, small.wake)
    );
}

struct Figures {
    size: u64,
    read: Duration,
    parsed: Duration,
    init: Duration,
    wake: Duration,
    bytes: u64,
}

fn measure(messages: usize) -> Figures {
    let dir = tempfile::tempdir().unwrap();
    let log = dir
        .path()
        .join(format!(".workflow/.team/{TEAM}/.msg/messages.jsonl"));
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    std::fs::write(&log, (1..=messages).map(line).collect::<String>()).unwrap();
    let mut server = Server::start(dir.path());
    let began = Instant::now();
    server.supervise(&json!({"operation": "init"}));
    let init = began.elapsed();
    let (mut wakes, mut bytes) = (Vec::new(), 0);
    for round in 0..ROUNDS {
        append(&log, &line(messages + 1 + round * 10));
        let began = Instant::now();
        let answer =
            server.supervise(&json!({"operation": "checkpoint", "task_id": "CHECKPOINT-003"}));
        wakes.push(began.elapsed());
        let loaded = &answer["details"]["loaded"];
        bytes = loaded["bus_bytes_read"]
            .as_u64()
            .unwrap_or_else(|| panic!("no verdict: {answer}"));
    }
    let read = median(
        (0..ROUNDS)
            .map(|_| timed(|| std::fs::read(&log).unwrap().len()))
            .collect(),
    );
    let parse = || {
        let text = std::fs::read_to_string(&log).unwrap();
        text.lines()
            .filter(|line| serde_json::from_str::<Value>(line).is_ok())
            .count()
    };
    let parsed = median((0..5).map(|_| timed(parse)).collect());
    let size = std::fs::metadata(&log).unwrap().len();
    Figures {
        size,
        read,
        parsed,
        init,
        wake: median(wakes),
        bytes,
    }
}

fn line(n: usize) -> String {
    let message = json!({"id": format!("MSG-{n:03}"), "ts": "2026-11-01T10:00:00.000+00:00", "from": format!("w{}", n % 5),
        "to": "coordinator", "type": "progress", "summary": format!("[w{}] step {n} of the work", n % 5),
        "data": {"task_id": format!("T-{}", n % 200), "status": "task_complete", "progress_pct": 50}});
    format!("{message}\n")
}

fn append(log: &Path, text: &str) {
    std::fs::OpenOptions::new()
        .append(true)
        .open(log)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

fn timed(once: impl FnOnce() -> usize) -> Duration {
    let began = Instant::now();
    assert!(once() > 0);
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The server process, and a client that waits for each reply.
struct Server {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    root: PathBuf,
    calls: usize,
    _state: tempfile::TempDir,
}

impl Server {
    fn start(root: &Path) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut command = Command::new(crate::program());
        command.env("SUPERVISOR_STATE_DIR", state.path());
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (
            process.stdin.take(),
            BufReader::new(process.stdout.take().unwrap()),
        );
        let mut server = Self {
            process,
            stdin,
            stdout,
            root: root.to_owned(),
            calls: 0,
            _state: state,
        };
        server.ask(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}}),
        );
        server
    }

    fn supervise(&mut self, arguments: &Value) -> Value {
        let mut arguments = arguments.clone();
        (arguments["project_root"], arguments["session_id"]) = (json!(self.root), json!(TEAM));
        let reply = self.ask(
            "tools/call",
            &json!({"name": "supervise", "arguments": arguments}),
        );
        reply["result"]["structuredContent"].clone()
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params});
        self.stdin
            .as_mut()
            .unwrap()
            .write_all(format!("{request}\n").as_bytes())
            .unwrap();
        loop {
            let mut line = String::new();
            assert!(
                self.stdout.read_line(&mut line).unwrap() > 0,
                "the server ended"
            );
            let reply: Value = serde_json::from_str(&line).unwrap();
            if reply["id"] == json!(self.calls) {
                return reply;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.process.wait();
    }
}
