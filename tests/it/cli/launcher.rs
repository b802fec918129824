//! The plugin's launcher where the program is not installed yet: a server in POSIX sh that says how to install it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const INSTALL: &str = "cargo install --path . --locked";

fn launcher(arguments: &[&str], input: &str) -> Output {
    let home = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins/supervisor/bin/supervisor");
    let mut child = Command::new("/usr/bin/env")
        .args(["dash"])
        .arg(script)
        .args(arguments)
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
#[ignore = "needs dash"]
fn launcher_without_program_answers_in_dash() {
    let requests = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"id": 7},
            "clientInfo": {"name": "a \"method\": {\"x\"}, \\", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"params": {"method": "ping", "id": 3}, "method": "server/discover", "id": "a-1", "jsonrpc": "2.0"}),
        json!({"jsonrpc": "2.0", "id": "two words", "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 18, "method": "tools/call", "params": {"name": "install_supervisor", "arguments": {}}}),
        json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": -2, "method": "resources/list"}),
    ];
    let input: String = requests.iter().map(|one| format!("{one}\n")).collect();
    let output = launcher(&[], &input);
    assert!(output.status.success(), "{output:?}");
    let replies: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    let ids: Vec<&Value> = replies.iter().map(|reply| &reply["id"]).collect();
    let expected = [
        json!(0),
        json!("a-1"),
        json!("two words"),
        json!(18),
        json!("p"),
        json!(-2),
    ];
    assert_eq!(ids, expected.iter().collect::<Vec<_>>());
    let [start, found, list, call, pong, unknown] = &replies[..] else {
        panic!("{replies:#?}")
    };
    assert_eq!(start["result"]["protocolVersion"], "2025-11-25");
    assert!(
        start["result"]["instructions"]
            .as_str()
            .unwrap()
            .contains(INSTALL)
    );
    assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28");
    assert_eq!(list["result"]["tools"][0]["name"], "install_supervisor");
    assert_eq!(call["result"]["isError"], true);
    assert!(
        call["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains(INSTALL)
    );
    assert_eq!(pong["result"], json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
}

#[test]
#[ignore = "needs dash"]
fn hook_without_program_blocks_nothing() {
    let hook = launcher(&["hook", "stop"], "");
    assert!(hook.status.success() && hook.stdout.is_empty(), "{hook:?}");
    let other = launcher(&["doctor"], "");
    assert_eq!(other.status.code(), Some(127));
    assert!(
        String::from_utf8_lossy(&other.stderr).contains(INSTALL),
        "{other:?}"
    );
}
