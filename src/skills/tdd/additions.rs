//! What was added to a file: which lines, how many tests, and what deserves a second look.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::verify::Ecosystem;
use crate::words::diff::Diff;

/// The lines of the newer text that are new, from 1, and the older lines that are gone.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) added: BTreeSet<usize>,
    pub(super) removed: Vec<String>,
}

pub(super) fn lines(before: &str, after: &str) -> Lines {
    let mut lines = Lines::default();
    for change in Diff::of(before.as_bytes(), after.as_bytes()).changes() {
        lines.added.extend(change.at + 1..=change.at + change.new.len());
        lines.removed.extend(change.gone.iter().map(|line| String::from_utf8_lossy(line).into_owned()));
    }
    lines
}

impl Lines {
    /// The new lines, as text.
    pub(super) fn text<'a>(&self, after: &'a str) -> Vec<&'a str> {
        (1..).zip(after.lines()).filter(|(n, _)| self.added.contains(n)).map(|(_, line)| line).collect()
    }
}

/// The names of the tests that a source declares, for runs that cannot tell because nothing was built.
pub(super) fn declared(ecosystem: Option<Ecosystem>, source: &str) -> BTreeSet<String> {
    static RUST: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"#\[(?:[a-z_]+::)?(?:test|rstest|test_case)(?:\([^\]]*\))?\](?s:.)*?\bfn\s+([A-Za-z0-9_]+)")
    });
    static GO: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^func\s+((?:Test|Fuzz|Example)[A-Za-z0-9_]*)\s*\("));
    static ELIXIR: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(?m)^\s*test\s*\(?"([^"]+)""#));
    let pattern = match ecosystem {
        Some(Ecosystem::Rust) => &RUST,
        Some(Ecosystem::Go) => &GO,
        Some(Ecosystem::Elixir) => &ELIXIR,
        _ => return BTreeSet::new(),
    };
    pattern.captures_iter(source).filter_map(|c| Some(c.get(1)?.as_str().to_owned())).collect()
}

/// Things that code outside can name, added by these lines.
pub(super) fn public_items(ecosystem: Option<Ecosystem>, added: &[&str]) -> Vec<String> {
    static RUST: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^\s*pub\s+(?:const\s+|async\s+|unsafe\s+)*(?:fn|struct|enum|trait|const|static|type|mod)\s+(\w+)")
    });
    static GO: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^(?:func\s+(?:\([^)]*\)\s*)?|type\s+|var\s+|const\s+)([A-Z]\w*)"));
    static PYTHON: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:async\s+)?(?:def|class)\s+([A-Za-z]\w*)"));
    static NODE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"^\s*(?:export\s+(?:default\s+)?(?:async\s+)?(?:function|class|const|let)\s+|(?:module\.)?exports\.)(\w+)",
        )
    });
    static DEF: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:def|defmodule|class|module)\s+([\w.?!]+)"));
    let pattern = match ecosystem {
        Some(Ecosystem::Rust) => &RUST,
        Some(Ecosystem::Go) => &GO,
        Some(Ecosystem::Python) => &PYTHON,
        Some(Ecosystem::Node) => &NODE,
        Some(Ecosystem::Ruby | Ecosystem::Elixir) => &DEF,
        None => return Vec::new(),
    };
    added.iter().filter_map(|line| Some(pattern.captures(line)?.get(1)?.as_str().to_owned())).collect()
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern that the tests below compile")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_tests_are_found_by_name() {
        let rust = "#[test]\nfn adds() {}\n#[tokio::test]\nasync fn waits() {}\nfn helper() {}";
        assert_eq!(declared(Some(Ecosystem::Rust), rust).into_iter().collect::<Vec<_>>(), ["adds", "waits"]);
        let go = "func TestAdd(t *testing.T) {}\nfunc helper() {}";
        assert_eq!(declared(Some(Ecosystem::Go), go).into_iter().collect::<Vec<_>>(), ["TestAdd"]);
        assert_eq!(declared(Some(Ecosystem::Elixir), "  test \"adds\" do").len(), 1);
    }

    #[test]
    fn public_items_are_named() {
        assert_eq!(public_items(Some(Ecosystem::Rust), &["pub fn add() {", "fn b() {", "pub(crate) fn c()"]), ["add"]);
        assert_eq!(public_items(Some(Ecosystem::Go), &["func Add(a int) int {", "func b() {"]), ["Add"]);
        assert_eq!(public_items(Some(Ecosystem::Python), &["def add(a):", "    def inner():", "def _x():"]), ["add"]);
    }
}
