//! Limits the length of a log line. Cuts are marked in place and reported to the writer.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use supervisor_text::words::{cut_end, cut_middle};

/// Maximum bytes of a string in the log.
pub(super) const MAX_STRING_LEN: usize = 64 * 1024;
/// Maximum bytes of a line, including its newline.
pub(super) const MAX_LINE_LEN: usize = 1024 * 1024;

/// Maximum bytes of the entry itself.
const MAX_ENTRY_LEN: usize = MAX_LINE_LEN - super::hash_chain::DIGEST_FIELD_LEN;

/// Strings are not cut below this length: the rest would be useless.
const MIN_STRING_LEN: usize = 256;
/// Attempts that remain if cutting strings is not enough.
const MIN_ATTEMPTS: usize = 64;

/// A field that was longer than the log allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutField {
    /// Path in the entry, in `jq` syntax: `.attempts[0].runner_output`.
    pub field: String,
    /// Original length in bytes, or number of items.
    pub was: usize,
    pub is: usize,
}

/// Returns the entry as one line with its newline, and what was cut.
pub(super) fn bounded_line(mut entry: Value) -> (Vec<u8>, Vec<CutField>) {
    let mut cuts = Cuts::new();
    let mut limit = MAX_STRING_LEN;
    cut_strings(&mut entry, limit, &TreePath::Root, &mut cuts);
    let mut text = to_line(&entry);
    if text.len() > MAX_ENTRY_LEN {
        cut_input(&mut entry, &mut cuts);
        text = to_line(&entry);
    }
    while text.len() > MAX_ENTRY_LEN && limit > MIN_STRING_LEN {
        limit /= 2;
        cut_strings(&mut entry, limit, &TreePath::Root, &mut cuts);
        text = to_line(&entry);
    }
    // If it is still too long, it has too many parts rather than long ones.
    for shorten in [cut_attempts, cut_all] {
        if text.len() > MAX_ENTRY_LEN {
            shorten(&mut entry, &mut cuts);
            text = to_line(&entry);
        }
    }
    (
        text,
        cuts.into_iter()
            .map(|(field, (was, is))| CutField { field, was, is })
            .collect(),
    )
}

/// Old and new length by field.
type Cuts = BTreeMap<String, (usize, usize)>;

fn to_line(entry: &Value) -> Vec<u8> {
    let mut text = serde_json::to_vec(entry).expect("a tree of JSON is always JSON");
    text.push(b'\n');
    text
}

fn cut_strings(value: &mut Value, limit: usize, at: &TreePath<'_>, cuts: &mut Cuts) {
    match value {
        Value::String(text) if text.len() > limit => {
            let (was, cut) = (text.len(), cut_middle(text, limit).into_owned());
            record_cut(cuts, at.to_string(), was, cut.len());
            *text = cut;
        }
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                cut_strings(item, limit, &TreePath::Item(at, i), cuts);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                cut_strings(value, limit, &TreePath::Field(at, name), cuts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Position in the tree; formatted only if something is cut.
enum TreePath<'a> {
    Root,
    Field(&'a TreePath<'a>, &'a str),
    Item(&'a TreePath<'a>, usize),
}

impl fmt::Display for TreePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(parent, name) => write!(f, "{parent}.{}", cut_end(name, 60)),
            Self::Item(parent, i) => write!(f, "{parent}[{i}]"),
        }
    }
}

/// If a string is cut again, the original length is kept.
fn record_cut(cuts: &mut Cuts, field: String, was: usize, is: usize) {
    cuts.entry(field).or_insert((was, is)).1 = is;
}

/// Replaces arguments that fill half a line: the attempts are more important.
fn cut_input(entry: &mut Value, cuts: &mut Cuts) {
    let input = entry
        .get_mut("input")
        .map(|input| (to_line(input).len(), input));
    if let Some((was, input)) = input.filter(|(was, _)| *was > MAX_LINE_LEN / 2) {
        *input = json!(format!("[{was} bytes cut]"));
        record_cut(cuts, ".input".into(), was, 0);
    }
}

/// The last attempts decide a call, so the first ones are dropped.
fn cut_attempts(entry: &mut Value, cuts: &mut Cuts) {
    if let Some(attempts) = entry
        .get_mut("attempts")
        .and_then(Value::as_array_mut)
        .filter(|a| a.len() > MIN_ATTEMPTS)
    {
        let was = attempts.len();
        attempts.drain(..was - MIN_ATTEMPTS);
        record_cut(cuts, ".attempts".into(), was, MIN_ATTEMPTS);
    }
}

/// Last resort that guarantees the limit. Current entries never need it.
fn cut_all(entry: &mut Value, cuts: &mut Cuts) {
    if let Some(fields) = entry.as_object_mut() {
        let was = fields.len();
        fields.retain(|_, value| !matches!(value, Value::Array(_) | Value::Object(_)));
        record_cut(cuts, ".".into(), was, fields.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_entries_are_unchanged() {
        let (text, cuts) = bounded_line(json!({"v": 1, "message": "fine"}));
        assert_eq!(
            (String::from_utf8(text).expect("UTF-8"), cuts),
            ("{\"v\":1,\"message\":\"fine\"}\n".to_owned(), vec![])
        );
    }

    #[test]
    fn long_output_keeps_head_and_tail() {
        let output = format!("head {} tail", "x".repeat(300_000));
        let (text, cuts) = bounded_line(json!({"attempts": [{"runner_output": output}]}));
        let back: Value = serde_json::from_slice(&text).expect("JSON");
        let kept = back["attempts"][0]["runner_output"]
            .as_str()
            .expect("a string");
        assert!(
            kept.starts_with("head")
                && kept.ends_with("tail")
                && kept.contains("bytes cut")
                && kept.len() <= MAX_STRING_LEN
        );
        assert_eq!(
            cuts,
            [CutField {
                field: ".attempts[0].runner_output".into(),
                was: output.len(),
                is: kept.len()
            }]
        );
    }

    #[test]
    fn every_line_is_within_limit() {
        let control = "\u{1}".repeat(MAX_STRING_LEN); // six bytes each in JSON
        for entry in [
            json!({"attempts": vec![json!({"feedback": control, "runner_output": control}); 4]}),
            json!({"input": vec![1_234_567_890_123_u64; 80_000], "message": "m"}),
            json!({"attempts": vec![json!({"model": "m".repeat(200)}); 6_000], "message": "m"}),
            json!({"other": vec![1_234_567_890_123_u64; 80_000], "message": "m"}),
        ] {
            let (text, cuts) = bounded_line(entry);
            assert!(
                text.len() <= MAX_LINE_LEN && !cuts.is_empty(),
                "{} {}",
                text.len(),
                cuts.len()
            );
            assert_eq!(text.iter().filter(|b| **b == b'\n').count(), 1);
        }
    }
}
