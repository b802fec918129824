//! Calls, files and habits of the first version, as its documents print them, work unchanged.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Output, Stdio};

use serde_json::{Value, json};

use crate::skills::tdd::{ADD_TEST, MANIFEST, OLD_TEST, WRONG};
use crate::support::mcp_session::{Session, Which, command, result_of};
use crate::support::review_project::{clean, reviewers};
use crate::support::scenario::{Scenario, creates};
use supervisor_test_support::fake_claude::FakeClaude;
use supervisor_test_support::loopback::{Do, Server};

/// What the server answers to these lines, as in `echo … | supervisor`.
fn piped(scenario: &Scenario, directory: &Path, lines: &[String]) -> Vec<Value> {
    replies_of(start_piped(scenario, directory, lines))
}

fn start_piped(scenario: &Scenario, directory: &Path, lines: &[String]) -> Child {
    let mut process = scenario.command().current_dir(directory).spawn().unwrap();
    let mut stdin = process.stdin.take().unwrap();
    stdin
        .write_all((lines.join("\n") + "\n").as_bytes())
        .unwrap();
    process
}

fn replies_of(process: Child) -> Vec<Value> {
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn piped_tools_list_shows_the_tdd_tools() {
    let scenario = Scenario::chain(&["small"], &[]);
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_owned();
    let replies = piped(&scenario, Path::new("/"), &[line]);
    let [reply] = replies.as_slice() else {
        panic!("{replies:?}")
    };
    let tools = reply["result"]["tools"].as_array().unwrap();
    for name in ["tdd_red", "tdd_green", "tdd_refactor"] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let required = tool["inputSchema"]["required"].as_array().unwrap();
        assert!(required.contains(&json!("project_root")), "{tool}");
    }
}

#[test]
fn piped_red_returns_a_result() {
    let files = [MANIFEST, ("src/lib.rs", WRONG), OLD_TEST];
    let scenario =
        Scenario::chain(&["small"], &files).answers("small", &creates("tests/add.rs", ADD_TEST));
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "tdd_red",
        "arguments": {"project_root": scenario.root(), "spec": "add(1, 2) is 3"}}});
    let replies = piped(&scenario, Path::new("/"), &[call.to_string()]);
    let result: Value =
        serde_json::from_str(replies[0]["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    for field in [
        "status",
        "phase",
        "skill",
        "file_path",
        "runner_output",
        "verified",
        "model_used",
        "message",
    ] {
        assert!(
            result.get(field).is_some(),
            "{field} is missing in {result:#}"
        );
    }
    assert_eq!(
        (&result["status"], &result["phase"], &result["skill"]),
        (&json!("pass"), &json!("red"), &json!("tdd")),
        "{result:#}"
    );
}

/// Sessions that pipe a handshake and a call in one write, many at once: each reply is in the log,
/// and each call has one line. A server that starts must not take the call of another for lost.
fn pipe_sessions(count: usize) {
    const AT_ONCE: usize = 8;
    let file = ("internal/foo.go", "package foo\n");
    let scenario = reviewers(&["small"], &[file]).answers("small", &clean(&["internal/foo.go"]));
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": {"name": "ci", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "review",
            "arguments": {"project_root": scenario.root(), "files": ["internal/foo.go"], "session_id": "piped"}}}),
    ]
    .map(|line| line.to_string());
    for first in (0..count).step_by(AT_ONCE) {
        let at_once = first..count.min(first + AT_ONCE);
        let processes: Vec<Child> = at_once
            .map(|_| start_piped(&scenario, Path::new("/"), &lines))
            .collect();
        for replies in processes.into_iter().map(replies_of) {
            let reply = replies.iter().find(|reply| reply["id"] == 2).unwrap();
            let result = &reply["result"]["structuredContent"];
            assert_eq!(result["status"], "pass", "{result:#}");
            let text = reply.to_string();
            assert!(!text.contains("not in the session log"), "{text}");
        }
    }
    let log = scenario.state.path().join("state/sessions/piped.jsonl");
    let log = fs::read_to_string(log).unwrap();
    let calls: std::collections::BTreeSet<String> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["call"].to_string())
        .collect();
    assert_eq!((log.lines().count(), calls.len()), (count, count));
}

#[test]
fn piped_sessions_log_every_call_once() {
    pipe_sessions(20);
}

#[test]
#[ignore = "long"]
fn thousands_of_piped_sessions_log_every_call_once() {
    pipe_sessions(2_000);
}

#[test]
fn only_claude_is_started_with_a_model_argument() {
    let claude = FakeClaude::that_does(r#"printf '%s\n' "$*" >> "${0%/bin/claude}/argv""#);
    let gateway = Server::always(Do::Json(500, String::from("{}")));
    let settings = format!(
        "[sandbox]\nmode = \"off\"\n[backends.claude]\nprogram = \"{}\"\n[backends.litellm]\nbase_url = \"{}\"\n",
        claude.program().display(),
        gateway.url
    );
    let mut scenario = reviewers(&["small"], &[("a.py", "a = 1\n")]).settings(&settings);
    let argv = claude.bin().parent().unwrap().join("argv");
    let review = |model: &str| json!({"files": ["a.py"], "model": model});
    scenario.call("review", review("ollama/phi4"));
    let asked = gateway.asked();
    let bodies: Vec<&String> = asked.iter().map(|one| &one.body).collect();
    assert!(
        bodies
            .iter()
            .any(|body| body.contains(r#""model":"ollama/phi4""#)),
        "{bodies:?}"
    );
    assert!(!argv.exists(), "a local model starts no program");
    let asked = scenario.call("review", review("claude-sonnet-5"));
    let argv = fs::read_to_string(argv).unwrap_or_else(|_| panic!("{asked:#}"));
    assert!(argv.contains("--model claude-sonnet-5 "), "{argv}");
}

#[test]
fn initialize_with_empty_params_names_the_server() {
    let scenario = Scenario::chain(&["small"], &[]);
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#.to_owned();
    let replies = piped(&scenario, Path::new("/"), &[line]);
    let result = &replies[0]["result"];
    assert_eq!(
        (&result["protocolVersion"], &result["serverInfo"]["name"]),
        (&json!("2024-11-05"), &json!("supervisor"))
    );
    assert!(result["capabilities"]["tools"].is_object());
}

#[test]
fn review_takes_only_files() {
    let scenario = reviewers(
        &["small"],
        &[
            ("internal/foo.go", "package foo\n"),
            ("go.mod", "module x\n"),
        ],
    )
    .answers("small", &clean(&["internal/foo.go"]));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "review", "arguments": {"files": ["internal/foo.go"]}}});
    let replies = piped(&scenario, &scenario.root(), &[call.to_string()]);
    let result = &replies[0]["result"]["structuredContent"];
    assert_eq!(
        (&result["status"], &result["project_root"]),
        (&json!("pass"), &json!(scenario.root())),
        "{result:#}"
    );
}

#[test]
fn team_message_needs_no_project() {
    let scenario = Scenario::chain(&["small"], &[("go.mod", "module x\n")]);
    let call = |id: u32, arguments: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "team_msg", "arguments": arguments}}).to_string()
    };
    let logged = call(
        1,
        json!({"operation": "log", "session_id": "TLV4-x", "from": "supervisor", "type": "state_update",
            "data": {"status": "task_complete", "task_id": "CHECKPOINT-001", "verification": "self-validated"}}),
    );
    let state = call(2, json!({"operation": "get_state", "session_id": "TLV4-x"}));
    for line in [logged, state] {
        let replies = piped(&scenario, &scenario.root(), &[line]);
        assert_eq!(
            replies[0]["result"]["structuredContent"]["status"], "pass",
            "{replies:?}"
        );
    }
    assert!(
        scenario
            .root()
            .join(".workflow/.team/TLV4-x/.msg/messages.jsonl")
            .exists()
    );
}

#[test]
fn session_logs_are_kept_where_the_user_says() {
    let sessions = tempfile::tempdir().unwrap();
    let directory = sessions.path().join("brain/sessions");
    let mut scenario = reviewers(&["small"], &[("internal/foo.go", "package foo\n")])
        .answers("small", &clean(&["internal/foo.go"]))
        .env("SUPERVISOR_SESSIONS_DIR", directory.to_str().unwrap());
    scenario.call(
        "review",
        json!({"files": ["internal/foo.go"], "session_id": "s"}),
    );
    let line = fs::read_to_string(directory.join("s.jsonl")).unwrap();
    let entry: Value = serde_json::from_str(line.trim()).unwrap();
    assert_eq!(
        (&entry["v"], &entry["skill"], &entry["tool"]),
        (&json!(2), &json!("review"), &json!("review"))
    );
    let stats = scenario
        .command()
        .args(["stats", "--json"])
        .output()
        .unwrap();
    let stats: Value = serde_json::from_slice(&stats.stdout).unwrap();
    assert_eq!(stats["total"]["calls"], 1, "{stats:#}");
}

fn serve_check(directory: &Path) -> Output {
    command(Which::Real)
        .args(["serve", "--check"])
        .env("SUPERVISOR_PROMPTS_DIR", directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn unusable_prompts_are_told_before_the_first_call() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(serve_check(dir.path()).status.code(), Some(0));
    let missing = dir.path().join("nowhere");
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    fs::write(empty.join("review.md"), "").unwrap();
    for (directory, named) in [
        (&missing, missing.clone()),
        (&empty, empty.join("review.md")),
    ] {
        let named = named.to_str().unwrap();
        let checked = serve_check(directory);
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert_eq!(checked.status.code(), Some(1), "{said}");
        assert!(said.contains(named), "{said}");

        let scenario = reviewers(&["small"], &[("a.py", "a = 1\n")])
            .env("SUPERVISOR_PROMPTS_DIR", directory.to_str().unwrap());
        let mut session: Session = scenario.fresh_session();
        session.call(
            1,
            "review",
            json!({"files": ["a.py"], "project_root": scenario.root()}),
        );
        let result = result_of(&session.reply(1));
        assert_eq!(result["status"], "error", "{result:#}");
        assert!(
            result["message"].as_str().unwrap().contains(named),
            "{result:#}"
        );
        let end = session.finish();
        assert!(end.stderr.contains(named), "told at start: {}", end.stderr);
    }
}

#[test]
fn rules_of_all_skills_can_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("rules.md"), "Answer in rhymes.\n").unwrap();
    let mut scenario = reviewers(&["small"], &[("a.py", "a = 1\n")])
        .answers("small", &clean(&["a.py"]))
        .env("SUPERVISOR_PROMPTS_DIR", dir.path().to_str().unwrap())
        .env("SUPERVISOR_LOG__EXCHANGE", "full");
    let result = scenario.call("review", json!({"files": ["a.py"]}));
    assert_eq!(result["status"], "pass", "{result:#}");
    let kept = scenario.state.path().join("state/exchange");
    let texts = files_below(&kept);
    assert!(
        texts
            .iter()
            .any(|text| text.starts_with("Answer in rhymes.\n") && text.contains("# Review")),
        "{texts:?}"
    );
}

fn files_below(directory: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        if entry.path().is_dir() {
            texts.extend(files_below(&entry.path()));
        } else {
            texts.extend(fs::read_to_string(entry.path()));
        }
    }
    texts
}
