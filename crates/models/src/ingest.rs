//! A team's own service for notes: JSON in, JSON out. Knows its two addresses and how it fails; does not know notes.

use std::time::Duration;

use serde_json::Value;

use super::http;
use supervisor_text::words;

const LIMIT: Duration = Duration::from_secs(15);
/// A longer answer is none that a caller could read.
const LARGEST: usize = 4 << 20;

/// Sends `body` to `path` below the service. The error names the address, what happened and the setting that helps.
pub async fn post_to_service(base: &str, path: &str, body: &Value) -> Result<Value, String> {
    let shown = http::shown(base).unwrap_or_default();
    let fail = |why: String| {
        format!(
            "the notes service at {shown} {why}; check `ingest_url` under [brain], or remove it to use local notes"
        )
    };
    let url = http::below(base, path).map_err(|why| fail(format!("cannot be used: {why}")))?;
    let answer = http::post(&url, None, body, LIMIT, LARGEST).await;
    let answer = answer.map_err(|why| fail(format!("cannot be reached: {why}")))?;
    let text = String::from_utf8_lossy(&answer.body);
    if !(200..300).contains(&answer.status) {
        let said = words::cut_end(&words::plain(text.trim()), 300).into_owned();
        return Err(fail(format!(
            "answered `/{path}` with status {}: {said}",
            answer.status
        )));
    }
    if answer.cut {
        return Err(fail(format!("sent more than {LARGEST} bytes")));
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
