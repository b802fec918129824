//! Decides which tests of a run are defined in a given file. Each runner names tests in its own
//! way; most names contain the file.

use std::path::Path;

use supervisor_languages::{Language, TestSourceFile};
use supervisor_verify::TestName;

/// A test file, described so that the names in a run can be matched against it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TestFileMatcher<'a> {
    pub(super) ecosystem: Option<&'static Language>,
    /// Relative to the directory in which the tests run.
    pub(super) path: &'a Path,
    pub(super) source: &'a str,
    /// A single test of the file, as the caller named it.
    pub(super) only: Option<&'a str>,
}

impl TestFileMatcher<'_> {
    pub(super) fn contains(&self, name: &TestName) -> bool {
        self.is_in_file(&name.0) && self.only.is_none_or(|only| matches_name(&name.0, only))
    }

    fn is_in_file(&self, name: &str) -> bool {
        let place = TestSourceFile {
            path: self.path,
            source: self.source,
        };
        match self.ecosystem {
            Some(language) => language.contains_test(&place, name),
            // Runners of other languages name tests by the file, if at all.
            None => name
                .strip_prefix(&*self.path.to_string_lossy())
                .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)),
        }
    }
}

/// Whether `only` is the whole name or a suffix that starts at a separator. Parameters in brackets
/// may be left off.
fn matches_name(name: &str, only: &str) -> bool {
    let base = name.split('[').next().unwrap_or(name);
    [name, base].iter().any(|name| {
        name.strip_suffix(only)
            .is_some_and(|before| before.is_empty() || before.ends_with([':', ' ', '/', '.', '#']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runner_names_match_their_file() {
        use supervisor_languages::{ELIXIR, GO, JAVASCRIPT, PYTHON, RUBY, RUST};
        let rust = "fn adds() {} mod tests { fn halves() {} }";
        for (language, path, source, only, name, expected) in [
            (&RUST, "tests/api.rs", rust, None, "demo::api adds", true),
            (&RUST, "tests/api.rs", rust, None, "demo::other adds", false),
            (
                &RUST,
                "tests/it/math.rs",
                rust,
                None,
                "demo::it math::adds",
                true,
            ),
            (
                &RUST,
                "tests/it/math.rs",
                rust,
                None,
                "demo::it text::adds",
                false,
            ),
            (&RUST, "src/lib.rs", rust, None, "demo tests::halves", true),
            (
                &RUST,
                "src/lib.rs",
                rust,
                None,
                "demo math::tests::halves",
                false,
            ),
            (
                &RUST,
                "src/math.rs",
                rust,
                None,
                "demo math::tests::halves",
                true,
            ),
            (
                &RUST,
                "src/math.rs",
                rust,
                Some("tests::halves"),
                "demo math::tests::halves",
                true,
            ),
            (
                &RUST,
                "src/math.rs",
                rust,
                Some("adds"),
                "demo math::tests::halves",
                false,
            ),
            (
                &GO,
                "calc/a_test.go",
                "func TestA(t",
                None,
                "example.com/x/calc TestA/one",
                true,
            ),
            (
                &GO,
                "calc/a_test.go",
                "func TestA(t",
                None,
                "example.com/x/text TestA",
                false,
            ),
            (
                &PYTHON,
                "tests/test_a.py",
                "",
                None,
                "tests/test_a.py::test_x",
                true,
            ),
            (
                &PYTHON,
                "tests/test_a.py",
                "",
                Some("test_x"),
                "tests/test_a.py::test_x[1-2]",
                true,
            ),
            (
                &PYTHON,
                "tests/test_a.py",
                "",
                Some("est_x"),
                "tests/test_a.py::test_x",
                false,
            ),
            (
                &JAVASCRIPT,
                "a.test.js",
                "",
                Some("adds"),
                "a.test.js > sum > adds",
                true,
            ),
            (
                &JAVASCRIPT,
                "a.test.js",
                "",
                None,
                "b.test.js > sum > adds",
                false,
            ),
            (
                &RUBY,
                "test/a_test.rb",
                "",
                Some("test_adds"),
                "test/a_test.rb::ATest#test_adds",
                true,
            ),
            (
                &RUBY,
                "spec/a_spec.rb",
                "",
                None,
                "spec/a_spec.rb A adds",
                true,
            ),
            (
                &ELIXIR,
                "test/a_test.exs",
                "defmodule ATest do",
                None,
                "ATest test adds",
                true,
            ),
        ] {
            let file = TestFileMatcher {
                ecosystem: Some(language),
                path: Path::new(path),
                source,
                only,
            };
            assert_eq!(
                file.contains(&TestName::from(name)),
                expected,
                "{name} in {path}"
            );
        }
    }

    #[test]
    fn test_without_a_known_language_is_matched_by_path() {
        let file = TestFileMatcher {
            ecosystem: None,
            path: Path::new("test/CartTest.php"),
            source: "",
            only: None,
        };
        for (name, expected) in [
            ("test/CartTest.php > Shop.CartTest > testSum", true),
            ("test/CartTest.phpt > x", false),
            ("test/OtherTest.php > Shop.CartTest > testSum", false),
        ] {
            assert_eq!(file.contains(&TestName::from(name)), expected, "{name}");
        }
    }
}
