//! Which tests of a run stand in a given file. Runners name tests in their own ways; most of them by file.

use std::path::Path;

use crate::verify::{Ecosystem, TestName};

/// A test file as a run's names refer to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct InFile<'a> {
    pub(super) ecosystem: Option<Ecosystem>,
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
        let path = self.path.to_string_lossy();
        match self.ecosystem {
            Some(Ecosystem::Rust) => self.is_in_rust(name),
            Some(Ecosystem::Go) => self.is_in_go(name),
            Some(Ecosystem::Elixir) => {
                let module = name.split(' ').next().unwrap_or_default();
                self.source.contains(&format!("defmodule {module} "))
            }
            Some(Ecosystem::Python) => after(name, &path).is_some_and(|rest| rest.starts_with("::")),
            Some(Ecosystem::Node) => after(name, &path).is_some_and(|rest| rest.starts_with(" > ")),
            Some(Ecosystem::Ruby) => after(name, &path).is_some_and(|rest| rest.starts_with(' ')),
            None => false,
        }
    }

    /// `demo::api rejects_empty` stands in `tests/api.rs`, `demo parser::tests::adds` in `src/parser.rs`.
    fn is_in_rust(&self, name: &str) -> bool {
        let Some((program, test)) = name.split_once(' ') else { return false };
        let parts: Vec<&str> = self.path.iter().filter_map(|p| p.to_str()).collect();
        let mut path: Vec<&str> = test.split("::").collect();
        let leaf = path.pop().unwrap_or_default();
        if !self.source.contains(&format!("fn {leaf}")) {
            return false;
        }
        let modules: Vec<&str> = match parts.iter().rposition(|p| *p == "tests" || *p == "src") {
            Some(at) if parts[at] == "tests" => {
                let target = parts.get(at + 1).map_or("", |p| p.trim_end_matches(".rs"));
                if !program.ends_with(&format!("::{target}")) {
                    return false;
                }
                parts.get(at + 2..).map(modules).unwrap_or_default()
            }
            Some(at) => parts.get(at + 1..).map(modules).unwrap_or_default(),
            None => return true,
        };
        // Modules above the file come from where it lies, those below stand in it.
        let Some(inside) = path.strip_prefix(modules.as_slice()) else { return false };
        inside.iter().all(|module| {
            self.source.contains(&format!("mod {module} ")) || self.source.contains(&format!("mod {module}{{"))
        })
    }

    fn is_in_go(&self, name: &str) -> bool {
        let Some((package, test)) = name.split_once(' ') else { return false };
        let outer = test.split('/').next().unwrap_or(test);
        let dir = self.path.parent().map(|d| d.to_string_lossy().into_owned()).unwrap_or_default();
        (dir.is_empty() || package == dir || package.ends_with(&format!("/{dir}")))
            && self.source.contains(&format!("func {outer}("))
    }
}

/// `parser/mod.rs` is the module `parser`, `lib.rs` none.
fn modules<'a>(parts: &[&'a str]) -> Vec<&'a str> {
    let mut modules: Vec<&str> = parts.iter().map(|p| p.trim_end_matches(".rs")).collect();
    let root = matches!(modules.last(), Some(&("mod" | "lib" | "main")));
    if root {
        modules.pop();
    }
    if modules.first() == Some(&"bin") {
        modules.clear();
    }
    modules
}

fn after<'a>(name: &'a str, path: &str) -> Option<&'a str> {
    name.strip_prefix(path)
}

/// The whole name, or its end at a border.
fn is_called(name: &str, only: &str) -> bool {
    let outer = name.split('[').next().unwrap_or(name);
    [name, outer].iter().any(|name| {
        name.strip_suffix(only).is_some_and(|before| before.is_empty() || before.ends_with([':', ' ', '/', '.']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_runner_find_their_file() {
        use Ecosystem::{Elixir, Go, Node, Python, Ruby, Rust};
        let rust = "fn adds() {} mod tests { fn halves() {} }";
        for (ecosystem, path, source, only, name, there) in [
            (Rust, "tests/api.rs", rust, None, "demo::api adds", true),
            (Rust, "tests/api.rs", rust, None, "demo::other adds", false),
            (Rust, "tests/it/math.rs", rust, None, "demo::it math::adds", true),
            (Rust, "tests/it/math.rs", rust, None, "demo::it text::adds", false),
            (Rust, "src/lib.rs", rust, None, "demo tests::halves", true),
            (Rust, "src/lib.rs", rust, None, "demo math::tests::halves", false),
            (Rust, "src/math.rs", rust, None, "demo math::tests::halves", true),
            (Rust, "src/math.rs", rust, Some("tests::halves"), "demo math::tests::halves", true),
            (Rust, "src/math.rs", rust, Some("adds"), "demo math::tests::halves", false),
            (Go, "calc/a_test.go", "func TestA(t", None, "example.com/x/calc TestA/one", true),
            (Go, "calc/a_test.go", "func TestA(t", None, "example.com/x/text TestA", false),
            (Python, "tests/test_a.py", "", None, "tests/test_a.py::test_x", true),
            (Python, "tests/test_a.py", "", Some("test_x"), "tests/test_a.py::test_x[1-2]", true),
            (Python, "tests/test_a.py", "", Some("est_x"), "tests/test_a.py::test_x", false),
            (Node, "a.test.js", "", Some("adds"), "a.test.js > sum > adds", true),
            (Node, "a.test.js", "", None, "b.test.js > sum > adds", false),
            (Ruby, "spec/a_spec.rb", "", None, "spec/a_spec.rb A adds", true),
            (Elixir, "test/a_test.exs", "defmodule ATest do", None, "ATest test adds", true),
        ] {
            let file = InFile { ecosystem: Some(ecosystem), path: Path::new(path), source, only };
            assert_eq!(file.has(&TestName::from(name)), there, "{name} in {path}");
        }
    }
}
