//! A client that offers tasks, for the projects of `scenario` and `review_project`.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::mcp_session::{Session, until};
use crate::support::review_project::{both, shop};
use crate::support::scenario::Scenario;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A server whose client has offered tasks in `initialize`.
pub(crate) fn offering(scenario: &Scenario) -> Session {
    offering_with(scenario.command())
}

pub(crate) fn offering_with(command: Command) -> Session {
    let mut session = start_silent(command);
    session.say(
        &json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"extensions": {EXTENSION: {}}},
        "clientInfo": {"name": "bench", "version": "1"}}}),
    );
    let opening = session.reply("init");
    assert!(
        opening["result"]["capabilities"]["extensions"][EXTENSION].is_object(),
        "{opening}"
    );
    session.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    session
}

/// A server to which nothing was said yet.
pub(crate) fn silent(scenario: &Scenario) -> Session {
    start_silent(scenario.command())
}

fn start_silent(mut command: Command) -> Session {
    let mut process = command.spawn().unwrap();
    let (stdin, stdout) = (
        process.stdin.take().unwrap(),
        process.stdout.take().unwrap(),
    );
    Session::with(process, Some(Box::new(stdin)), Box::new(stdout))
}

/// What a client of 2026-07-28 adds to each request to offer tasks.
pub(crate) fn offered(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"extensions": {EXTENSION: {}}});
    params
}

/// The arguments of a tool, with the project.
pub(crate) fn on(scenario: &Scenario, mut arguments: Value) -> Value {
    arguments["project_root"] = json!(scenario.root());
    arguments
}

/// Calls a tool and expects a handle.
pub(crate) fn start(session: &mut Session, tool: &str, arguments: Value) -> String {
    session.call("start", tool, arguments);
    let reply = session.reply_after_tests("start");
    assert_eq!(reply["result"]["resultType"], "task", "{reply}");
    reply["result"]["taskId"].as_str().unwrap().to_owned()
}

/// One request about tasks, with its whole reply.
pub(crate) fn ask(session: &mut Session, method: &str, params: Value) -> Value {
    session.request("ask", method, params);
    session.reply_after_tests("ask")
}

pub(crate) fn get(session: &mut Session, id: &str) -> Value {
    let reply = ask(session, "tasks/get", json!({"taskId": id}));
    assert!(reply["result"].is_object(), "{reply}");
    reply["result"].clone()
}

pub(crate) fn cancel(session: &mut Session, id: &str) {
    let reply = ask(session, "tasks/cancel", json!({"taskId": id}));
    assert!(reply["result"].is_object(), "{reply}");
}

/// Polls until the task is over.
pub(crate) fn ended(session: &mut Session, id: &str) -> Value {
    let mut task = Value::Null;
    until("the end of a task", || {
        task = get(session, id);
        task["status"] != "working"
    });
    task
}

/// A review whose only model never answers.
pub(crate) fn hanging_review() -> Scenario {
    let mut scenario = shop(&["small"]);
    scenario.line(&json!({"model": "small", "failure": "hang"}));
    scenario
}

/// Starts such a review, and returns when its model has been asked.
pub(crate) fn start_hanging(session: &mut Session, scenario: &Scenario) -> String {
    let before = scenario.asked_of("small").len();
    let id = start(session, "review", on(scenario, both()));
    until("the question to the model", || {
        scenario.asked_of("small").len() > before
    });
    id
}

/// A little project in Python with a red test, on overlays where the system allows them.
pub(crate) fn red_project(is_sandboxed: bool) -> Scenario {
    let test = "import unittest\n\nfrom add import add\n\n\nclass AddTest(unittest.TestCase):\n    def test_adds(self):\n        \
                self.assertEqual(add(1, 2), 3)\n";
    let scenario = Scenario::chain(
        &["small"],
        &[
            ("add.py", "def add(a, b):\n    return a - b\n"),
            ("test_add.py", test),
        ],
    );
    if is_sandboxed {
        scenario.settings("[sandbox]\nmode = \"auto\"\n")
    } else {
        scenario.settings("[sandbox]\nmode = \"off\"\n")
    }
}

pub(crate) const ADDED: &str = "def add(a, b):\n    return a + b\n";

pub(crate) fn green() -> Value {
    json!({"test_path": "test_add.py", "test_cmd": "python3 -m unittest -v"})
}
