//! Errors of compilers and module loaders: their locations and the missing names they report. A new test that uses a name
//! not yet written fails to build, and that counts as a legitimate failing test. A syntax error does not.

use std::fmt;
use std::path::Path;

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::report::strip_ansi;
use supervisor_languages::LANGUAGES;
use supervisor_text::words;

/// One error that kept the tests from running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildError {
    /// The path as the tool printed it, usually relative to the directory the tests ran in.
    pub file: Option<String>,
    pub line: Option<u32>,
    /// `E0425`
    pub code: Option<String>,
    pub message: String,
    /// The names that do not exist, if the error is about missing names.
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
        f.write_str(&words::plain(
            self.message.lines().next().unwrap_or_default(),
        ))
    }
}

impl BuildError {
    pub fn new(message: impl AsRef<str>) -> Self {
        let message = words::cut_middle(message.as_ref(), 2_000).into_owned();
        Self {
            file: None,
            line: None,
            code: None,
            missing: missing_names(&message),
            message,
        }
    }

    pub fn at(mut self, file: impl Into<String>, line: Option<u32>) -> Self {
        self.file = Some(file.into());
        self.line = line;
        self
    }

    /// Whether the error is about a name that does not exist.
    pub fn is_missing_name(&self) -> bool {
        !self.missing.is_empty()
    }
}

/// The cause of a failed build, relative to one test file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BuildBlame {
    /// Every error is about a name that this file uses and that does not exist yet.
    MissingNames,
    /// Some errors are in this file, and not every error is about a missing name.
    InFile,
    /// The errors are in other files.
    Elsewhere,
}

/// Decides whether the errors are in `test_file` (relative to the project) or about names that its `source` uses.
pub fn blame(errors: &[BuildError], test_file: &Path, source: &str) -> BuildBlame {
    let in_file = |e: &BuildError| e.file.as_deref().is_some_and(|f| same_file(f, test_file));
    let uses = |name: &String| {
        identifiers_in(source).any(|w| w == name.rsplit(['.', ':', '/']).next().unwrap_or(name))
    };
    let missing =
        |e: &BuildError| e.is_missing_name() && (in_file(e) || e.missing.iter().all(uses));
    if !errors.is_empty() && errors.iter().all(missing) {
        BuildBlame::MissingNames
    } else if errors.iter().any(in_file) {
        BuildBlame::InFile
    } else {
        BuildBlame::Elsewhere
    }
}

/// Parses compiler errors in the most common formats: `a.ts(3,5): error TS2304: …`, `a.ts:3:5 - error TS2304: …`,
/// `a.c:3:5: error: …`.
pub(super) fn parse_compiler_errors(text: &str) -> Vec<BuildError> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^([^\s:(][^:(]*?)(?:\((\d+),\d+\)|:(\d+)(?::\d+)?)(?::| -) (?:fatal )?error(?: [A-Z]+\d+)?: (.*)$")
            .expect("the pattern is valid")
    });
    let mut errors: Vec<BuildError> = Vec::new();
    for found in strip_ansi(text)
        .lines()
        .filter_map(|line| LINE.captures(line))
    {
        let line = found
            .get(2)
            .or(found.get(3))
            .and_then(|n| n.as_str().parse().ok());
        let error = BuildError::new(&found[4]).at(found[1].trim_start_matches("./"), line);
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    errors
}

fn same_file(reported: &str, file: &Path) -> bool {
    let reported = Path::new(reported.trim_start_matches("./"));
    reported == file || file.ends_with(reported) || reported.ends_with(file)
}

fn identifiers_in(source: &str) -> impl Iterator<Item = &str> {
    source
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
}

/// The names that do not exist, according to an error message.
fn missing_names(message: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (before, after) in LANGUAGES.iter().flat_map(|language| language.missing_names) {
        for (at, _) in message.match_indices(before) {
            let rest = &message[at + before.len()..];
            let line = rest.lines().next().unwrap_or_default();
            let name = match *after {
                "" => line.split_whitespace().next().unwrap_or_default(),
                "`" | "'" | "\"" | "/" | "," | ";" => line.split(*after).next().unwrap_or_default(),
                after => match line.find(after) {
                    // Elixir appends the arity, as in `add/2`.
                    Some(end) => line[..end].split('/').next().unwrap_or_default(),
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
        names.push(
            rest.trim_end_matches(')')
                .split([')', ',', '\n'])
                .next()
                .unwrap_or_default()
                .to_owned(),
        );
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_names_are_found_in_tool_messages() {
        for (message, name) in [
            ("cannot find function `add` in this scope", "add"),
            ("unresolved import `demo::add`", "demo::add"),
            (
                "no method named `len2` found for struct `Vec` in the current scope",
                "len2",
            ),
            ("undefined: Add", "Add"),
            ("x.Foo undefined (type T has no field or method Foo)", "Foo"),
            (
                "ImportError: cannot import name 'add' from 'calc' (/p/calc.py)",
                "add",
            ),
            ("ModuleNotFoundError: No module named 'calc'", "calc"),
            (
                "Error: Cannot find module './calc'\nRequire stack:",
                "./calc",
            ),
            ("NameError:\n  uninitialized constant Calc", "Calc"),
            (
                "undefined function add/2 (expected XTest to define such a function",
                "add",
            ),
            (
                "cannot import Calc.add/2 because it is undefined or private",
                "Calc.add",
            ),
        ] {
            assert_eq!(BuildError::new(message).missing, [name], "{message}");
        }
        assert!(!BuildError::new("SyntaxError: invalid syntax").is_missing_name());
        assert!(!BuildError::new("mismatched types").is_missing_name());
    }

    #[test]
    fn common_compiler_error_formats_are_parsed() {
        let output = "src/a.ts(3,5): error TS2304: Cannot find name 'add'.\n\u{1b}[96msrc/b.ts\u{1b}[0m:4:1 - error TS2305: Module \
                    '\"./a\"' has no exported member 'sub'.\nmain.c:9:2: error: expected ';'\nnothing: here\n";
        let errors = parse_compiler_errors(output);
        let parsed: Vec<String> = errors
            .iter()
            .map(|e| format!("{} {:?}", e, e.missing))
            .collect();
        assert_eq!(
            parsed,
            [
                "src/a.ts:3: Cannot find name 'add'. [\"add\"]",
                "src/b.ts:4: Module '\"./a\"' has no exported member 'sub'. [\"sub\"]",
                "main.c:9: expected ';' []",
            ]
        );
    }

    #[test]
    fn missing_name_is_told_from_broken_project() {
        let test = Path::new("tests/api.rs");
        let source = "use demo::add;\n#[test] fn adds() { assert_eq!(add(1, 2), 3); }";
        let missing = BuildError::new("unresolved import `demo::add`").at("tests/api.rs", Some(1));
        let syntax = BuildError::new("expected `;`").at("tests/api.rs", Some(2));
        let elsewhere = BuildError::new("expected `;`").at("src/lib.rs", Some(2));
        let unused_name =
            BuildError::new("cannot find function `zip` in this scope").at("src/lib.rs", Some(2));
        assert_eq!(
            blame(std::slice::from_ref(&missing), test, source),
            BuildBlame::MissingNames
        );
        assert_eq!(blame(&[missing, syntax], test, source), BuildBlame::InFile);
        assert_eq!(blame(&[elsewhere], test, source), BuildBlame::Elsewhere);
        assert_eq!(blame(&[unused_name], test, source), BuildBlame::Elsewhere);
        assert_eq!(blame(&[], test, source), BuildBlame::Elsewhere);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_messages_do_not_panic(
            text in super::super::garbage::garbage("x.Foo undefined (type T has no field or method Foo)\nNo module named 'a'"),
        ) {
            let _ = BuildError::new(&text);
        }
    }
}
