//! The page a model is shown: lines of files with their numbers, never more than fits.
//! Knows room and lines. Does not know why a line matters; who asks first is served first.

use std::fmt::Write as _;
use std::ops::Range;

use supervisor_text::words;

/// A longer line is data.
const LONGEST_LINE: usize = 400;

pub(super) struct Sheet<'s> {
    room: usize,
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

/// Goes before the first file that is only outlined.
const OUTLINE: &str = "## Outline of other files\n";

impl<'s> Sheet<'s> {
    pub(super) fn new(room: usize) -> Self {
        Self {
            room,
            used: 0,
            files: Vec::new(),
            outline: String::new(),
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.files.iter().any(|f| f.path == path)
    }

    /// Which lines of a file are there; none if nothing of it is.
    pub(super) fn picked(&self, path: &str) -> &[bool] {
        self.files
            .iter()
            .find(|f| f.path == path)
            .map_or(&[], |f| &f.picked)
    }

    /// Adds these lines of a file, all of them or none; `limit` is how full the page may be afterwards.
    pub(super) fn add(
        &mut self,
        path: &'s str,
        text: &'s str,
        lines: &[Range<usize>],
        limit: usize,
    ) -> bool {
        let limit = limit.min(self.room);
        let known = self.files.iter().position(|f| f.path == path);
        let fresh = || {
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
            None => Excerpt { picked, ..fresh() },
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

    /// Adds signatures of a file: as many as fit, or none if not one does. Without any, that it is there.
    pub(super) fn outline(&mut self, path: &str, signatures: &[(usize, &str)]) -> bool {
        let mut entry = format!("{}\n", words::plain(path));
        let heading = if self.outline.is_empty() {
            OUTLINE.len()
        } else {
            0
        };
        let mut added = 0;
        for (at, text) in signatures {
            let text = words::plain(text.trim().trim_end_matches('{').trim_end()).into_owned();
            let line = format!("  {}| {}\n", at + 1, words::cut_end(&text, 120));
            if self.used + heading + entry.len() + line.len() > self.room {
                break;
            }
            entry.push_str(&line);
            added += 1;
        }
        let fits = self.used + heading + entry.len() <= self.room;
        if !fits || (added == 0 && !signatures.is_empty()) {
            return false;
        }
        if self.outline.is_empty() {
            self.outline.push_str(OUTLINE);
        }
        self.used += heading + entry.len();
        self.outline.push_str(&entry);
        true
    }

    /// The page, and the files shown on it.
    pub(super) fn finish(self) -> (String, Vec<&'s str>) {
        let mut text: String = self.files.iter().map(Excerpt::render).collect();
        text.push_str(&self.outline);
        debug_assert_eq!(text.len(), self.used);
        (text, self.files.iter().map(|f| f.path).collect())
    }
}

impl Excerpt<'_> {
    /// Saying that two lines are missing takes as much room as the lines.
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
                let _ = writeln!(out, "{}| {}", at + 1, words::cut_end(&line, LONGEST_LINE));
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
