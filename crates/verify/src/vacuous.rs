//! Detects tests that fail whatever the code does: `assert False`, an unconditional throw, or a
//! failure call without a condition. Such a red test proves nothing, and no honest change can make
//! it pass.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use supervisor_languages::{GO, Language, QueryMatch};

/// The added line that makes the test fail whatever the code does.
pub fn find_vacuous_line<'a>(
    language: Option<&'static Language>,
    added: &[&'a str],
) -> Option<&'a str> {
    if language == Some(&GO) {
        unconditional_failure(added)
    } else {
        constant_failure(added)
    }
}

/// Like [`find_vacuous_line`], but by the syntax of the language's test frameworks (`@vacuous` in
/// its `tests.scm`). Returns `None` if anything else is asserted on `lines`, which count from 1.
pub fn find_vacuous_by_syntax<'a>(
    language: Option<&'static Language>,
    path: &Path,
    source: &'a str,
    lines: &BTreeSet<usize>,
) -> Option<&'a str> {
    let tree = language?.parse(path, source)?;
    let is_new = |line: usize| lines.contains(&(line + 1));
    let vacuous = tree
        .matches(|q| &q.tests)
        .into_iter()
        .find_map(|m| m.get("vacuous").filter(|c| is_new(c.line)).cloned())?;
    let asserts = |m: &QueryMatch<'_>| {
        let claim = ["equal", "holds", "raises"]
            .iter()
            .find_map(|name| m.get(name));
        claim.is_some_and(|claim| is_new(claim.line) && claim.line != vacuous.line)
    };
    let has_other = tree.matches(|q| &q.expectations).iter().any(asserts);
    source.lines().nth(vacuous.line).filter(|_| !has_other)
}

/// Go tests consist of a condition and a failure call. A failure call without any condition is
/// vacuous.
fn unconditional_failure<'a>(added: &[&'a str]) -> Option<&'a str> {
    static FAILS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^\s*(?:t\.(?:Fail|FailNow|Fatal|Fatalf|Error|Errorf)\(|panic\()")
    });
    static BRANCHES: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"\b(?:if|for|switch|select|case|return)\b|\b(?:assert|require|is|qt)\.")
    });
    let is_unconditional = !added.iter().any(|line| BRANCHES.is_match(line));
    added
        .iter()
        .copied()
        .find(|line| is_unconditional && FAILS.is_match(line))
}

/// Finds an assertion about constants, or a throw or exit in a test that checks nothing before.
fn constant_failure<'a>(added: &[&'a str]) -> Option<&'a str> {
    static CONSTANT: LazyLock<Regex> = LazyLock::new(|| {
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
    static EXITS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r#"^\s*(?:raise\s+\w|(?:raise|fail)\s*\(?\s*["']|throw\s+(?:new\s+)?\w|(?:sys\.exit|process\.exit|exit)\()"#,
        )
    });
    // Inside a branch the line may be what the test is about; at the top level of the test body it
    // is not.
    let depth = |line: &str| line.len() - line.trim_start().len();
    let body = added
        .iter()
        .filter(|l| !l.trim().is_empty())
        .map(|l| depth(l))
        .filter(|d| *d > 0)
        .min();
    let is_top_level = |line: &str| body.is_none_or(|body| depth(line) <= body + 4);
    let asserts = added.iter().filter(|line| checks_result(line)).count();
    let find_line = |matches: &dyn Fn(&str) -> bool| {
        (0..added.len()).find(|at| {
            matches(added[*at]) && is_top_level(added[*at]) && !is_expected_to_throw(added, *at)
        })
    };
    let branch_words = [
        "if ", "for ", "while ", "match ", "switch ", "try", "return", "catch",
    ];
    let is_straight_line = asserts == 0
        && !added
            .iter()
            .any(|line| branch_words.iter().any(|word| line.contains(word)));
    let vacuous = find_line(&|line| asserts <= 1 && CONSTANT.is_match(line));
    vacuous
        .or_else(|| find_line(&|line| is_straight_line && EXITS.is_match(line)))
        .map(|at| added[at])
}

/// Whether the line checks a result of the code.
fn checks_result(line: &str) -> bool {
    let has_assertion = ["assert", "expect", "raises", "rejects", "throws", "Raises"]
        .iter()
        .any(|word| line.contains(word));
    let line = line.trim_start();
    let is_import = ["import ", "from ", "use "]
        .iter()
        .any(|word| line.starts_with(word))
        || line.contains("require(");
    has_assertion && !is_import
}

/// Whether the line is between `try` and `catch`, where it means "this should have thrown".
fn is_expected_to_throw(added: &[&str], at: usize) -> bool {
    let starts_with_any = |line: &&str, words: &[&str]| {
        let line = line.trim_start().trim_start_matches("} ");
        words.iter().any(|word| line.starts_with(word))
    };
    added[..at]
        .iter()
        .any(|line| starts_with_any(line, &["try", "begin"]))
        && added[at..]
            .iter()
            .any(|line| starts_with_any(line, &["except", "catch", "rescue"]))
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("valid regex")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_about_constants_are_vacuous() {
        for vacuous in [
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
            assert_eq!(
                find_vacuous_line(None, &["fn a() {", vacuous]),
                Some(vacuous)
            );
        }
        for valid in [
            "    assert!(!is_even(3));",
            "    assert_eq!(add(1, 2), 3);",
            "    assert add(1, 2) == 3",
            "    assert 3 == add(1, 2)",
            "    expect(add(1, 2)).toBe(3);",
            "    assert.equal(add(1, 2), 3);",
            "    expect(add(1, 2)).to be 3",
            "    expect { add(nil) }.to raise_error(ArgumentError)",
        ] {
            assert_eq!(
                find_vacuous_line(None, &["fn a() {", valid]),
                None,
                "{valid}"
            );
        }
    }

    #[test]
    fn throw_without_a_check_is_vacuous() {
        for vacuous in [
            "  assert.ok(false);",
            "  assert.fail();",
            "  throw new Error('no discount');",
            "    raise RuntimeError(\"punctuation\")",
            "    sys.exit(1)",
        ] {
            let added = [
                "import assert from 'node:assert/strict';",
                "test('discount', () => {",
                vacuous,
            ];
            assert_eq!(find_vacuous_line(None, &added), Some(vacuous));
        }
        for valid in [
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
            assert_eq!(find_vacuous_line(None, &valid), None, "{valid:?}");
        }
    }

    #[test]
    fn go_failure_without_a_condition_is_vacuous() {
        let go = |body: &[&'static str]| find_vacuous_line(Some(&GO), body);
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
        let valid = [
            "func TestIV(t *testing.T) {",
            "\tif got := ToInt(\"IV\"); got != 4 {",
            "\t\tt.Fatalf(\"%d\", got)",
        ];
        assert_eq!(go(&valid), None);
    }

    #[test]
    fn framework_failures_are_found_by_syntax() {
        for (file, line, is_vacuous) in [
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
                find_vacuous_by_syntax(Language::of_path(path), path, &source, &(1..=5).collect());
            assert_eq!(found, is_vacuous.then_some(line), "{line}");
        }
    }
}
