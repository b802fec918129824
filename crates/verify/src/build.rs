//! Errors of compilers and loaders: where they lie and which names they miss.
//! A test that names something not yet written fails to build, and that is a fair red; a syntax error is not.

use std::fmt;
use std::path::Path;

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::report::without_colour;
use supervisor_languages::LANGUAGES;
use supervisor_text::words;

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

    /// True if the error is about a name that does not exist, and nothing else.
    pub fn is_missing_name(&self) -> bool {
        !self.missing.is_empty()
    }
}

/// Whom a failed build speaks about, seen from one test file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BuildBlame {
    /// Every error is about a name this file uses and that is not written yet.
    MissingNames,
    /// Errors lie in this file, and some of them are of another kind.
    InFile,
    /// Something else does not build.
    Elsewhere,
}

/// Do the errors lie in `test_file` (relative to the project) or name what its `source` uses?
pub fn blame(errors: &[BuildError], test_file: &Path, source: &str) -> BuildBlame {
    let in_file = |e: &BuildError| e.file.as_deref().is_some_and(|f| same_file(f, test_file));
    let uses = |name: &String| {
        words_of(source).any(|w| w == name.rsplit(['.', ':', '/']).next().unwrap_or(name))
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

/// The errors that a compiler wrote, in the forms most of them share: `a.ts(3,5): error TS2304: …`,
/// `a.ts:3:5 - error TS2304: …`, `a.c:3:5: error: …`.
pub(super) fn errors_in_output(text: &str) -> Vec<BuildError> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^([^\s:(][^:(]*?)(?:\((\d+),\d+\)|:(\d+)(?::\d+)?)(?::| -) (?:fatal )?error(?: [A-Z]+\d+)?: (.*)$")
            .expect("a pattern that the tests below compile")
    });
    let mut errors: Vec<BuildError> = Vec::new();
    for found in without_colour(text)
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

fn same_file(named: &str, file: &Path) -> bool {
    let named = Path::new(named.trim_start_matches("./"));
    named == file || file.ends_with(named) || named.ends_with(file)
}

fn words_of(source: &str) -> impl Iterator<Item = &str> {
    source
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
}

/// The names an error message says do not exist.
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
                    // Without the arity that Elixir gives.
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
    fn missing_names_are_found_in_what_each_tool_says() {
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
    fn what_a_compiler_wrote_is_read_in_the_forms_most_of_them_share() {
        let said = "src/a.ts(3,5): error TS2304: Cannot find name 'add'.\n\u{1b}[96msrc/b.ts\u{1b}[0m:4:1 - error TS2305: Module \
                    '\"./a\"' has no exported member 'sub'.\nmain.c:9:2: error: expected ';'\nnothing: here\n";
        let errors = errors_in_output(said);
        let told: Vec<String> = errors
            .iter()
            .map(|e| format!("{} {:?}", e, e.missing))
            .collect();
        assert_eq!(
            told,
            [
                "src/a.ts:3: Cannot find name 'add'. [\"add\"]",
                "src/b.ts:4: Module '\"./a\"' has no exported member 'sub'. [\"sub\"]",
                "main.c:9: expected ';' []",
            ]
        );
    }

    #[test]
    fn a_missing_name_that_the_test_uses_is_told_from_a_project_that_is_broken() {
        let test = Path::new("tests/api.rs");
        let source = "use demo::add;\n#[test] fn adds() { assert_eq!(add(1, 2), 3); }";
        let missing = BuildError::new("unresolved import `demo::add`").at("tests/api.rs", Some(1));
        let syntax = BuildError::new("expected `;`").at("tests/api.rs", Some(2));
        let elsewhere = BuildError::new("expected `;`").at("src/lib.rs", Some(2));
        let far =
            BuildError::new("cannot find function `zip` in this scope").at("src/lib.rs", Some(2));
        assert_eq!(
            blame(std::slice::from_ref(&missing), test, source),
            BuildBlame::MissingNames
        );
        assert_eq!(blame(&[missing, syntax], test, source), BuildBlame::InFile);
        assert_eq!(blame(&[elsewhere], test, source), BuildBlame::Elsewhere);
        assert_eq!(blame(&[far], test, source), BuildBlame::Elsewhere);
        assert_eq!(blame(&[], test, source), BuildBlame::Elsewhere);
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
