//! Reads a log line by line. Lines that cannot be parsed are counted and skipped.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};

use super::hash_chain::ChainCheck;
use super::{CallRecord, SessionId};
use supervisor_text::words::{count, cut_end};

/// Sixteen times the length we write; a longer line is not an entry.
const MAX_LINE_LEN: usize = 16 * super::line_limit::MAX_LINE_LEN;
/// Maximum number of faults that are listed; the rest are only counted.
const MAX_LISTED_FAULTS: usize = 5;

/// A complete session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    pub records: Vec<CallRecord>,
    pub damage: Damage,
}

/// What could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damage {
    /// Truncated lines: their writer was killed, or is still writing.
    pub torn: usize,
    /// Lines that are not an entry.
    pub broken: usize,
    /// Lines longer than any that we write.
    pub too_long: usize,
    /// Entries with a wrong digest: something else changed, added or removed lines. They are
    /// returned anyway.
    pub tampered: usize,
    /// Attempts that were left out of an otherwise valid entry.
    pub attempts: usize,
    /// The first few faults.
    pub first_faults: Vec<LogFault>,
}

/// Why one line was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFault {
    /// Counted from 1; 0 if reading the file itself failed.
    pub line: usize,
    pub why: String,
}

impl Damage {
    pub fn lines(&self) -> usize {
        self.torn + self.broken + self.too_long
    }

    /// `2 lines could not be read (1 torn, 1 broken)`, or `None` if there is no damage.
    pub fn summary(&self) -> Option<String> {
        let parts = [
            (self.torn, "torn"),
            (self.broken, "broken"),
            (self.too_long, "too long"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} {what}"))
            .collect();
        match (self.lines(), self.attempts) {
            (0, 0) => None,
            (0, attempts) => Some(format!("{} could not be read", count(attempts, "attempt"))),
            (lines, 0) => Some(format!(
                "{} could not be read ({})",
                count(lines, "line"),
                parts.join(", ")
            )),
            (lines, attempts) => Some(format!(
                "{} ({}) and {} could not be read",
                count(lines, "line"),
                parts.join(", "),
                count(attempts, "attempt")
            )),
        }
    }

    fn add_fault(&mut self, line: usize, why: &dyn std::fmt::Display) {
        if self.first_faults.len() < MAX_LISTED_FAULTS {
            self.first_faults.push(LogFault {
                line,
                why: cut_end(&why.to_string(), 200).into_owned(),
            });
        }
    }
}

/// Iterates over the entries of a log. It never fails; see [`LogReader::damage`] afterwards.
#[derive(Debug)]
pub struct LogReader {
    id: SessionId,
    lines: Option<BufReader<File>>,
    number: usize,
    damage: Damage,
    chain: ChainCheck,
}

impl LogReader {
    pub(super) fn new(id: &SessionId, file: Option<File>) -> Self {
        let lines = file.map(|file| BufReader::with_capacity(64 * 1024, file));
        Self {
            id: id.clone(),
            lines,
            number: 0,
            damage: Damage::default(),
            chain: ChainCheck::default(),
        }
    }

    /// What was skipped so far.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    pub(super) fn into_history(mut self) -> History {
        let records = self.by_ref().collect();
        History {
            records,
            damage: self.damage,
        }
    }

    fn parse(&mut self, line: &[u8]) -> Option<CallRecord> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        match CallRecord::parse(line, &self.id) {
            Ok((record, left_out)) => {
                self.damage.attempts += left_out;
                self.damage.tampered += usize::from(!self.chain.follows(line));
                Some(record)
            }
            Err(error) => {
                self.chain.skip();
                if error.is_eof() {
                    self.damage.torn += 1;
                } else {
                    self.damage.broken += 1;
                }
                self.damage.add_fault(self.number, &error);
                None
            }
        }
    }
}

impl Iterator for LogReader {
    type Item = CallRecord;

    fn next(&mut self) -> Option<CallRecord> {
        let mut line = Vec::new();
        loop {
            let lines = self.lines.as_mut()?;
            self.number += 1;
            match read_line(lines, &mut line) {
                Ok(Line::Whole) => {
                    if let Some(record) = self.parse(&line) {
                        return Some(record);
                    }
                }
                Ok(Line::TooLong) => {
                    self.damage.too_long += 1;
                    self.chain.skip();
                    self.damage.add_fault(
                        self.number,
                        &format_args!("longer than {} MiB", MAX_LINE_LEN >> 20),
                    );
                }
                Ok(Line::End) => self.lines = None,
                Err(error) => {
                    self.damage.broken += 1;
                    self.damage.add_fault(
                        0,
                        &format_args!("reading stopped in line {}: {error}", self.number),
                    );
                    self.lines = None;
                }
            }
        }
    }
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads the next line into `line`, without its newline. A line that is too long is skipped.
fn read_line(lines: &mut BufReader<File>, line: &mut Vec<u8>) -> io::Result<Line> {
    line.clear();
    let mut length = 0;
    loop {
        let chunk = match lines.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let newline = chunk.iter().position(|b| *b == b'\n');
        let part = &chunk[..newline.unwrap_or(chunk.len())];
        let end = newline.is_some() || chunk.is_empty();
        length += part.len();
        if length <= MAX_LINE_LEN {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(newline.is_some());
        lines.consume(used);
        if end {
            return Ok(match (newline, length) {
                (None, 0) => Line::End,
                (_, length) if length > MAX_LINE_LEN => Line::TooLong,
                _ => Line::Whole,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn read(text: &[u8]) -> History {
        let mut file = tempfile::tempfile().expect("temp file");
        file.write_all(text).expect("write");
        std::io::Seek::rewind(&mut file).expect("rewind");
        LogReader::new(&"s".parse().expect("a name"), Some(file)).into_history()
    }

    #[test]
    fn missing_log_is_empty() {
        let history = LogReader::new(&"s".parse().expect("a name"), None).into_history();
        assert_eq!(
            (history, Damage::default().summary()),
            (History::default(), None)
        );
    }

    #[test]
    fn unreadable_lines_are_counted_and_skipped() {
        let mut text = b"{\"skill\":\"a\",\"final_status\":\"pass\"}\n".to_vec();
        text.extend_from_slice(b"\n  \n{\"skill\":\"torn\n\xff\xfe\n[1]\n{\"skill\":3}\n\0\0\0\n");
        text.extend(std::iter::repeat_n(b'x', MAX_LINE_LEN + 1));
        text.extend_from_slice(b"\n{\"skill\":\"b\",\"final_status\":\"fail\"}\n{\"skill\":\"t");
        let history = read(&text);
        let skills: Vec<_> = history
            .records
            .iter()
            .map(|r| r.entry.tool.as_str())
            .collect();
        assert_eq!(skills, ["a", "b"]);
        let Damage {
            torn,
            broken,
            too_long,
            attempts,
            first_faults,
            ..
        } = &history.damage;
        assert_eq!(
            (*torn, *broken, *too_long, *attempts, first_faults.len()),
            (2, 4, 1, 0, MAX_LISTED_FAULTS),
            "{first_faults:?}"
        );
        assert_eq!(first_faults[0].line, 4);
        assert_eq!(
            history.damage.summary().as_deref(),
            Some("7 lines could not be read (2 torn, 4 broken, 1 too long)")
        );
    }

    #[test]
    fn complete_last_line_needs_no_newline() {
        assert_eq!(read(b"{\"final_status\":\"pass\"}").records.len(), 1);
    }
}
