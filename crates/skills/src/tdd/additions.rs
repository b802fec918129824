//! Compares two versions of a file: changed lines, declared tests and public items.

use std::collections::BTreeSet;
use std::path::Path;

use supervisor_languages::{Definition, DefinitionKind, Language};
use supervisor_text::words::diff::Diff;

/// `added` holds line numbers of the new text, counted from 1; `removed` holds lines of the old
/// text.
#[derive(Debug, Default)]
pub(super) struct ChangedLines {
    pub(super) added: BTreeSet<usize>,
    pub(super) removed: Vec<String>,
}

pub(super) fn changed_lines(before: &str, after: &str) -> ChangedLines {
    let mut lines = ChangedLines::default();
    for change in Diff::of(before.as_bytes(), after.as_bytes()).changes() {
        lines
            .added
            .extend(change.line + 1..=change.line + change.added.len());
        lines.removed.extend(
            change
                .removed
                .iter()
                .map(|line| String::from_utf8_lossy(line).into_owned()),
        );
    }
    lines
}

impl ChangedLines {
    /// The text of the added lines.
    pub(super) fn added_text<'a>(&self, after: &'a str) -> Vec<&'a str> {
        (1..)
            .zip(after.lines())
            .filter(|(n, _)| self.added.contains(n))
            .map(|(_, line)| line)
            .collect()
    }
}

/// Names of the tests that a source file declares. Used when a run lists no tests because the
/// build failed.
pub(super) fn declared_tests(
    language: Option<&'static Language>,
    path: &Path,
    source: &str,
) -> BTreeSet<String> {
    let Some(tree) = language.and_then(|language| language.parse(path, source)) else {
        return BTreeSet::new();
    };
    let tests = tree.matches(|q| &q.tests);
    tests
        .iter()
        .filter(|m| m.get("test").is_some())
        .filter_map(|m| Some(m.get("name")?.text.to_owned()))
        .collect()
}

/// Names of the public items that a file defines on the given lines, or on any line if `lines` is
/// `None`.
pub(super) fn public_items(
    language: Option<&'static Language>,
    path: &Path,
    source: &str,
    lines: Option<&BTreeSet<usize>>,
) -> Vec<String> {
    let Some((language, tree)) = language.and_then(|l| Some((l, l.parse(path, source)?))) else {
        return Vec::new();
    };
    let text: Vec<&str> = source.lines().collect();
    let is_wanted = |d: &Definition| {
        d.kind != DefinitionKind::Extension
            && lines.is_none_or(|lines| lines.contains(&(d.at + 1)))
            && language.is_public(d, text.get(d.at).copied().unwrap_or_default())
    };
    tree.definitions()
        .into_iter()
        .filter(is_wanted)
        .map(|d| d.name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_tests_are_found_by_name() {
        for (file, source, expected) in [
            (
                "a.rs",
                "#[test]\nfn adds() {}\n#[tokio::test]\n#[ignore]\nasync fn waits() {}\nfn helper() {} // #[test] fn no() {}",
                vec!["adds", "waits"],
            ),
            (
                "a_test.go",
                "package a\nfunc TestAdd(t *testing.T) {}\nfunc helper() {}",
                vec!["TestAdd"],
            ),
            ("a_test.exs", "  test \"adds\" do\n  end", vec!["adds"]),
            (
                "a_test.cpp",
                "TEST(S, Adds) {}\nTEST_CASE(\"halves\") {}\nint f() { return 1; }",
                vec!["Adds", "halves"],
            ),
            (
                "ATest.java",
                "class ATest { @Test(timeout = 3) public void adds() {} @org.junit.Test void b() {} void c() {} }",
                vec!["adds", "b"],
            ),
            (
                "test_a.py",
                "def test_adds():\n    pass\ndef helper(): pass",
                vec!["test_adds"],
            ),
        ] {
            let language = Language::of_path(Path::new(file));
            assert_eq!(
                declared_tests(language, Path::new(file), source)
                    .into_iter()
                    .collect::<Vec<_>>(),
                expected,
                "{file}"
            );
        }
    }

    #[test]
    fn public_items_are_named() {
        for (file, source, expected) in [
            (
                "a.rs",
                "pub fn add() {}\nfn b() {}\npub(crate) fn c() {}\nimpl A {}",
                vec!["add"],
            ),
            (
                "a.go",
                "package a\nfunc Add(a int) int { return 1 }\nfunc b() {}",
                vec!["Add"],
            ),
            (
                "a.py",
                "def add(a):\n    def inner(): pass\ndef _x(): pass",
                vec!["add"],
            ),
            (
                "a.js",
                "exports.add = () => 1;\nfunction b() {}",
                vec!["add"],
            ),
        ] {
            let language = Language::of_path(Path::new(file));
            assert_eq!(
                public_items(language, Path::new(file), source, None),
                expected,
                "{file}"
            );
        }
        let second = BTreeSet::from([2]);
        let source = "pub fn a() {}\npub fn b() {}\n";
        assert_eq!(
            public_items(
                Language::of_path(Path::new("a.rs")),
                Path::new("a.rs"),
                source,
                Some(&second)
            ),
            ["b"]
        );
    }
}
