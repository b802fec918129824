//! Splits input into lines, in bounded memory: an oversized line is read to its end but not kept.
//! JSON is only scanned to find the id of an oversized request.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// Maximum line length, and so the largest request.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

const READ_AHEAD: usize = 64 * 1024;

/// One line without its newline.
#[derive(Debug)]
pub(super) enum InputLine {
    Whole(Vec<u8>),
    /// Longer than [`MAX_LINE`]. The id is needed for the reply, if the line had one.
    TooLong {
        id: Option<Value>,
    },
}

/// Reads lines. [`LineReader::next`] is cancel safe: partial input is kept here.
pub(super) struct LineReader<R> {
    input: BufReader<R>,
    buffer: Vec<u8>,
    oversized: Option<IdScan>,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(READ_AHEAD, input),
            buffer: Vec::new(),
            oversized: None,
            ended: false,
        }
    }

    /// The next line; the last one needs no newline. Returns `None` at the end of input, and again
    /// when called after it.
    pub(super) async fn next(&mut self) -> io::Result<Option<InputLine>> {
        while !self.ended {
            let chunk = match self.input.fill_buf().await {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.ended = true;
                    return Err(error);
                }
            };
            if chunk.is_empty() {
                self.ended = true;
                return Ok(self
                    .take()
                    .filter(|line| !matches!(line, InputLine::Whole(bytes) if bytes.is_empty())));
            }
            let newline = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..newline.unwrap_or(chunk.len())];
            append(&mut self.buffer, &mut self.oversized, part);
            let used = part.len() + usize::from(newline.is_some());
            self.input.consume(used);
            if newline.is_some() {
                return Ok(self.take());
            }
        }
        Ok(None)
    }

    fn take(&mut self) -> Option<InputLine> {
        let buffer = std::mem::take(&mut self.buffer);
        Some(match self.oversized.take() {
            Some(scan) => InputLine::TooLong { id: scan.id() },
            None => InputLine::Whole(buffer),
        })
    }
}

fn append(buffer: &mut Vec<u8>, oversized: &mut Option<IdScan>, part: &[u8]) {
    match oversized {
        Some(scan) => scan.feed(part),
        None if buffer.len() + part.len() <= MAX_LINE => buffer.extend_from_slice(part),
        None => {
            let mut scan = IdScan::default();
            scan.feed(buffer);
            scan.feed(part);
            // Free the buffer at once: the rest of the line is only scanned.
            *buffer = Vec::new();
            *oversized = Some(scan);
        }
    }
}

/// Finds the top-level `id` of an object without parsing it.
pub(super) fn find_id(line: &[u8]) -> Option<Value> {
    let mut scan = IdScan::default();
    scan.feed(line);
    scan.id()
}

/// Tracks strings and nesting of one JSON object and keeps the value of its top-level `"id"`.
#[derive(Debug, Default)]
struct IdScan {
    depth: u64,
    in_string: bool,
    escaped: bool,
    /// The current top-level string, up to the length that matters.
    word: Vec<u8>,
    /// The last top-level key.
    key: Vec<u8>,
    /// After the colon of a top-level pair.
    in_value: bool,
    value: Vec<u8>,
    found: Option<Vec<u8>>,
}

/// Longer ids are ignored.
const MAX_ID: usize = 512;

impl IdScan {
    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    fn id(self) -> Option<Value> {
        let id = serde_json::from_slice(&self.found?).ok()?;
        matches!(id, Value::String(_) | Value::Number(_)).then_some(id)
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.step_in_string(byte);
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.word.clear();
                self.remember(byte);
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.remember(byte);
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_of_pair();
                }
                self.depth = self.depth.saturating_sub(1);
                self.remember(byte);
            }
            b':' if self.depth == 1 && !self.in_value => {
                self.key = std::mem::take(&mut self.word);
                self.in_value = true;
                self.value.clear();
            }
            b',' if self.depth == 1 => self.end_of_pair(),
            _ => self.remember(byte),
        }
    }

    fn step_in_string(&mut self, byte: u8) {
        self.remember(byte);
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.in_string = false;
            return;
        }
        if self.depth == 1 && !self.in_value && self.word.len() < MAX_ID {
            self.word.push(byte);
        }
    }

    fn remember(&mut self, byte: u8) {
        if self.in_value && self.key == b"id" && self.value.len() < MAX_ID {
            self.value.push(byte);
        }
    }

    fn end_of_pair(&mut self) {
        if self.in_value && self.key == b"id" {
            self.found = Some(std::mem::take(&mut self.value));
        }
        self.in_value = false;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    async fn lines(input: &[u8]) -> Vec<String> {
        let mut lines = LineReader::new(input);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.expect("memory does not fail") {
            found.push(match line {
                InputLine::Whole(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                InputLine::TooLong { id } => format!("too long: {id:?}"),
            });
        }
        assert!(
            matches!(lines.next().await, Ok(None)),
            "the end stays the end"
        );
        found
    }

    #[tokio::test]
    async fn last_line_needs_no_newline() {
        assert_eq!(lines(b"a\nb").await, ["a", "b"]);
        assert_eq!(lines(b"a\n\nb\n").await, ["a", "", "b"]);
        assert!(lines(b"").await.is_empty());
    }

    #[tokio::test]
    async fn oversized_line_keeps_its_id() {
        let long = format!(
            "{{\"params\":{{\"id\":1,\"x\":\"{}\"}},\"id\":\"q\\\"7\"}}\nnext",
            "y".repeat(MAX_LINE)
        );
        assert_eq!(
            lines(long.as_bytes()).await,
            ["too long: Some(String(\"q\\\"7\"))", "next"]
        );
    }

    #[test]
    fn id_is_found_only_at_top_level() {
        let cases: &[(&str, Option<Value>)] = &[
            (r#"{"jsonrpc":"2.0","id":7,"method":"x"}"#, Some(7.into())),
            (r#"{"params":{"id":1},"id": -3 }"#, Some((-3).into())),
            (r#"{"params":["id",{"id":2}],"method":"id"}"#, None),
            (r#"{"a":"\"id\":5","id":"é,}"}"#, Some("é,}".into())),
            (r#"{"id":{"a":1}}"#, None),
            (r#"{"id":null}"#, None),
            (r#"{"id":9,"params":{"cut": "in the mid"#, Some(9.into())),
            (r#"[{"id":9}]"#, None),
            ("", None),
        ];
        for (line, id) in cases {
            assert_eq!(&find_id(line.as_bytes()), id, "{line}");
        }
    }

    #[tokio::test]
    async fn lines_do_not_depend_on_chunking() {
        let text = "{\"id\":1}\r\n\n\u{e9}\n{\"id\":\"x\"}";
        for chunk_size in 1..8 {
            let (mut client, server) = tokio::io::duplex(chunk_size);
            let writer = tokio::spawn(async move {
                tokio::io::AsyncWriteExt::write_all(&mut client, text.as_bytes())
                    .await
                    .expect("the other end reads");
            });
            let mut lines = LineReader::new(server);
            let mut found = Vec::new();
            while let Some(InputLine::Whole(line)) =
                lines.next().await.expect("memory does not fail")
            {
                found.push(String::from_utf8(line).expect("text"));
            }
            writer.await.expect("written");
            assert_eq!(
                found,
                ["{\"id\":1}\r", "", "\u{e9}", "{\"id\":\"x\"}"],
                "{chunk_size} bytes at once"
            );
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "(id|[a-z\"\\\\{}\\[\\],:é\u{1}]{0,8})".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("(id|[a-z\"\\\\{}]{0,4})", inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn scanned_id_matches_the_parser(value in any_json()) {
            let id = value.as_object().and_then(|o| o.get("id")).filter(|id| id.is_string() || id.is_number());
            let id = id.cloned();
            for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("serialises")] {
                prop_assert_eq!(&find_id(text.as_bytes()), &id, "{}", text);
            }
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = find_id(&bytes);
            let _ = super::super::envelope::read(InputLine::Whole(bytes));
        }
    }
}
