//! Parses answers in tags: `<tool_call>` around JSON, `<function=…><parameter=…>`, `<file
//! path="…">`, or elements whose children are the parts of an edit. Element names do not matter, as
//! long as there are a path and a text inside.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::AnswerParser;
use super::object::parse_answer;
use super::paths::is_path;
use super::rule::ParseRule;
use super::vocabulary::{is_one_of, vocabulary};

/// After this many lines that only look like elements the rest is treated as text, because each
/// attempt may scan to the end.
const MAX_MISSES: usize = 40;

/// Parses the elements outside of fences. Returns the remaining text, or `None` if there are no
/// elements.
pub(super) fn parse_elements(text: &str, parser: &mut AnswerParser<'_>) -> Option<String> {
    if !text.contains('<') {
        return None;
    }
    let (mut rest, mut at, mut in_fence, mut parsed) = (String::new(), 0, false, false);
    let mut misses = 0;
    while at < text.len() {
        let line_end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
        let line = &text[at..line_end];
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if !in_fence && misses < MAX_MISSES && line.trim_start().starts_with('<') {
            if let Some(end) = parse_element(&text[at..], parser) {
                parsed = true;
                at += end;
                continue;
            }
            misses += 1;
        }
        rest.push_str(line);
        at = line_end;
    }
    parsed.then_some(rest)
}

/// Parses the element at the start of the text, if it is part of an answer. Returns where it ends.
fn parse_element(text: &str, parser: &mut AnswerParser<'_>) -> Option<usize> {
    static OPEN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"^\s*<([A-Za-z_][\w.-]*)(=[\w.-]+)?((?:\s+[\w-]+\s*=\s*(?:"[^"\n]*"|'[^'\n]*'))*)\s*>"#)
            .expect("the pattern is valid")
    });
    let open = OPEN.captures(text)?;
    let (name, start) = (open.get(1)?.as_str(), open.get(0)?.end());
    let close = format!("</{name}>");
    let length = text[start..].find(&close);
    let body = &text[start..start + length.unwrap_or(text.len() - start)];
    let end = length.map_or(text.len(), |length| start + length + close.len());
    // An unclosed element counts only around JSON, which has its own end.
    let inner = body.trim();
    if inner.starts_with(['{', '[']) && super::blocks::parse_objects(inner, parser) {
        parser.record(ParseRule::Wrapper);
        return Some(end);
    }
    length?;
    let mut fields = children(body);
    let is_function =
        open.get(2).is_some() || body.trim_start().starts_with("<function=") || name == "invoke";
    for (key, value) in attributes(open.get(3).map_or("", |m| m.as_str())) {
        let key = if key == "name" && is_path(&value, &parser.files) {
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
            if is_known_format(inner) {
                // A fence, SEARCH block or diff inside the element, for the path it names.
                if !parser.parse_text(&format!("{path}\n{inner}\n")) {
                    return None;
                }
                parser.record(ParseRule::Elements);
                return Some(end);
            }
            fields.insert("content".to_owned(), Value::from(element_text(body)));
        }
        if !parse_answer(&Value::Object(fields), parser) {
            return None;
        }
        parser.record(if is_function {
            ParseRule::FunctionElements
        } else {
            ParseRule::Elements
        });
        return Some(end);
    }
    // An element around others, or around the whole answer.
    let is_wrapper = body.contains("</") || body.contains("```") || body.contains("<<<<<");
    if is_wrapper && !inner.is_empty() && parser.parse_text(inner) {
        parser.record(if is_function {
            ParseRule::FunctionElements
        } else {
            ParseRule::Wrapper
        });
        return Some(end);
    }
    None
}

/// The text between two tags, without the first line break and without a surrounding CDATA section.
fn element_text(body: &str) -> &str {
    let inside = body
        .trim()
        .strip_prefix("<![CDATA[")
        .and_then(|rest| rest.strip_suffix("]]>"))
        .unwrap_or(body);
    inside.strip_prefix('\n').unwrap_or(inside)
}

fn is_known_format(text: &str) -> bool {
    text.starts_with("```")
        || text.starts_with("<<<<<")
        || text.starts_with("--- ")
        || text.starts_with("@@")
}

/// Parses `<path>x</path>`, `<parameter=path>x</parameter>`, `<parameter
/// name="path">x</parameter>`.
fn children(body: &str) -> Map<String, Value> {
    static CHILD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"<(?:(parameter|arg|argument)(?:=|\s+name\s*=\s*)["']?([\w-]+)["']?|([a-zA-Z_][\w-]*))>"#)
            .expect("the pattern is valid")
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
        Regex::new(r#"([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')"#).expect("the pattern is valid")
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
