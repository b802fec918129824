//! The reverse check for a failing test: changes it to expect the value that the code returns now, read from the failure
//! message. If the test passes then, it failed because of the code and not because of a mistake in the test.

use std::sync::LazyLock;

use regex::Regex;

use super::test_source::{Claim, contains};
use super::{FalsifiableTests, TextEdit, apply};

/// The two sides of a failed equality, as runners print them.
static FAILED_EQUALITY: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"(?m)^\s*left:\s+(.+?)\s*\n\s*right:\s+(.+?)\s*$",
        r"(?m)^\s*[Ee]xpected:?\s+(.+?)\s*\n\s*(?:Received|got|Actual):?\s+(.+?)\s*$",
        r"(?m)^(?:E\s+)?assert (.+?) == (.+?)$",
        r"(?m)^(?:E\s+)?AssertionError: (.+?) != (.+?)$",
        r"(?m)^\s*(?:AssertionError.*: )?(\S+) (?:!==?|===?) (\S+)\s*$",
    ]
    .iter()
    .map(|pattern| Regex::new(pattern).expect("a pattern that a test compiles"))
    .collect()
});

impl FalsifiableTests {
    /// The file with the first target changed to expect the actual value. `None` if the failure does not show that value
    /// as a literal, or if the test does not expect a literal.
    pub fn with_actual_value(&self, failure: &str) -> Option<String> {
        let target = self.targets.first()?;
        let test = &self.source.sites[target.site];
        for found in FAILED_EQUALITY
            .iter()
            .filter_map(|pattern| pattern.captures(failure))
        {
            let pair = [found.get(1)?.as_str(), found.get(2)?.as_str()];
            for assertion in self
                .source
                .assertions
                .iter()
                .filter(|a| contains(&test.whole, &a.range))
            {
                let sides = match &assertion.claim {
                    Claim::Equal(left, right) => vec![left.clone(), right.clone()],
                    Claim::EqualTokens(tokens) => self.source.elements(tokens).unwrap_or_default(),
                    _ => continue,
                };
                for side in sides.iter().take(2) {
                    let is_literal = self
                        .source
                        .literals_in(side)
                        .any(|literal| literal.range == *side);
                    let expected = self.source.slice(side);
                    let actual = match pair {
                        [a, b] if same(a, expected) && !same(b, expected) => b,
                        [a, b] if same(b, expected) && !same(a, expected) => a,
                        _ => continue,
                    };
                    if is_literal && is_literal_text(actual) {
                        let edit = TextEdit {
                            range: side.clone(),
                            text: actual.to_owned(),
                        };
                        return Some(apply(&self.source.text, vec![edit]));
                    }
                }
            }
        }
        None
    }
}

/// Whether both texts are the same value, ignoring quotes.
fn same(printed: &str, written: &str) -> bool {
    let unquoted = |text: &str| text.trim_matches(['"', '\'', '`']).to_owned();
    printed == written || unquoted(printed) == unquoted(written)
}

/// Whether the text is a number, a simple quoted string or a boolean, and so can replace a literal.
fn is_literal_text(text: &str) -> bool {
    let quoted = |quote: char| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    let inside = text
        .get(1..text.len().saturating_sub(1))
        .unwrap_or_default();
    text.parse::<f64>().is_ok()
        || ["true", "false", "True", "False"].contains(&text)
        || ((quoted('"') || quoted('\'')) && !inside.contains(['"', '\'', '\\']))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::super::outcome::TestName;
    use super::*;

    #[test]
    fn actual_value_is_read_from_failure() {
        let python = "def test_nine():\n    assert roman(9) == 'IX'\n";
        let rust = "#[test]\nfn nine() {\n    assert_eq!(demo::triple(2), 6);\n}\n";
        let node = "test('nine', () => assert.equal(triple(2), 6));\n";
        for (file, source, name, failure, expected) in [
            (
                "test_a.py",
                python,
                "test_a.py::test_nine",
                "assert 'VIIII' == 'IX'\n  - IX",
                Some("== 'VIIII'"),
            ),
            (
                "test_a.py",
                python,
                "test_a.py::test_nine",
                "E       assert None == 'IX'",
                None,
            ),
            (
                "tests/a.rs",
                rust,
                "demo::a nine",
                "assertion failed\n  left: 2\n right: 6\n",
                Some("(2), 2)"),
            ),
            (
                "a.test.js",
                node,
                "a.test.js > nine",
                "AssertionError: 2 == 6",
                Some("(2), 2)"),
            ),
            (
                "a.test.js",
                node,
                "a.test.js > nine",
                "Expected: 6\nReceived: 2",
                Some("(2), 2)"),
            ),
            (
                "a.test.js",
                node,
                "a.test.js > nine",
                "triple is not a function",
                None,
            ),
        ] {
            let tests = FalsifiableTests::find(Path::new(file), source, &[TestName::from(name)])
                .expect("a language");
            let text = tests.with_actual_value(failure);
            match expected {
                Some(expected) => assert!(
                    text.as_deref().is_some_and(|t| t.contains(expected)),
                    "{failure}: {text:?}"
                ),
                None => assert_eq!(text, None, "{failure}"),
            }
        }
    }
}
