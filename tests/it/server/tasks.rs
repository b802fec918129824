//! Calls that last, as a client of the protocol sees them: a handle at once, the result when it is asked for, again after
//! a restart, and never for a call that edits in place.

mod aftermath;
mod commands;
mod crashes;
mod overlay;

use crate::support::tasks::{
    ask, cancel, ended, get, hanging_review, offered, offering, offering_with, on, silent, start,
    start_hanging,
};
use serde_json::{Value, json};

use crate::support::mcp_session::result_of;
use crate::support::review_project::{both, good, shop};

/// A result that was fetched, in the shape of a reply.
fn fetched(task: &Value) -> Value {
    assert_eq!(task["status"], "completed", "{task:#}");
    result_of(&json!({"result": task["result"]}))
}

#[test]
fn review_returns_a_refetchable_task() {
    let scenario = shop(&["small"]).answers("small", &good());
    let mut session = offering(&scenario);
    let id = start(&mut session, "review", on(&scenario, both()));
    let first = ended(&mut session, &id);
    assert_eq!(fetched(&first)["status"], "pass", "{first:#}");
    assert_eq!(
        (&first["taskId"], &first["ttlMs"]),
        (&json!(id), &json!(7 * 24 * 60 * 60 * 1000))
    );
    assert_eq!(first["statusMessage"], fetched(&first)["message"]);
    assert_eq!(
        get(&mut session, &id),
        first,
        "fetched again it is the same"
    );
    assert_eq!(session.finish().code, Some(0));
    let mut restarted = offering(&scenario);
    assert_eq!(get(&mut restarted, &id), first, "also from a new server");
}

#[test]
fn task_names_the_project_it_found() {
    let scenario = shop(&["small"]).answers("small", &good());
    std::fs::create_dir(scenario.root().join(".git")).unwrap();
    let mut command = scenario.command();
    command.current_dir(scenario.root());
    let mut session = offering_with(command);
    let id = start(&mut session, "review", both());
    let task = ended(&mut session, &id);
    let reply = &task["result"]["structuredContent"];
    assert_eq!(reply["project_root"], json!(scenario.root()), "{task:#}");
}

#[test]
fn short_call_is_answered_without_a_task() {
    let scenario = shop(&["small"])
        .answers("small", &good())
        .env("SUPERVISOR_FOREGROUND_S", "600");
    let mut session = offering(&scenario);
    let call = json!({"name": "review", "arguments": on(&scenario, both())});
    let reply = ask(&mut session, "tools/call", call);
    assert_eq!(result_of(&reply)["status"], "pass", "{reply}");
    let tasks = ask(&mut session, "tasks/list", json!({}))["result"]["tasks"].clone();
    assert_eq!(tasks, json!([]));
}

#[test]
fn long_call_becomes_a_task_after_the_hold() {
    let scenario = hanging_review().env("SUPERVISOR_FOREGROUND_S", "1");
    let mut session = offering(&scenario);
    let began = std::time::Instant::now();
    let id = start_hanging(&mut session, &scenario);
    assert!(began.elapsed() >= std::time::Duration::from_secs(1));
    cancel(&mut session, &id);
    assert_eq!(ended(&mut session, &id)["status"], "cancelled");
}

#[test]
fn call_cancelled_in_the_foreground_leaves_no_task() {
    let scenario = hanging_review().env("SUPERVISOR_FOREGROUND_S", "600");
    let mut session = offering(&scenario);
    session.call("start", "review", on(&scenario, both()));
    crate::support::mcp_session::until("the question to the model", || {
        !scenario.asked_of("small").is_empty()
    });
    session.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "start"}}),
    );
    let log = scenario.state.path().join("state/sessions");
    crate::support::mcp_session::until("the entry of the call", || {
        let files = std::fs::read_dir(&log).into_iter().flatten().flatten();
        let mut texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.any(|text| text.contains("\"cause\":\"cancelled\""))
    });
    let tasks = ask(&mut session, "tasks/list", json!({}))["result"]["tasks"].clone();
    assert_eq!(tasks, json!([]));
}

#[test]
fn tasks_offered_per_request_work_alike() {
    let scenario = shop(&["small"]).answers("small", &good());
    let mut session = silent(&scenario);
    let call = offered(json!({"name": "review", "arguments": on(&scenario, both())}));
    let handle = ask(&mut session, "tools/call", call)["result"].clone();
    assert_eq!(
        (&handle["resultType"], &handle["status"]),
        (&json!("task"), &json!("working")),
        "{handle}"
    );
    let mut task = handle.clone();
    while task["status"] == "working" {
        task = ask(
            &mut session,
            "tasks/get",
            offered(json!({"taskId": handle["taskId"]})),
        )["result"]
            .clone();
    }
    assert_eq!(fetched(&task)["status"], "pass");
    assert_eq!(task["resultType"], "complete");
    // It asked for nothing, so that whatever is sent is taken and changes nothing.
    let update = offered(json!({"taskId": handle["taskId"], "inputResponses": {}}));
    assert!(ask(&mut session, "tasks/update", update)["result"].is_object());
    let bare = json!({"name": "review", "arguments": on(&scenario, both())});
    let blocking = ask(
        &mut session,
        "tools/call",
        crate::support::mcp_session::stateless(bare),
    );
    assert!(
        blocking["result"]["structuredContent"].is_object(),
        "this request offers nothing: {blocking}"
    );
}

#[test]
fn without_task_support_calls_block() {
    let mut scenario = shop(&["small"]).answers("small", &good());
    assert_eq!(scenario.call("review", both())["status"], "pass");
    let session = scenario.session();
    let refused = ask(session, "tasks/get", json!({"taskId": "0"}));
    assert_eq!(
        refused["error"]["code"], -32021,
        "the capability is missing: {refused}"
    );
    // The wish of the revision of 2025-11 counts only with a server that declares that revision's capability.
    scenario.say("small", &good());
    let (root, session) = (scenario.root(), scenario.session());
    let mut arguments = both();
    arguments["project_root"] = json!(root);
    session.request(
        "older",
        "tools/call",
        json!({"name": "review", "arguments": arguments, "task": {"ttl": 60_000}}),
    );
    assert_eq!(
        result_of(&session.reply_after_tests("older"))["status"],
        "pass"
    );
    assert_eq!(
        ask(session, "tasks/list", json!({}))["result"]["tasks"],
        json!([])
    );
}

#[test]
fn immediate_answer_is_not_a_task() {
    let scenario = shop(&["small"]).answers("small", &good());
    let mut session = offering(&scenario);
    for (tool, arguments, status) in [
        (
            "review",
            on(
                &scenario,
                json!({"files": ["src/shop.py"], "dry_run": true}),
            ),
            "pass",
        ),
        (
            "review",
            on(&scenario, json!({"files": ["gone.py"], "base": 5})),
            "error",
        ),
        (
            "review",
            json!({"project_root": "/nonexistent/project", "files": ["a.py"]}),
            "error",
        ),
        ("session_log", json!({"operation": "list"}), "pass"),
    ] {
        session.call("now", tool, arguments.clone());
        let reply = session.reply_after_tests("now");
        assert_eq!(
            reply["result"]["structuredContent"]["status"], status,
            "{tool} {arguments}: {reply}"
        );
    }
    assert_eq!(
        ask(&mut session, "tasks/list", json!({}))["result"]["tasks"],
        json!([])
    );
}

#[test]
fn cancelled_task_leaves_the_project_unchanged() {
    let scenario = hanging_review();
    let before = scenario.tree();
    let mut session = offering(&scenario);
    let id = start_hanging(&mut session, &scenario);
    let working = get(&mut session, &id);
    assert_eq!(working["status"], "working");
    assert!(
        working["statusMessage"]
            .as_str()
            .unwrap()
            .contains("review · tier 1/1 small · ask"),
        "{working}"
    );
    cancel(&mut session, &id);
    let task = ended(&mut session, &id);
    assert_eq!(
        (&task["status"], task.get("result")),
        (&json!("cancelled"), None),
        "{task:#}"
    );
    cancel(&mut session, &id);
    assert_eq!(
        get(&mut session, &id),
        task,
        "one that is over stays as it ended"
    );
    assert_eq!(scenario.tree(), before);
    let result = ask(&mut session, "tasks/result", json!({"taskId": id}));
    assert_eq!(result["error"]["data"]["cause"], "cancelled", "{result}");
}

#[test]
fn two_clients_share_one_task() {
    let scenario = hanging_review();
    let (mut one, mut other) = (offering(&scenario), offering(&scenario));
    let id = start_hanging(&mut one, &scenario);
    assert_eq!(
        get(&mut other, &id)["status"],
        "working",
        "the server of the other client is alive"
    );
    cancel(&mut other, &id);
    let (seen, seen_too) = (ended(&mut other, &id), ended(&mut one, &id));
    assert_eq!(seen["status"], "cancelled", "{seen:#}");
    assert_eq!(seen, seen_too);
}

#[test]
fn unknown_and_missing_task_ids_are_named() {
    let scenario = shop(&["small"]);
    let mut session = offering(&scenario);
    for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
        for (params, words) in [
            (json!({"taskId": "0123456789abcdef"}), "unknown task"),
            (json!({"taskId": "../answers"}), "unknown task"),
            (json!({"taskId": "x".repeat(10_000)}), "unknown task"),
            (json!({"taskId": 5}), "taskId"),
            (json!({}), "taskId"),
        ] {
            let error = ask(&mut session, method, params.clone())["error"].clone();
            assert_eq!(error["code"], -32602, "{method} {params}: {error}");
            let message = error["message"].as_str().unwrap();
            assert!(
                message.contains(words) && message.len() < 500,
                "{method} {params}: {message}"
            );
        }
    }
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn older_methods_list_and_await_tasks() {
    let mut scenario = shop(&["small"]);
    scenario.line(&json!({"model": "small", "answer": good(), "wait_ms": 300}));
    let mut session = offering(&scenario);
    let id = start(&mut session, "review", on(&scenario, both()));
    let listed = ask(&mut session, "tasks/list", json!({}))["result"]["tasks"].clone();
    assert_eq!(
        (&listed[0]["taskId"], &listed[0]["ttl"]),
        (&json!(id), &listed[0]["ttlMs"]),
        "{listed}"
    );
    let reply = ask(&mut session, "tasks/result", json!({"taskId": id}));
    assert_eq!(
        reply["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"],
        json!(id),
        "{reply}"
    );
    assert_eq!(result_of(&reply), fetched(&get(&mut session, &id)));
}

#[test]
fn task_ends_as_stopped_at_eof() {
    let scenario = hanging_review();
    let mut session = offering(&scenario);
    let id = start_hanging(&mut session, &scenario);
    assert_eq!(session.finish().code, Some(0));
    let task = get(&mut offering(&scenario), &id);
    assert_eq!(
        (&task["status"], &task["error"]["data"]["cause"]),
        (&json!("failed"), &json!("stopped")),
        "{task:#}"
    );
}
