//! What is left of the page goes to the likely files: whole where they fit, else further around what is shown of them.

use std::ops::Range;

use super::Plan;
use super::tree::Id;
use supervisor_languages::ProjectFiles as _;

/// Files that get what is left.
const FILES: usize = 6;
/// The rest of the page is for the outline, in percent.
const FULL: usize = 95;
/// Lines that are added at a time on either side of what is shown.
const STEP: usize = 12;

impl Plan<'_> {
    pub(super) fn fill(&mut self) {
        let likely: Vec<Id> = self.likely_files.iter().copied().take(FILES).collect();
        let mut open: Vec<Id> = likely
            .into_iter()
            .filter(|id| !self.show(*id, &[0..usize::MAX], FULL))
            .collect();
        // In turn, so that one long file does not take all of it.
        while !open.is_empty() {
            open.retain(|id| self.widen(*id));
        }
    }

    /// Shows more of a file around what is shown of it. False if there is no more, or no room.
    fn widen(&mut self, id: Id) -> bool {
        let edges = edges(self.sheet.picked(self.tree.path(id)));
        if edges.is_empty() || self.show(id, &edges, FULL) {
            return !edges.is_empty();
        }
        let mut any = false;
        for edge in edges {
            any |= self.show(id, &[edge], FULL);
        }
        any
    }
}

/// The lines next to those that are picked.
fn edges(picked: &[bool]) -> Vec<Range<usize>> {
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
    fn what_is_shown_grows_on_both_sides() {
        let mut picked = vec![false; 60];
        assert!(edges(&picked).is_empty(), "nothing to grow from");
        picked[30..32].fill(true);
        assert_eq!(edges(&picked), [18..30, 32..44]);
        picked[2..60].fill(true);
        assert_eq!(edges(&picked), [0..2]);
        picked.fill(true);
        assert!(edges(&picked).is_empty());
    }
}
