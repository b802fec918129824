//! Decides what each part of an answer is: a code block for a file, a SEARCH block, a diff, JSON,
//! or prose.

use super::diff::has_diff;
use super::directives::parse_directives;
use super::found::{FoundEdit, FoundText};
use super::lenient::read_value;
use super::object::parse_answer;
use super::paths::{NamedPath, path_in_first_line, path_in_info, path_in_line};
use super::rule::ParseRule;
use super::search_replace::{has_search_blocks, parse_search_blocks};
use super::segments::{AnswerSegment, FencedBlock};
use super::vocabulary::{is_one_of, vocabulary};
use super::{AnswerParser, EditAnswerError, MAX_FOUND};

/// Number of lines before a block that may contain its path.
const LINES_BEFORE: usize = 3;

/// Parses all parts in order. Returns whether any of them contained something.
pub(super) fn parse_segments(
    segments: &[AnswerSegment<'_>],
    parser: &mut AnswerParser<'_>,
) -> bool {
    let before = (
        parser.found.len(),
        parser.pathless.len(),
        parser.errors.len(),
    );
    let mut parsed = false;
    for (n, segment) in segments.iter().enumerate() {
        match segment {
            AnswerSegment::Prose(lines) => parsed |= parse_prose(lines, parser),
            AnswerSegment::Block(block) => {
                let named = n.checked_sub(1).and_then(|n| match &segments[n] {
                    AnswerSegment::Prose(lines) => path_before(lines, parser),
                    AnswerSegment::Block(_) => None,
                });
                parsed |= parse_block(block, named, parser);
            }
        }
        if parser.found.len() + parser.pathless.len() + parser.errors.len() > MAX_FOUND {
            parser.errors.insert(
                0,
                EditAnswerError::TooManyEdits {
                    count: segments.len(),
                },
            );
            break;
        }
    }
    parsed
        || (
            parser.found.len(),
            parser.pathless.len(),
            parser.errors.len(),
        ) != before
}

/// The path in the last lines of prose before a block, nearest first. A path in a sentence counts
/// only in the last line.
fn path_before(lines: &[&str], parser: &AnswerParser<'_>) -> Option<NamedPath> {
    let last = lines
        .iter()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(LINES_BEFORE);
    last.enumerate().find_map(|(n, line)| {
        let named = path_in_line(line, &parser.files)?;
        (n == 0 || named.rule != ParseRule::PathInSentence).then_some(named)
    })
}

fn parse_prose(lines: &[&str], parser: &mut AnswerParser<'_>) -> bool {
    if has_search_blocks(lines) {
        parse_search_blocks(lines, None, parser);
        return true;
    }
    let has_heads = lines
        .windows(2)
        .any(|pair| pair[0].starts_with("--- ") && pair[1].starts_with("+++ "));
    if has_heads || lines.iter().any(|line| line.starts_with("*** Begin Patch")) {
        super::diff::parse_diff(lines, None, parser);
        return true;
    }
    if let Some(at) = lines
        .iter()
        .position(|line| line.starts_with(['{', '[']) && !line.starts_with("[/"))
    {
        let text: String = lines[at..].iter().flat_map(|line| [*line, "\n"]).collect();
        if parse_objects(&text, parser) {
            parse_directives(&lines[..at], parser);
            return true;
        }
    }
    parse_directives(lines, parser)
}

/// Parses consecutive objects from the start of the text. Of complete answers the last one counts;
/// single edits are all kept.
pub(super) fn parse_objects(text: &str, parser: &mut AnswerParser<'_>) -> bool {
    let (mut at, mut parsed) = (0, false);
    for _ in 0..MAX_FOUND {
        let Some(value) = read_value(&text[at..]) else {
            break;
        };
        let counts_before = (parser.found.len(), parser.need.len());
        if parse_answer(&value.value, parser) {
            parser.record(if value.is_strict {
                ParseRule::Json
            } else {
                ParseRule::LenientJson
            });
            let is_whole = value.value.get("edits").is_some();
            if parsed && is_whole && parser.found.len() > counts_before.0 {
                // A draft, followed by the answer.
                parser.found.drain(..counts_before.0);
                parser.record(ParseRule::LastCounts);
            }
            parsed = true;
        }
        at += value.read.max(1);
        let Some(next) = text.get(at..).and_then(|rest| rest.find(['{', '['])) else {
            break;
        };
        at += next;
    }
    parsed
}

fn parse_block(
    block: &FencedBlock<'_>,
    before: Option<NamedPath>,
    parser: &mut AnswerParser<'_>,
) -> bool {
    let words = &vocabulary().blocks;
    let language = block.language();
    let first = block
        .lines
        .iter()
        .find(|line| !line.trim().is_empty())
        .copied()
        .unwrap_or_default();
    let in_info = path_in_info(block.info, &parser.files);
    let in_first = path_in_first_line(first, &parser.files);
    let named = in_info.or_else(|| in_first.clone()).or(before);
    let path = named.as_ref().map(|named| named.path.clone());
    if !block.is_closed {
        let path = path.unwrap_or_default();
        parser.record(ParseRule::UnclosedBlock);
        parser.errors.push(EditAnswerError::UnclosedBlock {
            path,
            line: block.line,
        });
        return true;
    }
    if first.is_empty() && named.is_none() {
        return false;
    }
    if has_search_blocks(&block.lines) {
        record_rule(named.as_ref(), parser);
        parse_search_blocks(&block.lines, path, parser);
        return true;
    }
    let looks_like_diff = first.starts_with("--- ")
        || first.starts_with("diff --git ")
        || first.starts_with("@@")
        || first.starts_with("*** ");
    if is_one_of(language, &words.diff) || (looks_like_diff && has_diff(&block.lines)) {
        super::diff::parse_diff(&block.lines, path.as_deref(), parser);
        return true;
    }
    let is_json_file = path
        .as_ref()
        .is_some_and(|path| path.ends_with(".json") || path.starts_with('.'));
    let opens = first.trim_start().starts_with(['{', '[']);
    if opens
        && !is_json_file
        && is_one_of(language, &words.json)
        && parse_objects(&block.text(), parser)
    {
        return true;
    }
    parse_code(block, named, in_first.is_some(), parser)
}

fn parse_code(
    block: &FencedBlock<'_>,
    named: Option<NamedPath>,
    has_path_line: bool,
    parser: &mut AnswerParser<'_>,
) -> bool {
    let language = block.language();
    let is_shown_only = is_one_of(language, &vocabulary().blocks.shown_only);
    let from_sentence = named
        .as_ref()
        .is_some_and(|named| named.rule == ParseRule::PathInSentence);
    let Some(named) = named.filter(|_| !(is_shown_only && from_sentence)) else {
        if is_shown_only {
            parser.record(ParseRule::Quotation);
            return false;
        }
        parser.pathless.push((language.to_owned(), block.text()));
        return true;
    };
    let mut text = block.text();
    if has_path_line && named.rule == ParseRule::PathInFirstLine {
        // The line names the file and is not part of it, unless the file already has it.
        let line = text
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default()
            .to_owned();
        let path = super::path_resolution::find_file(&named.path, &parser.files);
        let has_it = path
            .and_then(|path| parser.files.text(&path))
            .is_some_and(|old| old.lines().next() == Some(&line));
        if !has_it {
            let end = text.find(&line).unwrap_or_default() + line.len() + 1;
            text = text[end.min(text.len())..].to_owned();
            if let Some(rest) = text.strip_prefix('\n') {
                text = rest.to_owned();
            }
        }
    }
    record_rule(Some(&named), parser);
    parser.add(FoundEdit {
        path: Some(named.path),
        text: FoundText::Whole(text),
        from_sentence,
        ..FoundEdit::default()
    });
    true
}

fn record_rule(named: Option<&NamedPath>, parser: &mut AnswerParser<'_>) {
    if let Some(named) = named {
        parser.record(named.rule);
    }
}
