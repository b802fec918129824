//! Renders JSON for people: indented names and values without brackets and quotes.

use serde_json::Value;

use supervisor_text::words;

/// Longer names do not widen the value column.
const MAX_ALIGNED_NAME: usize = 20;

/// Renders one line per value, indented by `indent` spaces; `null` renders as nothing.
pub(super) fn outline(value: &Value, indent: usize) -> String {
    let mut text = String::new();
    if value.is_null() {
        return text;
    }
    write_value(value, indent, &mut text);
    text
}

fn write_value(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(object) => {
            let name_lengths = object
                .iter()
                .filter(|(_, value)| to_one_line(value).is_some())
                .map(|(name, _)| name.len());
            let width = name_lengths
                .filter(|len| *len <= MAX_ALIGNED_NAME)
                .max()
                .unwrap_or_default()
                + 2;
            for (name, value) in object {
                let name = words::plain(name);
                match to_one_line(value) {
                    Some(line) => write_named(&name, width, &line, indent, text),
                    None => {
                        *text += &format!("{:indent$}{name}\n", "");
                        write_value(value, indent + 2, text);
                    }
                }
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| write_element(item, indent, text)),
        scalar => {
            *text += &format!(
                "{:indent$}{}\n",
                "",
                to_one_line(scalar).unwrap_or_default()
            );
        }
    }
}

/// Writes one list element: a dash, and everything else aligned with its first word.
fn write_element(item: &Value, indent: usize, text: &mut String) {
    match to_one_line(item) {
        Some(line) => {
            *text += &format!(
                "{:indent$}- {}\n",
                "",
                indent_continuation(&line, indent + 2)
            );
        }
        None => {
            let lines = outline(item, indent + 2);
            *text += &format!("{:indent$}- {}", "", lines.trim_start_matches(' '));
        }
    }
}

fn write_named(name: &str, width: usize, line: &str, indent: usize, text: &mut String) {
    let width = width.max(name.len() + 2);
    let column = indent + width;
    *text += format!(
        "{:indent$}{name:width$}{}",
        "",
        indent_continuation(line, column)
    )
    .trim_end();
    text.push('\n');
}

/// Indents the continuation lines of a multi-line text to `column`.
fn indent_continuation(text: &str, column: usize) -> String {
    text.trim_end().replace('\n', &format!("\n{:column$}", ""))
}

/// Renders a scalar or a short list of scalars on one line.
fn to_one_line(value: &Value) -> Option<String> {
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
                scalar => to_one_line(scalar),
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
    fn details_render_without_brackets() {
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
