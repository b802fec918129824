//! What makes an error this error, and not another one that happens to end the same command?
//! The statements in it, compared without what differs from run to run. Knows how runtimes say what went wrong.
//! Does not know who reports it.

mod common;
mod normal;

use std::sync::LazyLock;

use regex::Regex;

use super::report::without_colour;
use common::{has_content, is_boilerplate, signal};
use normal::{normal, place};
use supervisor_process::End;
use supervisor_text::words;

/// What an error is known by. Any one of its marks, found whole, is the error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signature {
    marks: Vec<Mark>,
}

/// One statement of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mark {
    Said {
        /// Lines that must all be there.
        lines: Vec<String>,
        place: Place,
    },
    /// The process was ended by this signal.
    Signal(i32),
}

/// Where the statement was made.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Unknown,
    /// In this file, unless the tool that says it names no files at all.
    Likely(String),
    /// In this file: the words alone could be anybody's.
    Needed(String),
}

/// More of an error than this is not read.
const READ: usize = 64 * 1024;
const MOST_MARKS: usize = 8;
/// How far from a statement its place may stand, in lines.
const NEAR: usize = 12;

/// Names what went wrong: `ValueError: …`, `panic: …`, `error[E0425]: …`, `** (RuntimeError) …`.
static STATES: LazyLock<Regex> = LazyLock::new(|| {
    let names = r"[a-z0-9_.]*(error|exception|panic|fatal|fault)(\[[^\]]*\])?";
    Regex::new(&format!(
        r"(^|[^a-z0-9_.])(\*\* \({names}\) .|{names}:|{names}$|.*\({names}\)$|assert[ (])"
    ))
    .expect("a pattern that the tests compile")
});
/// Says no more than that something went wrong.
static HINTS: LazyLock<Regex> = LazyLock::new(|| {
    let hints = "error|exception|failed|failure|fail|fatal|panicked|aborted|denied|refused|timed out|not found|no such|\
                 cannot|undefined|deadlock|overflow|out of (bounds|range|memory)|invalid|unexpected";
    Regex::new(&format!("(^|[^a-z0-9_])({hints})([^a-z0-9_]|$)"))
        .expect("a pattern that the tests compile")
});

impl Signature {
    pub fn of(error: &str) -> Self {
        let text = words::cut_middle(error, READ);
        let text = without_colour(&text);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let plain: Vec<String> = lines.iter().map(|line| normal(line)).collect();
        let mut stated = panics(&lines, &plain);
        for (i, line) in plain
            .iter()
            .enumerate()
            .filter(|(i, _)| !is_frame(lines[*i]) && !is_after_panic(&plain, *i))
        {
            if let Some(found) = STATES
                .captures(line)
                .and_then(|c| c.get(2))
                .filter(|_| !is_boilerplate(line))
            {
                // Whatever stands before the name is the reporter's.
                let said = if line.ends_with(')') && !found.as_str().starts_with("** ") {
                    line
                } else {
                    &line[found.start()..]
                };
                let said = said.trim_end_matches(['\'', '.', ',', ';', '!']);
                stated.extend(said_at(vec![said.to_owned()], near(&lines, i)));
            }
        }
        let mut marks = stated;
        if marks.is_empty() {
            marks.extend(lines.iter().find_map(|line| signal(line)).map(Mark::Signal));
        }
        if marks.is_empty() {
            let hints = plain.iter().zip(&lines).filter(|(line, raw)| {
                HINTS.is_match(line) && has_content(line) && !is_boilerplate(line) && !is_frame(raw)
            });
            marks.extend(hints.map(|(line, _)| Mark::Said {
                lines: vec![line.clone()],
                place: Place::Unknown,
            }));
        }
        if marks.is_empty() {
            // A text by a person: all of it or nothing.
            let lines: Vec<String> = plain
                .into_iter()
                .filter(|line| has_content(line))
                .take(5)
                .collect();
            marks.extend((!lines.is_empty()).then_some(Mark::Said {
                lines,
                place: Place::Unknown,
            }));
        }
        marks.dedup();
        if marks.len() > MOST_MARKS {
            // The first is often the cause, the last what was said in the end.
            marks.drain(MOST_MARKS / 2..marks.len() - MOST_MARKS / 2);
        }
        Self { marks }
    }

    /// Is this error in what a command wrote, or in how it ended?
    pub fn is_in(&self, output: &str, end: &End) -> bool {
        let output = without_colour(output);
        let plain: Vec<String> = output.lines().map(|line| normal(line.trim())).collect();
        let says = |part: &str| plain.iter().any(|line| contains(line, part));
        let names_files = || output.lines().any(|line| place(line).is_some());
        self.marks.iter().any(|mark| match mark {
            Mark::Said { lines, place } => {
                lines.iter().all(|line| says(line))
                    && match place {
                        Place::Unknown => true,
                        Place::Likely(file) => says(file) || !names_files(),
                        Place::Needed(file) => says(file),
                    }
            }
            Mark::Signal(wanted) => match end {
                End::Signalled(signal) => signal == wanted,
                End::Exited(code) if *code == 128 + wanted => true,
                _ => output.lines().any(|line| signal(line) == Some(*wanted)),
            },
        })
    }

    /// Two reports of one error share a statement.
    pub fn is_same(&self, other: &Self) -> bool {
        self.marks
            .iter()
            .any(|mine| other.marks.iter().any(|theirs| mine.is_same(theirs)))
    }

    /// The line of `error` that says what went wrong, as it stands there.
    pub fn statement_in<'a>(&self, error: &'a str) -> Option<&'a str> {
        let Some(Mark::Said { lines, .. }) = self.marks.last() else {
            return None;
        };
        error
            .lines()
            .map(str::trim)
            .rfind(|line| contains(&normal(line), lines.first().map_or("", String::as_str)))
    }
}

impl Mark {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Said { lines, place },
                Self::Said {
                    lines: others,
                    place: elsewhere,
                },
            ) => {
                // Not every report says where.
                lines == others
                    && (place == elsewhere || [place, elsewhere].contains(&&Place::Unknown))
            }
            (one, other) => one == other,
        }
    }
}

/// Panics of Rust: the message stands in the header or below it, and the header says where.
fn panics(lines: &[&str], plain: &[String]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (i, line) in plain.iter().enumerate() {
        let Some((thread, rest)) = line.split_once(" panicked at ") else {
            continue;
        };
        let file = place(lines[i]);
        let said = match rest
            .strip_prefix('\'')
            .and_then(|rest| rest.rsplit_once("', "))
        {
            Some((said, _)) => Some(said.to_owned()),
            None => plain.get(i + 1).filter(|next| !next.is_empty()).cloned(),
        };
        let Some(said) = said else { continue };
        let mut parts = vec![said];
        if !has_content(&parts[0]) {
            // In tests the thread bears the name of the test.
            let name = thread.split('\'').nth(1).unwrap_or_default();
            let anybodys = ["", "main", "<unnamed>"].contains(&name) || name.contains("worker");
            parts.extend((!anybodys).then(|| format!("thread '{name}'")));
        }
        marks.extend(said_at(parts, file));
    }
    marks
}

fn is_after_panic(plain: &[String], i: usize) -> bool {
    plain[i].contains(" panicked at ")
        || i.checked_sub(1)
            .is_some_and(|above| plain[above].contains(" panicked at "))
}

/// A statement, if it can be told from others.
fn said_at(lines: Vec<String>, place: Option<String>) -> Option<Mark> {
    let place = match (lines.iter().any(|line| has_content(line)), place) {
        (true, None) => Place::Unknown,
        (true, Some(file)) => Place::Likely(file),
        (false, Some(file)) => Place::Needed(file),
        (false, None) => return None,
    };
    Some(Mark::Said { lines, place })
}

/// Where a statement was made: Python says it before, others after.
fn near(lines: &[&str], i: usize) -> Option<String> {
    let before = || lines[i.saturating_sub(NEAR)..i].iter().rev();
    let after = || lines[i + 1..(i + 1 + NEAR).min(lines.len())].iter();
    let pythons = before().any(|line| line.starts_with("File \""));
    let found = |line: &&str| place(line);
    place(lines[i]).or_else(|| match pythons {
        true => before().find_map(found),
        false => after().find_map(found).or_else(|| before().find_map(found)),
    })
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
