//! The texts and lines that a reviewer was shown. Only those may be cited.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};

use crate::common::citations::{BadCitation, Citation, SourceText, SourceTexts, nearby};

/// The texts under review.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReviewScope {
    sources: SourceTexts,
    shown: BTreeMap<PathBuf, LineRanges>,
    /// Removed lines, by the number of the line that follows them.
    removed: BTreeMap<PathBuf, BTreeMap<usize, SourceText>>,
    /// Deleted files.
    deleted: BTreeSet<PathBuf>,
}

/// Line ranges of a file, counted from 1, sorted and not adjacent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LineRanges(Vec<RangeInclusive<usize>>);

/// Consecutive lines of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineSpan {
    pub file: PathBuf,
    pub lines: RangeInclusive<usize>,
}

/// The lines shown in one question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScopePart {
    pub spans: Vec<LineSpan>,
}

impl ReviewScope {
    /// Adds a text. `path` is relative to the project.
    pub(crate) fn add(
        &mut self,
        path: impl Into<PathBuf>,
        text: impl Into<String>,
        shown: LineRanges,
    ) {
        let path = path.into();
        self.sources.add(path.clone(), text);
        self.shown.insert(path, shown);
    }

    /// Adds lines that were removed before this line and are shown as removed.
    pub(crate) fn add_removed(
        &mut self,
        path: impl Into<PathBuf>,
        before: usize,
        lines: &[String],
    ) {
        self.removed
            .entry(path.into())
            .or_default()
            .insert(before, SourceText::new(lines.join("\n")));
    }

    /// Marks a file as deleted: it may be cited, and `reviewed` need not list it.
    pub(crate) fn add_deleted(&mut self, path: impl Into<PathBuf>) {
        self.deleted.insert(path.into());
    }

    pub(super) fn is_deleted(&self, path: &Path) -> bool {
        self.deleted.contains(path)
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, &SourceText, &LineRanges)> {
        self.sources
            .files()
            .map(|(path, source)| (path, source, &self.shown[path]))
    }

    pub(crate) fn source(&self, path: &Path) -> Option<&SourceText> {
        self.sources.get(path)
    }

    /// Verifies a quote. The given line is tried first, in the text and in the lines removed there,
    /// then the lines nearby.
    pub(super) fn quote(
        &self,
        file: &str,
        line: usize,
        end: Option<usize>,
        quote: &str,
    ) -> Result<Citation, String> {
        let cited = self
            .sources
            .quote_exact(file, line, end, quote)
            .or_else(|bad| match bad {
                BadCitation::OutOfScope(_) => Err(format!("{bad}, so it is out of scope")),
                other => self
                    .quote_removed(file, line, quote)
                    .or_else(|| self.sources.quote(file, line, end, quote).ok())
                    .or_else(|| {
                        nearby(line)
                            .find_map(|there| self.quote_removed(file, there, quote))
                            .map(|found| found.corrected(line))
                    })
                    .ok_or_else(|| other.to_string()),
            })?;
        let shown = self.shown.get(&cited.file).ok_or("it was not shown")?;
        match cited.lines.clone().find(|line| !shown.contains(*line)) {
            Some(line) => Err(format!("`{}:{line}` was not shown", cited.file.display())),
            None => Ok(cited),
        }
    }

    /// Verifies a quote of removed lines. They are cited by the line that follows them, or by the
    /// last line.
    fn quote_removed(&self, file: &str, line: usize, quote: &str) -> Option<Citation> {
        let (path, source) = self.sources.find(file).ok()?;
        let unmarked: Vec<&str> = quote
            .lines()
            .map(|line| line.trim_start().trim_start_matches('-'))
            .collect();
        let unmarked = unmarked.join("\n");
        let lines = quote.lines().count();
        let end = source.lines().max(1);
        let places = [
            Some(line).filter(|line| *line <= end),
            (line == end).then_some(end + 1),
        ];
        places.into_iter().flatten().find_map(|before| {
            let removed = self.removed.get(path)?.get(&before)?;
            let match_from = |from: usize| {
                let last = (from + lines - 1).min(removed.lines());
                removed
                    .match_quote(quote, from, last)
                    .or_else(|| removed.match_quote(&unmarked, from, last))
                    .map(|to| (from, to))
            };
            let (from, to) = (1..=removed.lines()).find_map(match_from)?;
            let text: Vec<String> = (from..=to)
                .filter_map(|n| removed.line(n))
                .map(|line| format!("- {line}"))
                .collect();
            let text = text.join("\n");
            Some(Citation {
                file: path.to_owned(),
                lines: line..=line,
                text,
                corrected_from: None,
            })
        })
    }
}

impl LineRanges {
    /// All lines of a file.
    pub(crate) fn all(lines: usize) -> Self {
        if lines == 0 {
            Self::default()
        } else {
            Self(vec![1..=lines])
        }
    }

    /// The given lines with context on both sides, in a file of `line_count` lines.
    pub(crate) fn around(
        lines: impl IntoIterator<Item = usize>,
        context: usize,
        line_count: usize,
    ) -> Self {
        let mut ranges: Vec<RangeInclusive<usize>> = Vec::new();
        for line in lines {
            let (from, to) = (
                line.saturating_sub(context).max(1),
                line.saturating_add(context).min(line_count),
            );
            match ranges.last_mut() {
                Some(last) if from <= last.end() + 1 => *last = *last.start()..=to.max(*last.end()),
                _ if from > to => {}
                _ => ranges.push(from..=to),
            }
        }
        Self(ranges)
    }

    pub(crate) fn ranges(&self) -> &[RangeInclusive<usize>] {
        &self.0
    }

    pub(crate) fn contains(&self, line: usize) -> bool {
        let at = self.0.partition_point(|range| *range.end() < line);
        self.0.get(at).is_some_and(|range| range.contains(&line))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.0
            .iter()
            .map(|range| range.end() + 1 - range.start())
            .sum()
    }
}

/// `3-9, 20`
impl std::fmt::Display for LineRanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, range) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            match (range.start(), range.end()) {
                (from, to) if from == to => write!(f, "{comma}{from}")?,
                (from, to) => write!(f, "{comma}{from}-{to}")?,
            }
        }
        Ok(())
    }
}

impl ScopePart {
    /// Each file once.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let mut last = None;
        self.spans
            .iter()
            .map(|span| span.file.as_path())
            .filter(move |file| last.replace(*file) != Some(*file))
    }
}

/// Removes `./` from a path that a model wrote.
pub(super) fn normalize_path(given: &str) -> PathBuf {
    Path::new(given.trim())
        .components()
        .filter(|c| *c != Component::CurDir)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_context_ranges_are_merged() {
        let lines = LineRanges::around([1, 2, 10, 15, 30], 3, 31);
        assert_eq!(
            (lines.to_string().as_str(), lines.count()),
            ("1-5, 7-18, 27-31", 22)
        );
        assert!(
            lines.contains(5)
                && !lines.contains(6)
                && lines.contains(31)
                && !lines.contains(32)
                && !lines.contains(0)
        );
        assert_eq!(LineRanges::around([4], 0, 9).to_string(), "4");
        assert!(LineRanges::around([7], 2, 0).is_empty() && LineRanges::all(0).is_empty());
    }
}
