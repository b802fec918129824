//! `claude` as a text worker: no tools, one answer.

use serde_json::{Value, json};
use supervisor_models::{Edits, FailureCause, Shell, ToolAccess};
use supervisor_settings::Worker;

use super::Bench;
use supervisor_test_support::agent::result;

/// A run that prints these parts as messages and ends with this result.
fn run_of(parts: &[&str], result: &Value) -> String {
    let message = |model: &str, text: &str| json!({"type": "assistant", "message": {"model": model, "content": [{"type": "text", "text": text}]}});
    let mut lines = vec![json!({"type": "system", "subtype": "init"})];
    lines.extend(parts.iter().map(|part| message("claude-x", part)));
    lines.push(message("<synthetic>", "API Error: not part of the answer"));
    lines.push(result.clone());
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn text_bench(parts: &[&str], result: &Value, code: u8) -> Bench {
    let mut bench = Bench::prints(&run_of(parts, result), "", code);
    bench.tier.model.worker = Some(Worker::Text);
    bench.ask.tool_access = ToolAccess::Edit {
        shell: Shell::Always(vec!["make".into()]),
    };
    bench
}

fn finished() -> Value {
    result(|result| {
        result["result"] = json!("the last part only");
        result["stop_reason"] = json!("end_turn");
        result.as_object_mut().unwrap().remove("structured_output");
    })
}

fn argv(bench: &Bench) -> Vec<String> {
    let text = std::fs::read_to_string(bench.dir.path().join("argv")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn value_of<'a>(argv: &'a [String], option: &str) -> Option<&'a str> {
    let at = argv.iter().position(|a| a == option)?;
    argv.get(at + 1).map(String::as_str)
}

#[tokio::test]
async fn parts_of_a_cut_answer_are_joined() {
    let bench = text_bench(&["first ", "second ", "third"], &finished(), 0);
    let backend = bench.backends.of(&bench.tier).unwrap();
    assert_eq!(backend.edits(&bench.tier), Edits::AsData);
    let reply = bench.ask().await.unwrap();
    assert_eq!(reply.body, json!("first second third"));
    assert_eq!(reply.raw, "first second third");
    assert_eq!(reply.usage.cost_usd, Some(0.0125));
}

#[tokio::test]
async fn text_worker_has_no_tools_schema_or_project_settings() {
    let bench = text_bench(&["x"], &finished(), 0);
    bench.ask().await.unwrap();
    let argv = argv(&bench);
    for (option, value) in [
        ("--tools", ""),
        ("--max-turns", "1"),
        ("--setting-sources", ""),
        ("--permission-mode", "default"),
    ] {
        assert_eq!(value_of(&argv, option), Some(value), "{argv:?}");
    }
    assert!(value_of(&argv, "--system-prompt").is_some(), "{argv:?}");
    for option in [
        "--json-schema",
        "--allowedTools",
        "--max-budget-usd",
        "--append-system-prompt",
        "--bare",
    ] {
        assert!(!argv.iter().any(|a| a == option), "{option}: {argv:?}");
    }
    let env = std::fs::read_to_string(bench.dir.path().join("env")).unwrap();
    assert!(env.contains("CLAUDE_CODE_MAX_OUTPUT_TOKENS=16000"), "{env}");
    assert!(!env.contains("canary"), "{env}");
    let stdin = std::fs::read_to_string(bench.dir.path().join("stdin")).unwrap();
    let stdin: Value = serde_json::from_str(&stdin).unwrap();
    assert_eq!(stdin["message"]["content"][1]["text"], "Answer.");
}

#[tokio::test]
async fn bare_is_used_only_with_an_api_key() {
    for (var, bare) in [("ANTHROPIC_API_KEY", true), ("OTHER", false)] {
        let mut bench = text_bench(&["x"], &finished(), 0);
        bench.tier.backend.api_key_env = Some(var.into());
        bench.ask().await.unwrap();
        let argv = argv(&bench);
        assert_eq!(argv.iter().any(|a| a == "--bare"), bare, "{var}: {argv:?}");
        assert!(!argv.iter().any(|a| a.contains("canary")), "{argv:?}");
    }
}

#[tokio::test]
async fn object_is_read_from_the_text() {
    let mut bench = text_bench(&["Sure:\n```json\n", "{\"n\":1}\n```"], &finished(), 0);
    bench.ask.tool_access = ToolAccess::None;
    assert_eq!(bench.ask().await.unwrap().body, json!({"n": 1}));
}

#[tokio::test]
async fn incomplete_answer_is_a_failure() {
    let error = |stop: &str| {
        let mut result = finished();
        (result["is_error"], result["stop_reason"]) = (json!(true), json!(stop));
        result
    };
    let mut paused = finished();
    paused["stop_reason"] = json!("pause_turn");
    for (name, result, code, cause) in [
        (
            "max_tokens",
            error("max_tokens"),
            1,
            FailureCause::Incapable,
        ),
        (
            "window",
            error("model_context_window_exceeded"),
            1,
            FailureCause::Incapable,
        ),
        ("refusal", error("refusal"), 1, FailureCause::Refused),
        ("pause_turn", paused, 0, FailureCause::Infra),
    ] {
        let failure = text_bench(&["half"], &result, code)
            .ask()
            .await
            .unwrap_err();
        assert_eq!(failure.why.cause(), cause, "{name}: {:?}", failure.why);
    }
}
