//! Blocks of `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE`, as models write them: more or fewer marks, other words after
//! them, the dashes and pluses of another dialect.

use super::found::{FoundEdit, FoundText};
use super::paths::{path_in_first_line, path_in_line};
use super::rule::ReadingRule;
use super::{Reading, UnreadableAnswer};

/// A line of marks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MarkLine {
    Search,
    Divider,
    Replace,
}

/// Do these lines hold a block of this kind?
pub(super) fn has_search_blocks(lines: &[&str]) -> bool {
    lines
        .iter()
        .any(|line| mark_of(line) == Some(MarkLine::Search))
}

fn mark_of(line: &str) -> Option<MarkLine> {
    let line = line.trim_end();
    let run = |mark: char| {
        let rest = line.trim_start_matches(mark);
        let length = line.len() - rest.len();
        ((5..=12).contains(&length)).then(|| rest.trim())
    };
    // A word after the marks tells them from a heading or a rule.
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
        return Some(MarkLine::Search);
    }
    if run('-').is_some_and(|rest| is_word(rest, &["search"])) {
        return Some(MarkLine::Search);
    }
    if run('=').is_some_and(str::is_empty) {
        return Some(MarkLine::Divider);
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
        return Some(MarkLine::Replace);
    }
    if run('+').is_some_and(|rest| is_word(rest, &["replace"])) {
        return Some(MarkLine::Replace);
    }
    None
}

/// Takes all blocks in these lines. `path` is the one named before them; a line with a path before a block wins.
pub(super) fn take_search_blocks(
    lines: &[&str],
    mut path: Option<String>,
    reading: &mut Reading<'_>,
) {
    let mut before: Option<&str> = None;
    let mut at = 0;
    while at < lines.len() {
        if mark_of(lines[at]) != Some(MarkLine::Search) {
            if !lines[at].trim().is_empty() {
                before = Some(lines[at]);
            }
            at += 1;
            continue;
        }
        let named = before.take().and_then(|line| {
            path_in_first_line(line, &reading.known).or_else(|| path_in_line(line, &reading.known))
        });
        // `<<<<<<< SEARCH src/lib.rs`
        let words = lines[at]
            .trim_start_matches(['<', '-'])
            .trim()
            .split_once(' ')
            .map(|(_, rest)| rest);
        let named = named.or_else(|| words.and_then(|words| path_in_line(words, &reading.known)));
        if let Some(named) = named {
            path = Some(named.path);
        }
        at = take_block(lines, at, path.clone(), reading);
    }
}

/// Takes the block whose first mark stands at `start`; says where to go on.
fn take_block(
    lines: &[&str],
    start: usize,
    path: Option<String>,
    reading: &mut Reading<'_>,
) -> usize {
    let next = |from: usize, wanted: &[MarkLine]| {
        (from..lines.len()).find(|n| mark_of(lines[*n]).is_some_and(|mark| wanted.contains(&mark)))
    };
    let named = path.clone().unwrap_or_default();
    let Some(divider) = next(start + 1, &[MarkLine::Divider, MarkLine::Search]) else {
        reading
            .faults
            .push(UnreadableAnswer::SearchWithoutDivider { path: named });
        return lines.len();
    };
    if mark_of(lines[divider]) == Some(MarkLine::Search) {
        reading
            .faults
            .push(UnreadableAnswer::SearchWithoutDivider { path: named });
        return divider;
    }
    let Some(end) = next(divider + 1, &[MarkLine::Replace, MarkLine::Search]) else {
        reading
            .faults
            .push(UnreadableAnswer::SearchWithoutEnd { path: named });
        return lines.len();
    };
    if mark_of(lines[end]) == Some(MarkLine::Search) {
        reading
            .faults
            .push(UnreadableAnswer::SearchWithoutEnd { path: named });
        return end;
    }
    let joined = |part: &[&str]| {
        part.iter()
            .flat_map(|line| [*line, "\n"])
            .collect::<String>()
    };
    // A divider drawn twice is drawn once too often.
    let replace_from = (divider + 1..end)
        .find(|n| mark_of(lines[*n]) != Some(MarkLine::Divider))
        .unwrap_or(end);
    let (search, replace) = (
        joined(&lines[start + 1..divider]),
        joined(&lines[replace_from..end]),
    );
    reading.used(ReadingRule::SearchReplace);
    let text = if search.trim().is_empty() {
        reading.used(ReadingRule::EmptySearch);
        FoundText::Append(replace)
    } else {
        FoundText::Change {
            search,
            replace,
            line: None,
        }
    };
    reading.add(FoundEdit {
        path,
        text,
        ..FoundEdit::default()
    });
    end + 1
}
