//! JSON for people: indented names and values, without brackets and quotes. Knows no tool's details.

use serde_json::Value;

use supervisor_text::words;

/// The longest name that others are lined up with.
const WIDEST: usize = 20;

/// One line per value, each below `indent` spaces; nothing for nothing.
pub(super) fn outline(value: &Value, indent: usize) -> String {
    let mut text = String::new();
    if value.is_null() {
        return text;
    }
    inner(value, indent, &mut text);
    text
}

fn inner(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(object) => {
            let beside = object
                .iter()
                .filter(|(_, value)| flat(value).is_some())
                .map(|(name, _)| name.len());
            let width = beside
                .filter(|len| *len <= WIDEST)
                .max()
                .unwrap_or_default()
                + 2;
            for (name, value) in object {
                let name = words::plain(name);
                match flat(value) {
                    Some(line) => named(&name, width, &line, indent, text),
                    None => {
                        *text += &format!("{:indent$}{name}\n", "");
                        inner(value, indent + 2, text);
                    }
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| element(item, indent, text)),
        scalar => *text += &format!("{:indent$}{}\n", "", flat(scalar).unwrap_or_default()),
    }
}

/// An element begins with a dash, and what belongs to it stands below its first word.
fn element(item: &Value, indent: usize, text: &mut String) {
    match flat(item) {
        Some(line) => *text += &format!("{:indent$}- {}\n", "", below(&line, indent + 2)),
        None => {
            let lines = outline(item, indent + 2);
            *text += &format!("{:indent$}- {}", "", lines.trim_start_matches(' '));
        }
    }
}

fn named(name: &str, width: usize, line: &str, indent: usize, text: &mut String) {
    let width = width.max(name.len() + 2);
    let column = indent + width;
    *text += format!("{:indent$}{name:width$}{}", "", below(line, column)).trim_end();
    text.push('\n');
}

/// Text of several lines stays in its column.
fn below(text: &str, column: usize) -> String {
    text.trim_end().replace('\n', &format!("\n{:column$}", ""))
}

/// The value on one line, if it is short by nature: a word, a number, a list of those.
fn flat(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::from("-")),
        Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.into()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(words::plain(text).into_owned()),
        Value::Array(items) if items.is_empty() => Some(String::from("none")),
        Value::Array(items) => {
            let short = |item: &Value| match item {
                Value::String(text) if text.len() > 60 || text.contains(['\n', ',']) => None,
                Value::Object(_) | Value::Array(_) => None,
                scalar => flat(scalar),
            };
            let words: Option<Vec<String>> = items.iter().map(short).collect();
            words
                .map(|words| words.join(", "))
                .filter(|line| line.len() <= 100)
        }
        Value::Object(object) if object.is_empty() => Some(String::from("none")),
        Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn details_read_without_brackets() {
        let details = json!({
            "lines_added": 4, "new_dependencies": [], "names": ["a", "b"], "sure": true, "nothing": null,
            "findings": [
                {"severity": "critical", "at": {"file": "a.rs", "line": 3}, "why": "first\nsecond"},
                {"severity": "warning"},
            ],
            "notes": ["a sentence, with a comma", "another\u{1b}[2J"],
        });
        let wanted = [
            "  lines_added       4",
            "  new_dependencies  none",
            "  names             a, b",
            "  sure              yes",
            "  nothing           -",
            "  findings",
            "    - severity  critical",
            "      at",
            "        file  a.rs",
            "        line  3",
            "      why       first",
            "                second",
            "    - severity  warning",
            "  notes",
            "    - a sentence, with a comma",
            "    - another\\u{1b}[2J",
        ];
        assert_eq!(outline(&details, 2).lines().collect::<Vec<_>>(), wanted);
    }
}
