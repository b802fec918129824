//! Where things are defined in a file: one item per function, type or module, with the lines it spans.
//! Reads lines, not grammar, so that a file which does not compile is still understood.

mod spans;
mod starts;

use std::ops::Range;

use super::lang::{Lang, mask};

/// A definition. Lines count from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub name: String,
    pub kind: Kind,
    /// With what is written directly above it: comments, attributes, decorators.
    pub lines: Range<usize>,
    /// The line that names it.
    pub at: usize,
    /// How many items lie around it.
    pub depth: usize,
    /// The item around it, or the type a method belongs to.
    pub owner: Option<String>,
    /// Belongs to a type, so that nobody can import it by its own name.
    pub member: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A function, method, constant: has no members.
    Plain,
    /// A type, whose members are items too.
    Holder,
    /// A module inside a file.
    Module,
    /// More about a type that is defined elsewhere: `impl`.
    More,
}

/// A file that was read.
#[derive(Debug)]
pub(super) struct Source {
    pub text: String,
    /// The text without comments and strings.
    pub masked: String,
    pub items: Vec<Item>,
}

impl Source {
    pub(super) fn new(lang: Lang, text: String) -> Self {
        let masked = mask(lang, &text);
        let items = spans::items(lang, &text, &masked);
        Self { text, masked, items }
    }

    /// The outermost definitions of a name that can be imported.
    pub(super) fn named(&self, name: &str) -> Vec<&Item> {
        let fits = |i: &&Item| i.name == name && i.kind != Kind::More && !i.member;
        let mut found: Vec<&Item> = self.items.iter().filter(fits).collect();
        let outermost = found.iter().map(|i| i.depth).min().unwrap_or(0);
        found.retain(|i| i.depth == outermost);
        found
    }

    /// The innermost item around a line.
    pub(super) fn around(&self, line: usize) -> Option<&Item> {
        self.items.iter().filter(|i| i.lines.contains(&line)).min_by_key(|i| i.lines.len())
    }
}
