//! Finds the failing part of a test file. In a file with many tests, the names that the failing
//! ones use show which code is relevant.

use std::collections::HashSet;
use std::ops::Range;

use super::source::{SourceFile, words};
use supervisor_languages::Definition;

/// Further failing tests add no information.
const MAX_TESTS: usize = 20;
/// Maximum lines of one test; a longer block is a group of tests.
const MAX_TEST_LINES: usize = 120;
/// Maximum tests with the same name, in different groups of a file.
const MAX_SAME_NAME: usize = 3;

/// Line ranges of the failing tests, found by their names and by the lines the runner named. Empty
/// if unknown.
pub(super) fn failing_parts(
    test: &SourceFile,
    failing: &[String],
    named_lines: &[usize],
) -> Vec<Range<usize>> {
    let lines: Vec<&str> = test.text.lines().collect();
    let titles: Vec<(usize, String)> = title_candidates(test, &lines);
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut add = |part: Range<usize>| {
        if !part.is_empty()
            && !found
                .iter()
                .any(|known| known.start <= part.start && part.end <= known.end)
        {
            found.push(part);
        }
    };
    for name in failing.iter().take(MAX_TESTS) {
        let name = normalize_name(name);
        let matches = |title: &str| {
            name.strip_suffix(title)
                .is_some_and(|b| b.is_empty() || b.ends_with('_'))
        };
        let longest = titles
            .iter()
            .filter(|(_, t)| matches(t))
            .map(|(_, t)| t.len())
            .max();
        let same_name = titles
            .iter()
            .filter(|(_, t)| matches(t) && Some(t.len()) == longest)
            .take(MAX_SAME_NAME);
        same_name.for_each(|(at, _)| add(block_at(&lines, *at)));
    }
    for line in named_lines
        .iter()
        .map(|line| line.saturating_sub(1))
        .filter(|line| *line < lines.len())
    {
        let around = test
            .innermost_at(line)
            .map(|item| item.lines.clone())
            .filter(|item| item.len() <= MAX_TEST_LINES);
        add(around.unwrap_or_else(|| line.saturating_sub(20)..(line + 10).min(lines.len())));
    }
    found
}

/// The text of these parts and of the helpers in the same file that they use.
pub(super) fn text_with_helpers(test: &SourceFile, parts: &[Range<usize>]) -> String {
    let lines: Vec<&str> = test.text.lines().collect();
    let text_of = |part: &Range<usize>| lines.get(part.clone()).unwrap_or_default().join("\n");
    let failing_text = parts.iter().map(text_of).collect::<Vec<_>>().join("\n");
    let used: HashSet<&str> = words(&failing_text).collect();
    let is_helper = |item: &&Definition| {
        used.contains(item.name.as_str())
            && item.lines.len() <= MAX_TEST_LINES
            && !parts
                .iter()
                .any(|part| part.contains(&item.at) || item.lines.contains(&part.start))
    };
    let helpers: Vec<String> = test
        .items()
        .iter()
        .filter(is_helper)
        .map(|item| text_of(&item.lines))
        .collect();
    format!("{failing_text}\n{}", helpers.join("\n"))
        .trim_end()
        .to_owned()
}

/// Candidates for the last part of a test's name: definitions, and quoted text.
fn title_candidates(test: &SourceFile, lines: &[&str]) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = test
        .items()
        .iter()
        .map(|item| (item.at, normalize_name(&item.name)))
        .filter(|(_, name)| !name.is_empty())
        .collect();
    for (at, line) in lines.iter().enumerate() {
        for quote in ['"', '\'', '`'] {
            let mut parts = line.split(quote);
            let title = parts
                .nth(1)
                .filter(|_| parts.next().is_some())
                .map(normalize_name);
            found.extend(
                title
                    .filter(|title| title.len() > 2)
                    .map(|title| (at, title)),
            );
        }
    }
    found
}

/// Normalises a test name. Runners separate words by spaces, underscores or colons, and append the
/// case of a parametrised test in brackets.
fn normalize_name(name: &str) -> String {
    let name = name
        .strip_suffix(']')
        .and_then(|n| n.rsplit_once('['))
        .map_or(name, |(before, _)| before);
    let mut normalized = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_alphanumeric() {
            normalized.extend(c.to_lowercase());
        } else if !normalized.ends_with('_') {
            normalized.push('_');
        }
    }
    normalized.trim_matches('_').to_owned()
}

/// The line and the block indented below it, including the closing line.
fn block_at(lines: &[&str], at: usize) -> Range<usize> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own_indent = indent(lines[at]);
    let ends_block = |line: &&str| !line.trim().is_empty() && indent(line) <= own_indent;
    let below = &lines[at + 1..lines.len().min(at + MAX_TEST_LINES)];
    let end = below
        .iter()
        .position(ends_block)
        .map_or(at + 1 + below.len(), |i| {
            let closes =
                below[i].trim_start().starts_with(['}', ')', ']']) || below[i].trim() == "end";
            at + 1 + i + usize::from(closes)
        });
    at..end
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use supervisor_languages::Language;

    fn parts(path: &str, text: &str, failing: &[&str], lines: &[usize]) -> Vec<Range<usize>> {
        let language = Language::of_path(Path::new(path)).expect("a language");
        let failing: Vec<String> = failing.iter().map(|name| (*name).to_owned()).collect();
        failing_parts(
            &SourceFile::new(language, path, text.to_owned()),
            &failing,
            lines,
        )
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
}
