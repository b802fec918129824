//! Keeps a line of the log within bounds. What is cut is marked where it stood, and told to the writer.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use supervisor_text::words::{cut_end, cut_middle};

/// No string in the log is longer.
pub(super) const STRING_MAX: usize = 64 * 1024;
/// No line is longer, its newline included.
pub(super) const LINE_MAX: usize = 1024 * 1024;

/// What is left of it for the entry itself.
const ENTRY_MAX: usize = LINE_MAX - super::chain::LENGTH;

/// Strings are not cut below this: what is left would say nothing.
const STRING_MIN: usize = 256;
/// Where even that does not help, as many attempts stay.
const ATTEMPTS_MIN: usize = 64;

/// Something was longer than the log keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutField {
    /// Where in the entry, as `jq` writes it: `.attempts[0].runner_output`.
    pub field: String,
    /// Bytes it had, or items.
    pub was: usize,
    pub is: usize,
}

/// The entry as one line with its newline, and what had to be cut for it.
pub(super) fn line(mut entry: Value) -> (Vec<u8>, Vec<CutField>) {
    let mut cuts = Cuts::new();
    let mut limit = STRING_MAX;
    cut_strings(&mut entry, limit, &At::Root, &mut cuts);
    let mut text = serialised(&entry);
    if text.len() > ENTRY_MAX {
        cut_input(&mut entry, &mut cuts);
        text = serialised(&entry);
    }
    while text.len() > ENTRY_MAX && limit > STRING_MIN {
        limit /= 2;
        cut_strings(&mut entry, limit, &At::Root, &mut cuts);
        text = serialised(&entry);
    }
    // What is still too long has too many parts rather than long ones.
    for shorten in [cut_attempts, cut_all] {
        if text.len() > ENTRY_MAX {
            shorten(&mut entry, &mut cuts);
            text = serialised(&entry);
        }
    }
    (
        text,
        cuts.into_iter()
            .map(|(field, (was, is))| CutField { field, was, is })
            .collect(),
    )
}

/// By field: how long it was and is.
type Cuts = BTreeMap<String, (usize, usize)>;

fn serialised(entry: &Value) -> Vec<u8> {
    let mut text = serde_json::to_vec(entry).expect("a tree of JSON is always JSON");
    text.push(b'\n');
    text
}

fn cut_strings(value: &mut Value, limit: usize, at: &At<'_>, cuts: &mut Cuts) {
    match value {
        Value::String(text) if text.len() > limit => {
            let (was, cut) = (text.len(), cut_middle(text, limit).into_owned());
            note(cuts, at.to_string(), was, cut.len());
            *text = cut;
        }
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                cut_strings(item, limit, &At::Item(at, i), cuts);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                cut_strings(value, limit, &At::Field(at, name), cuts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Where we are in the tree; written out only where something is cut.
enum At<'a> {
    Root,
    Field(&'a At<'a>, &'a str),
    Item(&'a At<'a>, usize),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(parent, name) => write!(f, "{parent}.{}", cut_end(name, 60)),
            Self::Item(parent, i) => write!(f, "{parent}[{i}]"),
        }
    }
}

/// A string that is cut again was as long as it was at first.
fn note(cuts: &mut Cuts, field: String, was: usize, is: usize) {
    cuts.entry(field).or_insert((was, is)).1 = is;
}

/// Arguments that fill half a line are not what the log is for: the attempts are.
fn cut_input(entry: &mut Value, cuts: &mut Cuts) {
    let input = entry
        .get_mut("input")
        .map(|input| (serialised(input).len(), input));
    if let Some((was, input)) = input.filter(|(was, _)| *was > LINE_MAX / 2) {
        *input = json!(format!("[{was} bytes cut]"));
        note(cuts, ".input".into(), was, 0);
    }
}

/// The last attempts decide a call, so the first ones go.
fn cut_attempts(entry: &mut Value, cuts: &mut Cuts) {
    if let Some(attempts) = entry
        .get_mut("attempts")
        .and_then(Value::as_array_mut)
        .filter(|a| a.len() > ATTEMPTS_MIN)
    {
        let was = attempts.len();
        attempts.drain(..was - ATTEMPTS_MIN);
        note(cuts, ".attempts".into(), was, ATTEMPTS_MIN);
    }
}

/// Never needed by what an entry can hold today; kept so that the bound is one.
fn cut_all(entry: &mut Value, cuts: &mut Cuts) {
    if let Some(fields) = entry.as_object_mut() {
        let was = fields.len();
        fields.retain(|_, value| !matches!(value, Value::Array(_) | Value::Object(_)));
        note(cuts, ".".into(), was, fields.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_entry_is_written_as_it_is() {
        let (text, cuts) = line(json!({"v": 1, "message": "fine"}));
        assert_eq!(
            (String::from_utf8(text).expect("UTF-8"), cuts),
            ("{\"v\":1,\"message\":\"fine\"}\n".to_owned(), vec![])
        );
    }

    #[test]
    fn a_long_output_keeps_head_and_tail_and_is_reported() {
        let output = format!("head {} tail", "x".repeat(300_000));
        let (text, cuts) = line(json!({"attempts": [{"runner_output": output}]}));
        let back: Value = serde_json::from_slice(&text).expect("JSON");
        let kept = back["attempts"][0]["runner_output"]
            .as_str()
            .expect("a string");
        assert!(
            kept.starts_with("head")
                && kept.ends_with("tail")
                && kept.contains("bytes cut")
                && kept.len() <= STRING_MAX
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
    fn no_entry_makes_a_line_longer_than_the_bound() {
        let control = "\u{1}".repeat(STRING_MAX); // six bytes each in JSON
        for entry in [
            json!({"attempts": vec![json!({"feedback": control, "runner_output": control}); 4]}),
            json!({"input": vec![1_234_567_890_123_u64; 80_000], "message": "m"}),
            json!({"attempts": vec![json!({"model": "m".repeat(200)}); 6_000], "message": "m"}),
            json!({"other": vec![1_234_567_890_123_u64; 80_000], "message": "m"}),
        ] {
            let (text, cuts) = line(entry);
            assert!(
                text.len() <= LINE_MAX && !cuts.is_empty(),
                "{} {}",
                text.len(),
                cuts.len()
            );
            assert_eq!(text.iter().filter(|b| **b == b'\n').count(), 1);
        }
    }
}
