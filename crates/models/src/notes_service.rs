//! Client for a team's own notes service: JSON in, JSON out.

use std::time::Duration;

use serde_json::Value;

use super::http;
use supervisor_text::words;

const TIMEOUT: Duration = Duration::from_secs(15);
/// Larger responses are rejected.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// Posts `body` to `path` of the service. The error names the address, the cause and the setting to
/// check.
pub async fn post_to_service(base: &str, path: &str, body: &Value) -> Result<Value, String> {
    let shown = http::displayable(base).unwrap_or_default();
    let fail = |why: String| {
        format!(
            "the notes service at {shown} {why}; check `ingest_url` under [brain], or remove it to use local notes"
        )
    };
    let url = http::join_url(base, path).map_err(|why| fail(format!("cannot be used: {why}")))?;
    let answer = http::post(&url, None, body, TIMEOUT, MAX_RESPONSE_BYTES).await;
    let answer = answer.map_err(|why| fail(format!("cannot be reached: {why}")))?;
    let text = String::from_utf8_lossy(&answer.body);
    if !(200..300).contains(&answer.status) {
        let detail = words::cut_end(&words::plain(text.trim()), 300).into_owned();
        return Err(fail(format!(
            "answered `/{path}` with status {}: {detail}",
            answer.status
        )));
    }
    if answer.truncated {
        return Err(fail(format!("sent more than {MAX_RESPONSE_BYTES} bytes")));
    }
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(&text).map_err(|_| {
        fail(format!(
            "answered `/{path}` with something that is not JSON"
        ))
    })
}
