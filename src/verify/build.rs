//! Errors of compilers and loaders: where they lie and which names they miss.
//! A test that names something not yet written fails to build, and that is a fair red; a syntax error is not.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::words;

/// One error that kept the tests from running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BuildError {
    /// As the tool wrote it, usually relative to where the tests ran.
    pub file: Option<String>,
    pub line: Option<u32>,
    /// `E0425`
    pub code: Option<String>,
    pub message: String,
    /// Names that do not exist, if that is what the error is about.
    pub missing: Vec<String>,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}:", words::plain(file))?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&words::plain(self.message.lines().next().unwrap_or_default()))
    }
}

impl BuildError {
    pub fn new(message: impl AsRef<str>) -> Self {
        let message = words::cut_middle(message.as_ref(), 2_000).into_owned();
        Self { file: None, line: None, code: None, missing: missing_names(&message), message }
    }

    pub fn at(mut self, file: impl Into<String>, line: Option<u32>) -> Self {
        self.file = Some(file.into());
        self.line = line;
        self
    }

    /// True if the error is about a name that does not exist, and nothing else.
    pub fn is_missing_name(&self) -> bool {
        !self.missing.is_empty()
    }
}

/// Whom a failed build speaks about, seen from one test file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// Every error is about a name this file uses and nobody has written yet.
    MissingNames,
    /// Errors lie in this file, and some of them are of another kind.
    InFile,
    /// Something else does not build.
    Elsewhere,
}

/// Do the errors lie in `test_file` (relative to the project) or name what its `source` uses?
pub fn blame(errors: &[BuildError], test_file: &Path, source: &str) -> Blame {
    let in_file = |e: &BuildError| e.file.as_deref().is_some_and(|f| same_file(f, test_file));
    let uses = |name: &String| words_of(source).any(|w| w == name.rsplit(['.', ':', '/']).next().unwrap_or(name));
    let missing = |e: &BuildError| e.is_missing_name() && (in_file(e) || e.missing.iter().all(uses));
    if !errors.is_empty() && errors.iter().all(missing) {
        Blame::MissingNames
    } else if errors.iter().any(in_file) {
        Blame::InFile
    } else {
        Blame::Elsewhere
    }
}

fn same_file(named: &str, file: &Path) -> bool {
    let named = Path::new(named.trim_start_matches("./"));
    named == file || file.ends_with(named) || named.ends_with(file)
}

fn words_of(source: &str) -> impl Iterator<Item = &str> {
    source.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

/// What Elixir says after a name and its arity.
const NOT_EXPORTED: &str = " because it is undefined or private";

/// What compilers and interpreters say when a name does not exist, with the name between the two parts.
const PHRASES: &[(&str, &str)] = &[
    // rustc
    ("cannot find function `", "`"),
    ("cannot find value `", "`"),
    ("cannot find type `", "`"),
    ("cannot find macro `", "`"),
    ("cannot find trait `", "`"),
    ("cannot find struct, variant or union type `", "`"),
    ("cannot find tuple struct or tuple variant `", "`"),
    ("cannot find function, tuple struct or tuple variant `", "`"),
    ("cannot find unit struct, unit variant or constant `", "`"),
    ("cannot find attribute `", "`"),
    ("cannot find derive macro `", "`"),
    ("cannot find module or crate `", "`"),
    ("unresolved import `", "`"),
    ("unresolved imports `", "`"),
    ("use of undeclared type `", "`"),
    ("use of undeclared crate or module `", "`"),
    ("use of unresolved module or unlinked crate `", "`"),
    ("failed to resolve: could not find `", "`"),
    ("cannot find `", "` in"),
    ("no method named `", "`"),
    ("no function or associated item named `", "`"),
    ("no associated item named `", "`"),
    ("no associated function or constant named `", "`"),
    ("no variant or associated item named `", "`"),
    ("no variant, associated function, or constant named `", "`"),
    ("no variant named `", "`"),
    ("no field `", "`"),
    // go
    ("undefined: ", ""),
    (" undefined (type ", " has no field or method"),
    ("no required module provides package ", ";"),
    ("cannot find package \"", "\""),
    // python
    ("cannot import name '", "'"),
    ("No module named '", "'"),
    ("has no attribute '", "'"),
    ("NameError: name '", "'"),
    // node
    ("Cannot find module '", "'"),
    ("does not provide an export named '", "'"),
    ("ReferenceError: ", " is not defined"),
    // ruby
    ("uninitialized constant ", ""),
    ("cannot load such file -- ", ""),
    // elixir
    ("undefined function ", "/"),
    ("cannot import ", NOT_EXPORTED),
    ("undefined variable \"", "\""),
    ("module ", " is not loaded and could not be found"),
    (".__struct__/1 is undefined, cannot expand struct ", ","),
];

/// The names an error message says do not exist.
fn missing_names(message: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (before, after) in PHRASES {
        for (at, _) in message.match_indices(before) {
            let rest = &message[at + before.len()..];
            let line = rest.lines().next().unwrap_or_default();
            let name = match *after {
                "" => line.split_whitespace().next().unwrap_or_default(),
                "`" | "'" | "\"" | "/" | "," | ";" => line.split(*after).next().unwrap_or_default(),
                after => match line.find(after) {
                    Some(end) if after == NOT_EXPORTED => line[..end].split('/').next().unwrap_or_default(),
                    Some(end) => &line[..end],
                    None => continue,
                },
            };
            let name = name.trim_end_matches([',', ':', ';', ')']).to_owned();
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    // `x.Foo undefined (type T has no field or method Foo)`: the name is the last word.
    if let Some((_, rest)) = message.split_once("has no field or method ") {
        names.retain(|n| !message.contains(&format!("(type {n} has no")));
        names.push(rest.trim_end_matches(')').split([')', ',', '\n']).next().unwrap_or_default().to_owned());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_names_are_found_in_what_each_tool_says() {
        for (message, name) in [
            ("cannot find function `add` in this scope", "add"),
            ("unresolved import `demo::add`", "demo::add"),
            ("no method named `len2` found for struct `Vec` in the current scope", "len2"),
            ("undefined: Add", "Add"),
            ("x.Foo undefined (type T has no field or method Foo)", "Foo"),
            ("ImportError: cannot import name 'add' from 'calc' (/p/calc.py)", "add"),
            ("ModuleNotFoundError: No module named 'calc'", "calc"),
            ("Error: Cannot find module './calc'\nRequire stack:", "./calc"),
            ("NameError:\n  uninitialized constant Calc", "Calc"),
            ("undefined function add/2 (expected XTest to define such a function", "add"),
            ("cannot import Calc.add/2 because it is undefined or private", "Calc.add"),
        ] {
            assert_eq!(BuildError::new(message).missing, [name], "{message}");
        }
        assert!(!BuildError::new("SyntaxError: invalid syntax").is_missing_name());
        assert!(!BuildError::new("mismatched types").is_missing_name());
    }

    #[test]
    fn a_missing_name_that_the_test_uses_is_told_from_a_project_that_is_broken() {
        let test = Path::new("tests/api.rs");
        let source = "use demo::add;\n#[test] fn adds() { assert_eq!(add(1, 2), 3); }";
        let missing = BuildError::new("unresolved import `demo::add`").at("tests/api.rs", Some(1));
        let syntax = BuildError::new("expected `;`").at("tests/api.rs", Some(2));
        let elsewhere = BuildError::new("expected `;`").at("src/lib.rs", Some(2));
        let far = BuildError::new("cannot find function `zip` in this scope").at("src/lib.rs", Some(2));
        assert_eq!(blame(std::slice::from_ref(&missing), test, source), Blame::MissingNames);
        assert_eq!(blame(&[missing, syntax], test, source), Blame::InFile);
        assert_eq!(blame(&[elsewhere], test, source), Blame::Elsewhere);
        assert_eq!(blame(&[far], test, source), Blame::Elsewhere);
        assert_eq!(blame(&[], test, source), Blame::Elsewhere);
    }

    proptest::proptest! {
        #[test]
        fn no_message_is_too_odd(
            text in super::super::garbage::garbage("x.Foo undefined (type T has no field or method Foo)\nNo module named 'a'"),
        ) {
            let _ = BuildError::new(&text);
        }
    }
}
