//! Lines that are no sound requests: each is answered as JSON-RPC wants it, and the server goes on.

use serde_json::{Value, json};

use crate::support::mcp_session::{Session, initialize};

/// A line, the id of the reply, its code, and words its message holds.
type Wrong = (&'static str, &'static str, Value, i64, &'static str);

fn wrong_lines() -> Vec<Wrong> {
    vec![
        (
            "cut off JSON",
            r#"{"jsonrpc":"2.0","id":1"#,
            Value::Null,
            -32700,
            "not JSON",
        ),
        ("plain text", "hello", Value::Null, -32700, "not JSON"),
        (
            "a trailing comma",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#,
            Value::Null,
            -32700,
            "not JSON",
        ),
        (
            "two objects on a line",
            r#"{"id":1} {"id":2}"#,
            Value::Null,
            -32700,
            "not JSON",
        ),
        ("single quotes", "{'id':1}", Value::Null, -32700, "not JSON"),
        (
            "NaN",
            r#"{"jsonrpc":"2.0","id":NaN,"method":"ping"}"#,
            Value::Null,
            -32700,
            "not JSON",
        ),
        ("a NUL", "\0", Value::Null, -32700, "not JSON"),
        ("a number", "42", Value::Null, -32600, "a JSON object"),
        ("a string", "\"ping\"", Value::Null, -32600, "a JSON object"),
        ("null", "null", Value::Null, -32600, "a JSON object"),
        ("an empty object", "{}", Value::Null, -32600, "`method`"),
        (
            "an id alone",
            r#"{"jsonrpc":"2.0","id":11}"#,
            json!(11),
            -32600,
            "`method`",
        ),
        (
            "a method that is a number",
            r#"{"jsonrpc":"2.0","id":12,"method":1}"#,
            json!(12),
            -32600,
            "`method`",
        ),
        (
            "a method that is null",
            r#"{"jsonrpc":"2.0","id":13,"method":null}"#,
            json!(13),
            -32600,
            "`method`",
        ),
        (
            "no jsonrpc",
            r#"{"id":14,"method":"ping"}"#,
            json!(14),
            -32600,
            "`jsonrpc`",
        ),
        (
            "jsonrpc 1.0",
            r#"{"jsonrpc":"1.0","id":15,"method":"ping"}"#,
            json!(15),
            -32600,
            "`jsonrpc`",
        ),
        (
            "jsonrpc as a number",
            r#"{"jsonrpc":2.0,"id":16,"method":"ping"}"#,
            json!(16),
            -32600,
            "`jsonrpc`",
        ),
        (
            "an id that is null",
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            Value::Null,
            -32600,
            "`id`",
        ),
        (
            "an id that is an object",
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            Value::Null,
            -32600,
            "`id`",
        ),
        (
            "an id that is a bool",
            r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
            Value::Null,
            -32600,
            "`id`",
        ),
        (
            "an id with a fraction",
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            json!(1.5),
            -32600,
            "`id`",
        ),
        (
            "a request with a result",
            r#"{"jsonrpc":"2.0","id":17,"method":"ping","result":{}}"#,
            json!(17),
            -32600,
            "result",
        ),
        (
            "params as an array",
            r#"{"jsonrpc":"2.0","id":18,"method":"tools/list","params":[]}"#,
            json!(18),
            -32602,
            "`params`",
        ),
        (
            "params as a string",
            r#"{"jsonrpc":"2.0","id":19,"method":"ping","params":"x"}"#,
            json!(19),
            -32602,
            "`params`",
        ),
        (
            "a call without a name",
            r#"{"jsonrpc":"2.0","id":20,"method":"tools/call","params":{}}"#,
            json!(20),
            -32602,
            "`name`",
        ),
        (
            "a call without params",
            r#"{"jsonrpc":"2.0","id":21,"method":"tools/call"}"#,
            json!(21),
            -32602,
            "`name`",
        ),
        (
            "a name that is a number",
            r#"{"jsonrpc":"2.0","id":22,"method":"tools/call","params":{"name":5}}"#,
            json!(22),
            -32602,
            "`name`",
        ),
        (
            "arguments as an array",
            r#"{"jsonrpc":"2.0","id":23,"method":"tools/call","params":{"name":"x","arguments":[1]}}"#,
            json!(23),
            -32602,
            "`arguments`",
        ),
        (
            "arguments as a string",
            r#"{"jsonrpc":"2.0","id":"s24","method":"tools/call","params":{"name":"x","arguments":"{}"}}"#,
            json!("s24"),
            -32602,
            "`arguments`",
        ),
        (
            "a cursor we never gave",
            r#"{"jsonrpc":"2.0","id":25,"method":"tools/list","params":{"cursor":"z"}}"#,
            json!(25),
            -32602,
            "cursor",
        ),
        (
            "a cursor that is a number",
            r#"{"jsonrpc":"2.0","id":26,"method":"tools/list","params":{"cursor":5}}"#,
            json!(26),
            -32602,
            "`cursor`",
        ),
        (
            "initialize without params",
            r#"{"jsonrpc":"2.0","id":27,"method":"initialize"}"#,
            json!(27),
            -32602,
            "`protocolVersion`",
        ),
        (
            "an unknown method",
            r#"{"jsonrpc":"2.0","id":28,"method":"tools/destroy"}"#,
            json!(28),
            -32601,
            "`tools/destroy`",
        ),
        (
            "a method with an empty name",
            r#"{"jsonrpc":"2.0","id":29,"method":""}"#,
            json!(29),
            -32601,
            "unknown method",
        ),
        (
            "a prompt that we have not",
            r#"{"jsonrpc":"2.0","id":30,"method":"prompts/get","params":{"name":"x"}}"#,
            json!(30),
            -32602,
            "unknown prompt `x`",
        ),
        (
            "an unknown tool",
            r#"{"jsonrpc":"2.0","id":31,"method":"tools/call","params":{"name":"tierr"}}"#,
            json!(31),
            -32602,
            "unknown tool `tierr`",
        ),
        ("an empty batch", "[]", Value::Null, -32600, "batches"),
        (
            "a batch of notifications",
            r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#,
            Value::Null,
            -32600,
            "batches",
        ),
        (
            "a batch with one request",
            r#"[{"jsonrpc":"2.0","id":32,"method":"ping"}]"#,
            json!(32),
            -32600,
            "batches",
        ),
    ]
}

#[test]
fn each_wrong_line_is_answered_by_id() {
    let mut session = Session::real();
    session.initialize("2025-11-25");
    for (n, (name, line, id, code, words)) in wrong_lines().into_iter().enumerate() {
        session.say_raw(format!("{line}\n").as_bytes());
        let after = format!("after {n}");
        session.request(after.as_str(), "ping", json!({}));
        let reply = session.reply(id);
        assert_eq!(reply["error"]["code"], code, "{name}: {reply}");
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{name}: {message}");
        assert_eq!(session.reply(after.as_str())["result"], json!({}), "{name}");
    }
    let end = session.finish();
    assert_eq!(
        (end.code, end.rest),
        (Some(0), vec![]),
        "each line has one reply"
    );
}

#[test]
fn wrong_lines_before_initialize_are_answered_too() {
    let mut session = Session::real();
    for (name, line, id, code, _) in wrong_lines() {
        if code == -32601 || name.starts_with("an unknown tool") || name.starts_with("a cursor we")
        {
            continue; // before the handshake these are refused for another reason
        }
        session.say_raw(format!("{line}\n").as_bytes());
        assert_eq!(session.reply(id)["error"]["code"], code, "{name}");
    }
    session.initialize("2025-11-25");
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn notifications_are_never_answered() {
    let strays = [
        "",
        "   ",
        "\r",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard_of","params":{"x":1}}"#,
        r#"{"jsonrpc":"2.0","method":"unheard_of"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"unknown"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":"much"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
        r#"{"jsonrpc":"1.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{},"error":{}}"#,
    ];
    for initialized in [false, true] {
        let mut session = Session::real();
        if initialized {
            session.initialize("2025-06-18");
        }
        for line in strays {
            session.say_raw(format!("{line}\n").as_bytes());
        }
        session.say(&initialize("2025-06-18"));
        session.reply("init");
        let end = session.finish();
        assert_eq!(
            (end.code, end.rest),
            (Some(0), vec![]),
            "initialized before: {initialized}"
        );
    }
}

#[test]
fn ids_are_echoed_unchanged() {
    let mut session = Session::real();
    session.initialize("2025-11-25");
    let ids = [
        json!(0),
        json!(-1),
        json!(9_007_199_254_740_993_i64),
        json!(i64::MAX),
        json!(""),
        json!("0"),
        json!("a \"quoted\" é 😀 \u{0} id"),
        json!("x".repeat(10_000)),
    ];
    for id in ids {
        session.request(id.clone(), "ping", json!({}));
        assert_eq!(session.reply(id)["result"], json!({}));
    }
    assert!(session.finish().rest.is_empty());
}

#[test]
fn odd_but_valid_lines_are_served() {
    let mut session = Session::real();
    session.initialize("2025-11-25");
    let lines: &[(&[u8], Value)] = &[
        (
            b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n",
            json!(1),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\r\n",
            json!(2),
        ),
        (
            b"  \t{\"jsonrpc\" : \"2.0\" , \"id\" : 3 , \"method\" : \"ping\"}  \n",
            json!(3),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\",\"params\":null}\n",
            json!(4),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"extra\":[1,2]}\n",
            json!(5),
        ),
        (
            b"{\"method\":\"ping\",\"id\":6,\"jsonrpc\":\"2.0\"}\n",
            json!(6),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"id\":8,\"method\":\"ping\"}\n",
            json!(8),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"p\\u0069ng\"}\n",
            json!(9),
        ),
    ];
    for (line, id) in lines {
        session.say_raw(line);
        assert_eq!(
            session.reply(id.clone())["result"],
            json!({}),
            "{}",
            String::from_utf8_lossy(line)
        );
    }
    assert!(session.finish().rest.is_empty());
}

#[test]
fn request_sent_byte_by_byte_is_served() {
    let mut session = Session::real();
    for byte in format!("{}\n", initialize("2025-11-25")).as_bytes() {
        session.say_raw(&[*byte]);
    }
    assert_eq!(
        session.reply("init")["result"]["serverInfo"]["name"],
        "supervisor"
    );
}

#[test]
fn invalid_utf8_is_a_parse_error() {
    let mut session = Session::real();
    session.initialize("2025-11-25");
    for line in [
        &b"\xff\xfe\n"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}\n",
        b"\x00\x01\x02\n",
    ] {
        session.say_raw(line);
        assert_eq!(session.reply(Value::Null)["error"]["code"], -32700);
    }
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn deep_nesting_is_refused_by_id() {
    let mut session = Session::real();
    session.initialize("2025-11-25");
    for (id, depth) in [(1, 200), (2, 100_000)] {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{{\"name\":\"x\",\"arguments\":{{\"a\":{}{}}}}},\"id\":{id}}}\n",
            "[".repeat(depth),
            "]".repeat(depth)
        );
        session.say_raw(line.as_bytes());
        assert_eq!(session.reply(id)["error"]["code"], -32700, "{depth} deep");
    }
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn line_of_40_mb_is_refused_unbuffered() {
    let mut session = Session::real();
    session.initialize("2025-11-25");
    let filling = "x".repeat(40_000_000);
    session.say_raw(
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":\"first\",\"method\":\"tools/call\",\"params\":{{\"name\":\"{filling}\"}}}}\n"
        )
        .as_bytes(),
    );
    session.say_raw(
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{{\"id\":3,\"name\":\"{filling}\"}},\"id\":\"last\"}}\n").as_bytes(),
    );
    session.say_raw(format!("{filling}\n").as_bytes());
    for id in [json!("first"), json!("last"), Value::Null] {
        let error = session.reply(id)["error"].clone();
        assert_eq!(error["code"], -32600, "{error}");
        assert!(
            error["message"].as_str().unwrap().contains("16 MiB"),
            "{error}"
        );
    }
    // The peak, as the system counted it: the limit twice over while a buffer grows, plus the program, not 40 MB.
    let status = std::fs::read_to_string(format!("/proc/{}/status", session.process.id())).unwrap();
    let peak = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .unwrap();
    let peak_kb: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kb < 80_000, "peak {peak_kb} kB");
    session.request(1, "ping", json!({}));
    session.reply(1);
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn line_of_10_mb_is_served() {
    let mut session = Session::misbehaving();
    session.call(1, "echo", json!({"text": "y".repeat(10_000_000)}));
    assert_eq!(session.reply(1)["result"]["isError"], false);
}
