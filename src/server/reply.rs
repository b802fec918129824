//! A result as the client sees it: the same JSON as structured content and as text, small enough to be shown whole.
//! Clients show the calling model the structure of a success and only the text of an error.

use rmcp::ErrorData;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::engine::result::{CallResult, More, Status};
use crate::words;

/// Claude Code cuts the middle out of longer errors.
pub const MAX_ERROR: usize = 10_000;
/// Claude Code shows only the beginning of longer results.
pub const MAX_RESULT: usize = 50_000;

impl IntoCallToolResult for CallResult {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        Ok(reply(self).into())
    }
}

/// The reply to a call.
pub(super) fn reply(result: CallResult) -> CallToolResult {
    let is_error = result.status == Status::Error;
    // Below the limit, since it is there counted in characters of another encoding.
    let limit = if is_error { MAX_ERROR } else { MAX_RESULT } - 100;
    let (value, text) = fit(result, limit);
    let mut reply = CallToolResult::success(vec![ContentBlock::text(text)]);
    reply.structured_content = Some(value);
    reply.is_error = Some(is_error);
    reply
}

/// A call that ended before its skill could say anything.
pub(super) fn failed(tool: &str, message: String) -> CallResult {
    CallResult {
        status: Status::Error,
        message,
        phase: String::from("call"),
        skill: tool.to_owned(),
        file_path: String::new(),
        runner_output: String::new(),
        verified: false,
        model_used: String::new(),
        more: More::default(),
    }
}

/// The result as JSON of at most `limit` bytes. What is longest and matters least goes first, and says so.
fn fit(mut result: CallResult, limit: usize) -> (Value, String) {
    let steps: [fn(&mut CallResult, usize); 5] = [
        |r, over| shorten(&mut r.runner_output, over),
        |r, over| shorten(&mut r.more.diff, over),
        |r, over| shorten_attempts(r, over),
        |r, _| {
            if !r.more.details.is_null() {
                r.more.details = json!({"left_out": "too long for a reply; the session log has it"});
            }
        },
        |r, over| {
            // Only what cannot be too long by honest means is left.
            r.more = More { session_id: std::mem::take(&mut r.more.session_id), ..More::default() };
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
    let value = serde_json::to_value(&result).expect("a result serialises");
    let text = value.to_string();
    (value, text)
}

fn shorten(text: &mut String, over: usize) {
    const LEAST: usize = 1000;
    // Escapes make JSON longer than the text, at most sixfold; a cut that was too small is followed by the next step.
    let escaped = serde_json::to_string(text).map_or(text.len(), |json| json.len()).max(1);
    let keep = text.len() * escaped.saturating_sub(over + 100) / escaped;
    *text = words::cut_middle(text, keep.max(LEAST)).into_owned();
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
    fn text_and_structure_are_the_same_and_begin_with_status_and_message() {
        let reply = reply(failed("tier", String::from("no")));
        let text = text_of(&reply);
        assert!(text.starts_with(r#"{"status":"error","message":"no""#), "{text}");
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), reply.structured_content.expect("given"));
        assert_eq!(reply.is_error, Some(true));
    }

    #[test]
    fn a_long_error_stays_whole_json_below_the_limit() {
        let mut long = failed("x", String::from("the sentence that matters"));
        long.runner_output = "\u{1b}\"output\n".repeat(5_000);
        long.more.diff = "+line\n".repeat(5_000);
        long.more.details = json!({"big": "y".repeat(60_000)});
        let error = reply(long.clone());
        assert!(text_of(&error).len() < MAX_ERROR, "{}", text_of(&error).len());
        let read: CallResult = serde_json::from_str(text_of(&error)).expect("still JSON");
        assert_eq!(read.message, "the sentence that matters");
        assert!(read.runner_output.contains("bytes cut"));

        long.status = Status::Pass;
        let passed = reply(long);
        assert!(text_of(&passed).len() < MAX_RESULT);
        assert_eq!(passed.is_error, Some(false));
    }

    #[test]
    fn even_a_message_without_end_is_cut() {
        let error = reply(failed("x", "é".repeat(100_000)));
        assert!(text_of(&error).len() < MAX_ERROR, "{}", text_of(&error).len());
    }
}
