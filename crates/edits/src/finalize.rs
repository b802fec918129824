//! Turns parsed edits into workspace edits: resolves the file and the lines, and drops edits that
//! change nothing.

use std::collections::HashMap;

use super::elision::{fill_in, find_lines, first_elision};
use super::found::{FoundEdit, FoundText};
use super::line_numbers::without_line_numbers;
use super::path_resolution::{fold, resolve};
use super::rule::ParseRule;
use super::vocabulary::vocabulary;
use super::{AnswerParser, EditAnswerError, MAX_EDITS};
use crate::Edit;

/// The edits in the order in which they are applied. Edits that cannot be used are added to the
/// errors.
pub(super) fn finalize_edits(parser: &mut AnswerParser<'_>) -> Result<Vec<Edit>, EditAnswerError> {
    assign_pathless(parser);
    let mut edits: Vec<Edit> = Vec::new();
    for found in std::mem::take(&mut parser.found) {
        match finalize(found, parser) {
            Ok(Some(edit)) => push(edit, &mut edits, parser),
            Ok(None) => {}
            Err(error) => parser.errors.push(error),
        }
        if edits.len() > MAX_EDITS {
            return Err(EditAnswerError::TooManyEdits { count: edits.len() });
        }
    }
    refuse_collisions(&edits)?;
    Ok(edits)
}

/// Assigns blocks without a path to the only file they can belong to.
fn assign_pathless(parser: &mut AnswerParser<'_>) {
    let blocks = std::mem::take(&mut parser.pathless);
    // Beside blocks that name their file, a block without a path is an example.
    if blocks.is_empty() || !parser.found.is_empty() {
        return;
    }
    let Some((language, text)) = blocks.last().cloned() else {
        return;
    };
    let candidates = candidates(&language, parser);
    match candidates.as_slice() {
        [only] => {
            parser.record(ParseRule::OnlyFile);
            let found = FoundEdit {
                path: Some(only.clone()),
                text: FoundText::Whole(text),
                ..FoundEdit::default()
            };
            parser.found.push(found);
        }
        _ => match most_similar(&text, &candidates, parser) {
            Some(path) if blocks.len() == 1 => {
                parser.record(ParseRule::OnlyFile);
                let found = FoundEdit {
                    path: Some(path),
                    text: FoundText::Whole(text),
                    ..FoundEdit::default()
                };
                parser.found.push(found);
            }
            _ => parser.errors.push(EditAnswerError::NoPath {
                blocks: blocks.len(),
                candidates,
            }),
        },
    }
}

/// The files that a block of this language can belong to.
fn candidates(language: &str, parser: &AnswerParser<'_>) -> Vec<String> {
    let known = vocabulary()
        .languages
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(language));
    let fits = |path: &&String| {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        known.is_none_or(|(_, extensions)| extensions.iter().any(|e| e == extension))
    };
    parser
        .files
        .facts
        .editable()
        .iter()
        .filter(fits)
        .cloned()
        .collect()
}

/// The only file of which the block repeats most lines.
fn most_similar(text: &str, candidates: &[String], parser: &AnswerParser<'_>) -> Option<String> {
    let block_lines: std::collections::HashSet<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| line.len() > 2)
        .collect();
    let repeats = |path: &&String| {
        let Some(old) = parser.files.text(path) else {
            return false;
        };
        let lines: Vec<&str> = old
            .lines()
            .map(str::trim)
            .filter(|line| line.len() > 2)
            .collect();
        !lines.is_empty()
            && lines
                .iter()
                .filter(|line| block_lines.contains(**line))
                .count()
                * 2
                > lines.len()
    };
    let mut similar = candidates.iter().take(100).filter(repeats);
    similar.next().filter(|_| similar.next().is_none()).cloned()
}

fn finalize(
    found: FoundEdit,
    parser: &mut AnswerParser<'_>,
) -> Result<Option<Edit>, EditAnswerError> {
    let written = found.path.as_deref().filter(|path| !path.trim().is_empty());
    let resolved = written
        .map(|written| resolve(written, &parser.files))
        .transpose()?;
    // Nothing is left of a path that consists of quotes or is the project itself.
    let Some(resolved) = resolved.filter(|resolved| !resolved.path.is_empty()) else {
        let candidates = candidates("", parser);
        let [only] = candidates.as_slice() else {
            return Err(EditAnswerError::NoPath {
                blocks: 1,
                candidates,
            });
        };
        parser.record(ParseRule::OnlyFile);
        let path = Some(only.clone());
        return finalize(FoundEdit { path, ..found }, parser);
    };
    parser.rules.extend(resolved.rules);
    let path = resolved.path;
    let old = parser.files.text(&path);
    let exists = parser.files.exists(&path);
    match found.text {
        FoundText::Delete => Ok(Some(Edit::Delete { path })),
        FoundText::Incomplete { has } => Err(EditAnswerError::Incomplete { path, has }),
        FoundText::Whole(text) => {
            let text = if found.from_json {
                strip_fence(text, parser)
            } else {
                text
            };
            let text = strip_line_numbers(text, old.as_deref(), parser);
            finalize_whole(
                path,
                text,
                old.as_deref(),
                exists,
                found.from_sentence,
                parser,
            )
        }
        FoundText::Append(text) => Ok(match old {
            Some(old) if !old.trim().is_empty() => {
                let lines: Vec<&str> = old.lines().collect();
                let last = lines
                    .iter()
                    .rposition(|line| !line.trim().is_empty())
                    .unwrap_or_default();
                let (from, to) = widen(&lines, last..last + 1);
                let tail = joined(&lines[from..to]);
                let end = old.ends_with('\n');
                let search = if end {
                    tail.clone()
                } else {
                    tail.trim_end_matches('\n').to_owned()
                };
                check_text(&path, &text, Some(&old))?;
                Some(Edit::Change {
                    path,
                    search,
                    replace: tail + &text,
                })
            }
            old => finalize_whole(path, text, old.as_deref(), exists, false, parser)?,
        }),
        FoundText::Change {
            search,
            replace,
            line,
        } => {
            let (search, replace) = if found.from_json {
                (strip_fence(search, parser), strip_fence(replace, parser))
            } else {
                (search, replace)
            };
            finalize_change(path, search, replace, line, old.as_deref(), parser)
        }
    }
}

fn finalize_whole(
    path: String,
    text: String,
    old: Option<&str>,
    exists: bool,
    from_sentence: bool,
    parser: &mut AnswerParser<'_>,
) -> Result<Option<Edit>, EditAnswerError> {
    let is_protected = parser.files.is_protected(&path);
    if let Some(old) = old {
        if is_same_text(&text, old) {
            parser.record(ParseRule::Unchanged);
            return Ok(None);
        }
        let lines: Vec<&str> = old.lines().collect();
        let quoted: Vec<&str> = text.lines().skip_while(|l| l.trim().is_empty()).collect();
        let quoted: Vec<&str> = quoted[..quoted
            .iter()
            .rposition(|l| !l.trim().is_empty())
            .map_or(0, |at| at + 1)]
            .to_vec();
        let is_quote = !find_lines(&lines, &quoted, 0).is_empty();
        if is_quote && (is_protected || from_sentence) {
            parser.record(ParseRule::Quotation);
            return Ok(None);
        }
    }
    if text.trim().is_empty() && old.is_some_and(|old| !old.trim().is_empty()) {
        return Err(EditAnswerError::EmptyBlock { path });
    }
    if let Some((line, elided)) = first_elision(&text, old) {
        let text = elided.chars().take(60).collect();
        return Err(EditAnswerError::ElidedFile { path, line, text });
    }
    check_text(&path, &text, old)?;
    let contents = with_line_ends(text, old).into_bytes();
    Ok(Some(if exists {
        Edit::Replace { path, contents }
    } else {
        Edit::Create { path, contents }
    }))
}

fn finalize_change(
    path: String,
    search: String,
    replace: String,
    line: Option<usize>,
    old: Option<&str>,
    parser: &mut AnswerParser<'_>,
) -> Result<Option<Edit>, EditAnswerError> {
    let Some(old) = old else {
        // Nothing to search in; the workspace reports it.
        return Ok(Some(Edit::Change {
            path,
            search,
            replace,
        }));
    };
    let (mut search, mut replace) = (search, replace);
    if !occurs_in(&search, old)
        && let Some(bare) = without_line_numbers(&search)
    {
        parser.record(ParseRule::LineNumbers);
        search = bare;
        replace = without_line_numbers(&replace).unwrap_or(replace);
    }
    match fill_in(&search, &replace, old) {
        None => {}
        Some(Ok((full, new))) => {
            parser.record(ParseRule::Elision);
            (search, replace) = (full, new);
        }
        Some(Err(())) => return Err(EditAnswerError::UnclearElision { path }),
    }
    if search == replace {
        parser.record(ParseRule::Unchanged);
        return Ok(None);
    }
    if let Some(line) = line {
        (search, replace) = disambiguate_by_line(search, replace, line, old);
    }
    // Whole lines were given, but the file has no newline at its end.
    if !old.contains(&search)
        && search.ends_with('\n')
        && old.ends_with(search.trim_end_matches('\n'))
    {
        search.truncate(search.trim_end_matches('\n').len());
        replace.truncate(replace.trim_end_matches('\n').len());
    }
    check_text(&path, &replace, Some(old))?;
    Ok(Some(Edit::Change {
        path,
        search,
        replace,
    }))
}

/// Adds surrounding lines until the change matches only one place. The line number of a diff
/// decides which.
fn disambiguate_by_line(
    search: String,
    replace: String,
    line: usize,
    old: &str,
) -> (String, String) {
    let lines: Vec<&str> = old.lines().collect();
    let wanted: Vec<&str> = search.lines().collect();
    let places = match wanted.is_empty() {
        // Only added lines: they go after the line that the diff names.
        true => vec![line.min(lines.len())],
        false => find_lines(&lines, &wanted, 0),
    };
    let nearest = places
        .iter()
        .min_by_key(|at| (**at + 1).abs_diff(line))
        .copied();
    let Some(at) = nearest.filter(|_| wanted.is_empty() || places.len() > 1) else {
        return (search, replace);
    };
    let (from, to) = widen(&lines, at..at + wanted.len());
    let new = joined(&lines[from..at]) + &replace + &joined(&lines[at + wanted.len()..to]);
    (joined(&lines[from..to]), new)
}

/// Adds lines before and after until the range is unique in the file.
fn widen(lines: &[&str], range: std::ops::Range<usize>) -> (usize, usize) {
    let (mut from, mut to) = (range.start, range.end);
    while (from, to) != (0, lines.len())
        && (to == from
            || lines[from..to].iter().all(|l| l.trim().is_empty())
            || find_lines(lines, &lines[from..to], 0).len() > 1)
    {
        from = from.saturating_sub(1);
        to = (to + 1).min(lines.len());
    }
    (from, to)
}

fn joined(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [*line, "\n"]).collect()
}

/// Whether the text occurs in the file, ignoring white space around lines.
fn occurs_in(search: &str, old: &str) -> bool {
    let wanted: Vec<&str> = search.trim().lines().collect();
    old.contains(search) || !find_lines(&old.lines().collect::<Vec<_>>(), &wanted, 0).is_empty()
}

fn is_same_text(a: &str, b: &str) -> bool {
    a.trim()
        .lines()
        .map(str::trim_end)
        .eq(b.trim().lines().map(str::trim_end))
}

/// The text inside a fence that surrounds all of it.
fn strip_fence(text: String, parser: &mut AnswerParser<'_>) -> String {
    let bare = text.trim();
    let inside = bare
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'));
    match inside.filter(|(info, _)| !info.contains('`')) {
        Some((_, inside)) => {
            parser.record(ParseRule::FencedContent);
            inside.to_owned()
        }
        None => text,
    }
}

fn strip_line_numbers(text: String, old: Option<&str>, parser: &mut AnswerParser<'_>) -> String {
    if old.is_some_and(|old| without_line_numbers(old).is_some()) {
        return text;
    }
    match without_line_numbers(&text) {
        Some(bare) => {
            parser.record(ParseRule::LineNumbers);
            bare
        }
        None => text,
    }
}

/// Rejects control characters that the file does not already contain.
fn check_text(path: &str, text: &str, old: Option<&str>) -> Result<(), EditAnswerError> {
    let is_unexpected = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}');
    let found = text
        .char_indices()
        .find(|(_, c)| is_unexpected(*c) && !old.is_some_and(|old| old.contains(*c)));
    match found {
        Some((at, c)) => Err(EditAnswerError::ControlCharacter {
            path: path.to_owned(),
            line: text[..at].matches('\n').count() + 1,
            code: u32::from(c),
        }),
        None => Ok(()),
    }
}

/// Uses the line endings of the file, and its newline after the last line.
fn with_line_ends(mut text: String, old: Option<&str>) -> String {
    let Some(old) = old.filter(|old| old.contains('\n')) else {
        return text;
    };
    let (has_crlf, wants_crlf) = (
        text.contains("\r\n"),
        old.matches("\r\n").count() == old.matches('\n').count(),
    );
    if has_crlf && !old.contains("\r\n") {
        text = text.replace("\r\n", "\n");
    } else if !has_crlf && wants_crlf {
        text = text.replace('\n', "\r\n");
    }
    if old.ends_with('\n') && !text.ends_with('\n') {
        text.push_str(if wants_crlf { "\r\n" } else { "\n" });
    }
    text
}

/// Adds an edit. Of two edits for one place the last one counts.
fn push(edit: Edit, edits: &mut Vec<Edit>, parser: &mut AnswerParser<'_>) {
    let before = edits.len();
    match &edit {
        Edit::Create { path, .. } | Edit::Replace { path, .. } | Edit::Delete { path } => {
            edits.retain(|earlier| earlier.path() != path);
        }
        Edit::Change { path, search, .. } => {
            edits.retain(
                |earlier| !matches!(earlier, Edit::Change { path: p, search: s, .. } if p == path && s == search),
            );
        }
    }
    if edits.len() < before {
        parser.record(ParseRule::LastCounts);
    }
    edits.push(edit);
}

/// Rejects two paths that some file systems treat as one.
fn refuse_collisions(edits: &[Edit]) -> Result<(), EditAnswerError> {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for edit in edits {
        match seen.insert(fold(edit.path()), edit.path()) {
            Some(first) if first != edit.path() => {
                let (first, second) = (first.to_owned(), edit.path().to_owned());
                return Err(EditAnswerError::CollidingPaths { first, second });
            }
            _ => {}
        }
    }
    Ok(())
}
