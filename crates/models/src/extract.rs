//! Finds the one JSON object in what a model wrote: after its thoughts, between fences, amid prose.
//! Tolerant about what surrounds the object, strict about the object but for slips of the pen. Does not know what it
//! should hold.

mod slips;

use serde_json::{Map, Value};

/// Longer answers are not searched.
pub(super) const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Why no object was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoObject {
    #[error("the answer is empty")]
    Empty,
    #[error("the answer holds nothing but thoughts")]
    OnlyThoughts,
    #[error("the answer ends in the middle of its JSON object")]
    Unfinished,
    #[error("the answer holds no JSON object")]
    NotJson,
    #[error("the answer is longer than {} MiB", MAX_BYTES >> 20)]
    TooLong,
}

/// The last object that has every key of `required`; else the last that is not empty.
/// A model that thinks aloud shows drafts and examples first, so the last one counts.
pub fn object(text: &str, required: &[&str]) -> Result<Map<String, Value>, NoObject> {
    if text.len() > MAX_BYTES {
        return Err(NoObject::TooLong);
    }
    if text.trim().is_empty() {
        return Err(NoObject::Empty);
    }
    let fits = |object: &Map<String, Value>| required.iter().all(|key| object.contains_key(*key));
    let FoundObjects {
        mut objects,
        thoughts,
        unfinished,
        empty,
    } = scan(text);
    if let Some(at) = objects.iter().rposition(fits) {
        return Ok(objects.swap_remove(at));
    }
    // Only where nothing fits as it stands: an answer that is right is never touched.
    let mut repaired = slips::without_slips(text)
        .map(|text| scan(&text).objects)
        .unwrap_or_default();
    if let Some(at) = repaired
        .iter()
        .rposition(fits)
        .filter(|_| !required.is_empty())
    {
        return Ok(repaired.swap_remove(at));
    }
    match objects.pop() {
        // A whole object followed by the beginning of another: the first may be an example, never the answer.
        Some(_) if unfinished => Err(NoObject::Unfinished),
        Some(object) => Ok(object),
        None if unfinished => Err(NoObject::Unfinished),
        None if empty => Ok(Map::new()),
        None if thoughts => Err(NoObject::OnlyThoughts),
        None => Err(NoObject::NotJson),
    }
}

/// The keys that a schema's root requires.
pub fn required(schema: &Value) -> Vec<&str> {
    schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[derive(Default)]
struct FoundObjects {
    /// Only the last few: what came long before is neither answer nor needed.
    objects: Vec<Map<String, Value>>,
    thoughts: bool,
    unfinished: bool,
    empty: bool,
}

const KEPT: usize = 8;
const THINK: &str = "<think>";
const END_THINK: &str = "</think>";

/// One pass, linear in the text: a failed parse is never repeated from inside what it has read.
fn scan(text: &str) -> FoundObjects {
    let mut found = FoundObjects::default();
    let mut at = 0;
    while let Some(step) = text[at..].find(['{', '<']) {
        at += step;
        let rest = &text[at..];
        if rest.starts_with(THINK) {
            found.thoughts = true;
            match rest.find(END_THINK) {
                Some(end) => at += end + END_THINK.len(),
                None => break,
            }
        } else if rest.starts_with(END_THINK) {
            // The template opened the thoughts in the prompt, so all that came before was one.
            found = FoundObjects {
                thoughts: true,
                ..FoundObjects::default()
            };
            at += END_THINK.len();
        } else if rest.starts_with('<') {
            at += 1;
        } else {
            at += after_object(rest, &mut found);
        }
    }
    found
}

/// Reads an object at the start of `rest`, if there is one; says how far to go on.
fn after_object(rest: &str, found: &mut FoundObjects) -> usize {
    let mut parser = serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
    let (read, unfinished) = match parser.next() {
        Some(Ok(object)) => {
            if object.is_empty() {
                found.empty = true;
            } else {
                if found.objects.len() == KEPT {
                    found.objects.remove(0);
                }
                found.objects.push(object);
            }
            found.unfinished = false;
            return parser.byte_offset();
        }
        Some(Err(error)) if error.is_eof() => (rest.len(), true),
        Some(Err(error)) => (offset(rest, error.line(), error.column()), false),
        None => (rest.len(), false),
    };
    // Never step over the end of thoughts, which may have broken off inside a brace.
    if let Some(end) = rest[..read].find(END_THINK) {
        return end;
    }
    found.unfinished = unfinished;
    read.max(1)
}

/// The byte that a parser's line and column (from 1, in bytes) point at, on a character's boundary and inside `text`.
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

    fn found(text: &str) -> Result<Value, NoObject> {
        object(text, &["n"]).map(Value::Object)
    }

    #[test]
    fn the_object_is_found_whatever_stands_around_it() {
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
    fn a_tag_inside_a_string_is_text() {
        let answer = json!({"n": "strip <think> and </think> {\"n\":2}"});
        assert_eq!(found(&answer.to_string()), Ok(answer.clone()));
        assert_eq!(found(&format!("Here: {answer} done")), Ok(answer));
    }

    #[test]
    fn what_is_no_answer_is_told_apart() {
        assert_eq!(found(" \n"), Err(NoObject::Empty));
        assert_eq!(found("I cannot do that."), Err(NoObject::NotJson));
        assert_eq!(found("[1,2]"), Err(NoObject::NotJson));
        assert_eq!(found(r#"<think>{"n":1}"#), Err(NoObject::OnlyThoughts));
        assert_eq!(found(r#"{"n":1}</think>"#), Err(NoObject::OnlyThoughts));
        assert_eq!(
            found(r#"{"n":[{"path":"a"},{"path":"#),
            Err(NoObject::Unfinished)
        );
        assert_eq!(found(r#"{"like":"this"} {"n":"#), Err(NoObject::Unfinished));
        assert_eq!(found(&"x".repeat(MAX_BYTES + 1)), Err(NoObject::TooLong));
    }

    #[test]
    fn an_object_without_the_keys_is_still_handed_on_so_that_the_caller_can_say_what_is_missing() {
        assert_eq!(found(r#"{"m":1}"#), Ok(json!({"m": 1})));
        assert_eq!(found("{}"), Ok(json!({})));
    }

    #[test]
    fn depth_and_hostile_repetition_end_in_a_clean_answer_quickly() {
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
        fn no_text_makes_it_panic(text in "\\PC*") {
            let _ = found(&text);
        }

        #[test]
        fn no_soup_of_json_and_tags_makes_it_panic(parts in proptest::collection::vec(
            prop_oneof!["\\{", "\\}", "\"", "\\\\", ":", ",", "\\[", "\\]", "<think>", "</think>", "n", "é", "\n", "1", "```"], 0..60)) {
            let _ = found(&parts.concat());
        }

        #[test]
        fn an_object_behind_prose_without_braces_is_found_unchanged(
            before in "[^{}<>]*", after in "[^{}<>]*", key in "\\PC{0,8}", value in "\\PC{0,40}") {
            let answer = json!({"n": value, key: 1});
            prop_assert_eq!(found(&format!("{before}{answer}{after}")), Ok(answer));
        }
    }
}
