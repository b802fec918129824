//! Answers between tags: `<tool_call>` around JSON, `<function=…><parameter=…>`, `<file path="…">`, or elements whose
//! children are the parts of an edit. Any name will do: what counts is that a path and a text are inside.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::Reading;
use super::object::take_answer;
use super::paths::is_path;
use super::rule::ReadingRule;
use super::vocabulary::{is_one_of, vocabulary};

/// After so many lines that only look like an element, the rest is taken for text: each look may go to its end.
const MOST_MISSES: usize = 40;

/// Takes the elements that stand outside of fences. Gives what is left of the text; `None` if there are none.
pub(super) fn take_elements(text: &str, reading: &mut Reading<'_>) -> Option<String> {
    if !text.contains('<') {
        return None;
    }
    let (mut rest, mut at, mut in_fence, mut taken) = (String::new(), 0, false, false);
    let mut misses = 0;
    while at < text.len() {
        let line_end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
        let line = &text[at..line_end];
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if !in_fence && misses < MOST_MISSES && line.trim_start().starts_with('<') {
            if let Some(end) = take_element(&text[at..], reading) {
                taken = true;
                at += end;
                continue;
            }
            misses += 1;
        }
        rest.push_str(line);
        at = line_end;
    }
    taken.then_some(rest)
}

/// Takes the element at the start of the text, if it is one of ours; says where it ends.
fn take_element(text: &str, reading: &mut Reading<'_>) -> Option<usize> {
    static OPEN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"^\s*<([A-Za-z_][\w.-]*)(=[\w.-]+)?((?:\s+[\w-]+\s*=\s*(?:"[^"\n]*"|'[^'\n]*'))*)\s*>"#)
            .expect("a pattern that is tested below")
    });
    let open = OPEN.captures(text)?;
    let (name, start) = (open.get(1)?.as_str(), open.get(0)?.end());
    let close = format!("</{name}>");
    let length = text[start..].find(&close);
    let body = &text[start..start + length.unwrap_or(text.len() - start)];
    let end = length.map_or(text.len(), |length| start + length + close.len());
    // Without its end it counts only around JSON, which has an end of its own.
    let inner = body.trim();
    if inner.starts_with(['{', '[']) && super::blocks::take_objects(inner, reading) {
        reading.used(ReadingRule::Wrapper);
        return Some(end);
    }
    length?;
    let mut fields = children(body);
    let is_function =
        open.get(2).is_some() || body.trim_start().starts_with("<function=") || name == "invoke";
    for (key, value) in attributes(open.get(3).map_or("", |m| m.as_str())) {
        let key = if key == "name" && is_path(&value, &reading.known) {
            "path".to_owned()
        } else {
            key
        };
        fields.entry(key).or_insert(Value::from(value));
    }
    let keys = &vocabulary().keys;
    let has = |names: &[String]| fields.keys().any(|key| is_one_of(key, names));
    if has(&keys.path) {
        let path = fields
            .iter()
            .find(|(key, _)| is_one_of(key, &keys.path))
            .and_then(|(_, path)| path.as_str());
        let path = path.unwrap_or_default().to_owned();
        if !has(&keys.content) && !has(&keys.replace) && !has(&keys.diff) {
            if is_shape(inner) {
                // A fence, a SEARCH block or a diff inside of the element, for the path that it names.
                if !reading.take_text(&format!("{path}\n{inner}\n")) {
                    return None;
                }
                reading.used(ReadingRule::Elements);
                return Some(end);
            }
            fields.insert("content".to_owned(), Value::from(element_text(body)));
        }
        if !take_answer(&Value::Object(fields), reading) {
            return None;
        }
        reading.used(if is_function {
            ReadingRule::FunctionElements
        } else {
            ReadingRule::Elements
        });
        return Some(end);
    }
    // Something around others, or around the whole answer.
    let around = body.contains("</") || body.contains("```") || body.contains("<<<<<");
    if around && !inner.is_empty() && reading.take_text(inner) {
        reading.used(if is_function {
            ReadingRule::FunctionElements
        } else {
            ReadingRule::Wrapper
        });
        return Some(end);
    }
    None
}

/// The text between two tags, without the line break after the first and without a CDATA section around it.
fn element_text(body: &str) -> &str {
    let inside = body
        .trim()
        .strip_prefix("<![CDATA[")
        .and_then(|rest| rest.strip_suffix("]]>"))
        .unwrap_or(body);
    inside.strip_prefix('\n').unwrap_or(inside)
}

fn is_shape(text: &str) -> bool {
    text.starts_with("```")
        || text.starts_with("<<<<<")
        || text.starts_with("--- ")
        || text.starts_with("@@")
}

/// `<path>x</path>`, `<parameter=path>x</parameter>`, `<parameter name="path">x</parameter>`.
fn children(body: &str) -> Map<String, Value> {
    static CHILD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"<(?:(parameter|arg|argument)(?:=|\s+name\s*=\s*)["']?([\w-]+)["']?|([a-zA-Z_][\w-]*))>"#)
            .expect("a pattern that is tested below")
    });
    let mut fields = Map::new();
    let mut at = 0;
    while let Some(open) = CHILD.captures_at(body, at) {
        let whole = open.get(0).expect("the whole match");
        let (tag, key) = match (open.get(1), open.get(2), open.get(3)) {
            (Some(tag), Some(key), _) => (tag.as_str(), key.as_str()),
            (_, _, Some(tag)) => (tag.as_str(), tag.as_str()),
            _ => break,
        };
        let is_known = [
            &vocabulary().keys.path,
            &vocabulary().keys.content,
            &vocabulary().keys.search,
            &vocabulary().keys.replace,
            &vocabulary().keys.action,
            &vocabulary().keys.diff,
        ]
        .into_iter()
        .any(|names| is_one_of(key, names));
        let close = format!("</{tag}>");
        let Some(length) = body[whole.end()..].find(&close).filter(|_| is_known) else {
            at = whole.end();
            continue;
        };
        let text = element_text(&body[whole.end()..whole.end() + length]);
        let is_path = is_one_of(key, &vocabulary().keys.path);
        let text = if is_path { text.trim() } else { text };
        fields
            .entry(key.to_owned())
            .or_insert_with(|| Value::from(text));
        at = whole.end() + length + close.len();
    }
    fields
}

fn attributes(text: &str) -> Vec<(String, String)> {
    static ATTRIBUTE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')"#)
            .expect("a pattern that is tested below")
    });
    let pair = |c: regex::Captures<'_>| {
        let value = c.get(2).or_else(|| c.get(3)).map_or("", |m| m.as_str());
        (
            c.get(1).map_or("", |m| m.as_str()).to_owned(),
            value.to_owned(),
        )
    };
    ATTRIBUTE.captures_iter(text).map(pair).collect()
}
