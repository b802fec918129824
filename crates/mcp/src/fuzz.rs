//! Fuzz target: arbitrary bytes as a client's input.

use futures_util::FutureExt as _;
use serde_json::Value;

use super::envelope::{self, Incoming};
use super::lines::{InputLine, LineReader, MAX_LINE, find_id};

/// Checks that every line becomes a message, a refusal under its request's id, or nothing.
pub fn json_rpc_line(data: &[u8]) {
    let mut lines = LineReader::new(data);
    let mut seen = 0;
    while let Some(line) = lines
        .next()
        .now_or_never()
        .expect("reading from memory never waits")
        .expect("reading from memory never fails")
    {
        let id = match &line {
            InputLine::Whole(bytes) => {
                assert!(bytes.len() <= MAX_LINE && !bytes.contains(&b'\n'));
                seen += bytes.len();
                id_of(bytes)
            }
            InputLine::TooLong { id } => id.clone(),
        };
        let incoming = envelope::read(line);
        let Incoming::Refused(refusals) = &incoming else {
            continue;
        };
        assert!(!refusals.is_empty(), "a refusal without a reply");
        for refusal in refusals.iter().map(envelope::TransportRefusal::to_json) {
            let text = refusal.to_string();
            assert!(
                !text.contains('\n') && serde_json::from_str::<Value>(&text).is_ok(),
                "{text}"
            );
            assert!(
                refusal["error"]["code"]
                    .as_i64()
                    .is_some_and(|code| code < 0)
            );
            if let [_] = refusals.as_slice() {
                assert!(
                    id.is_none() || refusal["id"] == *id.as_ref().expect("some"),
                    "answered under another id"
                );
            }
        }
    }
    assert!(seen <= data.len());
}

/// The id of a request as a JSON parser sees it. The scan used for longer lines must agree.
fn id_of(line: &[u8]) -> Option<Value> {
    let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let Value::Object(object) = serde_json::from_slice::<Value>(text).ok()? else {
        return None;
    };
    let id = object.get("id")?.clone();
    let is_usable = matches!(id, Value::String(_) | Value::Number(_));
    // An escaped id can be written in many ways, even longer than the scan reads.
    let is_plain = object.keys().all(|key| !key.contains(['\\', '"']))
        && !text.contains(&b'\\')
        && text.len() < 500;
    if is_usable && is_plain {
        assert_eq!(find_id(text), Some(id.clone()), "the scan finds another id");
    }
    is_usable.then_some(id)
}
