//! Fills the remaining space with the likely files: whole where they fit, otherwise more lines
//! around those already shown.

use std::ops::Range;

use super::PackPlan;
use super::tree::FileId;
use supervisor_languages::ProjectFiles as _;

/// Number of files that get the remaining space.
const MAX_FILES: usize = 6;
/// Percentage up to which the page is filled; the rest is for the outline.
const MAX_PERCENT: usize = 95;
/// Lines added at a time on each side of a shown part.
const STEP: usize = 12;

impl PackPlan<'_> {
    pub(super) fn fill_remaining(&mut self) {
        let likely: Vec<FileId> = self.likely_files.iter().copied().take(MAX_FILES).collect();
        let mut unfinished: Vec<FileId> = likely
            .into_iter()
            .filter(|id| !self.show(*id, &[0..usize::MAX], MAX_PERCENT))
            .collect();
        // Take turns, so that one long file does not use all the space.
        while !unfinished.is_empty() {
            unfinished.retain(|id| self.widen(*id));
        }
    }

    /// Shows more lines around the shown parts of a file. Returns false if there are none left or
    /// no space.
    fn widen(&mut self, id: FileId) -> bool {
        let adjacent = adjacent_lines(self.page.picked_lines(self.tree.path(id)));
        if adjacent.is_empty() || self.show(id, &adjacent, MAX_PERCENT) {
            return !adjacent.is_empty();
        }
        let mut has_grown = false;
        for edge in adjacent {
            has_grown |= self.show(id, &[edge], MAX_PERCENT);
        }
        has_grown
    }
}

/// Ranges of lines adjacent to picked lines.
fn adjacent_lines(picked: &[bool]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = (at..picked.len()).find(|line| !picked[*line]) {
        let end = (start..picked.len())
            .find(|line| picked[*line])
            .unwrap_or(picked.len());
        if start > 0 {
            found.push(start..end.min(start + STEP));
        }
        if end < picked.len() {
            found.push(end.saturating_sub(STEP).max(start)..end);
        }
        at = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_lines_grow_on_both_sides() {
        let mut picked = vec![false; 60];
        assert!(adjacent_lines(&picked).is_empty(), "nothing to grow from");
        picked[30..32].fill(true);
        assert_eq!(adjacent_lines(&picked), [18..30, 32..44]);
        picked[2..60].fill(true);
        assert_eq!(adjacent_lines(&picked), [0..2]);
        picked.fill(true);
        assert!(adjacent_lines(&picked).is_empty());
    }
}
