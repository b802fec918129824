//! The page shown to a model: numbered lines of files within a byte limit, in the order in which
//! the files were added, followed by an outline of other files.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::rc::Rc;

use supervisor_text::redact::Redactor;
use supervisor_text::words;

/// Longer lines are data and get cut.
const MAX_LINE_LEN: usize = 400;
const MAX_SIGNATURE_LEN: usize = 120;
const OUTLINE_HEADING: &str = "## Outline of other files\n";
/// Lines added at a time on each side of a shown part.
const STEP: usize = 12;

pub(super) struct Page<'s> {
    redactor: &'s Redactor,
    capacity: usize,
    used: usize,
    files: Vec<Excerpt<'s>>,
    outline: String,
    /// The lines of every file that was looked at, without secrets.
    lines: HashMap<&'s str, Rc<[String]>>,
}

#[derive(Clone)]
struct Excerpt<'s> {
    path: &'s str,
    lines: Rc<[String]>,
    is_shown: Vec<bool>,
    size: usize,
}

impl<'s> Page<'s> {
    pub(super) fn new(capacity: usize, redactor: &'s Redactor) -> Self {
        Self {
            redactor,
            lines: HashMap::new(),
            capacity,
            used: 0,
            files: Vec::new(),
            outline: String::new(),
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    fn excerpt(&self, path: &str) -> Option<&Excerpt<'s>> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn contains(&self, path: &str) -> bool {
        self.excerpt(path).is_some()
    }

    /// Adds these lines of a file, all or none. `limit` is the maximum size of the page
    /// afterwards.
    pub(super) fn add(
        &mut self,
        path: &'s str,
        text: &'s str,
        lines: &[Range<usize>],
        limit: usize,
    ) -> bool {
        let mut excerpt = self.excerpt(path).cloned().unwrap_or_else(|| {
            let redactor = self.redactor;
            // Before lines are chosen and cut, because a part of a key is still a secret.
            let hidden = || redactor.hide(text).lines().map(str::to_owned).collect();
            let lines = Rc::clone(self.lines.entry(path).or_insert_with(hidden));
            let is_shown = vec![false; lines.len()];
            Excerpt {
                path,
                lines,
                is_shown,
                size: 0,
            }
        });
        let before = excerpt.size;
        for range in lines {
            let end = range.end.min(excerpt.lines.len());
            excerpt.is_shown[range.start.min(end)..end].fill(true);
        }
        excerpt.fill_small_gaps();
        excerpt.size = excerpt.render().len();
        let used = self.used - before + excerpt.size;
        if used > limit.min(self.capacity) || !excerpt.is_shown.contains(&true) {
            return false;
        }
        self.used = used;
        match self.files.iter_mut().find(|file| file.path == path) {
            Some(known) => *known = excerpt,
            None => self.files.push(excerpt),
        }
        true
    }

    /// Ranges of lines next to the shown lines of a file.
    pub(super) fn adjacent_lines(&self, path: &str) -> Vec<Range<usize>> {
        self.excerpt(path)
            .map_or(Vec::new(), |file| adjacent_lines(&file.is_shown))
    }

    /// Adds the signatures of a file, if all of them fit. Without signatures it adds only the path.
    pub(super) fn add_outline<'a>(
        &mut self,
        path: &str,
        signatures: impl Iterator<Item = (usize, &'a str)>,
    ) -> bool {
        let heading = if self.outline.is_empty() {
            OUTLINE_HEADING
        } else {
            ""
        };
        let mut entry = format!("{heading}{}\n", words::plain(path));
        for (at, text) in signatures {
            let text = self.redactor.hide(text);
            let text = words::plain(text.trim().trim_end_matches('{').trim_end());
            let text = words::cut_end(&text, MAX_SIGNATURE_LEN);
            let _ = writeln!(entry, "  {}| {text}", at + 1);
        }
        let fits = self.used + entry.len() <= self.capacity;
        if fits {
            self.used += entry.len();
            self.outline.push_str(&entry);
        }
        fits
    }

    /// The text of the page and the files shown on it.
    pub(super) fn finish(self) -> (String, Vec<&'s str>) {
        let mut text: String = self.files.iter().map(Excerpt::render).collect();
        text.push_str(&self.outline);
        debug_assert_eq!(text.len(), self.used);
        (text, self.files.iter().map(|file| file.path).collect())
    }
}

impl Excerpt<'_> {
    /// Fills gaps of up to two lines, because a note about them takes as much space.
    fn fill_small_gaps(&mut self) {
        for gap in hidden_ranges(&self.is_shown) {
            let is_between = gap.start > 0 && gap.end < self.lines.len();
            let size: usize = self.lines[gap.clone()].iter().map(|line| line.len()).sum();
            if is_between && gap.len() <= 2 && size < 40 {
                self.is_shown[gap].fill(true);
            }
        }
    }

    fn render(&self) -> String {
        let mut out = format!("## {}", words::plain(self.path));
        let hidden = hidden_ranges(&self.is_shown);
        if !hidden.is_empty() {
            let _ = write!(out, " (parts of {} lines)", self.lines.len());
        }
        out.push('\n');
        let mut hidden = hidden.into_iter().peekable();
        let mut at = 0;
        while at < self.lines.len() {
            if let Some(gap) = hidden.next_if(|gap| gap.start == at) {
                let _ = writeln!(out, "… lines {}-{} not shown", at + 1, gap.end);
                at = gap.end;
            } else {
                let line = words::plain(&self.lines[at]);
                at += 1;
                let _ = writeln!(out, "{at}| {}", words::cut_end(&line, MAX_LINE_LEN));
            }
        }
        out.push('\n');
        out
    }
}

/// The ranges of lines that are not shown.
fn hidden_ranges(is_shown: &[bool]) -> Vec<Range<usize>> {
    let mut at = 0;
    let chunks = is_shown.chunk_by(|a, b| a == b).map(|chunk| {
        let start = at;
        at += chunk.len();
        (chunk[0], start..at)
    });
    chunks
        .filter(|(is_shown, _)| !is_shown)
        .map(|(_, range)| range)
        .collect()
}

fn adjacent_lines(is_shown: &[bool]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for Range { start, end } in hidden_ranges(is_shown) {
        if start > 0 {
            found.push(start..end.min(start + STEP));
        }
        if end < is_shown.len() {
            found.push(end.saturating_sub(STEP).max(start)..end);
        }
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
