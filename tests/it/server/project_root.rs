//! The project of a call that names none: the client's root, or the project around the directory in
//! which the server runs.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::mcp_session::Session;
use crate::support::review_project::{clean, reviewers};
use crate::support::scenario::Scenario;

const FOO: (&str, &str) = ("internal/foo.go", "package foo\n");

fn project() -> Scenario {
    let review = clean(&["internal/foo.go"]);
    reviewers(&["small"], &[FOO]).answers("small", &review)
}

/// A server that runs in this directory, before any handshake.
fn server_in(scenario: &Scenario, directory: &Path) -> Session {
    let mut process = scenario.command().current_dir(directory).spawn().unwrap();
    let (stdin, stdout) = (
        process.stdin.take().unwrap(),
        process.stdout.take().unwrap(),
    );
    Session::with(process, Some(Box::new(stdin)), Box::new(stdout))
}

fn review(session: &mut Session) -> Value {
    session.call(1, "review", json!({"files": ["internal/foo.go"]}));
    session.reply_after_tests(1)["result"]["structuredContent"].clone()
}

#[test]
fn project_around_the_working_directory_is_used() {
    let scenario = project();
    fs::create_dir(scenario.root().join(".git")).unwrap();
    let mut session = server_in(&scenario, &scenario.root().join("internal"));
    let result = review(&mut session);
    assert_eq!(result["status"], "pass", "{result:#}");
    assert_eq!(result["project_root"], json!(scenario.root()), "{result:#}");
}

#[test]
fn directory_outside_of_projects_is_not_used() {
    let scenario = project();
    for directory in [Path::new("/"), &scenario.root()] {
        let result = review(&mut server_in(&scenario, directory));
        let message = result["message"].as_str().unwrap();
        assert!(message.contains("project_root is required"), "{message}");
    }
}

/// Calls `review` as a client with these roots does, and answers the server's question for them.
fn review_with_roots(scenario: &Scenario, roots: &[&Path]) -> Value {
    let mut session = server_in(scenario, Path::new("/"));
    session.request(
        "i",
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"}}),
    );
    session.reply("i");
    session.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    session.call(1, "review", json!({"files": ["internal/foo.go"]}));
    let asked = session.request_from_server("roots/list");
    let roots: Vec<Value> = roots
        .iter()
        .map(|root| json!({"uri": format!("file://{}", root.display())}))
        .collect();
    session.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": roots}}));
    session.reply_after_tests(1)["result"]["structuredContent"].clone()
}

#[test]
fn root_of_the_client_is_used() {
    let scenario = project();
    let root = scenario.root();
    let result = review_with_roots(&scenario, &[Path::new("/"), &root]);
    assert_eq!(
        (&result["status"], &result["project_root"]),
        (&json!("pass"), &json!(root)),
        "{result:#}"
    );
}

#[test]
fn several_roots_are_listed() {
    let scenario = project();
    let other = tempfile::tempdir().unwrap();
    let result = review_with_roots(&scenario, &[&scenario.root(), other.path()]);
    let message = result["message"].as_str().unwrap();
    assert!(
        message.contains("project_root is required")
            && message.contains(other.path().to_str().unwrap())
            && message.contains(scenario.root().to_str().unwrap()),
        "{message}"
    );
}
