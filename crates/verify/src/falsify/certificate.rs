//! The other direction: a test that fails is made to expect what the code gives now. If it passes then, it fails for
//! what the code does and not for a slip of its own. What the code gives is read from what the failure says.

use std::sync::LazyLock;

use regex::Regex;

use super::sites::{Claim, contains};
use super::{FalsifiableTests, TextEdit, apply};

/// How runners print the two sides of an equality that does not hold.
static SIDES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
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
    /// The file with the first target expecting what the code gives now. `None` if the failure does not say that by a
    /// literal, or if the test does not expect one.
    pub fn expecting_what_is_given(&self, failure: &str) -> Option<String> {
        let target = self.targets.first()?;
        let test = &self.source.sites[target.site];
        for found in SIDES.iter().filter_map(|sides| sides.captures(failure)) {
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
                    let own = self.source.slice(side);
                    let given = match pair {
                        [a, b] if same(a, own) && !same(b, own) => b,
                        [a, b] if same(b, own) && !same(a, own) => a,
                        _ => continue,
                    };
                    if is_literal && is_plain(given) {
                        let edit = TextEdit {
                            range: side.clone(),
                            text: given.to_owned(),
                        };
                        return Some(apply(&self.source.text, vec![edit]));
                    }
                }
            }
        }
        None
    }
}

/// The same value, whatever its quotes.
fn same(printed: &str, own: &str) -> bool {
    let bare = |text: &str| text.trim_matches(['"', '\'', '`']).to_owned();
    printed == own || bare(printed) == bare(own)
}

/// A number, a text in quotes or a truth: what can be written where a literal stands.
fn is_plain(text: &str) -> bool {
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
    fn what_the_code_gives_is_read_from_the_failure() {
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
            let text = tests.expecting_what_is_given(failure);
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
