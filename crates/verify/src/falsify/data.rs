//! The values of data files that tests read: JSON, YAML, and lines of text such as golden files and snapshots.

use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::literal::{LiteralKind, different_literal};
use super::test_source::LiteralSite;

/// More values are not changed; a file this long has enough of them.
const MAX_VALUES: usize = 5_000;

/// A string, number or boolean of JSON.
static JSON_VALUE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#""(?:[^"\\]|\\.)*"|-?\b\d+(?:\.\d+)?\b|\btrue\b|\bfalse\b"#)
        .expect("a pattern that tests compile")
});

/// The value at the end of a line of YAML.
static YAML_VALUE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^[ ]*(?:- +)*(?:[^#:\n]+:[ ]+|- +)([^\s#&*|>{\[!%].*?)[ ]*$")
        .expect("a pattern that tests compile")
});

/// The first word of a line.
static WORD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)\w+").expect("a pattern that tests compile"));

/// The values of a data file. `Pattern` stands for a word without quotes.
pub(super) fn values(path: &Path, text: &str) -> Vec<LiteralSite> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let values: Vec<LiteralSite> = match extension.as_ref() {
        "json" => json_values(text),
        "yml" | "yaml" => YAML_VALUE
            .captures_iter(text)
            .filter_map(|found| found.get(1))
            .map(|value| site(value.range(), value.as_str()))
            .collect(),
        _ => line_values(text),
    };
    values.into_iter().take(MAX_VALUES).collect()
}

fn json_values(text: &str) -> Vec<LiteralSite> {
    JSON_VALUE
        .find_iter(text)
        .filter(|value| !text[value.end()..].trim_start().starts_with(':'))
        .map(|value| site(value.range(), value.as_str()))
        .collect()
}

/// One word of each line, but not of a snapshot's header and names.
fn line_values(text: &str) -> Vec<LiteralSite> {
    let header = match text
        .strip_prefix("---\n")
        .and_then(|rest| rest.find("\n---\n"))
    {
        Some(end) => end + 4,
        None => 0,
    };
    let mut values = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at >= header && !line.starts_with("exports[") && !line.starts_with("//") {
            // The last word: a line may begin with its name.
            if let Some(word) = WORD.find_iter(line).last() {
                values.push(site(at + word.start()..at + word.end(), word.as_str()));
            }
        }
        at += line.len();
    }
    values
}

fn site(range: Range<usize>, text: &str) -> LiteralSite {
    let kind = if text.starts_with(['"', '\'']) {
        LiteralKind::Text
    } else if text == "true" || text == "false" {
        LiteralKind::Bool
    } else if text
        .trim_start_matches('-')
        .starts_with(|c: char| c.is_ascii_digit())
        && text.trim_start_matches('-').parse::<f64>().is_ok()
    {
        LiteralKind::Number
    } else {
        LiteralKind::Pattern
    };
    LiteralSite { range, kind }
}

/// A different value of the same kind, so that the file is still well-formed.
pub(super) fn different_value(
    value: &LiteralSite,
    text: &str,
    file: &str,
    rng: &mut fastrand::Rng,
) -> Option<String> {
    match value.kind {
        LiteralKind::Pattern => Some(format!("{text}{}", super::literal::random_word(file, rng))),
        LiteralKind::Number => match text.strip_prefix('-') {
            Some(number) => {
                different_literal(value.kind, number, file, rng).map(|other| format!("-{other}"))
            }
            None => different_literal(value.kind, text, file, rng),
        },
        kind => different_literal(kind, text, file, rng),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(file: &str, text: &str) -> String {
        let mut rng = fastrand::Rng::with_seed(3);
        let edits = values(Path::new(file), text).into_iter().map(|value| {
            let new = different_value(&value, &text[value.range.clone()], text, &mut rng);
            super::super::TextEdit {
                text: new.expect("every kind can be changed"),
                range: value.range,
            }
        });
        super::super::apply(text, edits.collect())
    }

    #[test]
    fn every_value_of_a_data_file_is_changed() {
        let json = changed("a.json", r#"{"in": "x", "want": [2, -3, true]}"#);
        assert!(
            json.starts_with(r#"{"in": "x"#) && json.contains(r#""want": ["#),
            "{json}"
        );
        for old in ["\"x\"", "[2,", "-3,", "true"] {
            assert!(!json.contains(old), "{old} is still in {json}");
        }
        let yaml = changed("a.yml", "cases:\n  - in: x\n    want: 3\n");
        assert!(
            yaml.starts_with("cases:\n  - in: x") && !yaml.contains("want: 3\n"),
            "{yaml}"
        );
        let text = changed("a.golden", "a b\n\n12\n");
        assert!(
            text.starts_with("a b") && !text.contains("b\n\n12\n"),
            "{text}"
        );
        let snapshot = "---\nsource: a.rs\n---\nvalue\n";
        assert!(changed("a.snap", snapshot).starts_with("---\nsource: a.rs\n---\nvalue"));
    }
}
