//! What is under review, as the server read it: texts with their secrets taken out, which lines are shown, what is new
//! in them, and what the server found by itself.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::answers::review::{LineRanges, ReviewFinding, ReviewScope};
use crate::answers::scan::scan;
use supervisor_text::redact::Redactor;
use supervisor_text::words::diff::Diff;

/// A file longer than this is not read by people.
pub(super) const FILE: u64 = 512 * 1024;
/// All files of one review.
pub(super) const TOTAL: u64 = 1024 * 1024;
/// More files than this are no review.
pub(super) const FILES: usize = 200;
/// Longer lines are written by programs.
const LINE: usize = 16 * 1024;
/// Unchanged lines shown on either side of a change.
const CONTEXT: usize = 10;
/// Lines of a deleted file that are shown: enough to see what is lost.
const DELETED: usize = 100;

/// Everything a review is about.
#[derive(Debug, Default)]
pub(super) struct ReviewMaterial {
    pub(super) scope: ReviewScope,
    /// In the order they were named.
    pub(super) covered: Vec<CoveredFile>,
    /// What the server found by itself.
    pub(super) scanned: Vec<ReviewFinding>,
    /// In a range: what is different, by file.
    changes: BTreeMap<PathBuf, ChangedContent>,
    /// For the task and the result; null for files.
    pub(super) range: Value,
    /// What the commits of a range say, the newest first.
    pub(super) commits: Vec<String>,
}

/// One file of the review, and how much of it is shown.
#[derive(Debug, Clone, Serialize)]
pub(super) struct CoveredFile {
    pub(super) file: String,
    /// What it was called before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) was: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<usize>,
    pub(super) read: ReadExtent,
    /// Which lines, or why none.
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

/// What differs in one file.
#[derive(Debug)]
enum ChangedContent {
    Edited {
        new: LineRanges,
        /// What stood before a line and is gone.
        gone: BTreeMap<usize, Vec<String>>,
    },
    /// All of it is gone; the numbers are those it had.
    Deleted,
}

impl ReviewMaterial {
    /// A whole file.
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

    /// The changed places of a file, with what stands around them.
    pub(super) fn add_change(
        &mut self,
        path: &Path,
        before: Option<&[u8]>,
        after: &[u8],
        redactor: &Redactor,
    ) -> Result<(), String> {
        let (before, now) = (text(before.unwrap_or_default())?, text(after)?);
        // Compared without secrets: neither side may show one.
        let ((old, _), (new, secrets)) =
            (redactor.redact_lines(before), redactor.redact_lines(now));
        let of = new.lines().count();
        let (mut added, mut gone) = (Vec::new(), BTreeMap::<usize, Vec<String>>::new());
        for change in Diff::of(old.as_bytes(), new.as_bytes()).changes() {
            // What is gone is shown before the line that follows it.
            let first = change.at + 1;
            added.extend(first..first + change.new.len());
            let lines = change.gone.iter().map(|line| {
                String::from_utf8_lossy(line)
                    .trim_end_matches(['\n', '\r'])
                    .to_owned()
            });
            gone.entry(first).or_default().extend(lines);
        }
        gone.retain(|_, lines| !lines.is_empty());
        if added.is_empty() && gone.is_empty() {
            return Err(String::from("its text did not change"));
        }
        let mut places: Vec<usize> = added
            .iter()
            .copied()
            .chain(gone.keys().map(|at| (*at).min(of.max(1))))
            .collect();
        places.sort_unstable();
        let (shown, fresh) = (
            LineRanges::around(places, CONTEXT, of),
            LineRanges::around(added, 0, of),
        );
        self.add(path, after, &new, &shown, &fresh, &secrets);
        for (before, lines) in &gone {
            self.scope.add_gone(path, *before, lines);
        }
        self.changes
            .insert(path.to_owned(), ChangedContent::Edited { new: fresh, gone });
        Ok(())
    }

    /// A file that is no longer there: what it held can be missed too.
    pub(super) fn add_deleted(
        &mut self,
        path: &Path,
        before: &[u8],
        redactor: &Redactor,
    ) -> Result<(), String> {
        let (clean, _) = redactor.redact_lines(text(before)?);
        let shown = LineRanges::all(clean.lines().count().min(DELETED));
        if shown.is_empty() {
            return Err(String::from("was empty"));
        }
        // Not scanned: whatever stood there is gone.
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

    /// The file that was named last was called otherwise before.
    pub(super) fn was(&mut self, old: &Path) {
        if let Some(covered) = self.covered.last_mut() {
            covered.was = Some(old.display().to_string());
        }
    }

    /// A file that is named and not shown.
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
        count: &LineRanges,
        secrets: &[usize],
    ) {
        self.scope.add(path, clean, shown.clone());
        let source = self.scope.source(path).expect("it was just added");
        self.scanned.extend(scan(path, source, count, secrets));
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

    /// How many files are shown.
    pub(super) fn shown(&self) -> usize {
        self.covered
            .iter()
            .filter(|file| file.read != ReadExtent::No)
            .count()
    }

    /// Bytes of all lines that are shown, as they are shown.
    pub(super) fn bytes(&self) -> usize {
        let ranges = |lines: &LineRanges| lines.ranges().to_vec();
        self.scope
            .files()
            .flat_map(|(file, _, lines)| ranges(lines).into_iter().map(move |range| (file, range)))
            .map(|(file, range)| range.map(|line| self.line(file, line).len()).sum::<usize>())
            .sum()
    }

    /// One line as models see it, after what is gone before it.
    pub(super) fn line(&self, file: &Path, number: usize) -> String {
        let text = self
            .scope
            .source(file)
            .and_then(|source| source.line(number))
            .unwrap_or_default();
        let Some(changed) = self.changes.get(file) else {
            return format!("{number}: {text}\n");
        };
        let ChangedContent::Edited { new, gone } = changed else {
            return format!("-{number}: {text}\n");
        };
        let mut out = String::new();
        let last = self
            .scope
            .source(file)
            .map_or(0, crate::answers::citations::SourceText::lines);
        let mark = if new.holds(number) { '+' } else { ' ' };
        let gone = |at: usize| {
            gone.get(&at)
                .into_iter()
                .flatten()
                .map(|line| format!("- {line}\n"))
        };
        out.extend(gone(number));
        out += &format!("{mark}{number}: {text}\n");
        if number == last {
            out.extend(gone(number + 1));
        }
        out
    }

    /// Some lines with numbers, for a verifier.
    pub(super) fn excerpt(&self, file: &Path, lines: RangeInclusive<usize>) -> String {
        let last = self
            .scope
            .source(file)
            .map_or(0, crate::answers::citations::SourceText::lines);
        let lines = (*lines.start()).max(1)..=(*lines.end()).min(last);
        format!(
            "{}\n{}",
            file.display(),
            lines.map(|line| self.line(file, line)).collect::<String>()
        )
    }

    pub(super) fn coverage(&self, most: usize) -> Value {
        json!(self.covered.iter().take(most).collect::<Vec<_>>())
    }
}

/// The text of a file that a person could read. The error reads after the file's name.
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
    match text.lines().position(|line| line.len() > LINE) {
        Some(at) => Err(format!(
            "has a line of {} bytes (line {}), so it was made by a program; leave it out",
            text.lines().nth(at).map_or(0, str::len),
            at + 1
        )),
        None => Ok(text),
    }
}
