//! A log of several hundred calls, always the same one, with everything in it that may lie in a log: older lines,
//! lines of a later version, torn and broken ones, and names that are not fit to be shown.

use serde_json::{Value, json};

/// Mostly wrong at `review`, so there is advice about it.
pub(super) const WEAK: &str = "ollama/devstral-tuned";
const STEADY: &str = "ollama/qwen3-coder-30b-tuned";
const TOP: &str = "claude-sonnet-4-6";
const COLOURED: &str = "\u{1b}[31mred/model";

/// Names and contents of the files.
pub(super) fn logs() -> Vec<(String, Vec<u8>)> {
    let mut dice = Dice(0x05ee_d0f5_7a75);
    (0..8)
        .map(|n| (format!("s{n}"), log(n, &mut dice)))
        .collect()
}

fn log(session: u64, dice: &mut Dice) -> Vec<u8> {
    let mut text = Vec::new();
    for n in 0..75 {
        let entry = call(session, n, dice);
        text.extend_from_slice(entry.to_string().as_bytes());
        text.push(b'\n');
        if n % 15 == 14 {
            text.extend_from_slice(odd(dice).as_bytes());
            text.push(b'\n');
        }
    }
    if session.is_multiple_of(2) {
        // Its writer was killed, so the file ends here.
        text.extend_from_slice(br#"{"v":1,"session_id":"s","skill":"tdd_green","attempts":[{"mod"#);
    } else if session == 3 {
        text.extend_from_slice(b"\xff\xfe not even text\n");
    }
    text
}

fn call(session: u64, n: u64, dice: &mut Dice) -> Value {
    let skill = ["tdd_red", "tdd_green", "tdd_refactor", "review", "review"][dice.below(5)];
    let day = session * 11 + n / 10;
    let timestamp = format!(
        "2026-{:02}-{:02}T{:02}:{:02}:07.{:03}Z",
        1 + day / 28,
        1 + day % 28,
        n % 24,
        n % 60,
        100 + n
    );
    let first = if skill == "review" { WEAK } else { STEADY };
    let (mut attempts, mut status, top);
    (attempts, status) = (vec![], "pass");
    match dice.below(100) {
        0..5 => {
            status = "error";
            top = json!({"model": TOP, "cost_usd": 0.0, "basis": "no_model_asked"});
        }
        _ => {
            let good = if skill == "review" { 12 } else { 65 };
            let cause = if dice.below(100) < good {
                "accepted"
            } else {
                unlucky(dice)
            };
            attempts.push(attempt(first, "local", cause, dice));
            if cause == "accepted" {
                let usd = json!((dice.below(40_000) as f64) / 1e6);
                top = json!({"model": TOP, "cost_usd": dice.rarely(usd), "basis": "estimated"});
            } else {
                if dice.below(12) == 0 {
                    attempts.push(attempt(COLOURED, "local", unlucky(dice), dice));
                }
                let cause = if dice.below(100) < 90 {
                    "accepted"
                } else {
                    unlucky(dice)
                };
                attempts.push(attempt(TOP, "subagent", cause, dice));
                status = if cause == "accepted" {
                    "pass"
                } else {
                    ["fail", "error"][dice.below(2)]
                };
                let own = attempts.last().unwrap()["cost_usd"].clone();
                top = json!({"model": TOP, "cost_usd": own, "basis": "asked"});
            }
        }
    }
    let mut entry = json!({
        "v": 1, "session_id": format!("s{session}"), "timestamp": timestamp, "skill": skill, "final_status": status,
        "input": {"project_root": "/home/me/project"}, "attempts": attempts, "duration_ms": 10 + n, "top_tier": top,
    });
    let fields = entry.as_object_mut().unwrap();
    match dice.below(25) {
        // From before these were kept.
        0 => drop(fields.shift_remove("top_tier")),
        1 => drop(fields.shift_remove("v")),
        2 => drop(fields.shift_remove("attempts")),
        3 => drop(fields.insert(
            "final_status".into(),
            json!(["ok", "skipped", "SKIP", "postponed"][dice.below(4)]),
        )),
        4 => drop(fields.insert("later".into(), json!({"than": ["us"]}))),
        5 => drop(fields.insert("message".into(), json!(null))),
        6 => drop(fields.shift_remove("skill")),
        7 if n > 0 => drop(fields.shift_remove("timestamp")),
        _ => {}
    }
    entry
}

fn unlucky(dice: &mut Dice) -> &'static str {
    const CAUSES: [&str; 11] = [
        "tampered",
        "contradiction",
        "cannot_verify",
        "infra",
        "infra",
        "quota",
        "incapable",
        "refused",
        "setup",
        "skipped",
        "cancelled",
    ];
    if dice.below(2) == 0 {
        return "rejected";
    }
    CAUSES[dice.below(CAUSES.len())]
}

fn attempt(model: &str, tier: &str, cause: &str, dice: &mut Dice) -> Value {
    let verdict = match cause {
        "accepted" => "accept",
        "rejected" | "tampered" | "contradiction" | "cannot_verify" => "escalate",
        _ => "error",
    };
    let asked = cause != "skipped";
    let answered = asked && verdict != "error";
    let tokens = |n: usize| if answered { json!(n) } else { json!(null) };
    let (tokens_in, tokens_out) = (
        tokens(2_000 + dice.below(30_000)),
        tokens(100 + dice.below(4_000)),
    );
    let usd = if tier == "local" {
        0.0
    } else {
        dice.below(300_000) as f64 / 1e6
    };
    let cost = if answered {
        dice.rarely(json!(usd))
    } else {
        json!(null)
    };
    let warm = [json!(true), json!(true), json!(false), json!(null)][dice.below(4)].clone();
    let mut attempt = json!({
        "attempt": 1, "model": model, "tier": tier, "duration_ms": if asked { 400 + dice.below(200_000) } else { 0 },
        "warm_start": if tier == "local" && asked { warm } else { json!(null) }, "verified": cause == "accepted",
        "verdict": verdict, "cause": cause, "feedback": "as the tests say", "tokens_in": tokens_in, "tokens_out": tokens_out,
        "cost_usd": cost,
    });
    let fields = attempt.as_object_mut().unwrap();
    match dice.below(60) {
        // From before there were causes, or verdicts.
        0 => drop(fields.shift_remove("cause")),
        1 => {
            fields.shift_remove("cause");
            fields.shift_remove("verdict");
        }
        2 => drop(fields.shift_remove("verdict")),
        3 => drop(fields.shift_remove("duration_ms")),
        4 => drop(fields.shift_remove("tokens_out")),
        5 => drop(fields.insert("verdict".into(), json!("maybe"))),
        6 => drop(fields.insert("tier".into(), json!("orbital"))),
        7 => drop(fields.shift_remove("tier")),
        8 if tier == "local" => {
            let opinion =
                json!({"model": TOP, "tokens_in": 900, "tokens_out": 40, "cost_usd": 0.004});
            fields.insert("verifier".into(), opinion);
        }
        9 => return json!("not an attempt"),
        10 => drop(fields.shift_remove("model")),
        // The first question was answered, the second never asked.
        11..30 if !asked => drop(fields.insert("tokens_in".into(), json!(77))),
        _ => {}
    }
    attempt
}

/// What is no call at all.
fn odd(dice: &mut Dice) -> &'static str {
    const ODD: [&str; 8] = [
        "",
        "   ",
        "[1, 2]",
        "\"text\"",
        "7",
        "{\"skill\": 3}",
        "{\"skill\": \"tdd_green\", \"attempts\": [{",
        "WARN not ours",
    ];
    ODD[dice.below(ODD.len())]
}

/// The same throws every time.
struct Dice(u64);

impl Dice {
    /// From 0, below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    /// Mostly the value, now and then unknown.
    fn rarely(&mut self, value: Value) -> Value {
        if self.below(12) == 0 {
            Value::Null
        } else {
            value
        }
    }
}
