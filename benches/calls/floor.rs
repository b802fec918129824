//! Lower bound of a call: the same bytes over one kept connection, the same programs with the same
//! arguments, and a line of the log's length on disk, because a call is logged before it is
//! answered.

use std::io::Write as _;
use std::process::Stdio;

use supervisor_process::{CommandSpec, End, Launcher, Stdin};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::{AGENT, Scenario, launcher};

/// Length of the shortest log entry of a call.
const LINE_LEN: usize = 500;
const QUESTION: &str = "a question of ordinary length ";

#[derive(Debug, Clone, Copy)]
pub(super) enum Spawn {
    Plain,
    Shim,
}

pub(super) struct Floor {
    scenario: Scenario,
    launcher: Launcher,
    connection: Option<TcpStream>,
    request: Vec<u8>,
    /// Opened once, whereas a real log is opened for each line.
    log: std::fs::File,
}

impl Floor {
    pub(super) async fn new(scenario: Scenario, gate: &str) -> Self {
        let connection = match scenario.posts {
            0 => None,
            _ => Some(
                TcpStream::connect(gate.trim_start_matches("http://"))
                    .await
                    .unwrap(),
            ),
        };
        let body = QUESTION.repeat(70);
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ";
        let request = format!("{head}{}\r\n\r\n{body}", body.len()).into_bytes();
        let log = tempfile::tempfile().unwrap();
        Self {
            scenario,
            launcher: launcher(),
            connection,
            request,
            log,
        }
    }

    pub(super) async fn once(&mut self, spawn: Spawn) {
        for _ in 0..self.scenario.posts {
            self.post().await;
        }
        for _ in 0..self.scenario.programs {
            match spawn {
                Spawn::Plain => spawn_plain().await,
                Spawn::Shim => self.spawn_through_shim().await,
            }
        }
        let (mut log, line) = (self.log.try_clone().unwrap(), "x".repeat(LINE_LEN));
        let written = tokio::task::spawn_blocking(move || {
            log.write_all(line.as_bytes())
                .and_then(|()| log.sync_data())
        });
        written.await.unwrap().unwrap();
    }

    /// Waits until nothing that was started is running, including shims.
    pub(super) async fn settled(&self) {
        self.launcher.wait_for_all().await;
    }

    async fn spawn_through_shim(&self) {
        let mut spec = CommandSpec::new(argv(), "/");
        spec.stdin = Stdin::Bytes(QUESTION.repeat(70).into_bytes());
        let finished = self.launcher.run(spec, &CancellationToken::new()).await;
        assert_eq!(finished.end, End::Exited(0));
    }

    async fn post(&mut self) {
        let connection = self.connection.as_mut().unwrap();
        connection.write_all(&self.request).await.unwrap();
        let (mut answer, mut chunk) = (Vec::new(), [0; 8192]);
        while !answer.ends_with(b"}\n") {
            let n = connection.read(&mut chunk).await.unwrap();
            assert_ne!(n, 0, "the gate closed the connection");
            answer.extend_from_slice(&chunk[..n]);
        }
    }
}

fn argv() -> [String; 4] {
    let program = std::env::current_exe().unwrap().display().to_string();
    [program, AGENT.into(), "--model".into(), "cloud".into()]
}

async fn spawn_plain() {
    let [program, args @ ..] = argv();
    let mut child = tokio::process::Command::new(program)
        .args(args)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(QUESTION.repeat(70).as_bytes())
        .await
        .unwrap();
    drop(stdin);
    assert!(child.wait_with_output().await.unwrap().status.success());
}
