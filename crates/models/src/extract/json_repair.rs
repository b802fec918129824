//! Repairs unambiguous slips in hand-written JSON: an unknown escape (`"\d+"`), a line break inside
//! a string, a comma before a closing bracket. Any other error is left for the parser to report.

/// The repaired text, or `None` if there was nothing to repair.
pub(super) fn repair(text: &str) -> Option<String> {
    // Start at the object: quotes in the prose before it would invert what counts as a string.
    let start = text.find("{\"").or_else(|| text.find('{'))?;
    let mut out = String::with_capacity(text.len() + 64);
    out.push_str(&text[..start]);
    let mut position = ScanPosition::Outside;
    let mut repairs = 0;
    let mut rest = text[start..].chars().peekable();
    while let Some(c) = rest.next() {
        match (position, c) {
            (ScanPosition::Outside, '"') => position = ScanPosition::InString,
            (ScanPosition::InString, '"') => position = ScanPosition::Outside,
            (ScanPosition::InString, '\\') => match rest.peek() {
                Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u') => {
                    out.push(c);
                    out.extend(rest.next());
                    continue;
                }
                _ => {
                    repairs += 1;
                    out.push('\\');
                }
            },
            (ScanPosition::InString, '\n' | '\r' | '\t') => {
                repairs += 1;
                out.push('\\');
                out.push(match c {
                    '\n' => 'n',
                    '\r' => 'r',
                    _ => 't',
                });
                continue;
            }
            (ScanPosition::Outside, ',') => {
                let mut ahead = rest.clone();
                if matches!(ahead.find(|c| !c.is_whitespace()), Some('}' | ']')) {
                    repairs += 1;
                    continue;
                }
            }
            _ => {}
        }
        out.push(c);
    }
    (repairs > 0).then_some(out)
}

#[derive(Clone, Copy)]
enum ScanPosition {
    Outside,
    InString,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::extract::object;

    #[test]
    fn slips_are_repaired() {
        for (answer, expected) in [
            (r#"{"n": "\d+\(x\)"}"#, json!({"n": r"\d+\(x\)"})),
            (
                "{\"n\": \"def f():\n\treturn 1\"}",
                json!({"n": "def f():\n\treturn 1"}),
            ),
            (
                r#"{"n": [1, 2, ], "m": {"a": 1,},}"#,
                json!({"n": [1, 2], "m": {"a": 1}}),
            ),
            (
                "Here:\n```json\n{\n  \"n\": \"it\\'s\",\n}\n```",
                json!({"n": r"it\'s"}),
            ),
            (
                r#"{"n": "a\\b, ]", "m": "\"\. \u00e9"}"#,
                json!({"n": "a\\b, ]", "m": "\"\\. é"}),
            ),
        ] {
            assert_eq!(
                object(answer, &["n"]).map(Value::Object),
                Ok(expected),
                "{answer}"
            );
        }
    }

    #[test]
    fn valid_json_is_unchanged() {
        let right = r#"{"n": "a\nb \\d \u00e9", "m": [1, 2], "o": "x,}"}"#;
        assert_eq!(repair(right), None);
        // A repaired draft must not win over a valid answer.
        assert_eq!(
            object(r#"{"n": [1,]} {"n": 2}"#, &["n"]).map(Value::Object),
            Ok(json!({"n": 2}))
        );
    }

    #[test]
    fn other_errors_are_not_repaired() {
        for broken in [
            r#"{"n": 1 "m": 2}"#,
            r#"{n: 1}"#,
            r#"{"n": 'x'}"#,
            r#"{"n": [1, }"#,
            r#"{"n": "open}"#,
        ] {
            assert!(
                object(broken, &["n"]).is_err()
                    || !object(broken, &["n"]).is_ok_and(|o| o.contains_key("n")),
                "{broken}"
            );
        }
    }
}
