//! What a JSON answer means: which keys are an edit, where the edits are, what stands around them.
//! Knows the words of `vocabulary.toml`. A wrapper needs no name: whatever holds an answer and nothing else is one.

use serde_json::{Map, Value};

use super::Reading;
use super::found::{FoundEdit, FoundText};
use super::lenient::read_value;
use super::paths::is_path;
use super::place::find_file;
use super::rule::ReadingRule;
use super::vocabulary::{is_one_of, says_nothing, vocabulary};

/// Wrappers in wrappers; no answer needs more.
const DEEPEST: usize = 8;

/// Takes what this value says into the reading. `false`: it is no answer, and nothing was taken.
pub(super) fn take_answer(value: &Value, reading: &mut Reading<'_>) -> bool {
    take(value, reading, 0)
}

fn take(value: &Value, reading: &mut Reading<'_>, depth: usize) -> bool {
    if depth > DEEPEST {
        return false;
    }
    match value {
        Value::Object(fields) => take_object(fields, reading, depth),
        Value::Array(items) => {
            let mut taken = false;
            for item in items {
                let is_edit = item
                    .as_object()
                    .is_some_and(|fields| is_edit(fields, reading));
                if is_edit || item.is_object() {
                    taken |= take(item, reading, depth + 1);
                }
            }
            taken
        }
        Value::String(text) => {
            let inner = text.trim_start();
            if !inner.starts_with(['{', '[', '"']) {
                return false;
            }
            let taken =
                read_value(inner).is_some_and(|inner| take(&inner.value, reading, depth + 1));
            if taken {
                reading.used(ReadingRule::DoubleEncoding);
            }
            taken
        }
        _ => false,
    }
}

fn take_object(fields: &Map<String, Value>, reading: &mut Reading<'_>, depth: usize) -> bool {
    let words = &vocabulary().answer;
    let mut taken = false;
    if is_edit(fields, reading) {
        if depth == 0 {
            reading.used(ReadingRule::SingleEdit);
        }
        take_edit(fields, reading);
        taken = true;
    } else if let Some((key, edits)) = fields
        .iter()
        .find(|(key, edits)| is_one_of(key, &words.edits) && holds_edits(edits))
    {
        if key != "edits" {
            reading.used(ReadingRule::OtherWords);
        }
        taken |= take_edits(edits, reading, depth);
    } else if is_path_map(fields, reading) {
        take_path_map(fields, reading);
        taken = true;
    }
    // Beside an edit, `text` and the like are its own; beside a list they are the answer's.
    for (key, value) in fields {
        if is_one_of(key, &words.contradiction) {
            taken |= take_contradiction(value, reading);
        } else if is_one_of(key, &words.need) {
            let before = reading.need.len();
            take_needs(value, reading);
            taken |= reading.need.len() > before;
        } else if is_one_of(key, &words.notes)
            && let Some(note) = value.as_str().filter(|note| !says_nothing(note))
        {
            reading.notes.push(note.to_owned());
        }
    }
    let diff = fields
        .iter()
        .find(|(key, value)| is_one_of(key, &vocabulary().keys.diff) && value.is_string());
    if let Some(diff) = diff.and_then(|(_, diff)| diff.as_str()).filter(|_| !taken) {
        let before = reading.found.len();
        reading.take_diff(diff, None);
        taken = reading.found.len() > before;
    }
    let nothing_to_do = fields
        .iter()
        .any(|(key, value)| is_one_of(key, &words.edits) && is_empty(value));
    taken |= nothing_to_do;
    if !taken {
        taken = fields
            .iter()
            .any(|(key, value)| !is_one_of(key, &words.notes) && take(value, reading, depth + 1));
        if taken {
            reading.used(ReadingRule::Wrapper);
        }
    }
    taken
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => says_nothing(text),
        _ => false,
    }
}

fn holds_edits(value: &Value) -> bool {
    match value {
        Value::Array(items) => items
            .iter()
            .any(|item| item.is_object() || item.is_string()),
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !says_nothing(text),
        _ => false,
    }
}

/// The value of `edits`: a list, one edit, a map of paths, or any of these as a string.
fn take_edits(value: &Value, reading: &mut Reading<'_>, depth: usize) -> bool {
    match value {
        Value::Array(items) => {
            let mut taken = false;
            for item in items {
                taken |= take_edits_item(item, reading, depth);
            }
            taken
        }
        Value::Object(fields) if is_edit(fields, reading) => {
            reading.used(ReadingRule::SingleEdit);
            take_edit(fields, reading);
            true
        }
        Value::Object(fields) if is_path_map(fields, reading) => {
            take_path_map(fields, reading);
            true
        }
        Value::String(text) if !text.trim_start().starts_with(['{', '[']) => {
            reading.take_text(text)
        }
        other => take(other, reading, depth + 1),
    }
}

fn take_edits_item(item: &Value, reading: &mut Reading<'_>, depth: usize) -> bool {
    match item {
        Value::Object(fields) if is_edit(fields, reading) => {
            take_edit(fields, reading);
            true
        }
        Value::Object(fields) if is_path_map(fields, reading) => {
            take_path_map(fields, reading);
            true
        }
        Value::Object(fields) => {
            // An edit of which something is missing: what, is said when it is settled.
            if has_key(fields, &vocabulary().keys.path)
                || has_key(fields, &vocabulary().keys.content)
            {
                take_edit(fields, reading);
                return true;
            }
            take(item, reading, depth + 1)
        }
        Value::String(text) => reading.take_text(text),
        _ => false,
    }
}

fn has_key(fields: &Map<String, Value>, names: &[String]) -> bool {
    fields.keys().any(|key| is_one_of(key, names))
}

/// The value under one of these names, the first name first, and whether it is the name that was asked for.
fn field<'v>(fields: &'v Map<String, Value>, names: &[String]) -> Option<(&'v Value, bool)> {
    names.iter().find_map(|name| {
        let found = fields
            .iter()
            .find(|(key, value)| is_one_of(key, std::slice::from_ref(name)) && !value.is_null());
        found.map(|(key, value)| (value, names.first() == Some(key)))
    })
}

/// A list of places to change, for a path that is named beside it.
fn holds_places(value: &Value) -> bool {
    let keys = &vocabulary().keys;
    let is_place = |item: &Value| {
        item.as_object()
            .is_some_and(|fields| has_key(fields, &keys.search) && !has_key(fields, &keys.path))
    };
    value
        .as_array()
        .is_some_and(|items| !items.is_empty() && items.iter().all(is_place))
}

/// A path, and something to do with it.
fn is_edit(fields: &Map<String, Value>, reading: &Reading<'_>) -> bool {
    let keys = &vocabulary().keys;
    let path = field(fields, &keys.path).and_then(|(value, _)| value.as_str());
    let Some(path) =
        path.filter(|path| is_path(path.trim(), &reading.known) || path.contains(['/', '.']))
    else {
        return false;
    };
    let has_places = fields
        .iter()
        .any(|(key, value)| is_one_of(key, &vocabulary().answer.edits) && holds_places(value));
    let has_text = has_places
        || [&keys.content, &keys.search, &keys.replace, &keys.diff]
            .into_iter()
            .any(|names| has_key(fields, names));
    let action = field(fields, &keys.action).and_then(|(value, _)| value.as_str());
    !path.trim().is_empty()
        && (has_text
            || action.is_some_and(|action| is_one_of(action, &vocabulary().actions.delete)))
}

fn take_edit(fields: &Map<String, Value>, reading: &mut Reading<'_>) {
    let keys = &vocabulary().keys;
    let (path, as_asked) =
        field(fields, &keys.path).map_or((None, true), |(path, own)| (path.as_str(), own));
    let action = field(fields, &keys.action);
    let action_word = action.and_then(|(value, _)| value.as_str());
    // A list of small edits inside of one: `{"path": …, "edits": [{"search": …, "replace": …}]}`.
    let nested = fields
        .iter()
        .filter(|(key, v)| is_one_of(key, &vocabulary().answer.edits) && holds_places(v));
    let nested = nested.map(|(_, v)| v).find_map(Value::as_array);
    if let (Some(path), Some(nested)) = (path, nested) {
        reading.used(ReadingRule::Wrapper);
        for inner in nested.iter().filter_map(Value::as_object) {
            let mut whole = inner.clone();
            whole.entry("path").or_insert_with(|| Value::from(path));
            take_edit(&whole, reading);
        }
        return;
    }
    let mut is_plain = as_asked;
    let mut text = |names: &[String]| {
        let (value, own) = field(fields, names)?;
        is_plain &= own;
        text_of(value, reading_rules(&mut *reading))
    };
    let (content, search, replace, diff) = (
        text(&keys.content),
        text(&keys.search),
        text(&keys.replace),
        text(&keys.diff),
    );
    let actions = &vocabulary().actions;
    let says = |list: &[String]| action_word.is_some_and(|word| is_one_of(word, list));
    if action_word.is_none() {
        reading.used(ReadingRule::NoAction);
    } else if !is_plain
        || !["create", "replace", "change", "delete"].contains(&action_word.unwrap_or_default())
    {
        reading.used(ReadingRule::OtherWords);
    }
    if !is_plain && action_word.is_none() {
        reading.used(ReadingRule::OtherWords);
    }
    let exists = path.is_some_and(|path| find_file(path, &reading.known).is_some());
    if (action_word == Some("create") && exists) || (action_word == Some("replace") && !exists) {
        reading.used(ReadingRule::CreateOrReplace);
    }
    if let Some(diff) =
        diff.filter(|diff| diff.contains("@@") || diff.contains("\n+") || diff.contains("\n-"))
    {
        reading.take_diff(&diff, path);
        return;
    }
    let search = search.filter(|search| !search.trim().is_empty());
    let text = match (content, search, replace) {
        (None, None, None) if says(&actions.delete) => FoundText::Delete,
        (None, Some(search), Some(replace)) => FoundText::Change {
            search,
            replace,
            line: None,
        },
        (Some(content), Some(search), None) if !says(&actions.whole) => FoundText::Change {
            search,
            replace: content,
            line: None,
        },
        (Some(_), Some(search), Some(replace)) if says(&actions.change) => FoundText::Change {
            search,
            replace,
            line: None,
        },
        (Some(content), ..) => FoundText::Whole(content),
        // With no search text, what it is to be replaced by is the file.
        (None, None, Some(replace)) => FoundText::Whole(replace),
        (None, Some(search), None) if says(&actions.delete) => FoundText::Change {
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
    reading.add(FoundEdit {
        path: path.map(str::to_owned),
        text,
        from_json: true,
        ..FoundEdit::default()
    });
}

/// Lets a closure note a rule while the reading is borrowed elsewhere.
fn reading_rules<'r>(
    reading: &'r mut Reading<'_>,
) -> &'r mut std::collections::BTreeSet<ReadingRule> {
    &mut reading.rules
}

/// Text as a string, a list of lines, or an object around one of these.
fn text_of(value: &Value, rules: &mut std::collections::BTreeSet<ReadingRule>) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) if lines.iter().all(Value::is_string) => {
            rules.insert(ReadingRule::ListOfLines);
            let lines = lines.iter().filter_map(Value::as_str);
            Some(
                lines
                    .map(|line| line.strip_suffix('\n').unwrap_or(line).to_owned() + "\n")
                    .collect(),
            )
        }
        // A file that is JSON itself, written as such.
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

/// Keys that are paths, values that are texts.
fn is_path_map(fields: &Map<String, Value>, reading: &Reading<'_>) -> bool {
    let is_entry = |(key, value): (&String, &Value)| {
        let certain =
            key.contains('/') || key.contains('.') || find_file(key, &reading.known).is_some();
        certain
            && is_path(key, &reading.known)
            && (value.is_string() || value.is_array() || value.is_object())
    };
    let paths = fields.iter().filter(|entry| is_entry(*entry)).count();
    let aside = |key: &&String| {
        is_one_of(key, &vocabulary().answer.notes)
            || is_one_of(key, &vocabulary().answer.contradiction)
    };
    paths > 0 && paths + fields.keys().filter(aside).count() == fields.len()
}

fn take_path_map(fields: &Map<String, Value>, reading: &mut Reading<'_>) {
    reading.used(ReadingRule::PathMap);
    for (path, value) in fields
        .iter()
        .filter(|(key, _)| is_path(key, &reading.known))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect::<Vec<_>>()
    {
        if let Value::Object(inner) = &value
            && (has_key(inner, &vocabulary().keys.content)
                || has_key(inner, &vocabulary().keys.search))
        {
            let mut whole = inner.clone();
            whole.insert("path".to_owned(), Value::from(path));
            take_edit(&whole, reading);
        } else if let Some(text) = text_of(&value, &mut reading.rules) {
            reading.add(FoundEdit {
                path: Some(path),
                text: FoundText::Whole(text),
                from_json: true,
                ..FoundEdit::default()
            });
        }
    }
}

/// `false` and words for nothing are no contradiction.
fn take_contradiction(value: &Value, reading: &mut Reading<'_>) -> bool {
    match value {
        Value::String(why) if !says_nothing(why) => {
            reading.contradiction = Some(why.trim().to_owned());
            true
        }
        Value::String(_) | Value::Bool(false) => {
            reading.used(ReadingRule::NoContradiction);
            false
        }
        Value::Object(fields) => fields
            .values()
            .any(|inner| inner.is_string() && take_contradiction(inner, reading)),
        _ => false,
    }
}

/// Names and questions, however they are grouped.
pub(super) fn take_needs(value: &Value, reading: &mut Reading<'_>) {
    match value {
        Value::String(text) => reading.add_need(text),
        Value::Array(items) => items.iter().for_each(|item| take_needs(item, reading)),
        Value::Object(fields) => fields.values().for_each(|item| take_needs(item, reading)),
        _ => {}
    }
}
