//! Unified diffs and patch envelopes, as models write them: with numbers that are wrong or missing, without the space
//! before unchanged lines, in a fence or not. Each hunk becomes one change; only where its lines stand twice do the
//! numbers decide.

use super::found::{FoundEdit, FoundText};
use super::rule::ReadingRule;
use super::{Reading, UnreadableAnswer};

/// Do these lines hold a diff or a patch?
pub(super) fn has_diff(lines: &[&str]) -> bool {
    is_envelope(lines)
        || lines
            .windows(2)
            .any(|pair| pair[0].starts_with("--- ") && pair[1].starts_with("+++ "))
        || lines.iter().any(|line| is_hunk_head(line))
}

fn is_envelope(lines: &[&str]) -> bool {
    lines.iter().any(|line| {
        ["*** Begin Patch", "*** Update File:", "*** Add File:"]
            .iter()
            .any(|head| line.starts_with(head))
    })
}

fn is_hunk_head(line: &str) -> bool {
    line.strip_prefix("@@ ")
        .is_some_and(|rest| rest.starts_with('-') && rest.contains(" +"))
}

/// The file that the following hunks are for.
#[derive(Default)]
struct DiffTarget {
    path: Option<String>,
    /// `--- /dev/null`, `*** Add File`.
    is_new: bool,
    /// `+++ /dev/null`, `*** Delete File`.
    is_gone: bool,
}

/// Takes every hunk in these lines. `path` is the file named before them.
pub(super) fn take_diff(lines: &[&str], path: Option<&str>, reading: &mut Reading<'_>) {
    let envelope = is_envelope(lines);
    reading.used(if envelope {
        ReadingRule::PatchEnvelope
    } else {
        ReadingRule::UnifiedDiff
    });
    let mut target = DiffTarget {
        path: path.map(str::to_owned),
        ..DiffTarget::default()
    };
    let mut hunk: Option<DiffHunk> = None;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let two_heads = line.starts_with("--- ")
            && lines
                .get(at + 1)
                .is_some_and(|next| next.starts_with("+++ "));
        if two_heads {
            close(&mut hunk, &target, reading);
            target = heads(line, lines[at + 1], path);
            at += 2;
            if target.is_gone {
                reading.add(FoundEdit {
                    path: target.path.clone(),
                    text: FoundText::Delete,
                    ..FoundEdit::default()
                });
            }
            continue;
        }
        if let Some(next) = envelope_head(line) {
            close(&mut hunk, &target, reading);
            if let Some(next) = next {
                if next.is_gone {
                    reading.add(FoundEdit {
                        path: next.path.clone(),
                        text: FoundText::Delete,
                        ..FoundEdit::default()
                    });
                }
                // What an added file holds has no head of its own.
                hunk = next.is_new.then(DiffHunk::default);
                target = next;
            }
        } else if line.starts_with("@@") {
            close(&mut hunk, &target, reading);
            hunk = Some(DiffHunk {
                line: old_line(line),
                ..DiffHunk::default()
            });
        } else if line.starts_with("diff --git ") || line.starts_with("Index: ") {
            close(&mut hunk, &target, reading);
        } else if line.starts_with("rename from ") || line.starts_with("*** Move to:") {
            reading.faults.push(UnreadableAnswer::Rename);
        } else if let Some(hunk) = &mut hunk {
            hunk.push(line);
        } else if is_changed_line(line) && target.path.is_some() {
            // No head at all, only lines with `+` and `-`.
            let mut begun = DiffHunk::default();
            begun.push(line);
            hunk = Some(begun);
        }
        at += 1;
    }
    close(&mut hunk, &target, reading);
}

fn is_changed_line(line: &str) -> bool {
    line.starts_with(['+', '-', ' ']) && !line.trim().is_empty()
}

/// `--- a/x`, `+++ b/x`, with or without times after a tab.
fn heads(old: &str, new: &str, named: Option<&str>) -> DiffTarget {
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
    let (is_new, is_gone) = (old == "/dev/null", new == "/dev/null");
    let strip = |name: &str, side: &str| name.strip_prefix(side).unwrap_or(name).to_owned();
    let path = if is_gone {
        strip(&old, "a/")
    } else {
        strip(&new, "b/")
    };
    // `--- original`, `+++ modified`, where the path was said before.
    let path = if path.contains(['/', '.']) || named.is_none() {
        path
    } else {
        named.unwrap_or_default().to_owned()
    };
    DiffTarget {
        path: Some(path),
        is_new,
        is_gone,
    }
}

/// A line of the envelope: `Some(None)` for those that only surround.
fn envelope_head(line: &str) -> Option<Option<DiffTarget>> {
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
            is_gone: true,
            ..DiffTarget::default()
        }));
    }
    rest.starts_with("Begin Patch")
        .then_some(None)
        .or_else(|| rest.starts_with("End ").then_some(None))
}

/// `@@ -12,5 +12,6 @@`: 12.
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

/// The lines of one hunk on both sides.
#[derive(Default)]
struct DiffHunk {
    line: Option<usize>,
    old: String,
    new: String,
    changed: bool,
    /// Empty lines at the end of a hunk belong to it only if something follows.
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
            // The space was forgotten.
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

fn close(hunk: &mut Option<DiffHunk>, target: &DiffTarget, reading: &mut Reading<'_>) {
    let Some(hunk) = hunk.take().filter(|hunk| hunk.changed) else {
        return;
    };
    let text = if target.is_new {
        FoundText::Whole(hunk.new)
    } else if target.is_gone {
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
    reading.add(FoundEdit {
        path: target.path.clone(),
        text,
        ..FoundEdit::default()
    });
}
