//! What a test run says: file locations and missing names in its output, and the failing part of
//! the test file. In a file with many tests, the names that the failing ones use show which code is
//! relevant.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::PackRequest;
use super::project::{FileId, Project, SourceFile};
use super::resolve::unique;
use super::similarity::words;
use supervisor_languages::{Definition, ProjectFiles as _};
use supervisor_text::words::cut_middle;
use supervisor_verify::BuildError;

/// More locations are repetitions of stack traces.
const MAX_LOCATIONS: usize = 40;
/// Only this much is read, from the start, where compilers report errors, and from the end, where
/// runners print a summary.
const MAX_READ_BYTES: usize = 64 << 10;
/// Maximum lines of one test; a longer block is a group of tests.
const MAX_TEST_LINES: usize = 120;

static QUOTED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#""[^"]+"|'[^']+'|`[^`]+`"#).expect("valid regex"));

#[derive(Debug)]
pub(super) struct Failure {
    /// Lines of project files that the output names, counted from 0.
    pub locations: Vec<(FileId, usize)>,
    /// Last segments of missing names.
    pub missing: Vec<String>,
    /// Lines of the failing tests; the start of the given part if they are unknown.
    pub lines: Vec<Range<usize>>,
    /// The failing tests, with the helpers they use from the same file; the whole code of the given
    /// part if they are unknown.
    pub text: String,
}

impl Failure {
    /// `whole_test` is the file with the test that the caller gave.
    pub(super) fn read(
        project: &Project,
        request: &PackRequest<'_>,
        test: &SourceFile,
        whole_test: &SourceFile,
    ) -> Self {
        let mut in_files = Vec::new();
        for (path, line) in locations(request.failing_output) {
            let files = project.files_matching(&path).into_iter();
            in_files.extend(files.map(|id| (id, line.saturating_sub(1))));
        }
        let test_id = project.at(&test.path);
        let in_test = in_files.iter().filter(|(id, _)| Some(*id) == test_id);
        let in_test: Vec<usize> = in_test.map(|(_, line)| *line).collect();
        let mut lines = failing_lines(whole_test, request.failing, &in_test);
        let mut text = text_with_helpers(whole_test, &lines);
        if lines.is_empty() {
            let start = whole_test.text.find(&test.text).unwrap_or_default();
            let start = whole_test.text[..start].lines().count();
            lines.push(start..start + 40);
            text = test.masked().to_owned();
        }
        Self {
            locations: in_files,
            missing: missing_names(request.failing_output),
            lines,
            text,
        }
    }
}

/// File locations that a text refers to: the path as written, and the line.
pub fn locations(output: &str) -> Vec<(String, usize)> {
    let output = cut_middle(output, MAX_READ_BYTES);
    let words = output.split(|c: char| c.is_whitespace() || "()[]'\"`,".contains(c));
    let written = words.filter_map(|word| {
        let word = word.trim_start_matches("file://").trim_start_matches("./");
        let mut parts = word.split(':');
        let path = parts.next().filter(|p| p.contains('.') && p.len() > 3)?;
        Some((path.to_owned(), parts.next()?.parse().ok()?))
    });
    let python = output.lines().filter_map(|line| {
        let (path, rest) = line
            .trim()
            .strip_prefix("File \"")?
            .split_once("\", line ")?;
        let number = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((path.to_owned(), number.parse().ok()?))
    });
    let mut found = unique(written.chain(python));
    found.truncate(MAX_LOCATIONS);
    found
}

fn missing_names(output: &str) -> Vec<String> {
    let output = cut_middle(output, MAX_READ_BYTES);
    let names = output
        .lines()
        .flat_map(|line| BuildError::new(line).missing);
    let last = |name: String| name.rsplit(['.', ':', '/']).next().map(str::to_owned);
    let mut found = unique(names.filter_map(last).filter(|name| !name.is_empty()));
    found.truncate(MAX_LOCATIONS);
    found
}

/// Line ranges of the failing tests, found by their names and by the lines the runner named. Empty
/// if unknown.
fn failing_lines(test: &SourceFile, failing: &[String], named: &[usize]) -> Vec<Range<usize>> {
    let lines: Vec<&str> = test.text.lines().collect();
    let titles = title_candidates(test, &lines);
    let mut parts: Vec<Range<usize>> = Vec::new();
    for name in failing {
        let name = normalize_name(name);
        let is_title = |title: &str| name == title || name.ends_with(&format!("_{title}"));
        let matching = || titles.iter().filter(|(_, title)| is_title(title));
        let longest = matching().map(|(_, title)| title.len()).max();
        let best = matching().filter(|(_, title)| Some(title.len()) == longest);
        parts.extend(best.map(|(at, _)| block_at(&lines, *at)));
    }
    for &line in named.iter().filter(|line| **line < lines.len()) {
        let item = test.innermost_at(line).map(|item| item.lines.clone());
        let nearby = line.saturating_sub(20)..(line + 10).min(lines.len());
        parts.push(
            item.filter(|item| item.len() <= MAX_TEST_LINES)
                .unwrap_or(nearby),
        );
    }
    unique(parts)
}

/// The text of these parts and of the helpers in the same file that they use.
fn text_with_helpers(test: &SourceFile, parts: &[Range<usize>]) -> String {
    let lines: Vec<&str> = test.text.lines().collect();
    let text_of = |part: &Range<usize>| lines.get(part.clone()).unwrap_or_default().join("\n");
    let mut text = parts.iter().map(text_of).collect::<Vec<_>>().join("\n");
    let used: HashSet<&str> = words(&text).collect();
    let is_helper = |item: &&Definition| {
        used.contains(item.name.as_str()) && item.lines.len() <= MAX_TEST_LINES
    };
    let helpers = test.definitions().iter().filter(is_helper);
    let helpers: String = helpers
        .map(|item| format!("\n{}", text_of(&item.lines)))
        .collect();
    text.push_str(&helpers);
    text
}

/// Candidates for the last part of a test's name: definitions, and quoted text.
fn title_candidates(test: &SourceFile, lines: &[&str]) -> Vec<(usize, String)> {
    let items = test
        .definitions()
        .iter()
        .map(|item| (item.at, normalize_name(&item.name)));
    let mut found: Vec<(usize, String)> = items.filter(|(_, name)| !name.is_empty()).collect();
    for (at, line) in lines.iter().enumerate() {
        let titles = QUOTED
            .find_iter(line)
            .map(|quoted| normalize_name(quoted.as_str()));
        found.extend(
            titles
                .filter(|title| title.len() > 2)
                .map(|title| (at, title)),
        );
    }
    found
}

/// Normalises a test name. Runners separate words by spaces, underscores or colons, and append the
/// case of a parametrised test in brackets.
fn normalize_name(name: &str) -> String {
    let case = name
        .strip_suffix(']')
        .and_then(|name| name.rsplit_once('['));
    let name = case.map_or(name, |(before, _)| before).to_lowercase();
    let parts = name
        .split(|c: char| !c.is_alphanumeric())
        .filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("_")
}

/// The line and the block indented below it, including the closing line.
fn block_at(lines: &[&str], at: usize) -> Range<usize> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let ends_block = |line: &&str| !line.trim().is_empty() && indent(line) <= indent(lines[at]);
    let below = &lines[at + 1..lines.len().min(at + MAX_TEST_LINES)];
    let length = below.iter().position(ends_block).map_or(below.len(), |i| {
        let line = below[i].trim();
        i + usize::from(line.starts_with(['}', ')', ']']) || line == "end")
    });
    at..at + 1 + length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str, text: &str, failing: &[&str], lines: &[usize]) -> Vec<Range<usize>> {
        let failing: Vec<String> = failing.iter().map(|name| (*name).to_owned()).collect();
        let lines: Vec<usize> = lines.iter().map(|line| line - 1).collect();
        failing_lines(&SourceFile::new(path, text.to_owned()), &failing, &lines)
    }

    #[test]
    fn failing_tests_are_found_by_runner_names() {
        let python = "class TestCart:\n    def test_adds(self):\n        one()\n\n    def test_pays(self):\n        two()\n        three()\n";
        assert_eq!(
            parts("t.py", python, &["t.py::TestCart::test_pays[1-2]"], &[]),
            [4..7]
        );
        let javascript = "describe('cart', () => {\n  it('adds up', () => {\n    one();\n  });\n  it('pays, once', () => {\n    two();\n  });\n});\n";
        assert_eq!(
            parts(
                "t.test.js",
                javascript,
                &["t.test.js > cart > pays, once"],
                &[]
            ),
            [4..7]
        );
        let go = "func TestPay(t *testing.T) {\n\tt.Run(\"by card\", func(t *testing.T) {\n\t\tone()\n\t})\n}\n";
        assert_eq!(
            parts("t_test.go", go, &["shop::TestPay/by_card"], &[]),
            [1..4]
        );
        let elixir = "defmodule CartTest do\n  test \"is empty\" do\n    assert true\n  end\nend\n";
        assert_eq!(
            parts("t_test.exs", elixir, &["CartTest: test is empty"], &[]),
            [1..4]
        );
    }

    #[test]
    fn runner_lines_count_if_no_name_matches() {
        let text = "def test_a():\n    one()\n\n\ndef test_b():\n    two()\n";
        assert_eq!(parts("t.py", text, &["something else"], &[6]), [4..6]);
        assert!(parts("t.py", text, &["something else"], &[99]).is_empty());
        assert!(parts("t.py", "", &["x"], &[1]).is_empty());
    }

    #[test]
    fn locations_and_missing_names_are_extracted() {
        let output = "error[E0425]: cannot find function `add` in this scope\n --> src/a.rs:12:5\n  File \"/p/pkg/b.py\", line 7, in f\n    at f (file:///p/c.js:3:1)\n12:30:01 x";
        let expected = [("src/a.rs", 12), ("/p/c.js", 3), ("/p/pkg/b.py", 7)];
        assert_eq!(locations(output), expected.map(|(p, l)| (p.to_owned(), l)));
        assert_eq!(missing_names(output), ["add"]);
    }
}
