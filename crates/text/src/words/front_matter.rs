//! Parses YAML front matter: the fields at the start of a Markdown file, between two `---` lines.

use serde_json::{Map, Value};

/// A longer block is not front matter.
const MAX_BYTES: usize = 64 * 1024;

/// The fields of a text and the position of its body.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FrontMatter {
    /// Empty if the text has none.
    pub fields: Map<String, Value>,
    /// The byte offset of the body.
    pub body: usize,
    /// The first line of the body, counted from 1.
    pub body_line: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum FrontMatterError {
    #[error("the front matter is not closed: a line `---` is missing")]
    Unclosed,
    #[error("the front matter cannot be read: {0}")]
    Malformed(String),
}

/// Splits a text into front matter and body.
pub fn split(text: &str) -> Result<FrontMatter, FrontMatterError> {
    let start = if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    let mut lines = text[start..].split_inclusive('\n');
    let is_delimiter = |line: &str| line.trim_end() == "---";
    let Some(first) = lines.next().filter(|line| is_delimiter(line)) else {
        return Ok(FrontMatter {
            fields: Map::new(),
            body: start,
            body_line: 1,
        });
    };
    let from = start + first.len();
    let mut at = from;
    for (n, line) in lines.enumerate() {
        if is_delimiter(line) {
            let fields = parse(&text[from..at])?;
            return Ok(FrontMatter {
                fields,
                body: at + line.len(),
                body_line: n + 3,
            });
        }
        at += line.len();
        if at - from > MAX_BYTES {
            break;
        }
    }
    Err(FrontMatterError::Unclosed)
}

fn parse(yaml: &str) -> Result<Map<String, Value>, FrontMatterError> {
    if yaml.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_saphyr::from_str::<Value>(yaml) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(FrontMatterError::Malformed(String::from(
            "it is not a list of `key: value` lines",
        ))),
        Err(e) => Err(FrontMatterError::Malformed(
            super::cut_end(e.to_string().lines().next().unwrap_or_default(), 200).into_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_body_position_are_found() {
        let text = "---\nid: REQ-001\ntraces_to: [G-001, G-002]\npriority: Must\n---\n# Login\n";
        let front = split(text).expect("read");
        assert_eq!(front.fields["traces_to"][1], "G-002");
        assert_eq!((&text[front.body..], front.body_line), ("# Login\n", 6));
        assert_eq!(split("# plain").expect("read").body, 0);
        assert!(split("---\na: 1\n").is_err());
        assert!(split("---\n- just\n- a list\n---\n").is_err());
        assert!(split("---\na: [1\n---\n").is_err());
    }
}
