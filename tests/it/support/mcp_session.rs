//! A session with a server process: a scripted client at its stdin and stdout.
//! `Session::real` is the built program; `Session::misbehaving` is this test binary serving tools that misbehave.

#![expect(
    clippy::needless_pass_by_value,
    reason = "`json!` reads best as an argument"
)]

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{mcp_tools, role};

/// A safety net, not a measure: nothing here takes long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Which server to start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Which {
    Real,
    MisbehavingTools,
}

/// What stdin and stdout of the server are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wire {
    Pipes,
    Sockets,
}

pub(crate) struct Session {
    pub(crate) process: Child,
    stdin: Option<Box<dyn Write + Send>>,
    lines: Receiver<String>,
    /// Read, but not yet asked for.
    seen: VecDeque<Value>,
    stderr: Option<JoinHandle<String>>,
}

/// How a server ended.
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    /// What it said that nobody asked for before.
    pub(crate) rest: Vec<Value>,
    pub(crate) stderr: String,
}

/// Names the program, for runs with the one that users build.
pub(crate) const PROGRAM: &str = "SUPERVISOR_TEST_PROGRAM";

pub(crate) fn program() -> OsString {
    std::env::var_os(PROGRAM).unwrap_or_else(|| env!("CARGO_BIN_EXE_supervisor").into())
}

pub(crate) fn command(which: Which) -> Command {
    let mut command = match which {
        Which::Real => Command::new(program()),
        Which::MisbehavingTools => role::command(mcp_tools::TEST),
    };
    // Nothing of the user who runs the tests: neither settings nor log levels.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SUPERVISOR_") && name != role::VARIABLE {
            command.env_remove(name);
        }
    }
    command
        .env("HOME", "/nonexistent")
        .env_remove("XDG_CONFIG_HOME");
    command
}

impl Session {
    pub(crate) fn real() -> Self {
        Self::start(Which::Real, Wire::Pipes)
    }

    pub(crate) fn misbehaving() -> Self {
        let mut session = Self::start(Which::MisbehavingTools, Wire::Pipes);
        session.initialize("2025-11-25");
        session
    }

    pub(crate) fn start(which: Which, wire: Wire) -> Self {
        let mut command = command(which);
        let (stdin, stdout): (Box<dyn Write + Send>, Box<dyn Read + Send>);
        command.stderr(Stdio::piped());
        let process = match wire {
            Wire::Pipes => {
                let mut process = command
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                stdin = Box::new(process.stdin.take().unwrap());
                stdout = Box::new(process.stdout.take().unwrap());
                process
            }
            Wire::Sockets => {
                let ((ours_in, theirs_in), (ours_out, theirs_out)) =
                    (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
                command
                    .stdin(OwnedFd::from(theirs_in))
                    .stdout(OwnedFd::from(theirs_out));
                let process = command.spawn().unwrap();
                drop(command); // it holds the server's ends
                stdin = Box::new(ours_in);
                stdout = Box::new(ours_out);
                process
            }
        };
        Self::with(process, Some(stdin), stdout)
    }

    pub(crate) fn with(
        mut process: Child,
        stdin: Option<Box<dyn Write + Send>>,
        stdout: Box<dyn Read + Send>,
    ) -> Self {
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let mut started = false;
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // A test program that plays a role announces itself before it begins.
                started |= !matches!(line.as_str(), "" | "running 1 test");
                if started && send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut errors = process.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            process,
            stdin,
            lines,
            seen: VecDeque::new(),
            stderr: Some(stderr),
        }
    }

    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        self.say(&initialize(version));
        let reply = self.reply("init");
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        reply
    }

    pub(crate) fn say(&mut self, message: &Value) {
        self.say_raw(format!("{message}\n").as_bytes());
    }

    pub(crate) fn say_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("input is still open");
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}));
    }

    /// Calls a tool, with progress wanted.
    pub(crate) fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        let id = id.into();
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
        self.request(id, "tools/call", params);
    }

    pub(crate) fn cancel(&mut self, id: impl Into<Value>) {
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id.into()}}));
    }

    /// The reply to a request, kept apart from whatever else comes.
    pub(crate) fn reply(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        self.find(&format!("a reply to {id}"), |message| {
            message.get("method").is_none() && message["id"] == id
        })
    }

    /// The reply to a request that builds and runs a project's tests, on a machine that does much else.
    pub(crate) fn reply_after_tests(&mut self, id: impl Into<Value>) -> Value {
        self.reply_within(PATIENCE * 5, id)
    }

    /// The reply to a request that must be there by then.
    pub(crate) fn reply_within(&mut self, patience: Duration, id: impl Into<Value>) -> Value {
        let id = id.into();
        let is_it = |message: &Value| message.get("method").is_none() && message["id"] == id;
        self.find_within(patience, &format!("a reply to {id}"), is_it)
    }

    pub(crate) fn progress(&mut self) -> Value {
        self.find("progress", |message| {
            message["method"] == "notifications/progress"
        })
    }

    /// A question of the server to its client.
    pub(crate) fn request_from_server(&mut self, method: &str) -> Value {
        self.find(method, |message| {
            message["method"] == method && message.get("id").is_some()
        })
    }

    /// Waits until progress speaks of this, or the reply to this call is there; true for the former.
    pub(crate) fn wait_for_progress(&mut self, of: &str, id: impl Into<Value>) -> bool {
        let id = id.into();
        let speaks = |m: &Value| {
            m["params"]["message"]
                .as_str()
                .is_some_and(|said| said.contains(of))
        };
        let is_reply = |m: &Value| m.get("method").is_none() && m["id"] == id;
        let came = self.find_within(PATIENCE * 5, "progress", |m| speaks(m) || is_reply(m));
        speaks(&came)
    }

    /// Waits until this many progress messages were sent, or the reply to this call is there; true for the former.
    pub(crate) fn wait_for_step(&mut self, step: u32, id: impl Into<Value>) -> bool {
        let id = id.into();
        let is_step = |m: &Value| {
            m["params"]["progress"]
                .as_f64()
                .is_some_and(|made| made >= f64::from(step))
        };
        let is_reply = |m: &Value| m.get("method").is_none() && m["id"] == id;
        let came = self.find("progress", |m| is_step(m) || is_reply(m));
        let stepped = is_step(&came);
        self.seen.push_front(came);
        stepped
    }

    /// Did the reply to this call come already?
    pub(crate) fn has_reply(&mut self, id: impl Into<Value>) -> bool {
        let id = id.into();
        self.seen
            .extend(self.lines.try_iter().map(|line| parsed(&line)));
        self.seen
            .iter()
            .any(|message| message.get("method").is_none() && message["id"] == id)
    }

    fn find(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.find_within(PATIENCE, what, wanted)
    }

    fn find_within(
        &mut self,
        patience: Duration,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        if let Some(at) = self.seen.iter().position(&wanted) {
            return self.seen.remove(at).unwrap();
        }
        let deadline = Instant::now() + patience;
        loop {
            let message = match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(line) => parsed(&line),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("waited in vain for {what}; seen: {:?}", self.seen)
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let code = self.process.wait();
                    panic!(
                        "the server ended ({code:?}) without {what}; seen: {:?}",
                        self.seen
                    )
                }
            };
            if wanted(&message) {
                return message;
            }
            self.seen.push_back(message);
        }
    }

    /// Lets go of what came so far and was not asked for.
    pub(crate) fn forget(&mut self) {
        self.seen.clear();
    }

    /// Ends the input.
    pub(crate) fn eof(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Ends the input and waits for the server to end.
    pub(crate) fn finish(mut self) -> End {
        self.eof();
        self.ended()
    }

    /// Waits for the server to end by itself.
    pub(crate) fn ended(mut self) -> End {
        let code = wait(&mut self.process);
        let mut rest: Vec<Value> = self.seen.drain(..).collect();
        rest.extend(self.lines.iter().map(|line| parsed(&line)));
        let stderr = self.stderr.take().unwrap().join().unwrap();
        End { code, rest, stderr }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The exit code, or `None` after a signal. A server that does not end fails the test.
pub(crate) fn wait(process: &mut Child) -> Option<i32> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > deadline {
            let _ = process.kill();
            panic!("the server did not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Nothing but protocol on stdout: every line is a JSON-RPC object.
fn parsed(line: &str) -> Value {
    let message: Value = serde_json::from_str(line)
        .unwrap_or_else(|e| panic!("stdout has `{line}`, which is not JSON: {e}"));
    assert_eq!(message["jsonrpc"], "2.0", "{line}");
    message
}

pub(crate) fn initialize(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}})
}

/// The `_meta` that makes a request complete in itself.
pub(crate) fn stateless(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params
}

/// The text of a tool's reply, checked to be the same as its structure.
pub(crate) fn result_of(reply: &Value) -> Value {
    let result = &reply["result"];
    let text = result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text in {reply}"));
    assert!(
        text.starts_with("{\"status\":"),
        "status comes first: {text}"
    );
    let parsed: Value = serde_json::from_str(text).unwrap();
    assert_eq!(parsed, result["structuredContent"]);
    assert_eq!(result["isError"], parsed["status"] == "error", "{reply}");
    whole(parsed)
}

/// A reply is an outline of what is kept in a file; the two never disagree.
fn whole(reply: Value) -> Value {
    let Some(path) = reply["full_result"].as_str() else {
        return reply;
    };
    let whole: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    for field in [
        "status",
        "message",
        "phase",
        "skill",
        "file_path",
        "verified",
        "model_used",
        "session_id",
    ] {
        assert_eq!(whole[field], reply[field], "{field}");
    }
    whole
}

/// Waits until `done`, under a generous deadline.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
