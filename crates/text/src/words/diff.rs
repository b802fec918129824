//! Compares two texts line by line and renders unified diffs. Lines are byte slices that end in a newline.
//!
//! This calls the Myers algorithm directly. `similar::TextDiff` selects among five algorithms at run time and
//! instantiates each of them for each text type, which made up a tenth of the binary.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, DiffTag};

/// How long two texts are compared before the diff becomes coarser.
const TIME_LIMIT: Duration = Duration::from_secs(1);
/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;

/// The difference between two texts.
pub struct Diff<'a> {
    before: Vec<&'a [u8]>,
    after: Vec<&'a [u8]>,
    ops: Vec<DiffOp>,
}

/// Consecutive lines that differ between the texts. Line numbers start at 0.
pub struct LineChange<'d, 'a> {
    pub removed: &'d [&'a [u8]],
    /// The line of `added` in the newer text, also if `added` is empty.
    pub line: usize,
    pub added: &'d [&'a [u8]],
}

impl<'a> Diff<'a> {
    pub fn of(before: &'a [u8], after: &'a [u8]) -> Self {
        let lines = |text: &'a [u8]| {
            text.split_inclusive(|byte| *byte == b'\n')
                .collect::<Vec<_>>()
        };
        let (before, after) = (lines(before), lines(after));
        let mut ops = Compact::new(Replace::new(Capture::new()), &before, &after);
        let (old, new) = (0..before.len(), 0..after.len());
        let Ok(()) = myers::diff_deadline(
            &mut ops,
            &before,
            old,
            &after,
            new,
            Some(Instant::now() + TIME_LIMIT),
        );
        let ops = ops.into_inner().into_inner().into_ops();
        Self { before, after, ops }
    }

    /// The changes from top to bottom.
    pub fn changes(&self) -> impl Iterator<Item = LineChange<'_, 'a>> {
        self.ops
            .iter()
            .filter(|op| op.tag() != DiffTag::Equal)
            .map(|op| LineChange {
                removed: &self.before[op.old_range()],
                line: op.new_range().start,
                added: &self.after[op.new_range()],
            })
    }

    /// The unified diff; empty if nothing differs.
    pub fn unified(&self, from: &str, to: &str) -> String {
        let mut text = String::new();
        for hunk in similar::group_diff_ops(self.ops.clone(), CONTEXT) {
            if text.is_empty() {
                text = format!("--- {from}\n+++ {to}\n");
            }
            let _ = writeln!(text, "{}", UnifiedHunkHeader::new(&hunk));
            for op in &hunk {
                let (old, new) = (&self.before[op.old_range()], &self.after[op.new_range()]);
                if op.tag() == DiffTag::Equal {
                    old.iter().for_each(|line| push(&mut text, ' ', line));
                } else {
                    old.iter().for_each(|line| push(&mut text, '-', line));
                    new.iter().for_each(|line| push(&mut text, '+', line));
                }
            }
        }
        text
    }
}

fn push(text: &mut String, sign: char, line: &[u8]) {
    text.push(sign);
    text.push_str(&String::from_utf8_lossy(line));
    if !line.ends_with(b"\n") {
        text.push_str("\n\\ No newline at end of file\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_has_three_context_lines() {
        let before: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let after = before
            .replace("\n10\n", "\nten\n")
            .replace("20\n", "20\n21");
        let shown = "--- a\n+++ b\n@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n\
                     @@ -18,3 +18,4 @@\n 18\n 19\n 20\n+21\n\\ No newline at end of file\n";
        assert_eq!(
            Diff::of(before.as_bytes(), after.as_bytes()).unified("a", "b"),
            shown
        );
    }

    #[test]
    fn new_and_deleted_texts_have_standard_headers() {
        assert_eq!(
            Diff::of(b"", b"x\n").unified("/dev/null", "b"),
            "--- /dev/null\n+++ b\n@@ -0,0 +1 @@\n+x\n"
        );
        assert_eq!(
            Diff::of(b"x\n", b"").unified("a", "/dev/null"),
            "--- a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        );
        assert_eq!(Diff::of(b"x\n", b"x\n").unified("a", "b"), "");
    }

    #[test]
    fn changes_have_removed_and_added_lines() {
        let diff = Diff::of(b"a\nb\nc\nd\n", b"a\nB\nd\ne\xff");
        let changes: Vec<_> = diff
            .changes()
            .map(|c| (c.removed.concat(), c.line, c.added.concat()))
            .collect();
        assert_eq!(
            changes,
            [
                (b"b\nc\n".to_vec(), 1, b"B\n".to_vec()),
                (Vec::new(), 3, b"e\xff".to_vec())
            ],
            "invalid UTF-8 is compared too"
        );
    }

    #[test]
    fn unrelated_texts_are_fully_replaced() {
        let numbers = |odd: usize| {
            (0..60_000)
                .map(|n| format!("{}\n", n * 2 + odd))
                .collect::<String>()
        };
        let (before, after) = (numbers(0), numbers(1));
        let diff = Diff::of(before.as_bytes(), after.as_bytes());
        assert_eq!(
            diff.changes().map(|c| c.removed.len()).sum::<usize>(),
            60_000
        );
    }
}
