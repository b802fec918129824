//! Parses `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE` blocks as models write them: more or fewer
//! marks, other words after them, or the dashes and pluses of another dialect.

use super::found::{FoundEdit, FoundText};
use super::paths::{path_in_first_line, path_in_line};
use super::rule::ParseRule;
use super::{AnswerParser, EditAnswerError};

/// A marker line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marker {
    Search,
    Divider,
    Replace,
}

/// Whether these lines contain such a block.
pub(super) fn has_search_blocks(lines: &[&str]) -> bool {
    lines
        .iter()
        .any(|line| marker_of(line) == Some(Marker::Search))
}

fn marker_of(line: &str) -> Option<Marker> {
    let line = line.trim_end();
    let run = |mark: char| {
        let rest = line.trim_start_matches(mark);
        let length = line.len() - rest.len();
        ((5..=12).contains(&length)).then(|| rest.trim())
    };
    // A word after the marks distinguishes them from a heading or rule.
    let is_word = |rest: &str, words: &[&str]| {
        words.iter().any(|word| {
            rest.get(..word.len())
                .is_some_and(|r| r.eq_ignore_ascii_case(word))
        })
    };
    if run('<').is_some_and(|rest| {
        rest.is_empty()
            || is_word(
                rest,
                &[
                    "search", "original", "old", "head", "before", "current", "find",
                ],
            )
    }) {
        return Some(Marker::Search);
    }
    if run('-').is_some_and(|rest| is_word(rest, &["search"])) {
        return Some(Marker::Search);
    }
    if run('=').is_some_and(str::is_empty) {
        return Some(Marker::Divider);
    }
    if run('>').is_some_and(|rest| {
        rest.is_empty()
            || is_word(
                rest,
                &[
                    "replace", "updated", "new", "after", "incoming", "modified", "end",
                ],
            )
    }) {
        return Some(Marker::Replace);
    }
    if run('+').is_some_and(|rest| is_word(rest, &["replace"])) {
        return Some(Marker::Replace);
    }
    None
}

/// Parses all blocks in these lines. `path` is the file named before them; a path on a line before
/// a block takes precedence.
pub(super) fn parse_search_blocks(
    lines: &[&str],
    mut path: Option<String>,
    parser: &mut AnswerParser<'_>,
) {
    let mut before: Option<&str> = None;
    let mut at = 0;
    while at < lines.len() {
        if marker_of(lines[at]) != Some(Marker::Search) {
            if !lines[at].trim().is_empty() {
                before = Some(lines[at]);
            }
            at += 1;
            continue;
        }
        let named = before.take().and_then(|line| {
            path_in_first_line(line, &parser.files).or_else(|| path_in_line(line, &parser.files))
        });
        // `<<<<<<< SEARCH src/lib.rs`
        let words = lines[at]
            .trim_start_matches(['<', '-'])
            .trim()
            .split_once(' ')
            .map(|(_, rest)| rest);
        let named = named.or_else(|| words.and_then(|words| path_in_line(words, &parser.files)));
        if let Some(named) = named {
            path = Some(named.path);
        }
        at = parse_block(lines, at, path.clone(), parser);
    }
}

/// Parses the block that begins at `start`. Returns where to continue.
fn parse_block(
    lines: &[&str],
    start: usize,
    path: Option<String>,
    parser: &mut AnswerParser<'_>,
) -> usize {
    let next = |from: usize, wanted: &[Marker]| {
        (from..lines.len())
            .find(|n| marker_of(lines[*n]).is_some_and(|mark| wanted.contains(&mark)))
    };
    let named = path.clone().unwrap_or_default();
    let Some(divider) = next(start + 1, &[Marker::Divider, Marker::Search]) else {
        parser
            .errors
            .push(EditAnswerError::SearchWithoutDivider { path: named });
        return lines.len();
    };
    if marker_of(lines[divider]) == Some(Marker::Search) {
        parser
            .errors
            .push(EditAnswerError::SearchWithoutDivider { path: named });
        return divider;
    }
    let Some(end) = next(divider + 1, &[Marker::Replace, Marker::Search]) else {
        parser
            .errors
            .push(EditAnswerError::SearchWithoutEnd { path: named });
        return lines.len();
    };
    if marker_of(lines[end]) == Some(Marker::Search) {
        parser
            .errors
            .push(EditAnswerError::SearchWithoutEnd { path: named });
        return end;
    }
    let joined = |part: &[&str]| {
        part.iter()
            .flat_map(|line| [*line, "\n"])
            .collect::<String>()
    };
    // Tolerate a repeated divider.
    let replace_from = (divider + 1..end)
        .find(|n| marker_of(lines[*n]) != Some(Marker::Divider))
        .unwrap_or(end);
    let (search, replace) = (
        joined(&lines[start + 1..divider]),
        joined(&lines[replace_from..end]),
    );
    parser.record(ParseRule::SearchReplace);
    let text = if search.trim().is_empty() {
        parser.record(ParseRule::EmptySearch);
        FoundText::Append(replace)
    } else {
        FoundText::Change {
            search,
            replace,
            line: None,
        }
    };
    parser.add(FoundEdit {
        path,
        text,
        ..FoundEdit::default()
    });
    end + 1
}
