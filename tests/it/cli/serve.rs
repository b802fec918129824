//! `supervisor serve --http`, as built with and without it.

use std::process::{Command, Stdio};

fn serve(words: &[&str]) -> Command {
    let home = tempfile::tempdir().unwrap().keep();
    let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
    command
        .arg("serve")
        .args(words)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
#[cfg(not(feature = "http"))]
fn http_names_the_build_it_needs() {
    let done = serve(&["--http"]).output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(
        said.contains("cargo build --release --features http"),
        "{said}"
    );
}

#[test]
#[cfg(feature = "http")]
fn http_is_served_until_a_signal() {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};

    let mut process = serve(&["--http", "127.0.0.1:0"]).spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let line = lines
        .find_map(|line| {
            line.unwrap()
                .split_once("listening on http://")
                .map(|(_, rest)| rest.to_owned())
        })
        .unwrap();
    let address = line.split('/').next().unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("serverInfo"),
        "{answer}"
    );
    let kill = Command::new("kill").arg(process.id().to_string()).status();
    assert!(kill.unwrap().success());
    assert_eq!(process.wait().unwrap().code(), Some(128 + 15));
}

#[test]
#[cfg(feature = "http")]
fn public_address_without_settings_is_refused() {
    let done = serve(&["--http", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(
        said.contains("`http.roots` is required") && said.contains("Nothing was started"),
        "{said}"
    );
}
