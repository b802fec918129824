//! A test that fails whatever the code does: `assert False`, a throw that nothing leads to, a complaint without a
//! condition. Such a red says nothing, and no honest green can follow it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use supervisor_languages::{GO, Language, QueryMatch};

/// The line of an added test that makes it fail whatever the code does.
pub(super) fn vacuous<'a>(
    language: Option<&'static Language>,
    added: &[&'a str],
) -> Option<&'a str> {
    if language == Some(&GO) {
        without_condition(added)
    } else {
        without_question(added)
    }
}

/// The same by the words of a language's test frameworks (`@vacuous` in its `tests.scm`), if nothing else is asserted on
/// these lines, which count from 1.
pub(super) fn vacuous_by_syntax<'a>(
    language: Option<&'static Language>,
    path: &Path,
    source: &'a str,
    lines: &BTreeSet<usize>,
) -> Option<&'a str> {
    let tree = language?.parse(path, source)?;
    let is_new = |line: usize| lines.contains(&(line + 1));
    let vain = tree
        .matches(|q| &q.tests)
        .into_iter()
        .find_map(|m| m.get("vacuous").filter(|c| is_new(c.line)).cloned())?;
    let asserts = |m: &QueryMatch<'_>| {
        let claim = ["equal", "holds", "raises"]
            .iter()
            .find_map(|name| m.get(name));
        claim.is_some_and(|claim| is_new(claim.line) && claim.line != vain.line)
    };
    let has_other = tree.matches(|q| &q.expectations).iter().any(asserts);
    source.lines().nth(vain.line).filter(|_| !has_other)
}

/// Go asserts by a condition and a complaint; a complaint without any condition is about nothing.
fn without_condition<'a>(added: &[&'a str]) -> Option<&'a str> {
    static COMPLAINS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^\s*(?:t\.(?:Fail|FailNow|Fatal|Fatalf|Error|Errorf)\(|panic\()")
    });
    static DECIDES: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"\b(?:if|for|switch|select|case|return)\b|\b(?:assert|require|is|qt)\.")
    });
    let vain = !added.iter().any(|line| DECIDES.is_match(line));
    added
        .iter()
        .copied()
        .find(|line| vain && COMPLAINS.is_match(line))
}

/// An assertion about constants, or a test that throws or leaves without having looked at anything.
fn without_question<'a>(added: &[&'a str]) -> Option<&'a str> {
    static FALSE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(concat!(
            r"^\s*(?:",
            r"assert!\(\s*false\b|assert\s+(?:False|0|not\s+True)\b|assert\(\s*false\s*[,)]|assert\.(?:fail|ok)\(\s*(?:false\b|[)'\x22`])",
            r"|assert_eq!\(\s*(?:true|false|-?\d+|\x22[^\x22]*\x22)\s*,\s*(?:true|false|-?\d+|\x22[^\x22]*\x22)\s*[,)]",
            r"|assert\s+(?:-?\d+|'[^']*'|\x22[^\x22]*\x22)\s*==\s*(?:-?\d+|'[^']*'|\x22[^\x22]*\x22)\s*(?:$|,|#)",
            r"|expect\(\s*(?:true|false|-?\d+)\s*\)\.(?:toBe|toEqual|to\.equal|to\s+eq|to\s+be)\W*(?:true|false|-?\d+)\b",
            r"|(?:pytest|self|t)\.fail\(|expect\.fail\(|flunk\b|assert\s+false\b|panic!\(|todo!\(|unimplemented!\(",
            r"|raise\s+(?:AssertionError|NotImplementedError)\b",
            r")"
        ))
    });
    static ENDS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r#"^\s*(?:raise\s+\w|(?:raise|fail)\s*\(?\s*["']|throw\s+(?:new\s+)?\w|(?:sys\.exit|process\.exit|exit)\()"#,
        )
    });
    // In a branch it may be what the test is about; at the depth of the test's own body it is not.
    let depth = |line: &str| line.len() - line.trim_start().len();
    let body = added
        .iter()
        .filter(|l| !l.trim().is_empty())
        .map(|l| depth(l))
        .filter(|d| *d > 0)
        .min();
    let shallow = |line: &str| body.is_none_or(|body| depth(line) <= body + 4);
    let asserts = added.iter().filter(|line| looks(line)).count();
    let at = |fits: &dyn Fn(&str) -> bool| {
        (0..added.len())
            .find(|at| fits(added[*at]) && shallow(added[*at]) && !is_expected_to_throw(added, *at))
    };
    let turns = [
        "if ", "for ", "while ", "match ", "switch ", "try", "return", "catch",
    ];
    let straight = asserts == 0
        && !added
            .iter()
            .any(|line| turns.iter().any(|word| line.contains(word)));
    let vain = at(&|line| asserts <= 1 && FALSE.is_match(line));
    vain.or_else(|| at(&|line| straight && ENDS.is_match(line)))
        .map(|at| added[at])
}

/// Does the line look at what the code did?
fn looks(line: &str) -> bool {
    let asks = ["assert", "expect", "raises", "rejects", "throws", "Raises"]
        .iter()
        .any(|word| line.contains(word));
    let line = line.trim_start();
    let imports = ["import ", "from ", "use "]
        .iter()
        .any(|word| line.starts_with(word))
        || line.contains("require(");
    asks && !imports
}

/// "It should have thrown", said between a `try` and its `catch`.
fn is_expected_to_throw(added: &[&str], at: usize) -> bool {
    let begins = |line: &&str, words: &[&str]| {
        let line = line.trim_start().trim_start_matches("} ");
        words.iter().any(|word| line.starts_with(word))
    };
    added[..at]
        .iter()
        .any(|line| begins(line, &["try", "begin"]))
        && added[at..]
            .iter()
            .any(|line| begins(line, &["except", "catch", "rescue"]))
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern that the tests below compile")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assertion_about_nothing_is_told_from_one_about_the_code() {
        for vain in [
            "    assert!(false);",
            "    assert False",
            "    assert_eq!(1, 2);",
            "    assert 1 == 2",
            "    expect(true).toBe(false);",
            "    assert.fail('not yet');",
            "    panic!(\"red\");",
            "    expect(true).to be false",
            "    raise \"not yet\"",
            "    throw new Error('not yet');",
            "    pytest.fail('x')",
        ] {
            assert_eq!(vacuous(None, &["fn a() {", vain]), Some(vain));
        }
        for fair in [
            "    assert!(!is_even(3));",
            "    assert_eq!(add(1, 2), 3);",
            "    assert add(1, 2) == 3",
            "    assert 3 == add(1, 2)",
            "    expect(add(1, 2)).toBe(3);",
            "    assert.equal(add(1, 2), 3);",
            "    expect(add(1, 2)).to be 3",
            "    expect { add(nil) }.to raise_error(ArgumentError)",
        ] {
            assert_eq!(vacuous(None, &["fn a() {", fair]), None, "{fair}");
        }
    }

    #[test]
    fn a_test_that_throws_or_leaves_has_to_look_at_something_first() {
        for vain in [
            "  assert.ok(false);",
            "  assert.fail();",
            "  throw new Error('no discount');",
            "    raise RuntimeError(\"punctuation\")",
            "    sys.exit(1)",
        ] {
            let added = [
                "import assert from 'node:assert/strict';",
                "test('discount', () => {",
                vain,
            ];
            assert_eq!(vacuous(None, &added), Some(vain));
        }
        for fair in [
            [
                "def test_retries():",
                "    def broken(): raise OSError('x')",
                "    assert retry(broken) == 3",
            ],
            [
                "def test_raises():",
                "    with pytest.raises(ValueError):",
                "        raise_for('x')",
            ],
            [
                "test('x', async () => {",
                "  await assert.rejects(load('x'));",
                "  throw new Error('x');",
            ],
            [
                "  try { total(-1); } catch (error) {",
                "    return;",
                "  throw new Error('it was taken');",
            ],
            [
                "    try:",
                "        pytest.fail('it was taken')",
                "    except ValueError: pass",
            ],
        ] {
            assert_eq!(vacuous(None, &fair), None, "{fair:?}");
        }
    }

    #[test]
    fn in_go_a_complaint_needs_a_condition() {
        let go = |body: &[&'static str]| vacuous(Some(&GO), body);
        assert_eq!(
            go(&["func TestA(t *testing.T) {", "\tt.Fatal(\"not yet\")"]),
            Some("\tt.Fatal(\"not yet\")")
        );
        assert_eq!(
            go(&[
                "func TestA(t *testing.T) {",
                "\tif add(1) != 2 {",
                "\t\tt.Fail()",
                "\t}"
            ]),
            None
        );
        let fair = [
            "func TestIV(t *testing.T) {",
            "\tif got := ToInt(\"IV\"); got != 4 {",
            "\t\tt.Fatalf(\"%d\", got)",
        ];
        assert_eq!(go(&fair), None);
    }

    #[test]
    fn the_words_of_a_framework_are_known_by_syntax() {
        for (file, line, is_vain) in [
            ("ATest.java", "        Assert.fail(\"not yet\");", true),
            ("ATest.java", "        assertEquals(1, 2);", true),
            ("ATest.java", "        assertTrue(false);", true),
            ("ATest.java", "        assertEquals(1, one());", false),
            ("a_test.cpp", "  FAIL() << \"not yet\";", true),
            ("a_test.cpp", "  EXPECT_TRUE(one() == 1);", false),
        ] {
            let source = match file.ends_with("java") {
                true => format!("class ATest {{\n    @Test void a() {{\n{line}\n    }}\n}}\n"),
                false => format!("TEST(A, B) {{\n{line}\n}}\n"),
            };
            let path = Path::new(file);
            let found =
                vacuous_by_syntax(Language::of_path(path), path, &source, &(1..=5).collect());
            assert_eq!(found, is_vain.then_some(line), "{line}");
        }
    }
}
