//! What a file takes from other files, in the words of its language. Re-exports are imports too: who follows a name from
//! file to file reads each of them with this.
//! Knows statements. Does not know where a module lies.

mod elixir;
mod go;
mod node;
mod python;
mod ruby;
mod rust;

pub(super) use node::exported;

use super::items::Source;
use super::lang::Lang;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    /// As it is written: `crate::a`, `..pkg.mod`, `../src/x`, `example.com/m/pkg`, `My.Mod`.
    pub module: String,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// One name, and what it is called here.
    Named { name: String, bound: String },
    /// The module itself; its members are reached through `bound`.
    Whole { bound: String },
    /// Whatever the module has.
    All,
}

impl Import {
    fn named(module: &str, name: &str, bound: &str) -> Self {
        Self { module: module.to_owned(), what: What::Named { name: name.to_owned(), bound: bound.to_owned() } }
    }

    fn whole(module: &str, bound: &str) -> Self {
        Self { module: module.to_owned(), what: What::Whole { bound: bound.to_owned() } }
    }

    fn all(module: &str) -> Self {
        Self { module: module.to_owned(), what: What::All }
    }
}

/// More in one file is generated.
const MOST: usize = 2_000;

/// What the statements of a file import.
pub(super) fn imports(lang: Lang, source: &Source) -> Vec<Import> {
    let mut found = match lang {
        Lang::Rust => rust::imports(&source.masked),
        Lang::Python => python::imports(&source.masked),
        Lang::Node => node::imports(&source.text, &source.masked),
        Lang::Go => go::imports(&source.text),
        Lang::Ruby => ruby::imports(&source.text, &source.masked),
        Lang::Elixir => elixir::imports(&source.masked),
    };
    found.truncate(MOST);
    found
}

/// What a test takes without a statement: full paths in its body, the package it lies in.
pub(super) fn unspoken(lang: Lang, source: &Source) -> Vec<Import> {
    let mut found = match lang {
        Lang::Rust => rust::paths(&source.masked),
        Lang::Elixir => elixir::paths(&source.masked),
        Lang::Go => vec![Import::all(".")],
        Lang::Python | Lang::Node | Lang::Ruby => Vec::new(),
    };
    found.truncate(MOST);
    found
}

/// `name as bound`.
fn renamed<'a>(text: &'a str, by: &str) -> (&'a str, &'a str) {
    let text = text.trim();
    text.split_once(by).map_or((text, text), |(name, bound)| (name.trim(), bound.trim()))
}

/// The quoted text that comes first after `at`, if only blanks and brackets stand before it.
fn quoted_after(text: &str, at: usize) -> Option<&str> {
    let rest = text.get(at..)?.trim_start_matches([' ', '\t', '\n', '\r', '(']);
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let rest = &rest[1..];
    rest.find([quote, '\n']).map(|end| &rest[..end]).filter(|spec| !spec.is_empty())
}
