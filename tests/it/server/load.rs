//! Much at once: hundreds of requests in flight, garbage between them, readers that are slow.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::mcp_session::{Session, Which, command, initialize, result_of, wait};

const GARBAGE: &[&str] = &[
    "{",
    "garbage",
    "",
    "[]",
    "{}",
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}"#,
    r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
    "\u{0}\u{1}",
];

/// Requests with garbage between them, and how many error replies without id the garbage earns.
fn noisy_requests(count: usize) -> (String, usize) {
    let mut input = format!("{}\n", initialize("2025-11-25"));
    let mut refused = 0;
    for id in 0..count {
        let request = match id % 4 {
            0 => json!({"jsonrpc": "2.0", "id": id, "method": "ping"}),
            1 => json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}),
            2 => json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": "sleeps", "arguments": {"ms": 30, "progress_ms": 3}, "_meta": {"progressToken": id}}}),
            _ => json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": "echo", "arguments": {"text": format!("{id}"), "times": 100}}}),
        };
        input += &format!("{request}\n");
        let garbage = GARBAGE[id % GARBAGE.len()];
        refused += usize::from(matches!(
            garbage,
            "{" | "garbage" | "[]" | "{}" | "\u{0}\u{1}"
        ));
        input += &format!("{garbage}\n");
    }
    (input, refused)
}

fn check(replies: &[Value], count: usize, refused: usize) {
    let ids: Vec<u64> = replies.iter().filter_map(|m| m["id"].as_u64()).collect();
    assert_eq!(ids.len(), count, "one reply for each request");
    assert_eq!(
        ids.iter().copied().collect::<BTreeSet<_>>(),
        (0..count as u64).collect()
    );
    assert_eq!(
        replies
            .iter()
            .filter(|m| m.get("error").is_some() && m["id"].is_null())
            .count(),
        refused
    );
    for reply in replies
        .iter()
        .filter(|m| m["id"].as_u64().is_some_and(|id| id % 4 == 3))
    {
        assert_eq!(result_of(reply)["message"], reply["id"].to_string());
    }
}

#[test]
fn concurrent_requests_with_garbage_are_all_answered() {
    let (input, refused) = noisy_requests(200);
    let mut session = Session::start(
        Which::MisbehavingTools,
        crate::support::mcp_session::Wire::Pipes,
    );
    session.say_raw(input.as_bytes());
    let end = session.finish();
    assert_eq!(end.code, Some(0));
    check(&end.rest, 200, refused);
}

#[test]
fn slow_reader_gets_every_reply() {
    let (input, refused) = noisy_requests(200);
    let mut process = command(Which::MisbehavingTools)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let mut output = BufReader::with_capacity(512, process.stdout.take().unwrap());
    let mut replies = Vec::new();
    let mut line = String::new();
    let mut count = 0;
    while output.read_line(&mut line).unwrap() > 0 {
        if line.starts_with('{') {
            replies.push(serde_json::from_str(&line).unwrap());
        }
        line.clear();
        count += 1;
        if count % 10 == 0 {
            std::thread::sleep(Duration::from_millis(2)); // slow, that is the point
        }
    }
    writer.join().unwrap();
    assert_eq!(wait(&mut process), Some(0));
    check(&replies, 200, refused);
}

#[test]
fn write_all_before_reading_does_not_deadlock() {
    // More than both pipes hold: the server must take it all in while its own output waits.
    let mut process = command(Which::MisbehavingTools)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    writeln!(stdin, "{}", initialize("2025-11-25")).unwrap();
    for id in 0..1000 {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": "x".repeat(1000)}}});
        writeln!(stdin, "{call}").unwrap();
    }
    drop(stdin);
    let output = BufReader::new(process.stdout.take().unwrap());
    let replies = output
        .lines()
        .map_while(Result::ok)
        .filter(|line| line.starts_with('{'))
        .count();
    assert_eq!(replies, 1001);
    assert_eq!(wait(&mut process), Some(0));
}

#[test]
fn fast_calls_overtake_slow_ones() {
    let mut session = Session::misbehaving();
    session.call("slow", "sleeps", json!({"ms": 600_000}));
    for id in 0..100 {
        session.call(id, "echo", json!({"text": "quick"}));
    }
    for id in 0..100 {
        session.reply(id);
    }
    session.cancel("slow");
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn hundred_cancelled_calls_leave_nothing_behind() {
    let mut session = Session::misbehaving();
    for id in 0..100 {
        session.call(id, "sleeps", json!({"ms": 600_000, "progress_ms": 1}));
    }
    session.progress();
    for id in 0..100 {
        session.cancel(id);
    }
    session.request("line", "ping", json!({}));
    session.reply("line");
    let end = session.finish();
    assert_eq!(end.code, Some(0));
    assert!(
        end.rest
            .iter()
            .all(|m| m["method"] == "notifications/progress"),
        "no replies after a cancel"
    );
}
