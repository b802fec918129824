//! The slips that models make in JSON which they write by hand: a backslash that JSON does not know (`"\d+"`), a line
//! break inside a string, a comma before the closing bracket. What they mean is beyond doubt, so it is put right; any
//! other fault is the reader's to refuse.

/// The text without its slips; nothing if there are none.
pub(super) fn without_slips(text: &str) -> Option<String> {
    // Quotes in prose before the object would turn inside out what follows.
    let start = text.find("{\"").or_else(|| text.find('{'))?;
    let mut out = String::with_capacity(text.len() + 64);
    out.push_str(&text[..start]);
    let mut place = Place::Outside;
    let mut slips = 0;
    let mut rest = text[start..].chars().peekable();
    while let Some(c) = rest.next() {
        match (place, c) {
            (Place::Outside, '"') => place = Place::InString,
            (Place::InString, '"') => place = Place::Outside,
            (Place::InString, '\\') => match rest.peek() {
                Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u') => {
                    out.push(c);
                    out.extend(rest.next());
                    continue;
                }
                _ => {
                    slips += 1;
                    out.push('\\');
                }
            },
            (Place::InString, '\n' | '\r' | '\t') => {
                slips += 1;
                out.push('\\');
                out.push(match c {
                    '\n' => 'n',
                    '\r' => 'r',
                    _ => 't',
                });
                continue;
            }
            (Place::Outside, ',') => {
                let mut ahead = rest.clone();
                if matches!(ahead.find(|c| !c.is_whitespace()), Some('}' | ']')) {
                    slips += 1;
                    continue;
                }
            }
            _ => {}
        }
        out.push(c);
    }
    (slips > 0).then_some(out)
}

#[derive(Clone, Copy)]
enum Place {
    Outside,
    InString,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::extract::object;

    #[test]
    fn a_slip_of_the_pen_does_not_lose_the_answer() {
        for (said, meant) in [
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
            assert_eq!(object(said, &["n"]).map(Value::Object), Ok(meant), "{said}");
        }
    }

    #[test]
    fn what_is_right_stays_as_it_is() {
        let right = r#"{"n": "a\nb \\d \u00e9", "m": [1, 2], "o": "x,}"}"#;
        assert_eq!(without_slips(right), None);
        // The repaired draft is no answer where an answer stands.
        assert_eq!(
            object(r#"{"n": [1,]} {"n": 2}"#, &["n"]).map(Value::Object),
            Ok(json!({"n": 2}))
        );
    }

    #[test]
    fn other_faults_are_not_guessed_at() {
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
