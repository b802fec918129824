//! Calls for a report: always the same ones, and hostile ones.

use serde_json::{Value, json};

const LOCAL: [&str; 2] = ["ollama/qwen3-coder-30b-tuned", "ollama/devstral-2"];
const TOP: &str = "claude-sonnet-4-6";

pub(super) fn calls(count: usize) -> Vec<Value> {
    let mut dice = fastrand::Rng::with_seed(7);
    (0..count).map(|n| call(n, count, &mut dice)).collect()
}

fn call(n: usize, count: usize, dice: &mut fastrand::Rng) -> Value {
    let skill = [
        "tdd_red",
        "tdd_green",
        "tdd_green",
        "tdd_refactor",
        "review",
        "debug",
    ][dice.usize(..6)];
    // Two months, with quiet nights.
    let minute = 86_400 * n / count.max(1);
    let time =
        jiff::Timestamp::from_second(1_772_000_000 + 60 * minute as i64 + dice.i64(0..60)).unwrap();
    let (mut attempts, mut tier) = (Vec::new(), 0);
    let accepted = loop {
        let model = if tier < 2 { LOCAL[tier] } else { TOP };
        let good = dice.f64() < [0.55, 0.45, 0.92][tier];
        attempts.push(attempt(attempts.len() + 1, model, tier == 2, good, dice));
        if good || tier == 2 {
            break good;
        }
        tier += 1;
    };
    let status = if accepted {
        "pass"
    } else {
        ["fail", "error"][dice.usize(..2)]
    };
    let number = format!("{},{:03}", n / 1_000, n % 1_000);
    let message = if accepted {
        "green: 12 tests pass"
    } else {
        "all tiers exhausted"
    };
    let took: u64 = attempts
        .iter()
        .map(|attempt| attempt["duration_ms"].as_u64().unwrap())
        .sum();
    json!({
        "v": 1, "session_id": format!("s{}", n % 8), "timestamp": time.to_string(), "skill": skill, "phase": "green",
        "final_status": status, "project_root": format!("/home/me/{}", ["roman", "ledger", "parser"][n % 3]),
        "file_path": "", "model_used": TOP, "message": format!("{message}, call number {number}"),
        "input": {"project_root": "/home/me/roman", "spec": "to_roman(4) is IV"}, "attempts": attempts,
        "duration_ms": took + 900, "top_tier": {"model": TOP, "cost_usd": 0.05 + dice.f64() / 10.0, "basis": "estimated"},
    })
}

fn attempt(number: usize, model: &str, top: bool, good: bool, dice: &mut fastrand::Rng) -> Value {
    let asking = (10f64.powf(3.4 + dice.f64() * 1.2)) as u64;
    let checking = 400 + dice.u64(..6_000);
    let (cause, verdict, feedback) = match dice.u32(..12) {
        _ if good => ("accepted", "accept", String::new()),
        0 => (
            "infra",
            "error",
            "the gateway sent nothing for 300 s".into(),
        ),
        1 => (
            "tampered",
            "escalate",
            "`tests/roman.rs` is sealed and was changed".into(),
        ),
        2 => (
            "cannot_verify",
            "escalate",
            "verifier error: no JSON in its answer".into(),
        ),
        3 | 4 => (
            "unreadable",
            "error",
            "no edits could be found in the answer".into(),
        ),
        n => (
            "rejected",
            "escalate",
            format!("`roman::case_{n}` still fails: expected {n}"),
        ),
    };
    json!({
        "attempt": number, "model": model, "tier": if top { "subagent" } else { "local" }, "duration_ms": asking + checking,
        "generate_ms": asking, "verify_ms": checking, "warm_start": if top { None } else { Some(dice.bool()) }, "verified": good,
        "verdict": verdict, "cause": cause, "feedback": feedback, "output_summary": "fn to_roman(n: u32) -> String { … }",
        "runner_output": "test roman::case_4 ... FAILED\n\n11 passed; 1 failed", "tokens_in": 4_000 + dice.u64(..9_000),
        "tokens_out": 200 + dice.u64(..900), "cost_usd": if top { 0.03 + dice.f64() / 8.0 } else { 0.0 },
        "gates": [{"id": "scope", "pass": true, "detail": "1 file"}, {"id": "tests", "pass": good, "detail": "12 tests"}],
    })
}

/// Each with one kind of hostile text in every field that is text.
pub(super) fn hostile() -> Vec<Value> {
    let spring = "window.sprung=1";
    [
        format!("<script>{spring}</script>"),
        format!("</script><script>{spring}</script>"),
        format!("\"><img src=x onerror=\"{spring}\">"),
        format!("<!--<script>{spring}"),
        format!("]]></style><svg onload='{spring}'>"),
        format!("javascript:{spring}"),
        "\u{1b}[2J\u{1b}]0;title\u{7}\0\r\u{8}\u{85}".into(),
        "user\u{202e}tfel-ot-thgir\u{2066}x\u{200f}\u{feff}\u{2028}end".into(),
        "&lt;b&gt;&amp; <b>bold</b> {{x}} ${x} `x` 'x'".into(),
        "\u{1f469}\u{200d}\u{1f4bb} e\u{301} 日本 \u{fdd0}".into(),
    ]
    .iter()
    .enumerate()
    .map(|(n, text)| {
        json!({
            "v": 1, "session_id": format!("h{n}"), "timestamp": format!("2026-03-0{}T00:00:00Z", n.min(8) + 1), "skill": text, "phase": text,
            "final_status": "fail", "project_root": text, "file_path": text, "model_used": text, "message": text,
            "input": {text: [text]}, "duration_ms": 5,
            "attempts": [{
                "attempt": 1, "model": text, "tier": "local", "duration_ms": 5, "verdict": "escalate", "cause": "rejected",
                "feedback": text, "output_summary": text, "runner_output": text, "flaky": [text],
                "gates": [{"id": text, "pass": false, "detail": text}],
                "flags": [{"id": text, "where": text, "detail": text}],
            }],
            "top_tier": {"model": text, "cost_usd": null, "basis": "estimated"},
        })
    })
    .collect()
}
