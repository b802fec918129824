//! Turns a result into a reply: the same JSON as structured content and as text, small enough to be
//! shown whole. Clients show the calling model the structure of a success but only the text of an
//! error. A reply stays in the model's context and is paid for in every later turn, so it is an
//! outline; the full result is kept in a file.

use rmcp::ErrorData;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use serde_json::{Value, json};

use supervisor_engine::Basis;
use supervisor_engine::archive::INLINE_DIFF;
use supervisor_engine::attempt::Attempt;
use supervisor_engine::result::{CallResult, More, Status};
use supervisor_text::words;

/// Claude Code cuts the middle out of longer errors.
pub const MAX_ERROR: usize = 10_000;
/// Claude Code shows only the beginning of longer results.
pub const MAX_RESULT: usize = 50_000;

/// What a tool method returns: a result that is sent as an outline.
#[derive(Debug)]
pub struct Reply(pub CallResult);

impl IntoCallToolResult for Reply {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        Ok(reply(self.0).into())
    }
}

/// The reply to a call.
pub fn reply(result: CallResult) -> CallToolResult {
    let is_error = result.status == Status::Error;
    // Leave a margin: clients count characters in another encoding.
    let limit = if is_error { MAX_ERROR } else { MAX_RESULT } - 100;
    let (value, text) = fit(outline(result), limit);
    let mut reply = CallToolResult::success(vec![ContentBlock::text(text)]);
    reply.structured_content = Some(value);
    reply.is_error = Some(is_error);
    reply
}

/// Bytes of test runner output kept: summary lines after a pass, more after a failure.
const RUNNER_OUTPUT_BYTES: (usize, usize) = (120, 1_500);
/// Bytes of an attempt's rejection reason.
const MAX_FEEDBACK_BYTES: usize = 60;

/// Reduces a result that is kept whole in a file. A result that could not be saved is left as it
/// is.
fn outline(mut result: CallResult) -> CallResult {
    if result.more.full_result.is_empty() {
        return result;
    }
    let passed = result.status == Status::Pass;
    // A red is about its failure.
    let failure = match &mut result.more.details {
        Value::Object(details) => details.remove("failure"),
        _ => None,
    };
    result.runner_output = if let Some(Value::String(failure)) = failure {
        failure
    } else if passed {
        summary_lines(&result.runner_output, RUNNER_OUTPUT_BYTES.0)
    } else {
        words::cut_middle(&result.runner_output, RUNNER_OUTPUT_BYTES.1).into_owned()
    };
    // After a pass the proof is enough. Failed gates are always included.
    result
        .more
        .gates
        .retain(|gate| !passed || !gate.pass || gate.id == "proof");
    if result.more.diff.len() > INLINE_DIFF && !result.more.diff_path.is_empty() {
        result.more.diff.clear();
    }
    // Of interest only where something was saved.
    let cost = result.more.cost_usd.unwrap_or_default();
    result.more.top_tier = result
        .more
        .top_tier
        .filter(|top| top.basis == Basis::Estimated && top.cost_usd.is_some_and(|usd| usd > cost));
    result.more.attempts.iter_mut().for_each(outline_attempt);
    if let Value::Object(details) = &mut result.more.details {
        let is_duplicate =
            |name: &str| name == "files_changed" && !result.more.files_changed.is_empty();
        // Exit code 0 says no more than the status, the message counts the expectations of a proof, and the number of runs
        // is for the log.
        let is_plain = |name: &str, value: &Value| {
            name == "exit_code" && *value == 0
                || name == "falsified" && result.verified
                || name == "runs"
        };
        details.retain(|name, value| {
            !is_empty(value) && !is_duplicate(name) && !is_plain(name, value)
        });
    }
    result
}

/// Keeps model, duration, outcome and reason.
fn outline_attempt(attempt: &mut Attempt) {
    let feedback = words::cut_end(attempt.reason(), MAX_FEEDBACK_BYTES).into_owned();
    *attempt = Attempt {
        feedback,
        reason: String::new(),
        hint: String::new(),
        output_summary: String::new(),
        runner_output: String::new(),
        verdict: None,
        verifier: None,
        asks: Vec::new(),
        gates: Vec::new(),
        flaky: Vec::new(),
        exchange: Vec::new(),
        diff: None,
        ..attempt.clone()
    };
}

/// Drops null and measured fields from an outlined result.
fn prune_attempts(value: &mut Value) {
    for attempt in value
        .get_mut("attempts")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Value::Object(fields) = attempt {
            let measured = [
                "generate_ms",
                "verify_ms",
                "warm_start",
                "verified",
                "gates_passed",
                "tokens_in",
                "tokens_out",
            ];
            fields.retain(|name, value| !measured.contains(&name.as_str()) && !value.is_null());
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The last lines with a count, as test runners print in their summaries: a number above zero
/// before a word, as in `3 passed` or `2 examples`. If there are none, the last lines. Returns at
/// least one line, whatever its length.
fn summary_lines(text: &str, max_bytes: usize) -> String {
    let has_count = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_count = |pair: &[&str]| {
            pair[0].parse::<u64>().is_ok_and(|n| n > 0)
                && pair[1].starts_with(|c: char| c.is_ascii_alphabetic())
        };
        words.windows(2).any(is_count)
    };
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let counting: Vec<&str> = lines.iter().copied().filter(has_count).collect();
    let (mut remaining, mut kept) = (max_bytes, Vec::new());
    for line in if counting.is_empty() { lines } else { counting }
        .into_iter()
        .rev()
    {
        if line.len() >= remaining && !kept.is_empty() {
            break;
        }
        remaining = remaining.saturating_sub(line.len() + 1);
        kept.push(line);
    }
    kept.reverse();
    kept.join("\n")
}

/// A result for a call that ended before its skill returned.
pub fn failed(tool: &str, message: String) -> CallResult {
    CallResult::new(tool, "call", Status::Error, message, Value::Null)
}

/// The result as JSON of at most `limit` bytes. The longest and least important parts are cut
/// first, with a note.
fn fit(mut result: CallResult, limit: usize) -> (Value, String) {
    let steps: [fn(&mut CallResult, usize); 6] = [
        |r, over| shorten(&mut r.runner_output, over),
        |r, over| shorten(&mut r.more.diff, over),
        |r, over| shorten_attempts(r, over),
        |r, over| {
            // A dry run has the whole prompt in a file.
            if r.more.details["prompt_path"].is_string()
                && let Value::String(prompt) = &mut r.more.details["prompt"]
            {
                shorten(prompt, over);
            }
        },
        |r, _| {
            if r.more.details.is_null() {
                return;
            }
            let place = if !r.more.full_result.is_empty() {
                "; `full_result` has it"
            } else if !r.more.session_id.is_empty() {
                "; the session log has it"
            } else {
                ""
            };
            let mut details = json!({"left_out": format!("too long for a reply{place}")});
            if let Some(path) = r.more.details.get("prompt_path") {
                details["prompt_path"] = path.clone();
            }
            r.more.details = details;
        },
        |r, over| {
            // Only fields with a natural length limit are left.
            r.more = More {
                tool: std::mem::take(&mut r.more.tool),
                session_id: std::mem::take(&mut r.more.session_id),
                full_result: std::mem::take(&mut r.more.full_result),
                ..More::default()
            };
            shorten(&mut r.message, over);
        },
    ];
    for step in steps {
        let text = serde_json::to_string(&result).expect("a result serialises");
        if text.len() <= limit {
            break;
        }
        step(&mut result, text.len() - limit);
    }
    let mut value = serde_json::to_value(&result).expect("a result serialises");
    if !result.more.full_result.is_empty() {
        prune_attempts(&mut value);
    }
    let text = value.to_string();
    (value, text)
}

fn shorten(text: &mut String, over: usize) {
    const MIN_BYTES: usize = 1000;
    // Escaping makes JSON longer than the text, at most sixfold. If this cut is too small, the next
    // step follows.
    let escaped = serde_json::to_string(text)
        .map_or(text.len(), |json| json.len())
        .max(1);
    let keep = text.len() * escaped.saturating_sub(over + 100) / escaped;
    *text = words::cut_middle(text, keep.max(MIN_BYTES)).into_owned();
}

fn shorten_attempts(result: &mut CallResult, over: usize) {
    let share = over / result.more.attempts.len().max(1);
    for attempt in &mut result.more.attempts {
        shorten(&mut attempt.runner_output, share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(reply: &CallToolResult) -> &str {
        &reply.content[0].as_text().expect("text").text
    }

    #[test]
    fn text_equals_structure_and_begins_with_status() {
        let reply = reply(failed("tier", String::from("no")));
        let text = text_of(&reply);
        assert!(
            text.starts_with(r#"{"status":"error","message":"no""#),
            "{text}"
        );
        assert_eq!(
            serde_json::from_str::<Value>(text).expect("JSON"),
            reply.structured_content.expect("given")
        );
        assert_eq!(reply.is_error, Some(true));
    }

    #[test]
    fn long_error_stays_valid_json() {
        let mut long = failed("x", String::from("the sentence that matters"));
        long.runner_output = "\u{1b}\"output\n".repeat(5_000);
        long.more.diff = "+line\n".repeat(5_000);
        long.more.details = json!({"big": "y".repeat(60_000)});
        let error = reply(long.clone());
        assert!(
            text_of(&error).len() < MAX_ERROR,
            "{}",
            text_of(&error).len()
        );
        let read: CallResult = serde_json::from_str(text_of(&error)).expect("still JSON");
        assert_eq!(read.message, "the sentence that matters");
        assert!(read.runner_output.contains("bytes cut"));

        long.status = Status::Pass;
        let passed = reply(long);
        assert!(text_of(&passed).len() < MAX_RESULT);
        assert_eq!(passed.is_error, Some(false));
    }

    #[test]
    fn huge_message_is_cut() {
        let error = reply(failed("x", "é".repeat(100_000)));
        assert!(
            text_of(&error).len() < MAX_ERROR,
            "{}",
            text_of(&error).len()
        );
    }

    #[test]
    fn pass_shows_summary_lines() {
        let cargo = "running 2 tests\ntest a ... ok\ntest result: ok. 2 passed; 0 failed\n\n   Doc-tests demo\n\n\
                     running 0 tests\n\ntest result: ok. 0 passed; 0 failed\n    Finished `test` in 0.08s\n";
        assert_eq!(
            summary_lines(cargo, 60),
            "running 2 tests\ntest result: ok. 2 passed; 0 failed"
        );
        assert_eq!(
            summary_lines(cargo, 40),
            "test result: ok. 2 passed; 0 failed"
        );
        assert_eq!(
            summary_lines("collected\n=== 3 passed in 0.02s ===\n", 100),
            "=== 3 passed in 0.02s ==="
        );
        assert_eq!(
            summary_lines("ok  \tdemo\t0.003s\n", 100),
            "ok  \tdemo\t0.003s",
            "nothing counts"
        );
        assert_eq!(summary_lines("one\ntwo\nthree", 6), "three");
        assert_eq!(
            summary_lines("a line that is too long", 4),
            "a line that is too long"
        );
    }

    #[test]
    fn only_archived_results_are_outlined() {
        let attempt = json!({"attempt": 1, "model": "small", "tier": "local", "duration_ms": 900, "cause": "rejected",
            "verdict": "escalate", "feedback": "adds still fails\nleft: 1", "runner_output": "long", "tokens_in": 3});
        let mut result = failed("tdd_green", String::from("green: `adds` passes"));
        result.status = Status::Pass;
        result.runner_output = format!(
            "{}\ntest result: ok. 3 passed",
            "test a ... ok\n".repeat(100)
        );
        result.more.diff = "+line\n".repeat(200);
        result.more.details = json!({"new_public_items": [], "lines_added": 2, "before": null});
        result.more.attempts = vec![serde_json::from_value(attempt).expect("an attempt")];
        let whole = reply(result.clone()).structured_content.expect("given");
        assert_eq!(
            whole["attempts"][0]["runner_output"], "long",
            "kept nowhere else"
        );

        (result.more.full_result, result.more.diff_path) = ("/s/a.json".into(), "/s/a.diff".into());
        let small = reply(result).structured_content.expect("given");
        assert_eq!(
            small["attempts"][0],
            json!({"attempt": 1, "model": "small", "tier": "local", "duration_ms": 900, "cause": "rejected",
                "feedback": "adds still fails"})
        );
        assert_eq!(
            (&small["details"], &small["diff"]),
            (&json!({"lines_added": 2}), &Value::Null)
        );
        assert_eq!(small["diff_path"], "/s/a.diff");
        assert!(
            small["runner_output"]
                .as_str()
                .is_some_and(|o| o.ends_with("3 passed") && o.len() <= 120),
            "{small}"
        );
        serde_json::from_value::<CallResult>(small).expect("still a result");
    }

    #[test]
    fn long_prompt_is_cut_and_its_path_kept() {
        let plan = |details| CallResult::new("tdd_green", "green", Status::Pass, "", details);
        let prompt = "x\n".repeat(30_000);
        let long = plan(json!({"prompt": prompt, "prompt_path": "/s/p.txt", "runner": "jest"}));
        let (value, text) = fit(long, 20_000);
        assert!(text.len() <= 20_000);
        assert_eq!(value["details"]["runner"], "jest");
        assert_eq!(value["details"]["prompt_path"], "/s/p.txt");
        let others: Vec<String> = (0..3_000).map(|n| format!("file {n}")).collect();
        let (value, _) = fit(
            plan(json!({"others": others, "prompt_path": "/s/p.txt"})),
            5_000,
        );
        assert_eq!(
            value["details"],
            json!({"left_out": "too long for a reply", "prompt_path": "/s/p.txt"})
        );
    }
}
