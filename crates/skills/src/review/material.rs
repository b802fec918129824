//! The material of a review as the server read it: redacted texts, the lines to show, what changed
//! in them, and the server's own findings.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::judgement::{LineRanges, ReviewFinding, ReviewScope};
use super::scan::scan;
use supervisor_text::redact::Redactor;
use supervisor_text::words::diff::Diff;

/// Max size of one file.
pub(super) const MAX_FILE_BYTES: u64 = 512 * 1024;
/// Max size of all files of one review.
pub(super) const MAX_TOTAL_BYTES: u64 = 1024 * 1024;
/// Max number of files in one review.
pub(super) const MAX_FILES: usize = 200;
/// Files with longer lines are generated.
const MAX_LINE_BYTES: usize = 16 * 1024;
/// Unchanged lines shown on each side of a change.
const CONTEXT_LINES: usize = 10;
/// Max lines shown of a deleted file: enough to see what is lost.
const MAX_DELETED_LINES: usize = 100;

/// Everything that is reviewed.
#[derive(Debug, Default)]
pub(super) struct ReviewMaterial {
    pub(super) scope: ReviewScope,
    /// In the order they were given.
    pub(super) covered: Vec<CoveredFile>,
    /// The server's own findings.
    pub(super) scanned: Vec<ReviewFinding>,
    /// The changes of a range, by file.
    changes: BTreeMap<PathBuf, ChangedContent>,
    /// Base, head and resolved commits of a range; null for a review of files.
    pub(super) range: Value,
    /// The commit messages of a range, newest first.
    pub(super) commits: Vec<String>,
}

/// One reviewed file and how much of it is shown.
#[derive(Debug, Clone, Serialize)]
pub(super) struct CoveredFile {
    pub(super) file: String,
    /// The old name of a renamed file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) was: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<usize>,
    pub(super) read: ReadExtent,
    /// The lines shown, or why none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReadExtent {
    Full,
    Part,
    No,
}

const DELETED_NOTE: &str = "was deleted";

/// The change to one file.
#[derive(Debug)]
enum ChangedContent {
    Edited {
        new: LineRanges,
        /// Removed lines, by the number of the line that follows them.
        removed: BTreeMap<usize, Vec<String>>,
    },
    /// The whole file was removed; line numbers are the old ones.
    Deleted,
}

impl ReviewMaterial {
    /// Adds a whole file.
    pub(super) fn add_file(
        &mut self,
        path: &Path,
        bytes: &[u8],
        redactor: &Redactor,
    ) -> Result<(), String> {
        let text = text(bytes)?;
        let (clean, secrets) = redactor.redact_lines(text);
        let shown = LineRanges::all(clean.lines().count());
        self.add(path, bytes, &clean, &shown, &shown, &secrets);
        Ok(())
    }

    /// Adds the changed lines of a file with their context.
    pub(super) fn add_change(
        &mut self,
        path: &Path,
        before: Option<&[u8]>,
        after: &[u8],
        redactor: &Redactor,
    ) -> Result<(), String> {
        let (before, now) = (text(before.unwrap_or_default())?, text(after)?);
        // Compare redacted texts: neither side may show a secret.
        let ((old, _), (new, secrets)) =
            (redactor.redact_lines(before), redactor.redact_lines(now));
        let line_count = new.lines().count();
        let (mut added, mut removed) = (Vec::new(), BTreeMap::<usize, Vec<String>>::new());
        for change in Diff::of(old.as_bytes(), new.as_bytes()).changes() {
            // Removed lines are shown before the line that follows them.
            let first = change.line + 1;
            added.extend(first..first + change.added.len());
            let lines = change.removed.iter().map(|line| {
                String::from_utf8_lossy(line)
                    .trim_end_matches(['\n', '\r'])
                    .to_owned()
            });
            removed.entry(first).or_default().extend(lines);
        }
        removed.retain(|_, lines| !lines.is_empty());
        if added.is_empty() && removed.is_empty() {
            return Err(String::from("its text did not change"));
        }
        let mut places: Vec<usize> = added
            .iter()
            .copied()
            .chain(removed.keys().map(|at| (*at).min(line_count.max(1))))
            .collect();
        places.sort_unstable();
        let (shown, fresh) = (
            LineRanges::around(places, CONTEXT_LINES, line_count),
            LineRanges::around(added, 0, line_count),
        );
        self.add(path, after, &new, &shown, &fresh, &secrets);
        for (before, lines) in &removed {
            self.scope.add_removed(path, *before, lines);
        }
        self.changes.insert(
            path.to_owned(),
            ChangedContent::Edited {
                new: fresh,
                removed,
            },
        );
        Ok(())
    }

    /// Adds a deleted file: a reviewer may notice what is lost.
    pub(super) fn add_deleted(
        &mut self,
        path: &Path,
        before: &[u8],
        redactor: &Redactor,
    ) -> Result<(), String> {
        let (clean, _) = redactor.redact_lines(text(before)?);
        let shown = LineRanges::all(clean.lines().count().min(MAX_DELETED_LINES));
        if shown.is_empty() {
            return Err(String::from("was empty"));
        }
        // Not scanned: deleted code needs no findings.
        self.add(path, before, &clean, &shown, &LineRanges::default(), &[]);
        if let Some(covered) = self.covered.last_mut() {
            covered.note = Some(
                covered
                    .note
                    .take()
                    .map_or_else(|| DELETED_NOTE.into(), |n| format!("{DELETED_NOTE}; {n}")),
            );
        }
        self.scope.add_deleted(path);
        self.changes
            .insert(path.to_owned(), ChangedContent::Deleted);
        Ok(())
    }

    /// Records the old name of the file added last.
    pub(super) fn was(&mut self, old: &Path) {
        if let Some(covered) = self.covered.last_mut() {
            covered.was = Some(old.display().to_string());
        }
    }

    /// Records a file that is not shown.
    pub(super) fn leave_out(&mut self, file: &Path, why: impl Into<String>) {
        let file = file.display().to_string();
        self.covered.push(CoveredFile {
            file,
            was: None,
            sha256: None,
            lines: None,
            read: ReadExtent::No,
            note: Some(why.into()),
        });
    }

    fn add(
        &mut self,
        path: &Path,
        bytes: &[u8],
        clean: &str,
        shown: &LineRanges,
        scanned_lines: &LineRanges,
        secrets: &[usize],
    ) {
        self.scope.add(path, clean, shown.clone());
        let source = self.scope.source(path).expect("it was just added");
        self.scanned
            .extend(scan(path, source, scanned_lines, secrets));
        let lines = source.lines();
        let (read, note) = match shown.count() {
            all if all == lines => (ReadExtent::Full, None),
            _ => (ReadExtent::Part, Some(format!("lines {shown}"))),
        };
        let sha256 = Sha256::digest(bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let file = path.display().to_string();
        self.covered.push(CoveredFile {
            file,
            was: None,
            sha256: Some(sha256),
            lines: Some(lines),
            read,
            note,
        });
    }

    /// The number of files that are shown.
    pub(super) fn shown(&self) -> usize {
        self.covered
            .iter()
            .filter(|file| file.read != ReadExtent::No)
            .count()
    }

    /// The bytes of all shown lines, as formatted for the prompt.
    pub(super) fn bytes(&self) -> usize {
        let ranges = |lines: &LineRanges| lines.ranges().to_vec();
        self.scope
            .files()
            .flat_map(|(file, _, lines)| ranges(lines).into_iter().map(move |range| (file, range)))
            .map(|(file, range)| range.map(|line| self.line(file, line).len()).sum::<usize>())
            .sum()
    }

    /// One line as shown to models, after the lines removed before it.
    pub(super) fn line(&self, file: &Path, number: usize) -> String {
        let text = self
            .scope
            .source(file)
            .and_then(|source| source.line(number))
            .unwrap_or_default();
        let Some(changed) = self.changes.get(file) else {
            return format!("{number}: {text}\n");
        };
        let ChangedContent::Edited { new, removed } = changed else {
            return format!("-{number}: {text}\n");
        };
        let mut out = String::new();
        let last = self
            .scope
            .source(file)
            .map_or(0, crate::common::citations::SourceText::lines);
        let mark = if new.contains(number) { '+' } else { ' ' };
        let removed = |at: usize| {
            removed
                .get(&at)
                .into_iter()
                .flatten()
                .map(|line| format!("- {line}\n"))
        };
        out.extend(removed(number));
        out += &format!("{mark}{number}: {text}\n");
        if number == last {
            out.extend(removed(number + 1));
        }
        out
    }

    /// Numbered lines for a verifier.
    pub(super) fn excerpt(&self, file: &Path, lines: RangeInclusive<usize>) -> String {
        let last = self
            .scope
            .source(file)
            .map_or(0, crate::common::citations::SourceText::lines);
        let lines = (*lines.start()).max(1)..=(*lines.end()).min(last);
        format!(
            "{}\n{}",
            file.display(),
            lines.map(|line| self.line(file, line)).collect::<String>()
        )
    }

    pub(super) fn coverage(&self, max_files: usize) -> Value {
        json!(self.covered.iter().take(max_files).collect::<Vec<_>>())
    }
}

/// Decodes a text file. The error is phrased to follow the file's name.
fn text(bytes: &[u8]) -> Result<&str, String> {
    if bytes.iter().take(8000).any(|byte| *byte == 0) {
        return Err(String::from("is binary; leave it out"));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        format!(
            "is not UTF-8 (byte {}); convert it, or leave it out",
            e.valid_up_to() + 1
        )
    })?;
    match text.lines().position(|line| line.len() > MAX_LINE_BYTES) {
        Some(at) => Err(format!(
            "has a line of {} bytes (line {}), so it was made by a program; leave it out",
            text.lines().nth(at).map_or(0, str::len),
            at + 1
        )),
        None => Ok(text),
    }
}
