//! Finds the JSON object in a model's answer: after its reasoning, inside code fences, or amid
//! prose. Text around the object is ignored. If no valid JSON fits, damaged JSON is read leniently,
//! unless it ends too early. The object's content is not checked.

use serde_json::{Map, Value};
use supervisor_edits::read_value;

/// Longer answers are not searched.
pub(super) const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Why no object was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    #[error("the answer is empty")]
    Empty,
    #[error("the answer contains only reasoning, no code")]
    OnlyThoughts,
    #[error("the answer ends in the middle of its JSON object")]
    Unfinished,
    #[error("the answer holds no JSON object")]
    NotJson,
    #[error("the answer is longer than {} MiB", MAX_BYTES >> 20)]
    TooLong,
}

/// Returns the last object that has every key of `required`, else the last one that is not empty.
/// Models show drafts and examples before the answer, so the last one counts.
pub fn object(text: &str, required: &[&str]) -> Result<Map<String, Value>, ExtractError> {
    if text.len() > MAX_BYTES {
        return Err(ExtractError::TooLong);
    }
    if text.trim().is_empty() {
        return Err(ExtractError::Empty);
    }
    let fits = |object: &Map<String, Value>| required.iter().all(|key| object.contains_key(*key));
    let ScanResult {
        mut objects,
        thoughts,
        unfinished,
        empty,
    } = scan(text, 0);
    if let Some(at) = objects.iter().rposition(fits) {
        return Ok(objects.swap_remove(at));
    }
    // Only if nothing fits as it is: a valid answer is never changed.
    if !required.is_empty() {
        let mut repaired = scan(text, MAX_LENIENT_READS).objects;
        if let Some(at) = repaired.iter().rposition(fits) {
            return Ok(repaired.swap_remove(at));
        }
    }
    match objects.pop() {
        // A whole object followed by the beginning of another: the first may be an example, so it
        // is not the answer.
        Some(_) if unfinished => Err(ExtractError::Unfinished),
        Some(object) => Ok(object),
        None if unfinished => Err(ExtractError::Unfinished),
        None if empty => Ok(Map::new()),
        None if thoughts => Err(ExtractError::OnlyThoughts),
        None => Err(ExtractError::NotJson),
    }
}

/// The keys required by the root of a schema.
pub(crate) fn required(schema: &Value) -> Vec<&str> {
    schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[derive(Default)]
struct ScanResult {
    /// Only the last few objects; earlier ones are drafts.
    objects: Vec<Map<String, Value>>,
    thoughts: bool,
    unfinished: bool,
    empty: bool,
}

impl ScanResult {
    fn add(&mut self, object: Map<String, Value>) {
        self.unfinished = false;
        if object.is_empty() {
            self.empty = true;
            return;
        }
        if self.objects.len() == MAX_OBJECTS {
            self.objects.remove(0);
        }
        self.objects.push(object);
    }
}

const MAX_OBJECTS: usize = 8;
/// Each lenient read may go through the whole text, so their number is limited.
const MAX_LENIENT_READS: usize = 20;
const THINK_START: &str = "<think>";
const THINK_END: &str = "</think>";

/// Scans the text once, in linear time: after a failed parse it continues behind what the parser
/// has read. Up to `lenient_reads` objects that are not valid JSON are read leniently.
fn scan(text: &str, mut lenient_reads: usize) -> ScanResult {
    let mut found = ScanResult::default();
    let mut at = 0;
    while let Some(step) = text[at..].find(['{', '<']) {
        at += step;
        let rest = &text[at..];
        if rest.starts_with(THINK_START) {
            found.thoughts = true;
            match rest.find(THINK_END) {
                Some(end) => at += end + THINK_END.len(),
                None => break,
            }
        } else if rest.starts_with(THINK_END) {
            // The prompt template opened the reasoning block, so everything before this tag is
            // reasoning.
            found = ScanResult {
                thoughts: true,
                ..ScanResult::default()
            };
            at += THINK_END.len();
        } else if rest.starts_with('<') {
            at += 1;
        } else {
            at += read_object(rest, &mut found, &mut lenient_reads);
        }
    }
    found
}

/// Reads an object at the start of `rest`, if there is one. Returns how far to advance.
fn read_object(rest: &str, found: &mut ScanResult, lenient_reads: &mut usize) -> usize {
    let mut parser = serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
    let (read, unfinished) = match parser.next() {
        Some(Ok(object)) => {
            found.add(object);
            return parser.byte_offset();
        }
        Some(Err(error)) if error.is_eof() => (rest.len(), true),
        Some(Err(error)) => (offset(rest, error.line(), error.column()), false),
        None => (rest.len(), false),
    };
    if *lenient_reads > 0 && rest[1..].trim_start().starts_with(['"', '\'']) {
        *lenient_reads -= 1;
        if let Some(lenient) = read_value(rest).filter(|value| value.is_complete)
            && let Value::Object(object) = lenient.value
        {
            found.add(object);
            return lenient.read;
        }
    }
    // Never step over the end of the reasoning, which may have broken off inside a brace.
    if let Some(end) = rest[..read].find(THINK_END) {
        return end;
    }
    found.unfinished = unfinished;
    read.max(1)
}

/// Converts the parser's line and column (from 1, in bytes) into a byte offset in `text`, on a
/// character boundary.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    // The byte that did not fit may itself begin an object, so it is read again.
    let mut at = (start + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn found(text: &str) -> Result<Value, ExtractError> {
        object(text, &["n"]).map(Value::Object)
    }

    #[test]
    fn object_is_found_amid_other_text() {
        for text in [
            r#"{"n":1}"#,
            "\n\n {\"n\":1} \n",
            "Sure! Here it is:\n```json\n{\"n\":1}\n```\nHope that helps.",
            r#"<think>maybe {"n":0}? or {"n": </think>{"n":1}"#,
            r#"the template opened it {"n":0} {"x":"</think>{"n":1}"#,
            r#"<think>a</think> <think>b {"n":5}</think> {"n":1}"#,
            r#"{"n":1}<think>was that right?</think>"#,
            r#"an example: {"n":7}. The answer: {"n":1}"#,
            r#"{"n":1} where {} is empty and {"m":2} is an aside"#,
            "fn main() { println!(\"{}\", 1) } then {\"n\":1}",
            r#"{"broken":[1,2,],"x":3} {"n":1}"#,
            "{ {\"n\":1}",
        ] {
            assert_eq!(found(text), Ok(json!({"n": 1})), "{text}");
        }
    }

    #[test]
    fn tag_inside_string_is_text() {
        let answer = json!({"n": "strip <think> and </think> {\"n\":2}"});
        assert_eq!(found(&answer.to_string()), Ok(answer.clone()));
        assert_eq!(found(&format!("Here: {answer} done")), Ok(answer));
    }

    #[test]
    fn missing_objects_are_distinguished() {
        assert_eq!(found(" \n"), Err(ExtractError::Empty));
        assert_eq!(found("I cannot do that."), Err(ExtractError::NotJson));
        assert_eq!(found("[1,2]"), Err(ExtractError::NotJson));
        assert_eq!(found(r#"<think>{"n":1}"#), Err(ExtractError::OnlyThoughts));
        assert_eq!(found(r#"{"n":1}</think>"#), Err(ExtractError::OnlyThoughts));
        assert_eq!(
            found(r#"{"n":[{"path":"a"},{"path":"#),
            Err(ExtractError::Unfinished)
        );
        assert_eq!(
            found(r#"{"like":"this"} {"n":"#),
            Err(ExtractError::Unfinished)
        );
        assert_eq!(
            found(&"x".repeat(MAX_BYTES + 1)),
            Err(ExtractError::TooLong)
        );
    }

    #[test]
    fn object_without_required_keys_is_returned() {
        assert_eq!(found(r#"{"m":1}"#), Ok(json!({"m": 1})));
        assert_eq!(found("{}"), Ok(json!({})));
    }

    #[test]
    fn damaged_json_is_read() {
        for (answer, expected) in [
            (r#"{"n": "\d+\(x\)"}"#, json!({"n": r"\d+\(x\)"})),
            (
                "{\"n\": \"def f():\n\treturn 1\"}",
                json!({"n": "def f():\n\treturn 1"}),
            ),
            (
                r#"{"n": [1, 2, ], "m": {"a": 1,},}"#,
                json!({"n": [1, 2], "m": {"a": 1}}),
            ),
            (
                "Here:\n```json\n{\n  \"n\": \"it\\'s\",\n}\n```",
                json!({"n": "it's"}),
            ),
            (
                r#"{"n": "a\\b, ]", "m": "\"\. \u00e9"}"#,
                json!({"n": "a\\b, ]", "m": "\"\\. é"}),
            ),
            (r#"{"n": 1 "m": 'x'}"#, json!({"n": 1, "m": "x"})),
            // A damaged draft must not win over a valid answer.
            (r#"{"n": [1,]} {"n": 2}"#, json!({"n": 2})),
        ] {
            assert_eq!(found(answer), Ok(expected), "{answer}");
        }
    }

    #[test]
    fn json_that_ends_early_is_not_repaired() {
        for broken in [
            r#"{"n": [1, }"#,
            r#"{"n": "open}"#,
            r#"{"n": [1, 2"#,
            r#"{"n": 1, "#,
            r#"{"n": ["\d", {"a": 1}"#,
        ] {
            assert!(
                !found(broken).is_ok_and(|object| object.get("n").is_some()),
                "{broken}"
            );
        }
    }

    #[test]
    fn hostile_repetition_is_handled_quickly() {
        for unit in [
            "{\"a\":",
            "{",
            "{\"",
            "{\"a\":[{},",
            "<think>",
            "</think>",
            "{\"a\":\"",
            "<",
            "{}",
        ] {
            let text = unit.repeat(200_000 / unit.len());
            let _ = found(&text);
            assert_eq!(
                found(&format!("{text}</think>{{\"n\":1}}")),
                Ok(json!({"n": 1})),
                "{unit}"
            );
        }
        let deep = format!("{}1{}", "{\"n\":".repeat(200), "}".repeat(200));
        assert!(found(&deep).is_err() || found(&deep).is_ok_and(|v| v.is_object()));
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(text in "\\PC*") {
            let _ = found(&text);
        }

        #[test]
        fn mixed_json_and_tags_do_not_panic(parts in proptest::collection::vec(
            prop_oneof!["\\{", "\\}", "\"", "\\\\", ":", ",", "\\[", "\\]", "<think>", "</think>", "n", "é", "\n", "1", "```"], 0..60)) {
            let _ = found(&parts.concat());
        }

        #[test]
        fn object_amid_prose_is_unchanged(
            before in "[^{}<>]*", after in "[^{}<>]*", key in "\\PC{0,8}", value in "\\PC{0,40}") {
            let answer = json!({"n": value, key: 1});
            prop_assert_eq!(found(&format!("{before}{answer}{after}")), Ok(answer));
        }
    }
}
