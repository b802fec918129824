//! Interprets a JSON answer: which keys form an edit, where the edits are, and what surrounds them.
//! The accepted keys are in `vocabulary.toml`. Wrappers may have any name: whatever contains only
//! an answer is one.

use serde_json::{Map, Value};

use super::AnswerParser;
use super::found::{FoundEdit, FoundText};
use super::lenient::read_value;
use super::path_resolution::find_file;
use super::paths::is_path;
use super::rule::ParseRule;
use super::vocabulary::{is_one_of, means_none, vocabulary};

/// Maximum nesting of wrappers.
const MAX_DEPTH: usize = 8;

/// Parses this value. Returns `false`, without changing the state, if it is not an answer.
pub(super) fn parse_answer(value: &Value, parser: &mut AnswerParser<'_>) -> bool {
    parse_value(value, parser, 0)
}

fn parse_value(value: &Value, parser: &mut AnswerParser<'_>, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    match value {
        Value::Object(fields) => parse_object(fields, parser, depth),
        Value::Array(items) => {
            let mut parsed = false;
            for item in items {
                let is_edit = item
                    .as_object()
                    .is_some_and(|fields| is_edit(fields, parser));
                if is_edit || item.is_object() {
                    parsed |= parse_value(item, parser, depth + 1);
                }
            }
            parsed
        }
        Value::String(text) => {
            let inner = text.trim_start();
            if !inner.starts_with(['{', '[', '"']) {
                return false;
            }
            let parsed =
                read_value(inner).is_some_and(|inner| parse_value(&inner.value, parser, depth + 1));
            if parsed {
                parser.record(ParseRule::DoubleEncoding);
            }
            parsed
        }
        _ => false,
    }
}

fn parse_object(fields: &Map<String, Value>, parser: &mut AnswerParser<'_>, depth: usize) -> bool {
    let words = &vocabulary().answer;
    let mut parsed = false;
    if is_edit(fields, parser) {
        if depth == 0 {
            parser.record(ParseRule::SingleEdit);
        }
        parse_edit(fields, parser);
        parsed = true;
    } else if let Some((key, edits)) = fields
        .iter()
        .find(|(key, edits)| is_one_of(key, &words.edits) && contains_edits(edits))
    {
        if key != "edits" {
            parser.record(ParseRule::OtherWords);
        }
        parsed |= parse_edits(edits, parser, depth);
    } else if is_path_map(fields, parser) {
        parse_path_map(fields, parser);
        parsed = true;
    }
    // Beside an edit, keys such as `text` belong to the edit; beside a list, to the answer.
    for (key, value) in fields {
        if is_one_of(key, &words.contradiction) {
            parsed |= parse_contradiction(value, parser);
        } else if is_one_of(key, &words.need) {
            let before = parser.need.len();
            parse_needs(value, parser);
            parsed |= parser.need.len() > before;
        } else if is_one_of(key, &words.notes)
            && let Some(note) = value.as_str().filter(|note| !means_none(note))
        {
            parser.notes.push(note.to_owned());
        }
    }
    let diff = fields
        .iter()
        .find(|(key, value)| is_one_of(key, &vocabulary().keys.diff) && value.is_string());
    if let Some(diff) = diff.and_then(|(_, diff)| diff.as_str()).filter(|_| !parsed) {
        let before = parser.found.len();
        parser.parse_diff(diff, None);
        parsed = parser.found.len() > before;
    }
    let nothing_to_do = fields
        .iter()
        .any(|(key, value)| is_one_of(key, &words.edits) && is_empty(value));
    parsed |= nothing_to_do;
    if !parsed {
        parsed = fields.iter().any(|(key, value)| {
            !is_one_of(key, &words.notes) && parse_value(value, parser, depth + 1)
        });
        if parsed {
            parser.record(ParseRule::Wrapper);
        }
    }
    parsed
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => means_none(text),
        _ => false,
    }
}

fn contains_edits(value: &Value) -> bool {
    match value {
        Value::Array(items) => items
            .iter()
            .any(|item| item.is_object() || item.is_string()),
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !means_none(text),
        _ => false,
    }
}

/// Parses the value of `edits`: a list, one edit, a map of paths, or any of these as a string.
fn parse_edits(value: &Value, parser: &mut AnswerParser<'_>, depth: usize) -> bool {
    match value {
        Value::Array(items) => {
            let mut parsed = false;
            for item in items {
                parsed |= parse_edits_item(item, parser, depth);
            }
            parsed
        }
        Value::Object(fields) if is_edit(fields, parser) => {
            parser.record(ParseRule::SingleEdit);
            parse_edit(fields, parser);
            true
        }
        Value::Object(fields) if is_path_map(fields, parser) => {
            parse_path_map(fields, parser);
            true
        }
        Value::String(text) if !text.trim_start().starts_with(['{', '[']) => {
            parser.parse_text(text)
        }
        other => parse_value(other, parser, depth + 1),
    }
}

fn parse_edits_item(item: &Value, parser: &mut AnswerParser<'_>, depth: usize) -> bool {
    match item {
        Value::Object(fields) if is_edit(fields, parser) => {
            parse_edit(fields, parser);
            true
        }
        Value::Object(fields) if is_path_map(fields, parser) => {
            parse_path_map(fields, parser);
            true
        }
        Value::Object(fields) => {
            // An incomplete edit; the missing part is reported later.
            if has_key(fields, &vocabulary().keys.path)
                || has_key(fields, &vocabulary().keys.content)
            {
                parse_edit(fields, parser);
                return true;
            }
            parse_value(item, parser, depth + 1)
        }
        Value::String(text) => parser.parse_text(text),
        _ => false,
    }
}

fn has_key(fields: &Map<String, Value>, names: &[String]) -> bool {
    fields.keys().any(|key| is_one_of(key, names))
}

/// The value under the first of these names that is present, and whether that is the requested
/// name.
fn field<'v>(fields: &'v Map<String, Value>, names: &[String]) -> Option<(&'v Value, bool)> {
    names.iter().find_map(|name| {
        let found = fields
            .iter()
            .find(|(key, value)| is_one_of(key, std::slice::from_ref(name)) && !value.is_null());
        found.map(|(key, value)| (value, names.first() == Some(key)))
    })
}

/// Whether this is a list of changes for a path that is named beside it.
fn is_change_list(value: &Value) -> bool {
    let keys = &vocabulary().keys;
    let is_change = |item: &Value| {
        item.as_object()
            .is_some_and(|fields| has_key(fields, &keys.search) && !has_key(fields, &keys.path))
    };
    value
        .as_array()
        .is_some_and(|items| !items.is_empty() && items.iter().all(is_change))
}

/// Whether the object has a path and something to do with it.
fn is_edit(fields: &Map<String, Value>, parser: &AnswerParser<'_>) -> bool {
    let keys = &vocabulary().keys;
    let path = field(fields, &keys.path).and_then(|(value, _)| value.as_str());
    let Some(path) =
        path.filter(|path| is_path(path.trim(), &parser.files) || path.contains(['/', '.']))
    else {
        return false;
    };
    let has_changes = fields
        .iter()
        .any(|(key, value)| is_one_of(key, &vocabulary().answer.edits) && is_change_list(value));
    let has_text = has_changes
        || [&keys.content, &keys.search, &keys.replace, &keys.diff]
            .into_iter()
            .any(|names| has_key(fields, names));
    let action = field(fields, &keys.action).and_then(|(value, _)| value.as_str());
    !path.trim().is_empty()
        && (has_text
            || action.is_some_and(|action| is_one_of(action, &vocabulary().actions.delete)))
}

fn parse_edit(fields: &Map<String, Value>, parser: &mut AnswerParser<'_>) {
    let keys = &vocabulary().keys;
    let (path, is_requested_key) = field(fields, &keys.path)
        .map_or((None, true), |(path, is_requested)| {
            (path.as_str(), is_requested)
        });
    let action = field(fields, &keys.action);
    let action_word = action.and_then(|(value, _)| value.as_str());
    // A list of small edits inside of one: `{"path": …, "edits": [{"search": …, "replace": …}]}`.
    let nested = fields
        .iter()
        .filter(|(key, v)| is_one_of(key, &vocabulary().answer.edits) && is_change_list(v));
    let nested = nested.map(|(_, v)| v).find_map(Value::as_array);
    if let (Some(path), Some(nested)) = (path, nested) {
        parser.record(ParseRule::Wrapper);
        for inner in nested.iter().filter_map(Value::as_object) {
            let mut whole = inner.clone();
            whole.entry("path").or_insert_with(|| Value::from(path));
            parse_edit(&whole, parser);
        }
        return;
    }
    let mut uses_requested_keys = is_requested_key;
    let mut text = |names: &[String]| {
        let (value, is_requested) = field(fields, names)?;
        uses_requested_keys &= is_requested;
        text_of(value, rules_of(&mut *parser))
    };
    let (content, search, replace, diff) = (
        text(&keys.content),
        text(&keys.search),
        text(&keys.replace),
        text(&keys.diff),
    );
    let actions = &vocabulary().actions;
    let is_action = |list: &[String]| action_word.is_some_and(|word| is_one_of(word, list));
    if action_word.is_none() {
        parser.record(ParseRule::NoAction);
    } else if !uses_requested_keys
        || !["create", "replace", "change", "delete"].contains(&action_word.unwrap_or_default())
    {
        parser.record(ParseRule::OtherWords);
    }
    if !uses_requested_keys && action_word.is_none() {
        parser.record(ParseRule::OtherWords);
    }
    let exists = path.is_some_and(|path| find_file(path, &parser.files).is_some());
    if (action_word == Some("create") && exists) || (action_word == Some("replace") && !exists) {
        parser.record(ParseRule::CreateOrReplace);
    }
    if let Some(diff) =
        diff.filter(|diff| diff.contains("@@") || diff.contains("\n+") || diff.contains("\n-"))
    {
        parser.parse_diff(&diff, path);
        return;
    }
    let search = search.filter(|search| !search.trim().is_empty());
    let text = match (content, search, replace) {
        (None, None, None) if is_action(&actions.delete) => FoundText::Delete,
        (None, Some(search), Some(replace)) => FoundText::Change {
            search,
            replace,
            line: None,
        },
        (Some(content), Some(search), None) if !is_action(&actions.whole) => FoundText::Change {
            search,
            replace: content,
            line: None,
        },
        (Some(_), Some(search), Some(replace)) if is_action(&actions.change) => FoundText::Change {
            search,
            replace,
            line: None,
        },
        (Some(content), ..) => FoundText::Whole(content),
        // Without search text, the replacement is the whole file.
        (None, None, Some(replace)) => FoundText::Whole(replace),
        (None, Some(search), None) if is_action(&actions.delete) => FoundText::Change {
            search,
            replace: String::new(),
            line: None,
        },
        (None, search, _) => FoundText::Incomplete {
            has: if search.is_some() {
                "`search` without `replace`"
            } else {
                "neither `content` nor `search` and `replace`"
            },
        },
    };
    parser.add(FoundEdit {
        path: path.map(str::to_owned),
        text,
        from_json: true,
        ..FoundEdit::default()
    });
}

/// Lets a closure record a rule while the parser is borrowed elsewhere.
fn rules_of<'r>(parser: &'r mut AnswerParser<'_>) -> &'r mut std::collections::BTreeSet<ParseRule> {
    &mut parser.rules
}

/// Text as a string, a list of lines, or an object around one of these.
fn text_of(value: &Value, rules: &mut std::collections::BTreeSet<ParseRule>) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) if lines.iter().all(Value::is_string) => {
            rules.insert(ParseRule::ListOfLines);
            let lines = lines.iter().filter_map(Value::as_str);
            Some(
                lines
                    .map(|line| line.strip_suffix('\n').unwrap_or(line).to_owned() + "\n")
                    .collect(),
            )
        }
        // A JSON file, written as JSON instead of text.
        Value::Object(fields) => {
            let inner = field(fields, &vocabulary().keys.content)
                .and_then(|(inner, _)| text_of(inner, rules));
            inner.or_else(|| {
                serde_json::to_string_pretty(value)
                    .ok()
                    .map(|text| text + "\n")
            })
        }
        _ => None,
    }
}

/// Whether the keys are paths and the values are texts.
fn is_path_map(fields: &Map<String, Value>, parser: &AnswerParser<'_>) -> bool {
    let is_entry = |(key, value): (&String, &Value)| {
        let certain =
            key.contains('/') || key.contains('.') || find_file(key, &parser.files).is_some();
        certain
            && is_path(key, &parser.files)
            && (value.is_string() || value.is_array() || value.is_object())
    };
    let paths = fields.iter().filter(|entry| is_entry(*entry)).count();
    let is_metadata = |key: &&String| {
        is_one_of(key, &vocabulary().answer.notes)
            || is_one_of(key, &vocabulary().answer.contradiction)
    };
    paths > 0 && paths + fields.keys().filter(is_metadata).count() == fields.len()
}

fn parse_path_map(fields: &Map<String, Value>, parser: &mut AnswerParser<'_>) {
    parser.record(ParseRule::PathMap);
    for (path, value) in fields
        .iter()
        .filter(|(key, _)| is_path(key, &parser.files))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect::<Vec<_>>()
    {
        if let Value::Object(inner) = &value
            && (has_key(inner, &vocabulary().keys.content)
                || has_key(inner, &vocabulary().keys.search))
        {
            let mut whole = inner.clone();
            whole.insert("path".to_owned(), Value::from(path));
            parse_edit(&whole, parser);
        } else if let Some(text) = text_of(&value, &mut parser.rules) {
            parser.add(FoundEdit {
                path: Some(path),
                text: FoundText::Whole(text),
                from_json: true,
                ..FoundEdit::default()
            });
        }
    }
}

/// `false` and phrases such as "none" are not a contradiction.
fn parse_contradiction(value: &Value, parser: &mut AnswerParser<'_>) -> bool {
    match value {
        Value::String(why) if !means_none(why) => {
            parser.contradiction = Some(why.trim().to_owned());
            true
        }
        Value::String(_) | Value::Bool(false) => {
            parser.record(ParseRule::NoContradiction);
            false
        }
        Value::Object(fields) => fields
            .values()
            .any(|inner| inner.is_string() && parse_contradiction(inner, parser)),
        _ => false,
    }
}

/// Collects requested names and questions, however they are grouped.
pub(super) fn parse_needs(value: &Value, parser: &mut AnswerParser<'_>) {
    match value {
        Value::String(text) => parser.add_need(text),
        Value::Array(items) => items.iter().for_each(|item| parse_needs(item, parser)),
        Value::Object(fields) => fields.values().for_each(|item| parse_needs(item, parser)),
        _ => {}
    }
}
