//! The page shown to a model: numbered lines of files within a byte limit. Lines are added first
//! come, first served.

use std::fmt::Write as _;
use std::ops::Range;

use supervisor_text::words;

/// Longer lines are data and get cut.
const MAX_LINE_LEN: usize = 400;

pub(super) struct PromptPage<'s> {
    capacity: usize,
    used: usize,
    files: Vec<Excerpt<'s>>,
    outline: String,
}

struct Excerpt<'s> {
    path: &'s str,
    lines: Vec<&'s str>,
    picked: Vec<bool>,
    cost: usize,
}

/// Heading of the outline.
const OUTLINE_HEADING: &str = "## Outline of other files\n";

impl<'s> PromptPage<'s> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            used: 0,
            files: Vec::new(),
            outline: String::new(),
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    pub(super) fn contains(&self, path: &str) -> bool {
        self.files.iter().any(|f| f.path == path)
    }

    /// Which lines of a file are on the page; empty if none are.
    pub(super) fn picked_lines(&self, path: &str) -> &[bool] {
        self.files
            .iter()
            .find(|f| f.path == path)
            .map_or(&[], |f| &f.picked)
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
        let limit = limit.min(self.capacity);
        let known = self.files.iter().position(|f| f.path == path);
        let new_excerpt = || {
            let lines: Vec<&str> = text.lines().collect();
            Excerpt {
                path,
                picked: vec![false; lines.len()],
                lines,
                cost: 0,
            }
        };
        let (before, mut picked) = match known {
            Some(i) => (self.files[i].cost, self.files[i].picked.clone()),
            None => (0, vec![false; text.lines().count()]),
        };
        for range in lines {
            let end = range.end.min(picked.len());
            picked[range.start.min(end)..end].fill(true);
        }
        let mut excerpt = match known {
            Some(i) => Excerpt {
                path,
                lines: std::mem::take(&mut self.files[i].lines),
                picked,
                cost: 0,
            },
            None => Excerpt {
                picked,
                ..new_excerpt()
            },
        };
        excerpt.fill_small_gaps();
        excerpt.cost = excerpt.render().len();
        let fits = self.used - before + excerpt.cost <= limit;
        match (known, fits) {
            (Some(i), true) => {
                self.used = self.used - before + excerpt.cost;
                self.files[i] = excerpt;
            }
            (Some(i), false) => self.files[i].lines = excerpt.lines,
            (None, true) if !excerpt.lines.is_empty() => {
                self.used += excerpt.cost;
                self.files.push(excerpt);
            }
            (None, _) => return false,
        }
        fits
    }

    /// Adds signatures of a file, as many as fit. Without signatures it adds only the path.
    /// Returns false if nothing fits.
    pub(super) fn add_outline(&mut self, path: &str, signatures: &[(usize, &str)]) -> bool {
        let mut entry = format!("{}\n", words::plain(path));
        let heading = if self.outline.is_empty() {
            OUTLINE_HEADING.len()
        } else {
            0
        };
        let mut added = 0;
        for (at, text) in signatures {
            let text = words::plain(text.trim().trim_end_matches('{').trim_end()).into_owned();
            let line = format!("  {}| {}\n", at + 1, words::cut_end(&text, 120));
            if self.used + heading + entry.len() + line.len() > self.capacity {
                break;
            }
            entry.push_str(&line);
            added += 1;
        }
        let fits = self.used + heading + entry.len() <= self.capacity;
        if !fits || (added == 0 && !signatures.is_empty()) {
            return false;
        }
        if self.outline.is_empty() {
            self.outline.push_str(OUTLINE_HEADING);
        }
        self.used += heading + entry.len();
        self.outline.push_str(&entry);
        true
    }

    /// The text of the page and the files shown on it.
    pub(super) fn finish(self) -> (String, Vec<&'s str>) {
        let mut text: String = self.files.iter().map(Excerpt::render).collect();
        text.push_str(&self.outline);
        debug_assert_eq!(text.len(), self.used);
        (text, self.files.iter().map(|f| f.path).collect())
    }
}

impl Excerpt<'_> {
    /// Fills gaps of up to two lines, because a note about them takes as much space.
    fn fill_small_gaps(&mut self) {
        let mut last = None;
        for i in 0..self.picked.len() {
            if self.picked[i] {
                if let Some(last) = last.filter(|l| i - l > 1) {
                    let gap = &self.lines[last + 1..i];
                    if gap.len() <= 2 && gap.iter().map(|l| l.len()).sum::<usize>() < 40 {
                        self.picked[last + 1..i].fill(true);
                    }
                }
                last = Some(i);
            }
        }
    }

    fn render(&self) -> String {
        let mut out = String::new();
        let path = words::plain(self.path);
        let total = self.lines.len();
        let _ = match self.picked.iter().all(|p| *p) {
            true => writeln!(out, "## {path}"),
            false => writeln!(out, "## {path} (parts of {total} lines)"),
        };
        let mut at = 0;
        while at < total {
            if self.picked[at] {
                let line = words::plain(self.lines[at]);
                let _ = writeln!(out, "{}| {}", at + 1, words::cut_end(&line, MAX_LINE_LEN));
                at += 1;
            } else {
                let end = (at..total).find(|i| self.picked[*i]).unwrap_or(total);
                let _ = writeln!(out, "… lines {}-{end} not shown", at + 1);
                at = end;
            }
        }
        out.push('\n');
        out
    }
}
