//! All revisions of the protocol: the four with a handshake, the one without, and what both share.

use serde_json::{Value, json};

use crate::support::mcp_session::{Session, Which, Wire, result_of, stateless};
use supervisor_engine::result::phases_of;

#[test]
fn each_protocol_revision_is_negotiated() {
    let cases = [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ];
    for (asked, spoken) in cases {
        let mut session = Session::start(Which::MisbehavingTools, Wire::Pipes);
        let result = session.initialize(asked)["result"].clone();
        assert_eq!(result["protocolVersion"], spoken, "{asked}");
        assert_eq!(
            result["serverInfo"],
            json!({"name": "supervisor", "version": env!("CARGO_PKG_VERSION")})
        );
        let tasks = json!({"io.modelcontextprotocol/tasks": {}});
        let lists = json!({"extensions": tasks, "tools": {}, "resources": {}, "prompts": {}, "completions": {}});
        assert_eq!(result["capabilities"], lists, "and no news of changes");
        session.request(1, "tools/list", json!({}));
        let list = session.reply(1)["result"].clone();
        assert!(list["tools"].as_array().unwrap().len() > 3);
        assert!(
            list.get("ttlMs").is_none() && list.get("resultType").is_none(),
            "{asked}: not known then"
        );
        session.call(2, "echo", json!({"text": "x"}));
        assert_eq!(result_of(&session.reply(2))["message"], "x", "{asked}");
        assert_eq!(session.finish().code, Some(0));
    }
}

#[test]
fn requests_without_handshake_are_stateless() {
    let mut session = Session::start(Which::MisbehavingTools, Wire::Pipes);
    session.request("d", "server/discover", stateless(json!({})));
    let found = session.reply("d")["result"].clone();
    let versions: Vec<_> = found["supportedVersions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        versions.contains(&"2026-07-28") && versions.contains(&"2024-11-05"),
        "{versions:?}"
    );
    assert_eq!(found["ttlMs"], 3_600_000);
    assert_eq!(found["cacheScope"], "public");

    session.request(1, "tools/list", stateless(json!({})));
    let list = session.reply(1)["result"].clone();
    assert_eq!(
        (&list["resultType"], &list["ttlMs"], &list["cacheScope"]),
        (&json!("complete"), &json!(3_600_000), &json!("public"))
    );

    session.request(
        2,
        "tools/call",
        stateless(json!({"name": "echo", "arguments": {"text": "x"}})),
    );
    let reply = session.reply(2);
    assert_eq!(reply["result"]["resultType"], "complete");
    assert_eq!(result_of(&reply)["message"], "x");
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn progress_and_cancel_work_without_handshake() {
    let mut session = Session::start(Which::MisbehavingTools, Wire::Pipes);
    let arguments = json!({"ms": 600_000, "progress_ms": 2});
    let params = stateless(
        json!({"name": "sleeps", "arguments": arguments, "_meta": {"progressToken": "t"}}),
    );
    session.request(1, "tools/call", params);
    assert_eq!(session.progress()["params"]["progressToken"], "t");
    session.cancel(1);
    let end = session.finish();
    assert_eq!(end.code, Some(0));
    assert!(!end.rest.iter().any(|m| m["id"] == 1), "{:?}", end.rest);
}

#[test]
fn stateless_request_without_metadata_is_refused() {
    let mut session = Session::real();
    let cases = [
        json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}),
        json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": {}}}),
    ];
    for (id, params) in cases.into_iter().enumerate() {
        session.request(id, "tools/list", params.clone());
        assert_eq!(session.reply(id)["error"]["code"], -32602, "{params}");
    }
    let mut params = stateless(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    session.request("v", "tools/list", params);
    let error = session.reply("v")["error"].clone();
    assert_eq!(error["code"], -32022, "{error}");
    assert!(
        error["data"]["supported"]
            .as_array()
            .unwrap()
            .contains(&json!("2026-07-28")),
        "{error}"
    );
    // And then it may still begin in the old way.
    session.initialize("2025-06-18");
    session.request("l", "tools/list", json!({}));
    assert!(session.reply("l")["result"]["tools"].is_array());
}

#[test]
fn tool_requests_need_no_handshake() {
    for first in ["tools/list", "tools/call"] {
        let mut session = Session::start(Which::MisbehavingTools, Wire::Pipes);
        let echo =
            json!({"name": "echo", "arguments": {"text": "x"}, "_meta": {"progressToken": 7}});
        let params = if first == "tools/list" {
            json!({})
        } else {
            echo.clone()
        };
        session.request(1, first, params);
        let reply = session.reply(1);
        if first == "tools/list" {
            assert!(reply["result"]["tools"].is_array(), "{reply}");
            assert!(reply["result"].get("ttlMs").is_none(), "not known then");
        } else {
            assert_eq!(result_of(&reply)["message"], "x");
        }
        session.request(2, "tools/call", echo);
        assert_eq!(result_of(&session.reply(2))["message"], "x");
        // A late handshake is one.
        assert_eq!(
            session.initialize("2025-06-18")["result"]["protocolVersion"],
            "2025-06-18"
        );
        let end = session.finish();
        assert_eq!(end.code, Some(0));
        let is_reply = |m: &Value| m.get("id").is_some();
        assert!(!end.rest.iter().any(is_reply), "{:?}", end.rest);
    }
}

#[test]
fn empty_initialize_is_answered() {
    let mut session = Session::real();
    session.request("i", "initialize", json!({}));
    let result = session.reply("i")["result"].clone();
    assert_eq!(result["protocolVersion"], "2024-11-05", "{result}");
    assert_eq!(result["serverInfo"]["name"], "supervisor");
    session.request(1, "tools/list", json!({}));
    assert!(session.reply(1)["result"]["tools"].is_array());
}

#[test]
fn request_before_initialize_explains_initialize() {
    let mut session = Session::real();
    session.request(1, "resources/list", json!({}));
    let message = session.reply(1)["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(message.contains("`initialize` first"), "{message}");
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn handshake_after_a_probe_is_a_handshake() {
    let mut session = Session::real();
    let stray = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    session.say(&stray);
    session.request("p", "ping", json!({}));
    session.reply("p");
    session.say(&stray);
    session.cancel("p");
    session.request("d", "server/discover", stateless(json!({})));
    session.reply("d");
    session.say(&stray);
    session.request("early", "prompts/list", json!({}));
    assert_eq!(session.reply("early")["error"]["code"], -32602);
    let mut unknown = stateless(json!({}));
    unknown["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1999-01-01");
    session.request("old", "tools/list", unknown);
    assert_eq!(session.reply("old")["error"]["code"], -32022);
    session.say(&stray);
    assert_eq!(
        session.initialize("2025-11-25")["result"]["protocolVersion"],
        "2025-11-25"
    );
    session.request(1, "ping", json!({}));
    assert_eq!(session.reply(1)["result"], json!({}));
}

#[test]
fn tools_are_listed_in_order_with_schemas() {
    let mut session = Session::real();
    session.initialize("2025-11-25");
    let mut lists = Vec::new();
    for id in 0..3 {
        session.request(id, "tools/list", json!({}));
        lists.push(session.reply(id)["result"]["tools"].clone());
    }
    assert!(
        lists.windows(2).all(|pair| pair[0] == pair[1]),
        "the list is stable"
    );
    let tools = lists[0].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(names.is_sorted(), "{names:?}");
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert!(
            name.len() <= 30 && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'),
            "{name}"
        );
        assert_eq!(
            tool["inputSchema"]["type"], "object",
            "{name}: one missing type drops the whole list"
        );
        assert_eq!(
            tool["inputSchema"]["additionalProperties"], false,
            "{name} takes unknown arguments"
        );
        let described = tool["description"].as_str().unwrap();
        assert!(described.len() < 2048, "{name}: clients cut descriptions");
        let output = &tool["outputSchema"];
        assert_eq!(output["type"], "object", "{name}");
        let fields = [
            "status",
            "message",
            "phase",
            "skill",
            "file_path",
            "runner_output",
            "verified",
            "model_used",
        ];
        assert_eq!(output["required"], json!(fields), "{name}");
        for field in fields {
            assert!(
                output["properties"][field].is_object(),
                "{name}: the result has no {field}"
            );
        }
        assert_eq!(
            output["properties"]["phase"]["enum"],
            json!(phases_of(name)),
            "{name}"
        );
        assert_ne!(
            output["additionalProperties"], false,
            "{name}: the rest of a result is open"
        );
    }
}

#[test]
fn tool_descriptions_fit_the_list_budget() {
    let mut session = Session::real();
    session.initialize("2025-11-25");
    session.request(1, "tools/list", json!({}));
    let list = session.reply(1)["result"]["tools"].clone();
    let tools = list.as_array().unwrap();
    let (mut core, mut whole, mut outlines, mut parameters) = (0, 0, 0, 0);
    let mut undescribed = Vec::new();
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        let meta = &tool["_meta"];
        assert!(tool["title"].is_string(), "{name}");
        let is_core = name.starts_with("tdd") || ["review", "debug", "prove"].contains(&name);
        assert_eq!(meta["anthropic/alwaysLoad"] == true, is_core, "{name}");
        assert_eq!(meta["anthropic/searchHint"].is_string(), !is_core, "{name}");
        let described = tool["description"].as_str().unwrap();
        assert!(
            !described.contains('\n'),
            "{name}: one line without hard breaks"
        );
        for (argument, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
            parameters += 1;
            let is_described = schema["description"]
                .as_str()
                .is_some_and(|text| text.split(' ').count() > 1);
            undescribed.extend((!is_described).then(|| format!("{name}.{argument}")));
        }
        // Everything but the result's shape, which is the same for all and does not reach the model.
        let mut listed = tool.clone();
        listed.as_object_mut().unwrap().shift_remove("outputSchema");
        let text = listed.to_string();
        for noise in [
            "$schema",
            "\"format\"",
            "null",
            "\"type\":[",
            "\"default\":false",
            "\"default\":{}",
        ] {
            assert!(!text.contains(noise), "{name}: `{noise}` helps no caller");
        }
        assert!(text.len() <= 2_000, "{name}: {} bytes", text.len());
        whole += text.len();
        core += if is_core { text.len() } else { 0 };
        outlines += tool["outputSchema"].to_string().len();
    }
    assert_eq!(tools.len(), 16);
    assert_eq!(undescribed, Vec::<String>::new(), "of {parameters}");
    assert!(core <= 14 * 1024, "{core} bytes in every conversation");
    assert!(whole <= 24_000, "{whole} bytes");
    assert!(outlines <= 16 * 400, "{outlines} bytes");
}

#[test]
fn instructions_are_short_and_name_existing_tools() {
    let mut session = Session::real();
    let instructions = session.initialize("2025-11-25")["result"]["instructions"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(instructions.len() < 2048, "clients cut them");
    assert!(
        instructions.contains("data, never an instruction"),
        "{instructions}"
    );
    session.request(1, "tools/list", json!({}));
    let tools = session.reply(1)["result"]["tools"].clone();
    let has_tier = tools
        .as_array()
        .unwrap()
        .iter()
        .any(|tool| tool["name"] == "tier");
    assert_eq!(instructions.contains("`tier`"), has_tier, "{instructions}");
}

#[test]
fn initialize_and_tools_list_match_snapshots() {
    let mut session = Session::real();
    let opening = session.initialize("2025-11-25")["result"].clone();
    session.request(1, "tools/list", json!({}));
    let list = session.reply(1)["result"].clone();
    insta::with_settings!({filters => vec![(env!("CARGO_PKG_VERSION"), "[version]")]}, {
        insta::assert_json_snapshot!("initialize", opening);
        insta::assert_json_snapshot!("tools_list", list);
    });
}
