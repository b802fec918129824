//! Parses unified diffs and patch envelopes as models write them: with wrong or missing line
//! numbers, without the space before unchanged lines, fenced or not. Each hunk becomes one change.
//! Line numbers are used only if the lines occur more than once.

use super::found::{FoundEdit, FoundText};
use super::rule::ParseRule;
use super::{AnswerParser, EditAnswerError};

/// Whether these lines contain a diff or patch.
pub(super) fn has_diff(lines: &[&str]) -> bool {
    is_envelope(lines)
        || lines
            .windows(2)
            .any(|pair| pair[0].starts_with("--- ") && pair[1].starts_with("+++ "))
        || lines.iter().any(|line| is_hunk_header(line))
}

fn is_envelope(lines: &[&str]) -> bool {
    lines.iter().any(|line| {
        ["*** Begin Patch", "*** Update File:", "*** Add File:"]
            .iter()
            .any(|head| line.starts_with(head))
    })
}

fn is_hunk_header(line: &str) -> bool {
    line.strip_prefix("@@ ")
        .is_some_and(|rest| rest.starts_with('-') && rest.contains(" +"))
}

/// The file that the following hunks apply to.
#[derive(Default)]
struct DiffTarget {
    path: Option<String>,
    /// `--- /dev/null`, `*** Add File`.
    is_new: bool,
    /// `+++ /dev/null`, `*** Delete File`.
    is_deleted: bool,
}

/// Parses every hunk in these lines. `path` is the file named before them.
pub(super) fn parse_diff(lines: &[&str], path: Option<&str>, parser: &mut AnswerParser<'_>) {
    let envelope = is_envelope(lines);
    parser.record(if envelope {
        ParseRule::PatchEnvelope
    } else {
        ParseRule::UnifiedDiff
    });
    let mut target = DiffTarget {
        path: path.map(str::to_owned),
        ..DiffTarget::default()
    };
    let mut hunk: Option<DiffHunk> = None;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let has_headers = line.starts_with("--- ")
            && lines
                .get(at + 1)
                .is_some_and(|next| next.starts_with("+++ "));
        if has_headers {
            finish_hunk(&mut hunk, &target, parser);
            target = parse_headers(line, lines[at + 1], path);
            at += 2;
            if target.is_deleted {
                parser.add(FoundEdit {
                    path: target.path.clone(),
                    text: FoundText::Delete,
                    ..FoundEdit::default()
                });
            }
            continue;
        }
        if let Some(next) = parse_envelope_line(line) {
            finish_hunk(&mut hunk, &target, parser);
            if let Some(next) = next {
                if next.is_deleted {
                    parser.add(FoundEdit {
                        path: next.path.clone(),
                        text: FoundText::Delete,
                        ..FoundEdit::default()
                    });
                }
                // The content of an added file has no hunk header.
                hunk = next.is_new.then(DiffHunk::default);
                target = next;
            }
        } else if line.starts_with("@@") {
            finish_hunk(&mut hunk, &target, parser);
            hunk = Some(DiffHunk {
                line: old_line(line),
                ..DiffHunk::default()
            });
        } else if line.starts_with("diff --git ") || line.starts_with("Index: ") {
            finish_hunk(&mut hunk, &target, parser);
        } else if line.starts_with("rename from ") || line.starts_with("*** Move to:") {
            parser.errors.push(EditAnswerError::Rename);
        } else if let Some(hunk) = &mut hunk {
            hunk.push(line);
        } else if is_changed_line(line) && target.path.is_some() {
            // No header at all, only lines with `+` and `-`.
            let mut new_hunk = DiffHunk::default();
            new_hunk.push(line);
            hunk = Some(new_hunk);
        }
        at += 1;
    }
    finish_hunk(&mut hunk, &target, parser);
}

fn is_changed_line(line: &str) -> bool {
    line.starts_with(['+', '-', ' ']) && !line.trim().is_empty()
}

/// Parses `--- a/x`, `+++ b/x`, with or without timestamps after a tab.
fn parse_headers(old: &str, new: &str, named: Option<&str>) -> DiffTarget {
    let name = |line: &str| {
        line[4..]
            .split('\t')
            .next()
            .unwrap_or_default()
            .trim()
            .trim_matches('"')
            .to_owned()
    };
    let (old, new) = (name(old), name(new));
    let (is_new, is_deleted) = (old == "/dev/null", new == "/dev/null");
    let strip = |name: &str, side: &str| name.strip_prefix(side).unwrap_or(name).to_owned();
    let path = if is_deleted {
        strip(&old, "a/")
    } else {
        strip(&new, "b/")
    };
    // Handles `--- original`, `+++ modified` if the path was named before.
    let path = if path.contains(['/', '.']) || named.is_none() {
        path
    } else {
        named.unwrap_or_default().to_owned()
    };
    DiffTarget {
        path: Some(path),
        is_new,
        is_deleted,
    }
}

/// Parses an envelope line. `Some(None)` for lines that only delimit the envelope.
fn parse_envelope_line(line: &str) -> Option<Option<DiffTarget>> {
    let rest = line.strip_prefix("*** ")?;
    let file = |word: &str| rest.strip_prefix(word).map(|path| path.trim().to_owned());
    if let Some(path) = file("Update File:") {
        return Some(Some(DiffTarget {
            path: Some(path),
            ..DiffTarget::default()
        }));
    }
    if let Some(path) = file("Add File:") {
        return Some(Some(DiffTarget {
            path: Some(path),
            is_new: true,
            ..DiffTarget::default()
        }));
    }
    if let Some(path) = file("Delete File:") {
        return Some(Some(DiffTarget {
            path: Some(path),
            is_deleted: true,
            ..DiffTarget::default()
        }));
    }
    rest.starts_with("Begin Patch")
        .then_some(None)
        .or_else(|| rest.starts_with("End ").then_some(None))
}

/// `@@ -12,5 +12,6 @@` gives 12.
fn old_line(head: &str) -> Option<usize> {
    let numbers = head
        .trim_start_matches('@')
        .trim_start()
        .strip_prefix('-')?;
    numbers
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

/// Old and new lines of one hunk.
#[derive(Default)]
struct DiffHunk {
    line: Option<usize>,
    old: String,
    new: String,
    changed: bool,
    /// Number of pending empty lines; they belong to the hunk only if more lines follow.
    pending: usize,
}

impl DiffHunk {
    fn push(&mut self, line: &str) {
        if line.starts_with("\\ ") {
            return;
        }
        if line.is_empty() {
            self.pending += 1;
            return;
        }
        for _ in 0..std::mem::take(&mut self.pending) {
            self.both("");
        }
        match line.split_at_checked(1) {
            Some(("+", added)) => {
                self.new += added;
                self.new.push('\n');
                self.changed = true;
            }
            Some(("-", removed)) => {
                self.old += removed;
                self.old.push('\n');
                self.changed = true;
            }
            Some((" ", kept)) => self.both(kept),
            // The leading space is missing.
            _ => self.both(line),
        }
    }

    fn both(&mut self, line: &str) {
        for side in [&mut self.old, &mut self.new] {
            side.push_str(line);
            side.push('\n');
        }
    }
}

fn finish_hunk(hunk: &mut Option<DiffHunk>, target: &DiffTarget, parser: &mut AnswerParser<'_>) {
    let Some(hunk) = hunk.take().filter(|hunk| hunk.changed) else {
        return;
    };
    let text = if target.is_new {
        FoundText::Whole(hunk.new)
    } else if target.is_deleted {
        return;
    } else if hunk.old.trim().is_empty() && hunk.line.is_none_or(|line| line == 0) {
        FoundText::Append(hunk.new)
    } else {
        FoundText::Change {
            search: hunk.old,
            replace: hunk.new,
            line: hunk.line,
        }
    };
    parser.add(FoundEdit {
        path: target.path.clone(),
        text,
        ..FoundEdit::default()
    });
}
