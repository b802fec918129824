//! Compares a file that was written with the expected one: JSON by value, other text line by line, numbers within a
//! tolerance.

use std::path::Path;

use serde_json::Value;

use super::table::are_close;
use supervisor_text::words;

pub(super) fn compare(
    name: &Path,
    actual: &[u8],
    expected: &[u8],
    tolerance: f64,
) -> Result<(), String> {
    if name.extension().is_some_and(|e| e == "json") {
        let parse = |bytes: &[u8], whose: &str| {
            serde_json::from_slice::<Value>(bytes).map_err(|e| format!("{whose} is not JSON: {e}"))
        };
        let (got, wanted) = (
            parse(actual, "what was written")?,
            parse(expected, "what is expected")?,
        );
        return compare_json("", &got, &wanted, tolerance);
    }
    let (Ok(got), Ok(wanted)) = (std::str::from_utf8(actual), std::str::from_utf8(expected)) else {
        return match actual == expected {
            true => Ok(()),
            false => Err(String::from(
                "the bytes differ, and one of the files is not text",
            )),
        };
    };
    let lines = |text: &str| {
        let text = text.trim_end();
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect::<Vec<_>>()
    };
    let (got, wanted) = (lines(got), lines(wanted));
    let differing = got
        .iter()
        .zip(&wanted)
        .position(|(a, b)| !lines_equal(a, b, tolerance));
    match differing {
        Some(at) => Err(format!(
            "line {} is `{}`, expected is `{}`",
            at + 1,
            words::short(&got[at], 200),
            words::short(&wanted[at], 200)
        )),
        None if got.len() == wanted.len() => Ok(()),
        None => Err(format!(
            "{} lines were written, {} are expected",
            got.len(),
            wanted.len()
        )),
    }
}

fn compare_json(at: &str, got: &Value, wanted: &Value, tolerance: f64) -> Result<(), String> {
    let place = |more: &str| format!("{at}/{more}");
    let differs = || {
        let at = if at.is_empty() { "/" } else { at };
        let text = |value: &Value| words::short(&value.to_string(), 200);
        Err(format!(
            "{at} is {}, expected is {}",
            text(got),
            text(wanted)
        ))
    };
    match (got, wanted) {
        (Value::Object(a), Value::Object(b)) => {
            if let Some(key) = b.keys().find(|key| !a.contains_key(*key)) {
                return Err(format!("{} is missing", place(key)));
            }
            if let Some(key) = a.keys().find(|key| !b.contains_key(*key)) {
                return Err(format!("{} is not expected", place(key)));
            }
            a.iter()
                .try_for_each(|(key, value)| compare_json(&place(key), value, &b[key], tolerance))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .try_for_each(|(i, (a, b))| compare_json(&place(&i.to_string()), a, b, tolerance)),
        (Value::Number(a), Value::Number(b)) => {
            match are_close(
                a.as_f64().unwrap_or_default(),
                b.as_f64().unwrap_or_default(),
                tolerance,
            ) {
                true => Ok(()),
                false => differs(),
            }
        }
        (a, b) if a == b => Ok(()),
        _ => differs(),
    }
}

/// Whether two lines are equal, numbers in them within the tolerance.
fn lines_equal(a: &str, b: &str, tolerance: f64) -> bool {
    if a == b || tolerance <= 0.0 {
        return a == b;
    }
    let tokens = |line: &str| {
        line.split_inclusive([',', ' ', '\t', ';', ':', '|', '='])
            .flat_map(|part| match part.char_indices().next_back() {
                Some((at, last)) if ",; \t:|=".contains(last) => {
                    vec![part[..at].to_owned(), last.to_string()]
                }
                _ => vec![part.to_owned()],
            })
            .collect::<Vec<_>>()
    };
    let (a, b) = (tokens(a), tokens(b));
    a.len() == b.len()
        && a.iter().zip(&b).all(|(a, b)| {
            a == b
                || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if are_close(a, b, tolerance))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_compared_within_tolerance() {
        let text = |a: &str, b: &str, tolerance| {
            compare(Path::new("a.csv"), a.as_bytes(), b.as_bytes(), tolerance)
        };
        assert_eq!(text("a,1.001\nb,2\n", "a,1\r\nb,2", 0.01), Ok(()));
        assert!(text("a,1.001", "a,1", 0.0).is_err());
        assert!(text("a,1.1", "a,1", 0.01).is_err());
        assert!(text("a,1", "a,1\nb,2", 0.01).is_err());
        assert!(text("c,1", "a,1", 0.5).is_err());
        let json =
            |a: &str, b: &str| compare(Path::new("a.json"), a.as_bytes(), b.as_bytes(), 0.01);
        assert_eq!(
            json(r#"{"b": [1.001], "a": "x"}"#, r#"{"a":"x","b":[1]}"#),
            Ok(())
        );
        assert_eq!(
            json(r#"{"a": 1}"#, r#"{"a": 2}"#),
            Err("/a is 1, expected is 2".into())
        );
        assert_eq!(json("{}", r#"{"a": 2}"#), Err("/a is missing".into()));
    }
}
