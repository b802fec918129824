//! Recognises an error in the output of a command, and tells it from other errors of the same command. Error messages are
//! compared after removing everything that differs from run to run. The main entry points are [`ErrorSignature::of`] and
//! [`ErrorSignature::is_in`].

mod common;
mod normalize;

use std::sync::LazyLock;

use regex::Regex;

use super::report::strip_ansi;
use common::{has_content, is_boilerplate, signal};
use normalize::{normalize, place};
use supervisor_process::End;
use supervisor_text::words;

/// Identifies an error. The error is present if any one of the marks is found completely.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorSignature {
    marks: Vec<SignatureMark>,
}

/// One error message or signal.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SignatureMark {
    Message {
        /// All of these lines must occur.
        lines: Vec<String>,
        place: MessagePlace,
    },
    /// The process was ended by this signal.
    Signal(i32),
}

/// The file that the message belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MessagePlace {
    Unknown,
    /// Must occur too, unless the output names no files at all.
    Expected(String),
    /// Must occur too, because the message alone is too generic.
    Required(String),
}

/// How much of an error text is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
const MAX_MARKS: usize = 8;
/// How many lines a message and its file may be apart.
const MAX_PLACE_DISTANCE: usize = 12;

/// Matches lines that name the error: `ValueError: …`, `panic: …`, `error[E0425]: …`, `** (RuntimeError) …`.
static ERROR_NAME: LazyLock<Regex> = LazyLock::new(|| {
    let names = r"[a-z0-9_.]*(error|exception|panic|fatal|fault)(\[[^\]]*\])?";
    Regex::new(&format!(
        r"(^|[^a-z0-9_.])(\*\* \({names}\) .|{names}:|{names}$|.*\({names}\)$|assert[ (])"
    ))
    .expect("a pattern that the tests compile")
});
/// Matches lines that only say that something went wrong.
static ERROR_HINT: LazyLock<Regex> = LazyLock::new(|| {
    let hints = "error|exception|failed|failure|fail|fatal|panicked|aborted|denied|refused|timed out|not found|no such|\
                 cannot|undefined|deadlock|overflow|out of (bounds|range|memory)|invalid|unexpected";
    Regex::new(&format!("(^|[^a-z0-9_])({hints})([^a-z0-9_]|$)"))
        .expect("a pattern that the tests compile")
});

impl ErrorSignature {
    pub fn of(error: &str) -> Self {
        let text = words::cut_middle(error, MAX_ERROR_BYTES);
        let text = strip_ansi(&text);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let normalized: Vec<String> = lines.iter().map(|line| normalize(line)).collect();
        let mut marks = panics(&lines, &normalized);
        for (i, line) in normalized
            .iter()
            .enumerate()
            .filter(|(i, _)| !is_frame(lines[*i]) && !is_after_panic(&normalized, *i))
        {
            if let Some(found) = ERROR_NAME
                .captures(line)
                .and_then(|c| c.get(2))
                .filter(|_| !is_boilerplate(line))
            {
                // The text before the error's name comes from the reporting tool.
                let message = if line.ends_with(')') && !found.as_str().starts_with("** ") {
                    line
                } else {
                    &line[found.start()..]
                };
                let message = message.trim_end_matches(['\'', '.', ',', ';', '!']);
                marks.extend(message_mark(
                    vec![message.to_owned()],
                    find_place(&lines, i),
                ));
            }
        }
        if marks.is_empty() {
            marks.extend(
                lines
                    .iter()
                    .find_map(|line| signal(line))
                    .map(SignatureMark::Signal),
            );
        }
        if marks.is_empty() {
            let hints = normalized.iter().zip(&lines).filter(|(line, raw)| {
                ERROR_HINT.is_match(line)
                    && has_content(line)
                    && !is_boilerplate(line)
                    && !is_frame(raw)
            });
            marks.extend(hints.map(|(line, _)| SignatureMark::Message {
                lines: vec![line.clone()],
                place: MessagePlace::Unknown,
            }));
        }
        if marks.is_empty() {
            // Probably written by a person: all of its lines must occur.
            let lines: Vec<String> = normalized
                .into_iter()
                .filter(|line| has_content(line))
                .take(5)
                .collect();
            marks.extend((!lines.is_empty()).then_some(SignatureMark::Message {
                lines,
                place: MessagePlace::Unknown,
            }));
        }
        marks.dedup();
        if marks.len() > MAX_MARKS {
            // The first messages often name the cause, the last ones the final error.
            marks.drain(MAX_MARKS / 2..marks.len() - MAX_MARKS / 2);
        }
        Self { marks }
    }

    /// Whether the output or the exit status of a command shows this error.
    pub fn is_in(&self, output: &str, end: &End) -> bool {
        let output = strip_ansi(output);
        let normalized: Vec<String> = output.lines().map(|line| normalize(line.trim())).collect();
        let has_line = |part: &str| normalized.iter().any(|line| contains(line, part));
        let names_files = || output.lines().any(|line| place(line).is_some());
        self.marks.iter().any(|mark| match mark {
            SignatureMark::Message { lines, place } => {
                lines.iter().all(|line| has_line(line))
                    && match place {
                        MessagePlace::Unknown => true,
                        MessagePlace::Expected(file) => has_line(file) || !names_files(),
                        MessagePlace::Required(file) => has_line(file),
                    }
            }
            SignatureMark::Signal(expected) => match end {
                End::Signalled(signal) => signal == expected,
                End::Exited(code) if *code == 128 + expected => true,
                _ => output.lines().any(|line| signal(line) == Some(*expected)),
            },
        })
    }

    /// Whether both signatures share a mark, so that they describe one error.
    pub fn is_same(&self, other: &Self) -> bool {
        self.marks
            .iter()
            .any(|mine| other.marks.iter().any(|theirs| mine.is_same(theirs)))
    }

    /// The original line of `error` that contains its message.
    pub fn statement_in<'a>(&self, error: &'a str) -> Option<&'a str> {
        let Some(SignatureMark::Message { lines, .. }) = self.marks.last() else {
            return None;
        };
        error
            .lines()
            .map(str::trim)
            .rfind(|line| contains(&normalize(line), lines.first().map_or("", String::as_str)))
    }
}

impl SignatureMark {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Message { lines, place },
                Self::Message {
                    lines: other_lines,
                    place: other_place,
                },
            ) => {
                // Not every report names a file.
                lines == other_lines
                    && (place == other_place
                        || [place, other_place].contains(&&MessagePlace::Unknown))
            }
            (one, other) => one == other,
        }
    }
}

/// Finds Rust panics. The message is in the header line or below it, and the header names the file.
fn panics(lines: &[&str], normalized: &[String]) -> Vec<SignatureMark> {
    let mut marks = Vec::new();
    for (i, line) in normalized.iter().enumerate() {
        let Some((thread, rest)) = line.split_once(" panicked at ") else {
            continue;
        };
        let file = place(lines[i]);
        let message = match rest
            .strip_prefix('\'')
            .and_then(|rest| rest.rsplit_once("', "))
        {
            Some((message, _)) => Some(message.to_owned()),
            None => normalized
                .get(i + 1)
                .filter(|next| !next.is_empty())
                .cloned(),
        };
        let Some(message) = message else { continue };
        let mut parts = vec![message];
        if !has_content(&parts[0]) {
            // In tests, the thread is named after the test.
            let name = thread.split('\'').nth(1).unwrap_or_default();
            let is_generic = ["", "main", "<unnamed>"].contains(&name) || name.contains("worker");
            parts.extend((!is_generic).then(|| format!("thread '{name}'")));
        }
        marks.extend(message_mark(parts, file));
    }
    marks
}

fn is_after_panic(normalized: &[String], i: usize) -> bool {
    normalized[i].contains(" panicked at ")
        || i.checked_sub(1)
            .is_some_and(|above| normalized[above].contains(" panicked at "))
}

/// A mark for this message; `None` if it is too generic to recognise.
fn message_mark(lines: Vec<String>, place: Option<String>) -> Option<SignatureMark> {
    let place = match (lines.iter().any(|line| has_content(line)), place) {
        (true, None) => MessagePlace::Unknown,
        (true, Some(file)) => MessagePlace::Expected(file),
        (false, Some(file)) => MessagePlace::Required(file),
        (false, None) => return None,
    };
    Some(SignatureMark::Message { lines, place })
}

/// The file that a message belongs to. Python names it before the message, others after.
fn find_place(lines: &[&str], i: usize) -> Option<String> {
    let before = || lines[i.saturating_sub(MAX_PLACE_DISTANCE)..i].iter().rev();
    let after = || lines[i + 1..(i + 1 + MAX_PLACE_DISTANCE).min(lines.len())].iter();
    let is_python = before().any(|line| line.starts_with("File \""));
    let found = |line: &&str| place(line);
    place(lines[i]).or_else(|| match is_python {
        true => before().find_map(found),
        false => after().find_map(found).or_else(|| before().find_map(found)),
    })
}

/// A message without what differs between two runs of the same files: numbers, times, addresses, hashes and directories.
pub fn without_varying_parts(message: &str) -> String {
    let lines: Vec<String> = message.lines().map(normalize).collect();
    lines.join("\n")
}

fn is_frame(line: &str) -> bool {
    [
        "at ",
        "File \"",
        "--> ",
        "goroutine ",
        "note: ",
        "help: ",
        "stack backtrace",
        "Traceback (",
        "created by ",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

fn contains(line: &str, part: &str) -> bool {
    let is_border = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    line.match_indices(part).any(|(at, _)| {
        is_border(line[..at].chars().next_back())
            && is_border(line[at + part.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests;
