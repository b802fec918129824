//! Which tests of a run stand in a given file. Runners name tests in their own ways; most of them by file.

use std::path::Path;

use supervisor_languages::{Language, TestPlace};
use supervisor_verify::TestName;

/// A test file as a run's names refer to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct InFile<'a> {
    pub(super) ecosystem: Option<&'static Language>,
    /// Relative to where the tests run.
    pub(super) path: &'a Path,
    pub(super) source: &'a str,
    /// One test in it, as the caller wrote it.
    pub(super) only: Option<&'a str>,
}

impl InFile<'_> {
    pub(super) fn has(&self, name: &TestName) -> bool {
        self.is_in_file(&name.0) && self.only.is_none_or(|only| is_called(&name.0, only))
    }

    fn is_in_file(&self, name: &str) -> bool {
        let place = TestPlace {
            path: self.path,
            source: self.source,
        };
        self.ecosystem
            .is_some_and(|language| language.holds_test(&place, name))
    }
}

/// The whole name, or its end at a border.
fn is_called(name: &str, only: &str) -> bool {
    let outer = name.split('[').next().unwrap_or(name);
    [name, outer].iter().any(|name| {
        name.strip_suffix(only)
            .is_some_and(|before| before.is_empty() || before.ends_with([':', ' ', '/', '.']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_runner_find_their_file() {
        use supervisor_languages::{ELIXIR, GO, JAVASCRIPT, PYTHON, RUBY, RUST};
        let rust = "fn adds() {} mod tests { fn halves() {} }";
        for (language, path, source, only, name, there) in [
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
            let file = InFile {
                ecosystem: Some(language),
                path: Path::new(path),
                source,
                only,
            };
            assert_eq!(file.has(&TestName::from(name)), there, "{name} in {path}");
        }
    }
}
