//! A scripted program in the place of `claude`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A whole run: the lines before the result, and the result.
pub fn run(result: &Value) -> String {
    let init = json!({"type": "system", "subtype": "init", "cwd": "/p", "tools": ["StructuredOutput"], "model": "claude-x",
                      "apiKeySource": "none", "claude_code_version": "2.1.197"});
    let says = json!({"type": "assistant", "message": {"id": "m1", "model": "claude-x",
                      "content": [{"type": "tool_use", "name": "Edit", "input": {"file_path": "a.rs"}}]}});
    format!("{init}\n{says}\n{result}\n")
}

/// The result of a run that went well, changed.
pub fn result(change: impl Fn(&mut Value)) -> Value {
    let mut result = json!({
        "type": "result", "subtype": "success", "is_error": false, "api_error_status": null, "duration_ms": 85,
        "num_turns": 2, "result": "{\"n\":1}", "stop_reason": "tool_use", "session_id": "s", "total_cost_usd": 0.0125,
        "usage": {"input_tokens": 100, "output_tokens": 20},
        "modelUsage": {"claude-x[1m]": {"inputTokens": 100, "outputTokens": 20, "cacheReadInputTokens": 3000,
                       "cacheCreationInputTokens": 500, "costUSD": 0.0125}},
        "permission_denials": [], "structured_output": {"n": 1}, "terminal_reason": "completed",
    });
    change(&mut result);
    result
}

/// Written by a child: a descriptor of ours that is open for writing could leak into a parallel fork, and the program
/// would be "busy".
pub fn write_program(dir: &Path, body: &str) -> PathBuf {
    fs::write(
        dir.join("script"),
        format!("#!/bin/sh\nhere='{}'\n{body}\n", dir.display()),
    )
    .unwrap();
    let made = std::process::Command::new("sh")
        .args(["-c", "cat script > claude && chmod 755 claude"])
        .current_dir(dir)
        .status();
    assert!(made.unwrap().success());
    dir.join("claude")
}
