//! Which part of a test file is red? In a file of a thousand tests the names that the failing ones use say what is meant.
//! Knows names of tests as runners write them, and lines. Does not know what the lines mention.

use std::collections::HashSet;
use std::ops::Range;

use super::source::{Source, words};
use supervisor_languages::Definition;

/// More failing tests than this say nothing that the first ones do not.
const MOST_TESTS: usize = 20;
/// Lines of one test; a longer block is a group of them.
const LONGEST: usize = 120;
/// Tests of one name, in different groups of a file.
const SAME_NAME: usize = 3;

/// The lines of the failing tests, by their names and by the lines that the runner named. Empty if it cannot be told.
pub(super) fn failing_parts(
    test: &Source,
    failing: &[String],
    lines_named: &[usize],
) -> Vec<Range<usize>> {
    let lines: Vec<&str> = test.text.lines().collect();
    let titles: Vec<(usize, String)> = titles(test, &lines);
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
    for name in failing.iter().take(MOST_TESTS) {
        let name = plain_name(name);
        let fits = |title: &str| {
            name.strip_suffix(title)
                .is_some_and(|b| b.is_empty() || b.ends_with('_'))
        };
        let longest = titles
            .iter()
            .filter(|(_, t)| fits(t))
            .map(|(_, t)| t.len())
            .max();
        let same = titles
            .iter()
            .filter(|(_, t)| fits(t) && Some(t.len()) == longest)
            .take(SAME_NAME);
        same.for_each(|(at, _)| add(block(&lines, *at)));
    }
    for line in lines_named
        .iter()
        .map(|line| line.saturating_sub(1))
        .filter(|line| *line < lines.len())
    {
        let around = test
            .around(line)
            .map(|item| item.lines.clone())
            .filter(|item| item.len() <= LONGEST);
        add(around.unwrap_or_else(|| line.saturating_sub(20)..(line + 10).min(lines.len())));
    }
    found
}

/// The text of these parts, and of what the file itself defines and they use: a failing test speaks through its helpers.
pub(super) fn text_with_helpers(test: &Source, parts: &[Range<usize>]) -> String {
    let lines: Vec<&str> = test.text.lines().collect();
    let text_of = |part: &Range<usize>| lines.get(part.clone()).unwrap_or_default().join("\n");
    let red = parts.iter().map(text_of).collect::<Vec<_>>().join("\n");
    let used: HashSet<&str> = words(&red).collect();
    let is_helper = |item: &&Definition| {
        used.contains(item.name.as_str())
            && item.lines.len() <= LONGEST
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
    format!("{red}\n{}", helpers.join("\n"))
        .trim_end()
        .to_owned()
}

/// What could be the last part of a test's name: definitions, and texts in quotes at the head of a block.
fn titles(test: &Source, lines: &[&str]) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = test
        .items()
        .iter()
        .map(|item| (item.at, plain_name(&item.name)))
        .filter(|(_, name)| !name.is_empty())
        .collect();
    for (at, line) in lines.iter().enumerate() {
        for quote in ['"', '\'', '`'] {
            let mut parts = line.split(quote);
            let title = parts
                .nth(1)
                .filter(|_| parts.next().is_some())
                .map(plain_name);
            found.extend(
                title
                    .filter(|title| title.len() > 2)
                    .map(|title| (at, title)),
            );
        }
    }
    found
}

/// Runners write names with blanks, underscores or colons, and add what case of a table it was.
fn plain_name(name: &str) -> String {
    let name = name
        .strip_suffix(']')
        .and_then(|n| n.rsplit_once('['))
        .map_or(name, |(before, _)| before);
    let mut plain = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_alphanumeric() {
            plain.extend(c.to_lowercase());
        } else if !plain.ends_with('_') {
            plain.push('_');
        }
    }
    plain.trim_matches('_').to_owned()
}

/// The line and what is indented below it, up to the line that closes it.
fn block(lines: &[&str], at: usize) -> Range<usize> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(lines[at]);
    let ends = |line: &&str| !line.trim().is_empty() && indent(line) <= own;
    let below = &lines[at + 1..lines.len().min(at + LONGEST)];
    let end = below
        .iter()
        .position(ends)
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
            &Source::new(language, path, text.to_owned()),
            &failing,
            lines,
        )
    }

    #[test]
    fn failing_tests_are_found_by_the_names_that_runners_give_them() {
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
    fn lines_that_the_runner_names_count_where_no_name_fits() {
        let text = "def test_a():\n    one()\n\n\ndef test_b():\n    two()\n";
        assert_eq!(parts("t.py", text, &["something else"], &[6]), [4..6]);
        assert!(parts("t.py", text, &["something else"], &[99]).is_empty());
        assert!(parts("t.py", "", &["x"], &[1]).is_empty());
    }
}
