//! Lenient parser for hand-written JSON: comments, trailing commas, raw line breaks in strings,
//! single, triple and back quotes, unquoted keys, unescaped quotes, missing closing brackets. JSON5
//! parsers reject most of these, and repair tools guess more than is safe. This parser works in one
//! pass and never guesses values.

use serde_json::{Map, Number, Value};

/// Deeper than any answer.
const MAX_DEPTH: usize = 40;

/// A value, its length, and how it was parsed.
#[derive(Debug, PartialEq)]
pub struct LenientValue {
    pub value: Value,
    /// Bytes read.
    pub read: usize,
    /// True if it is valid JSON.
    pub is_strict: bool,
    /// False if the text ended before every bracket was closed.
    pub is_complete: bool,
}

/// Parses the value at the start of the text. `None` if it cannot be parsed, or ends inside a
/// string.
pub fn read_value(text: &str) -> Option<LenientValue> {
    let mut strict = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if let Some(Ok(value)) = strict.next() {
        return Some(LenientValue {
            value,
            read: strict.byte_offset(),
            is_strict: true,
            is_complete: true,
        });
    }
    [Quoting::Escaped, Quoting::Bare]
        .into_iter()
        .find_map(|quoting| {
            let mut reader = LenientParser {
                text,
                at: 0,
                quoting,
                is_complete: true,
            };
            let value = reader.value(0)?;
            Some(LenientValue {
                value,
                read: reader.at,
                is_strict: false,
                is_complete: reader.is_complete,
            })
        })
}

/// How quotes inside a string are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// Escaped with a backslash, as they should be.
    Escaped,
    /// Not escaped: a string ends only if what follows can follow a string.
    Bare,
}

struct LenientParser<'t> {
    text: &'t str,
    at: usize,
    quoting: Quoting,
    /// False once a closing bracket was missing at the end.
    is_complete: bool,
}

impl<'t> LenientParser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    /// Whether an object or list ends here, by its bracket or with the text.
    fn closes(&mut self, bracket: &str) -> bool {
        let is_end = self.rest().is_empty();
        self.is_complete &= !is_end;
        is_end || self.eat(bracket)
    }

    /// Skips white space and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") || trimmed.starts_with('#') {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                self.at += comment.find("*/").map_or(trimmed.len(), |end| end + 4);
            } else {
                return;
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.skip();
        match self.peek()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            '(' => self.bracketed(depth),
            '"' | '\'' | '`' | '“' => self.joined_string(StringRole::Value).map(Value::String),
            _ => self.literal(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut fields = Map::new();
        loop {
            self.skip();
            if self.eat(",") {
                continue;
            }
            if self.closes("}") {
                return Some(Value::Object(fields));
            }
            if self.eat("...") {
                continue;
            }
            let key = match self.peek()? {
                '"' | '\'' | '`' | '“' => self.string(StringRole::Key)?,
                _ => self.name()?,
            };
            self.skip();
            if !self.eat(":") && !self.eat("=") {
                return None;
            }
            self.eat(">");
            let value = self.value(depth + 1)?;
            fields.insert(key, value);
            self.skip();
            // A missing comma is accepted if another key or the end follows.
            if !matches!(self.peek(), Some(',' | '}' | '"' | '\'') | None) {
                return None;
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip();
            if self.eat(",") || self.eat("...") {
                continue;
            }
            if self.closes("]") {
                return Some(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            self.skip();
            if !matches!(self.peek(), Some(',' | ']' | '"' | '\'' | '{') | None) {
                return None;
            }
        }
    }

    /// Parses `("a" "b")`, as in Python.
    fn bracketed(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let value = self.value(depth + 1)?;
        self.skip();
        self.eat(")").then_some(value)
    }

    fn literal(&mut self) -> Option<Value> {
        let word: &str = self
            .rest()
            .split(|c: char| !(c.is_alphanumeric() || "+-._".contains(c)))
            .next()?;
        let value = match word {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" | "nil" | "undefined" => Value::Null,
            number => {
                let whole = number.parse::<i64>().ok().map(Number::from);
                Value::Number(
                    whole.or_else(|| number.parse::<f64>().ok().and_then(Number::from_f64))?,
                )
            }
        };
        self.at += word.len();
        Some(value)
    }

    /// Parses an unquoted key.
    fn name(&mut self) -> Option<String> {
        let word: &str = self
            .rest()
            .split(|c: char| !(c.is_alphanumeric() || "_-$./".contains(c)))
            .next()?;
        self.at += word.len();
        (!word.is_empty()).then(|| word.to_owned())
    }

    /// Parses a string and those joined to it by `+` or written right after it.
    fn joined_string(&mut self, follow: StringRole) -> Option<String> {
        let mut text = self.string(follow)?;
        loop {
            let before = self.at;
            self.skip();
            let added = self.eat("+");
            self.skip();
            let more = matches!(self.peek(), Some('"' | '\'' | '`'))
                && (added || self.is_adjacent_string(before));
            if !more {
                if !added {
                    self.at = before;
                }
                return (!added).then_some(text);
            }
            text += &self.string(follow)?;
        }
    }

    /// True for a string right after another that is not a key: no colon follows it.
    fn is_adjacent_string(&self, before: usize) -> bool {
        let mut ahead = LenientParser {
            text: self.text,
            at: self.at,
            quoting: self.quoting,
            is_complete: true,
        };
        before != self.at && ahead.string(StringRole::Value).is_some() && {
            ahead.skip();
            !ahead.rest().starts_with(':') && !ahead.rest().starts_with(',')
                || ahead.rest().starts_with(')')
        }
    }

    fn string(&mut self, follow: StringRole) -> Option<String> {
        for quotes in ["\"\"\"", "'''", "```"] {
            if self.rest().starts_with(quotes) && self.rest()[3..].contains(quotes) {
                return self.raw_string(quotes);
            }
        }
        let open = self.peek()?;
        self.at += open.len_utf8();
        let close = if open == '“' { '”' } else { open };
        let mut out = String::new();
        loop {
            let c = self.peek()?;
            self.at += c.len_utf8();
            if c == '\\' {
                self.escape(&mut out);
            } else if c == close && (self.quoting == Quoting::Escaped || self.can_end(follow)) {
                return Some(out);
            } else {
                out.push(c);
            }
        }
    }

    /// Text between triple quotes is taken literally, except for a leading line break.
    fn raw_string(&mut self, quotes: &str) -> Option<String> {
        self.at += quotes.len();
        let end = self.rest().find(quotes)?;
        let text = &self.rest()[..end];
        self.at += end + quotes.len();
        let text = text.strip_prefix('\n').unwrap_or(text);
        Some(text.to_owned())
    }

    fn escape(&mut self, out: &mut String) {
        let Some(c) = self.peek() else { return };
        self.at += c.len_utf8();
        match c {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            '"' | '\'' | '\\' | '/' | '`' => out.push(c),
            'u' => match self.unicode() {
                Some(c) => out.push(c),
                None => out.push_str("\\u"),
            },
            // An unknown escape such as `"\d+"` means a literal backslash.
            other => out.extend(['\\', other]),
        }
    }

    fn unicode(&mut self) -> Option<char> {
        let unit = |text: &str| {
            text.get(..4)
                .and_then(|hex| u32::from_str_radix(hex, 16).ok())
        };
        let first = unit(self.rest())?;
        if let Some(c) = char::from_u32(first) {
            self.at += 4;
            return Some(c);
        }
        let second = self
            .rest()
            .get(4..)
            .and_then(|rest| rest.strip_prefix("\\u"))
            .and_then(unit)?;
        let pair = 0x10000 + ((first.checked_sub(0xd800)?) << 10) + second.checked_sub(0xdc00)?;
        self.at += 10;
        char::from_u32(pair)
    }

    /// Whether the string can end at the quote just read, judging by what follows.
    fn can_end(&self, follow: StringRole) -> bool {
        let rest = self.rest().trim_start();
        match (follow, rest.chars().next()) {
            (_, None) => true,
            (StringRole::Key, Some(c)) => c == ':',
            (StringRole::Value, Some('}' | ']')) => {
                // The bracket must close our object or list, not one in code: only brackets and
                // commas up to the next key.
                let after =
                    rest.trim_start_matches(|c: char| c.is_whitespace() || "}],".contains(c));
                after.is_empty() || after.starts_with(['{', '"', '`'])
            }
            (StringRole::Value, Some(',')) => {
                let next = rest[1..].trim_start();
                next.starts_with(['{', '}', ']']) || starts_with_key(next)
            }
            (StringRole::Value, Some(_)) => false,
        }
    }
}

/// Whether a string is a key or a value, which decides what may follow it.
#[derive(Clone, Copy)]
enum StringRole {
    Key,
    Value,
}

/// Matches `"name":`.
fn starts_with_key(text: &str) -> bool {
    let Some(inside) = text.strip_prefix(['"', '\'']) else {
        return false;
    };
    let name = inside.trim_start_matches(|c: char| c.is_alphanumeric() || "_-".contains(c));
    name.len() < inside.len()
        && name
            .strip_prefix(['"', '\''])
            .is_some_and(|rest| rest.trim_start().starts_with(':'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hand_written_json_is_parsed() {
        let expected = json!({"a": "x\ny", "b": [1, 2]});
        for text in [
            r#"{"a": "x\ny", "b": [1, 2]}"#,
            "{\"a\": \"x\ny\", \"b\": [1, 2,],}",
            "{'a': 'x\\ny', 'b': [1, 2]}",
            "{a: \"x\\ny\", // why\n b: [1, /* two */ 2]}",
            "{\"a\": \"\"\"x\ny\"\"\", \"b\": [1, 2]}",
            "{\"a\": '''\nx\ny''', \"b\": [1, 2]}",
            "{\"a\": `x\ny`, \"b\": [1, 2]}",
            "{\"a\": \"x\\n\" + \"y\", \"b\": [1, 2]}",
            "{\"a\": (\"x\\n\"\n  \"y\"), \"b\": [1, 2]}",
            "{\"a\": \"x\\ny\", \"b\": [1, 2",
            "{\"a\": \"x\\ny\"\n \"b\": [1, 2]}",
        ] {
            assert_eq!(
                read_value(text).map(|v| v.value),
                Some(expected.clone()),
                "{text}"
            );
        }
        assert!(read_value(r#"{"a": 1}"#).is_some_and(|v| v.is_strict));
        assert!(read_value(r#"{"a": [1,]}"#).is_some_and(|v| v.is_complete));
        assert!(read_value(r#"{"a": [1"#).is_some_and(|v| !v.is_complete));
        assert_eq!(
            read_value(r#"{"a": None, "b": True, "c": -1.5,}"#).map(|v| v.value),
            Some(json!({"a": null, "b": true, "c": -1.5}))
        );
        assert_eq!(
            read_value(r#"{"a": "\d+ \u00e9 \ud83d\ude00",}"#).map(|v| v.value),
            Some(json!({"a": "\\d+ é 😀"}))
        );
    }

    #[test]
    fn unescaped_quotes_do_not_end_the_string() {
        let text = r#"{"path": "a.py", "content": "print("a", "b")\nx = {"k": 1}"}"#;
        assert_eq!(
            read_value(text).map(|v| v.value),
            Some(json!({"path": "a.py", "content": "print(\"a\", \"b\")\nx = {\"k\": 1}"}))
        );
    }

    #[test]
    fn unterminated_string_is_not_parsed() {
        assert_eq!(read_value(r#"{"a": "x"#), None);
        assert_eq!(
            read_value(r#"{"edits": [{"path": "a", "content": "fn a() {"#),
            None
        );
        assert_eq!(read_value("fn main() {}"), None);
    }

    #[test]
    fn hostile_nesting_ends_quickly() {
        for unit in [
            "[", "{\"a\":", "{", "\"", "'", "\"a\" ", "(", "[\"a\" ", "\\", "/*", "{a:\"", "```",
        ] {
            let _ = read_value(&unit.repeat(200_000 / unit.len()));
        }
    }
}
