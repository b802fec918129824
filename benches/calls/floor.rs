//! The unavoidable of a call: the same bytes over one kept connection, the same programs with the same arguments.

use std::process::Stdio;

use supervisor::process::{End, Spec, Stdin};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::{AGENT, Scenario, launcher};

const QUESTION: &str = "a question of ordinary length ";

#[derive(Debug, Clone, Copy)]
pub(super) enum Spawn {
    Plain,
    Shim,
}

pub(super) struct Floor {
    scenario: Scenario,
    connection: Option<TcpStream>,
    request: Vec<u8>,
}

impl Floor {
    pub(super) async fn new(scenario: Scenario, gate: &str) -> Self {
        let connection = match scenario.posts {
            0 => None,
            _ => Some(TcpStream::connect(gate.trim_start_matches("http://")).await.unwrap()),
        };
        let body = QUESTION.repeat(70);
        let head =
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ";
        let request = format!("{head}{}\r\n\r\n{body}", body.len()).into_bytes();
        Self { scenario, connection, request }
    }

    pub(super) async fn once(&mut self, spawn: Spawn) {
        for _ in 0..self.scenario.posts {
            self.post().await;
        }
        for _ in 0..self.scenario.programs {
            match spawn {
                Spawn::Plain => plain().await,
                Spawn::Shim => through_the_shim().await,
            }
        }
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

async fn plain() {
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
    stdin.write_all(QUESTION.repeat(70).as_bytes()).await.unwrap();
    drop(stdin);
    assert!(child.wait_with_output().await.unwrap().status.success());
}

async fn through_the_shim() {
    let mut spec = Spec::new(argv(), "/");
    spec.stdin = Stdin::Bytes(QUESTION.repeat(70).into_bytes());
    let finished = launcher().run(spec, &CancellationToken::new()).await;
    assert_eq!(finished.end, End::Exited(0));
}
