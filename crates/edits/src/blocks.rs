//! What each part of an answer is: a block of code for a file, a SEARCH block, a diff, JSON, or words.

use super::diff::has_diff;
use super::directives::take_directives;
use super::found::{FoundEdit, FoundText};
use super::lenient::read_value;
use super::object::take_answer;
use super::paths::{NamedPath, path_in_first_line, path_in_info, path_in_line};
use super::rule::ReadingRule;
use super::search_replace::{has_search_blocks, take_search_blocks};
use super::segments::{AnswerSegment, FencedBlock};
use super::vocabulary::{is_one_of, vocabulary};
use super::{MOST_FOUND, Reading, UnreadableAnswer};

/// Lines before a block in which its path may stand.
const LINES_BEFORE: usize = 3;

/// Takes all parts in their order. `false`: nothing in them says anything.
pub(super) fn take_segments(segments: &[AnswerSegment<'_>], reading: &mut Reading<'_>) -> bool {
    let before = (
        reading.found.len(),
        reading.pathless.len(),
        reading.faults.len(),
    );
    let mut taken = false;
    for (n, segment) in segments.iter().enumerate() {
        match segment {
            AnswerSegment::Prose(lines) => taken |= take_prose(lines, reading),
            AnswerSegment::Block(block) => {
                let named = n.checked_sub(1).and_then(|n| match &segments[n] {
                    AnswerSegment::Prose(lines) => path_before(lines, reading),
                    AnswerSegment::Block(_) => None,
                });
                taken |= take_block(block, named, reading);
            }
        }
        if reading.found.len() + reading.pathless.len() + reading.faults.len() > MOST_FOUND {
            reading.faults.insert(
                0,
                UnreadableAnswer::TooManyEdits {
                    count: segments.len(),
                },
            );
            break;
        }
    }
    taken
        || (
            reading.found.len(),
            reading.pathless.len(),
            reading.faults.len(),
        ) != before
}

/// The path in the last lines of the prose before a block, the nearest first. A sentence counts only right before it.
fn path_before(lines: &[&str], reading: &Reading<'_>) -> Option<NamedPath> {
    let last = lines
        .iter()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(LINES_BEFORE);
    last.enumerate().find_map(|(n, line)| {
        let named = path_in_line(line, &reading.known)?;
        (n == 0 || named.rule != ReadingRule::PathInSentence).then_some(named)
    })
}

fn take_prose(lines: &[&str], reading: &mut Reading<'_>) -> bool {
    if has_search_blocks(lines) {
        take_search_blocks(lines, None, reading);
        return true;
    }
    let has_heads = lines
        .windows(2)
        .any(|pair| pair[0].starts_with("--- ") && pair[1].starts_with("+++ "));
    if has_heads || lines.iter().any(|line| line.starts_with("*** Begin Patch")) {
        super::diff::take_diff(lines, None, reading);
        return true;
    }
    if let Some(at) = lines
        .iter()
        .position(|line| line.starts_with(['{', '[']) && !line.starts_with("[/"))
    {
        let text: String = lines[at..].iter().flat_map(|line| [*line, "\n"]).collect();
        if take_objects(&text, reading) {
            take_directives(&lines[..at], reading);
            return true;
        }
    }
    take_directives(lines, reading)
}

/// Takes the objects that stand one after another from the start of the text: of whole answers the last, of single
/// edits all.
pub(super) fn take_objects(text: &str, reading: &mut Reading<'_>) -> bool {
    let (mut at, mut taken) = (0, false);
    for _ in 0..MOST_FOUND {
        let Some(value) = read_value(&text[at..]) else {
            break;
        };
        let mark = (reading.found.len(), reading.need.len());
        if take_answer(&value.value, reading) {
            reading.used(if value.is_strict {
                ReadingRule::Json
            } else {
                ReadingRule::LenientJson
            });
            let is_whole = value.value.get("edits").is_some();
            if taken && is_whole && reading.found.len() > mark.0 {
                // A draft, and then the answer.
                reading.found.drain(..mark.0);
                reading.used(ReadingRule::LastCounts);
            }
            taken = true;
        }
        at += value.read.max(1);
        let Some(next) = text.get(at..).and_then(|rest| rest.find(['{', '['])) else {
            break;
        };
        at += next;
    }
    taken
}

fn take_block(
    block: &FencedBlock<'_>,
    before: Option<NamedPath>,
    reading: &mut Reading<'_>,
) -> bool {
    let words = &vocabulary().blocks;
    let language = block.language();
    let first = block
        .lines
        .iter()
        .find(|line| !line.trim().is_empty())
        .copied()
        .unwrap_or_default();
    let in_info = path_in_info(block.info, &reading.known);
    let in_first = path_in_first_line(first, &reading.known);
    let named = in_info.or_else(|| in_first.clone()).or(before);
    let path = named.as_ref().map(|named| named.path.clone());
    if !block.is_closed {
        let path = path.unwrap_or_default();
        reading.used(ReadingRule::UnclosedBlock);
        reading.faults.push(UnreadableAnswer::UnclosedBlock {
            path,
            line: block.line,
        });
        return true;
    }
    if first.is_empty() && named.is_none() {
        return false;
    }
    if has_search_blocks(&block.lines) {
        note(named.as_ref(), reading);
        take_search_blocks(&block.lines, path, reading);
        return true;
    }
    let begins_so = first.starts_with("--- ")
        || first.starts_with("diff --git ")
        || first.starts_with("@@")
        || first.starts_with("*** ");
    if is_one_of(language, &words.diff) || (begins_so && has_diff(&block.lines)) {
        super::diff::take_diff(&block.lines, path.as_deref(), reading);
        return true;
    }
    let is_json_file = path
        .as_ref()
        .is_some_and(|path| path.ends_with(".json") || path.starts_with('.'));
    let opens = first.trim_start().starts_with(['{', '[']);
    if opens
        && !is_json_file
        && is_one_of(language, &words.json)
        && take_objects(&block.text(), reading)
    {
        return true;
    }
    take_code(block, named, in_first.is_some(), reading)
}

fn take_code(
    block: &FencedBlock<'_>,
    named: Option<NamedPath>,
    has_path_line: bool,
    reading: &mut Reading<'_>,
) -> bool {
    let language = block.language();
    let is_shown_only = is_one_of(language, &vocabulary().blocks.shown_only);
    let from_sentence = named
        .as_ref()
        .is_some_and(|named| named.rule == ReadingRule::PathInSentence);
    let Some(named) = named.filter(|_| !(is_shown_only && from_sentence)) else {
        if is_shown_only {
            reading.used(ReadingRule::Quotation);
            return false;
        }
        reading.pathless.push((language.to_owned(), block.text()));
        return true;
    };
    let mut text = block.text();
    if has_path_line && named.rule == ReadingRule::PathInFirstLine {
        // The line names the file and is no part of it, unless the file has it already.
        let line = text
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default()
            .to_owned();
        let path = super::place::find_file(&named.path, &reading.known);
        let has_it = path
            .and_then(|path| reading.known.text(&path))
            .is_some_and(|old| old.lines().next() == Some(&line));
        if !has_it {
            let end = text.find(&line).unwrap_or_default() + line.len() + 1;
            text = text[end.min(text.len())..].to_owned();
            if let Some(rest) = text.strip_prefix('\n') {
                text = rest.to_owned();
            }
        }
    }
    note(Some(&named), reading);
    reading.add(FoundEdit {
        path: Some(named.path),
        text: FoundText::Whole(text),
        from_sentence,
        ..FoundEdit::default()
    });
    true
}

fn note(named: Option<&NamedPath>, reading: &mut Reading<'_>) {
    if let Some(named) = named {
        reading.used(named.rule);
    }
}
