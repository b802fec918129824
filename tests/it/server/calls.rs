//! What a call looks like when the tool misbehaves: the client always gets one sound answer, or none after a cancel.

use serde_json::{Value, json};
use supervisor_mcp::{Server, SessionEnd, serve};
use supervisor_skills::MAX_PROGRESS;
use supervisor_skills::reply::{MAX_ERROR, MAX_RESULT};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio_util::sync::CancellationToken;

use crate::support::mcp_session::{Session, initialize, result_of, until};
use crate::support::mcp_tools;

#[test]
fn panicking_tool_answers_with_an_error() {
    let mut session = Session::misbehaving();
    for id in 0..20 {
        session.call(id, "panics", json!({}));
    }
    for id in 0..20 {
        let result = result_of(&session.reply(id));
        assert_eq!(result["status"], "error");
        assert_eq!(result["skill"], "panics");
        assert!(
            result["message"]
                .as_str()
                .unwrap()
                .contains("the tool fell over"),
            "{result}"
        );
    }
    session.call(99, "echo", json!({"text": "alive"}));
    assert_eq!(result_of(&session.reply(99))["message"], "alive");
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn protocol_error_of_a_tool_becomes_a_result() {
    let mut session = Session::misbehaving();
    session.call(1, "refuses", json!({}));
    assert_eq!(result_of(&session.reply(1))["message"], "the disk is full");
}

#[test]
fn wrong_argument_names_field_and_example() {
    let cases = [
        (
            json!({}),
            vec![
                "`echo`",
                "`text` is missing",
                "What to say",
                r#"example: {"text":"…"}"#,
            ],
        ),
        (
            json!({"text": 5}),
            vec!["`text` does not fit", "accepted: a string", "got 5"],
        ),
        (
            json!({"text": "a", "times": "many"}),
            vec!["`times`", "accepted: an integer", "got \"many\""],
        ),
        (json!({"text": "a", "times": -1}), vec!["`times`", "got -1"]),
        (
            json!({"text": "a", "tiems": 1}),
            vec![
                "unknown argument `tiems`",
                "did you mean `times`?",
                "`text` or `times`",
            ],
        ),
        (json!({"text": ["a"]}), vec!["`text`", "got [\"a\"]"]),
        (json!({"text": null}), vec!["`text` is missing"]),
    ];
    let mut session = Session::misbehaving();
    for (n, (arguments, wanted)) in cases.into_iter().enumerate() {
        session.call(n, "echo", arguments.clone());
        let result = result_of(&session.reply(n));
        assert_eq!(result["status"], "error", "{arguments}");
        for words in wanted {
            let message = result["message"].as_str().unwrap();
            assert!(
                message.contains(words),
                "{arguments}: `{words}` is not in: {message}"
            );
        }
    }
    session.request(
        "none",
        "tools/call",
        json!({"name": "panics", "arguments": {"x": 1}}),
    );
    let message = result_of(&session.reply("none"))["message"].clone();
    assert!(
        message.as_str().unwrap().contains("takes no arguments"),
        "{message}"
    );
}

#[test]
fn argument_with_clear_meaning_is_coerced() {
    let mut session = Session::misbehaving();
    let cases = [
        json!({"text": "ab", "times": 2}),
        json!({"text": "ab", "times": 2.0}),
        json!({"text": "ab", "times": "2"}),
    ];
    for (n, arguments) in cases.into_iter().enumerate() {
        session.call(n, "echo", arguments.clone());
        assert_eq!(
            result_of(&session.reply(n))["runner_output"],
            "abab",
            "{arguments}"
        );
    }
    session.call("null", "echo", json!({"text": "ab", "times": null}));
    assert_eq!(result_of(&session.reply("null"))["runner_output"], "");
}

#[test]
fn unknown_tool_lists_the_known_ones() {
    let mut session = Session::misbehaving();
    session.call(1, "ecko", json!({}));
    let error = session.reply(1)["error"].clone();
    assert_eq!(error["code"], -32602);
    let message = error["message"].as_str().unwrap();
    for words in [
        "unknown tool `ecko`",
        "did you mean `echo`?",
        "`panics`",
        "`sleeps`",
    ] {
        assert!(message.contains(words), "{message}");
    }
    session.call(2, &"long".repeat(100_000), json!({}));
    let message = session.reply(2)["error"]["message"].to_string();
    assert!(message.len() < 1000, "{} characters", message.len());
}

#[test]
fn long_result_is_cut_and_stays_valid() {
    let mut session = Session::misbehaving();
    for (id, tool, limit) in [(1, "echo", MAX_RESULT), (2, "fails", MAX_ERROR)] {
        session.call(
            id,
            tool,
            json!({"text": "é\"\\\u{1b} line\n", "times": 20_000}),
        );
        let reply = session.reply(id);
        let result = result_of(&reply);
        let text = reply["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.len() < limit, "{tool}: {}", text.len());
        assert!(
            text.len() > limit / 2,
            "{tool}: more was cut than had to be: {}",
            text.len()
        );
        assert!(
            result["runner_output"]
                .as_str()
                .unwrap()
                .contains("bytes cut")
        );
        assert_eq!(result["message"], "é\"\\\u{1b} line\n");
    }
}

#[test]
fn progress_grows_and_precedes_the_reply() {
    let mut session = Session::misbehaving();
    session.call("p", "floods", json!({"count": 3, "text": "é".repeat(1000)}));
    let mut last = 0.0;
    for _ in 0..3 {
        let params = session.progress()["params"].clone();
        assert_eq!(params["progressToken"], "p");
        let message = params["message"].as_str().unwrap();
        assert_eq!(message.chars().count(), MAX_PROGRESS, "{message}");
        let now = params["progress"].as_f64().unwrap();
        assert!(now > last);
        last = now;
    }
    session.reply("p");
    assert!(session.finish().rest.is_empty());
}

#[test]
fn without_a_token_there_is_no_progress() {
    let mut session = Session::misbehaving();
    session.request(
        1,
        "tools/call",
        json!({"name": "floods", "arguments": {"count": 100}}),
    );
    session.reply(1);
    assert!(session.finish().rest.is_empty());
}

#[test]
fn no_progress_follows_the_reply() {
    let mut session = Session::misbehaving();
    session.call(1, "sleeps", json!({"ms": 1, "linger": true}));
    session.reply(1);
    session.forget(); // what came before the reply was in time
    session.call(2, "sleeps", json!({"ms": 100}));
    session.reply(2);
    let late: Vec<_> = session
        .finish()
        .rest
        .into_iter()
        .filter(|m| m["params"]["message"] == "too late")
        .collect();
    assert!(late.is_empty(), "{late:?}");
}

#[test]
fn progress_flood_does_not_delay_the_reply() {
    let mut session = Session::misbehaving();
    // Nothing is read from the server until its reply is due: the scenario's reader is stopped by not asking.
    session.call(
        1,
        "floods",
        json!({"count": 200_000, "text": "x".repeat(150)}),
    );
    session.call(2, "echo", json!({"text": "on time"}));
    assert_eq!(result_of(&session.reply(2))["message"], "on time");
    assert_eq!(result_of(&session.reply(1))["message"], "flooded");
}

#[test]
fn cancelled_call_stops_and_sends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::misbehaving();
    for id in [json!(1), json!("one")] {
        let stopped = dir.path().join(format!("stopped {id}"));
        session.call(
            id.clone(),
            "sleeps",
            json!({"ms": 600_000, "progress_ms": 1, "on_stop": stopped}),
        );
        session.progress(); // it runs
        session.cancel(id.clone());
        until("the call to be told", || stopped.exists());
        // What was queued before the cancel was read is allowed; a reply to a later request draws the line.
        session.request("line", "ping", json!({}));
        session.reply("line");
    }
    session.request("second line", "ping", json!({}));
    session.reply("second line");
    let end = session.finish();
    assert_eq!(end.code, Some(0));
    assert!(
        end.rest
            .iter()
            .all(|m| m["method"] == "notifications/progress"),
        "no reply after a cancel: {:?}",
        end.rest
    );
}

#[test]
fn late_or_unknown_cancel_changes_nothing() {
    let mut session = Session::misbehaving();
    session.call(1, "echo", json!({"text": "a"}));
    session.reply(1);
    session.cancel(1);
    session.cancel("nobody");
    session.cancel(Value::Null);
    session.call(1, "echo", json!({"text": "b"}));
    assert_eq!(
        result_of(&session.reply(1))["message"],
        "b",
        "an id may be used again"
    );
    assert!(session.finish().rest.is_empty());
}

#[test]
fn duplicate_request_id_is_harmless() {
    let mut session = Session::misbehaving();
    session.call(7, "sleeps", json!({"ms": 600_000}));
    session.call(7, "echo", json!({"text": "second"}));
    session.reply(7);
    session.call(8, "echo", json!({"text": "after"}));
    assert_eq!(result_of(&session.reply(8))["message"], "after");
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn second_initialize_is_answered() {
    let mut session = Session::misbehaving();
    session.say(&initialize("2024-11-05"));
    assert_eq!(
        session.reply("init")["result"]["protocolVersion"],
        "2024-11-05"
    );
    session.call(1, "echo", json!({"text": "x"}));
    session.reply(1);
}

/// The same server without a process around it, as other programs may embed it.
#[tokio::test]
async fn in_process_session_answers_all_before_eof() {
    let (mut to_server, input) = tokio::io::duplex(64);
    let (output, from_server) = tokio::io::duplex(64);
    let server = Server::with_tools(supervisor::built_in::app(None), mcp_tools::router());
    let session = tokio::spawn(serve(server, input, output, CancellationToken::new()));
    let writer = tokio::spawn(async move {
        to_server
            .write_all(format!("{}\n", initialize("2025-11-25")).as_bytes())
            .await
            .unwrap();
        for id in 0..50 {
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": "echo", "arguments": {"text": "x".repeat(500)}}});
            to_server
                .write_all(format!("{call}\n").as_bytes())
                .await
                .unwrap();
        }
    });
    let mut lines = BufReader::new(from_server).lines();
    let mut count = 0;
    while let Some(line) = lines.next_line().await.unwrap() {
        assert!(
            serde_json::from_str::<Value>(&line).unwrap()["error"].is_null(),
            "{line}"
        );
        count += 1;
    }
    writer.await.unwrap();
    assert_eq!(count, 51);
    assert_eq!(session.await.unwrap(), SessionEnd::Input);
}

#[tokio::test]
async fn in_process_session_ends_when_reader_closes() {
    let dir = tempfile::tempdir().unwrap();
    let stopped = dir.path().join("stopped");
    let (mut to_server, input) = tokio::io::duplex(64 * 1024);
    let (output, from_server) = tokio::io::duplex(64);
    let server = Server::with_tools(supervisor::built_in::app(None), mcp_tools::router());
    let session = tokio::spawn(serve(server, input, output, CancellationToken::new()));
    to_server
        .write_all(format!("{}\n", initialize("2025-11-25")).as_bytes())
        .await
        .unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "sleeps", "_meta": {"progressToken": 1},
        "arguments": {"ms": 600_000, "progress_ms": 5, "on_stop": stopped}}});
    to_server
        .write_all(format!("{call}\n").as_bytes())
        .await
        .unwrap();
    let mut lines = BufReader::new(from_server).lines();
    while !lines
        .next_line()
        .await
        .unwrap()
        .unwrap()
        .contains("still asleep")
    {}
    drop(lines);
    assert_eq!(session.await.unwrap(), SessionEnd::Output);
    assert!(
        stopped.exists(),
        "the call was told to stop, and was waited for"
    );
}
