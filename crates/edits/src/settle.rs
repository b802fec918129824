//! Makes edits for the workspace out of what was found: which file, which lines, and whether anything changes at all.

use std::collections::HashMap;

use super::elision::{fill_in, first_elision, windows_like};
use super::found::{FoundEdit, FoundText};
use super::line_numbers::without_line_numbers;
use super::place::{fold, resolve};
use super::rule::ReadingRule;
use super::vocabulary::vocabulary;
use super::{MOST_EDITS, Reading, UnreadableAnswer};
use crate::Edit;

/// The edits in the order in which they are to be made. What cannot be read joins the faults.
pub(super) fn settle_edits(reading: &mut Reading<'_>) -> Result<Vec<Edit>, UnreadableAnswer> {
    place_pathless(reading);
    let mut edits: Vec<Edit> = Vec::new();
    for found in std::mem::take(&mut reading.found) {
        match settle(found, reading) {
            Ok(Some(edit)) => push(edit, &mut edits, reading),
            Ok(None) => {}
            Err(fault) => reading.faults.push(fault),
        }
        if edits.len() > MOST_EDITS {
            return Err(UnreadableAnswer::TooManyEdits { count: edits.len() });
        }
    }
    refuse_collisions(&edits)?;
    Ok(edits)
}

/// Blocks that name no file go to the one file that can be meant.
fn place_pathless(reading: &mut Reading<'_>) {
    let blocks = std::mem::take(&mut reading.pathless);
    // Beside blocks that name their file, one that does not is an example.
    if blocks.is_empty() || !reading.found.is_empty() {
        return;
    }
    let Some((language, text)) = blocks.last().cloned() else {
        return;
    };
    let candidates = candidates(&language, reading);
    match candidates.as_slice() {
        [only] => {
            reading.used(ReadingRule::OnlyFile);
            let found = FoundEdit {
                path: Some(only.clone()),
                text: FoundText::Whole(text),
                ..FoundEdit::default()
            };
            reading.found.push(found);
        }
        _ => match most_alike(&text, &candidates, reading) {
            Some(path) if blocks.len() == 1 => {
                reading.used(ReadingRule::OnlyFile);
                let found = FoundEdit {
                    path: Some(path),
                    text: FoundText::Whole(text),
                    ..FoundEdit::default()
                };
                reading.found.push(found);
            }
            _ => reading.faults.push(UnreadableAnswer::NoPath {
                blocks: blocks.len(),
                candidates,
            }),
        },
    }
}

/// The files that a block of this language can be meant for.
fn candidates(language: &str, reading: &Reading<'_>) -> Vec<String> {
    let known = vocabulary()
        .languages
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(language));
    let fits = |path: &&String| {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        known.is_none_or(|(_, extensions)| extensions.iter().any(|e| e == extension))
    };
    reading
        .known
        .facts
        .editable()
        .iter()
        .filter(fits)
        .cloned()
        .collect()
}

/// The one file most of whose lines the block repeats.
fn most_alike(text: &str, candidates: &[String], reading: &Reading<'_>) -> Option<String> {
    let said: std::collections::HashSet<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| line.len() > 2)
        .collect();
    let repeats = |path: &&String| {
        let Some(old) = reading.known.text(path) else {
            return false;
        };
        let lines: Vec<&str> = old
            .lines()
            .map(str::trim)
            .filter(|line| line.len() > 2)
            .collect();
        !lines.is_empty()
            && lines.iter().filter(|line| said.contains(**line)).count() * 2 > lines.len()
    };
    let mut alike = candidates.iter().take(100).filter(repeats);
    alike.next().filter(|_| alike.next().is_none()).cloned()
}

fn settle(found: FoundEdit, reading: &mut Reading<'_>) -> Result<Option<Edit>, UnreadableAnswer> {
    let written = found.path.as_deref().filter(|path| !path.trim().is_empty());
    let resolved = written
        .map(|written| resolve(written, &reading.known))
        .transpose()?;
    // Of a path that is nothing but quotes, or the project itself, nothing is left.
    let Some(resolved) = resolved.filter(|resolved| !resolved.path.is_empty()) else {
        let candidates = candidates("", reading);
        let [only] = candidates.as_slice() else {
            return Err(UnreadableAnswer::NoPath {
                blocks: 1,
                candidates,
            });
        };
        reading.used(ReadingRule::OnlyFile);
        let path = Some(only.clone());
        return settle(FoundEdit { path, ..found }, reading);
    };
    reading.rules.extend(resolved.rules);
    let path = resolved.path;
    let old = reading.known.text(&path);
    let exists = reading.known.exists(&path);
    match found.text {
        FoundText::Delete => Ok(Some(Edit::Delete { path })),
        FoundText::Incomplete { has } => Err(UnreadableAnswer::Incomplete { path, has }),
        FoundText::Whole(text) => {
            let text = if found.from_json {
                unfenced(text, reading)
            } else {
                text
            };
            let text = unnumbered(text, old.as_deref(), reading);
            settle_whole(
                path,
                text,
                old.as_deref(),
                exists,
                found.from_sentence,
                reading,
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
            old => settle_whole(path, text, old.as_deref(), exists, false, reading)?,
        }),
        FoundText::Change {
            search,
            replace,
            line,
        } => {
            let (search, replace) = if found.from_json {
                (unfenced(search, reading), unfenced(replace, reading))
            } else {
                (search, replace)
            };
            settle_change(path, search, replace, line, old.as_deref(), reading)
        }
    }
}

fn settle_whole(
    path: String,
    text: String,
    old: Option<&str>,
    exists: bool,
    from_sentence: bool,
    reading: &mut Reading<'_>,
) -> Result<Option<Edit>, UnreadableAnswer> {
    let sealed = reading.known.is_sealed(&path);
    if let Some(old) = old {
        if same_text(&text, old) {
            reading.used(ReadingRule::Unchanged);
            return Ok(None);
        }
        let lines: Vec<&str> = old.lines().collect();
        let quoted: Vec<&str> = text.lines().skip_while(|l| l.trim().is_empty()).collect();
        let quoted: Vec<&str> = quoted[..quoted
            .iter()
            .rposition(|l| !l.trim().is_empty())
            .map_or(0, |at| at + 1)]
            .to_vec();
        let is_quote = !windows_like(&lines, &quoted, 0).is_empty();
        if is_quote && (sealed || from_sentence) {
            reading.used(ReadingRule::Quotation);
            return Ok(None);
        }
    }
    if text.trim().is_empty() && old.is_some_and(|old| !old.trim().is_empty()) {
        return Err(UnreadableAnswer::EmptyBlock { path });
    }
    if let Some((line, elided)) = first_elision(&text, old) {
        let text = elided.chars().take(60).collect();
        return Err(UnreadableAnswer::ElidedFile { path, line, text });
    }
    check_text(&path, &text, old)?;
    let contents = with_line_ends(text, old).into_bytes();
    Ok(Some(if exists {
        Edit::Replace { path, contents }
    } else {
        Edit::Create { path, contents }
    }))
}

fn settle_change(
    path: String,
    search: String,
    replace: String,
    line: Option<usize>,
    old: Option<&str>,
    reading: &mut Reading<'_>,
) -> Result<Option<Edit>, UnreadableAnswer> {
    let Some(old) = old else {
        // Nothing to search in; the workspace says so.
        return Ok(Some(Edit::Change {
            path,
            search,
            replace,
        }));
    };
    let (mut search, mut replace) = (search, replace);
    if !stands_in(&search, old)
        && let Some(bare) = without_line_numbers(&search)
    {
        reading.used(ReadingRule::LineNumbers);
        search = bare;
        replace = without_line_numbers(&replace).unwrap_or(replace);
    }
    match fill_in(&search, &replace, old) {
        None => {}
        Some(Ok((full, new))) => {
            reading.used(ReadingRule::Elision);
            (search, replace) = (full, new);
        }
        Some(Err(())) => return Err(UnreadableAnswer::UnclearElision { path }),
    }
    if search == replace {
        reading.used(ReadingRule::Unchanged);
        return Ok(None);
    }
    if let Some(line) = line {
        (search, replace) = by_line(search, replace, line, old);
    }
    // Whole lines were meant, and the file has no line end after its last one.
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

/// The change with as much of the file around it as makes it the only place; the line that a diff names decides which.
fn by_line(search: String, replace: String, line: usize, old: &str) -> (String, String) {
    let lines: Vec<&str> = old.lines().collect();
    let wanted: Vec<&str> = search.lines().collect();
    let places = match wanted.is_empty() {
        // Only new lines: they go after the line that the diff names.
        true => vec![line.min(lines.len())],
        false => windows_like(&lines, &wanted, 0),
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

/// Lines before and after are added until the stretch stands in the file once.
fn widen(lines: &[&str], range: std::ops::Range<usize>) -> (usize, usize) {
    let (mut from, mut to) = (range.start, range.end);
    while (from, to) != (0, lines.len())
        && (to == from
            || lines[from..to].iter().all(|l| l.trim().is_empty())
            || windows_like(lines, &lines[from..to], 0).len() > 1)
    {
        from = from.saturating_sub(1);
        to = (to + 1).min(lines.len());
    }
    (from, to)
}

fn joined(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [*line, "\n"]).collect()
}

/// Does the text stand in the file, white space around lines aside?
fn stands_in(search: &str, old: &str) -> bool {
    let wanted: Vec<&str> = search.trim().lines().collect();
    old.contains(search) || !windows_like(&old.lines().collect::<Vec<_>>(), &wanted, 0).is_empty()
}

fn same_text(a: &str, b: &str) -> bool {
    a.trim()
        .lines()
        .map(str::trim_end)
        .eq(b.trim().lines().map(str::trim_end))
}

/// The text inside of a fence that surrounds all of it.
fn unfenced(text: String, reading: &mut Reading<'_>) -> String {
    let bare = text.trim();
    let inside = bare
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'));
    match inside.filter(|(info, _)| !info.contains('`')) {
        Some((_, inside)) => {
            reading.used(ReadingRule::FencedContent);
            inside.to_owned()
        }
        None => text,
    }
}

fn unnumbered(text: String, old: Option<&str>, reading: &mut Reading<'_>) -> String {
    if old.is_some_and(|old| without_line_numbers(old).is_some()) {
        return text;
    }
    match without_line_numbers(&text) {
        Some(bare) => {
            reading.used(ReadingRule::LineNumbers);
            bare
        }
        None => text,
    }
}

/// Control characters that the file does not hold already were not meant.
fn check_text(path: &str, text: &str, old: Option<&str>) -> Result<(), UnreadableAnswer> {
    let is_foul = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}');
    let found = text
        .char_indices()
        .find(|(_, c)| is_foul(*c) && !old.is_some_and(|old| old.contains(*c)));
    match found {
        Some((at, c)) => Err(UnreadableAnswer::ControlCharacter {
            path: path.to_owned(),
            line: text[..at].matches('\n').count() + 1,
            code: u32::from(c),
        }),
        None => Ok(()),
    }
}

/// The text with the line ends that the file has, and one after its last line if the file has it.
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

/// Adds an edit. Of two for one place the last one counts.
fn push(edit: Edit, edits: &mut Vec<Edit>, reading: &mut Reading<'_>) {
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
        reading.used(ReadingRule::LastCounts);
    }
    edits.push(edit);
}

/// Two paths that some file systems take for one.
fn refuse_collisions(edits: &[Edit]) -> Result<(), UnreadableAnswer> {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for edit in edits {
        match seen.insert(fold(edit.path()), edit.path()) {
            Some(first) if first != edit.path() => {
                let (first, second) = (first.to_owned(), edit.path().to_owned());
                return Err(UnreadableAnswer::CollidingPaths { first, second });
            }
            _ => {}
        }
    }
    Ok(())
}
