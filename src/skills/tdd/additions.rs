//! What was added to a file: which lines, how many tests, and what deserves a second look.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::verify::Ecosystem;
use crate::words::diff::Diff;

/// The lines of the newer text that are new, from 1, and the older lines that are gone.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) added: BTreeSet<usize>,
    pub(super) removed: Vec<String>,
}

pub(super) fn lines(before: &str, after: &str) -> Lines {
    let mut lines = Lines::default();
    for change in Diff::of(before.as_bytes(), after.as_bytes()).changes() {
        lines.added.extend(change.at + 1..=change.at + change.new.len());
        lines.removed.extend(change.gone.iter().map(|line| String::from_utf8_lossy(line).into_owned()));
    }
    lines
}

impl Lines {
    /// The new lines, as text.
    pub(super) fn text<'a>(&self, after: &'a str) -> Vec<&'a str> {
        (1..).zip(after.lines()).filter(|(n, _)| self.added.contains(n)).map(|(_, line)| line).collect()
    }
}

/// The names of the tests that a source declares, for runs that cannot tell because nothing was built.
pub(super) fn declared(ecosystem: Option<Ecosystem>, source: &str) -> BTreeSet<String> {
    static RUST: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"#\[(?:[a-z_]+::)?(?:test|rstest|test_case)(?:\([^\]]*\))?\](?s:.)*?\bfn\s+([A-Za-z0-9_]+)")
    });
    static GO: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^func\s+((?:Test|Fuzz|Example)[A-Za-z0-9_]*)\s*\("));
    static ELIXIR: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(?m)^\s*test\s*\(?"([^"]+)""#));
    let pattern = match ecosystem {
        Some(Ecosystem::Rust) => &RUST,
        Some(Ecosystem::Go) => &GO,
        Some(Ecosystem::Elixir) => &ELIXIR,
        _ => return BTreeSet::new(),
    };
    pattern.captures_iter(source).filter_map(|c| Some(c.get(1)?.as_str().to_owned())).collect()
}

/// An assertion that fails whatever the code does.
pub(super) fn vacuous<'a>(added: &[&'a str]) -> Option<&'a str> {
    static FALSE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(concat!(
            r"^\s*(?:",
            r"assert!\(\s*false\b|assert\s+(?:False|0|not\s+True)\b|assert\(\s*false\s*[,)]|assert\.(?:fail|ok)\(\s*(?:false\b|[)'\x22`])",
            r"|assert_eq!\(\s*(?:true|false|-?\d+|\x22[^\x22]*\x22)\s*,\s*(?:true|false|-?\d+|\x22[^\x22]*\x22)\s*[,)]",
            r"|assert\s+(?:-?\d+|'[^']*'|\x22[^\x22]*\x22)\s*==\s*(?:-?\d+|'[^']*'|\x22[^\x22]*\x22)\s*(?:$|,|#)",
            r"|expect\(\s*(?:true|false|-?\d+)\s*\)\.(?:toBe|toEqual|to\.equal|to\s+eq)\W*(?:true|false|-?\d+)\b",
            r"|(?:pytest|self|t)\.fail\(|t\.Fail(?:Now)?\(\s*\)|flunk\b|assert\s+false\b|panic!\(|todo!\(|unimplemented!\(",
            r"|raise\s+(?:AssertionError|NotImplementedError)\b",
            r")"
        ))
    });
    static ENDS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"^\s*(?:raise\s+\w|throw\s+(?:new\s+)?\w|t\.(?:Fatal|Error)f?\(|(?:sys\.exit|process\.exit|os\.Exit|exit)\()",
        )
    });
    // In a branch it may be what the test is about; at the depth of the test's own body it is not.
    let depth = |line: &str| line.len() - line.trim_start().len();
    let body = added.iter().filter(|l| !l.trim().is_empty()).map(|l| depth(l)).filter(|d| *d > 0).min();
    let shallow = |line: &str| body.is_none_or(|body| depth(line) <= body + 4);
    let imports = |line: &str| {
        let line = line.trim_start();
        ["import ", "from ", "use "].iter().any(|word| line.starts_with(word)) || line.contains("require(")
    };
    let looks = |line: &&&str| {
        let words = ["assert", "expect", "raises", "rejects", "throws", "Raises"];
        words.iter().any(|word| line.contains(word)) && !imports(line)
    };
    let asserts = added.iter().filter(looks).count();
    // "It should have thrown", said where nothing was.
    let begins = |line: &&str, words: &[&str]| {
        let line = line.trim_start().trim_start_matches("} ");
        words.iter().any(|word| line.starts_with(word))
    };
    let tried = |at: usize| {
        added[..at].iter().any(|line| begins(line, &["try", "begin"]))
            && added[at..].iter().any(|line| begins(line, &["except", "catch", "rescue"]))
    };
    let at = |fits: &dyn Fn(&str) -> bool| {
        (0..added.len()).find(|at| fits(added[*at]) && shallow(added[*at]) && !tried(*at))
    };
    // Nothing is looked at: whoever throws or leaves does so whatever the code does.
    let turns = ["if ", "for ", "while ", "match ", "switch ", "try", "return", "catch"];
    let straight = asserts == 0 && !added.iter().any(|line| turns.iter().any(|word| line.contains(word)));
    let vain = at(&|line| asserts <= 1 && FALSE.is_match(line));
    vain.or_else(|| at(&|line| straight && ENDS.is_match(line))).map(|at| added[at])
}

/// Things that code outside can name, added by these lines.
pub(super) fn public_items(ecosystem: Option<Ecosystem>, added: &[&str]) -> Vec<String> {
    static RUST: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^\s*pub\s+(?:const\s+|async\s+|unsafe\s+)*(?:fn|struct|enum|trait|const|static|type|mod)\s+(\w+)")
    });
    static GO: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^(?:func\s+(?:\([^)]*\)\s*)?|type\s+|var\s+|const\s+)([A-Z]\w*)"));
    static PYTHON: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:async\s+)?(?:def|class)\s+([A-Za-z]\w*)"));
    static NODE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"^\s*(?:export\s+(?:default\s+)?(?:async\s+)?(?:function|class|const|let)\s+|(?:module\.)?exports\.)(\w+)",
        )
    });
    static DEF: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:def|defmodule|class|module)\s+([\w.?!]+)"));
    let pattern = match ecosystem {
        Some(Ecosystem::Rust) => &RUST,
        Some(Ecosystem::Go) => &GO,
        Some(Ecosystem::Python) => &PYTHON,
        Some(Ecosystem::Node) => &NODE,
        Some(Ecosystem::Ruby | Ecosystem::Elixir) => &DEF,
        None => return Vec::new(),
    };
    added.iter().filter_map(|line| Some(pattern.captures(line)?.get(1)?.as_str().to_owned())).collect()
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern that the tests below compile")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_tests_are_found_by_name() {
        let rust = "#[test]\nfn adds() {}\n#[tokio::test]\nasync fn waits() {}\nfn helper() {}";
        assert_eq!(declared(Some(Ecosystem::Rust), rust).into_iter().collect::<Vec<_>>(), ["adds", "waits"]);
        let go = "func TestAdd(t *testing.T) {}\nfunc helper() {}";
        assert_eq!(declared(Some(Ecosystem::Go), go).into_iter().collect::<Vec<_>>(), ["TestAdd"]);
        assert_eq!(declared(Some(Ecosystem::Elixir), "  test \"adds\" do").len(), 1);
    }

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
            "    t.Fail()",
            "    pytest.fail('x')",
        ] {
            assert_eq!(vacuous(&["fn a() {", vain]), Some(vain));
        }
        for vain in [
            "  assert.ok(false);",
            "  assert.fail();",
            "  throw new Error('no discount');",
            "    raise RuntimeError(\"punctuation\")",
            "    sys.exit(1)",
            "\tt.Fatal(\"not implemented\")",
        ] {
            let added = ["import assert from 'node:assert/strict';", "test('discount', () => {", vain];
            assert_eq!(vacuous(&added), Some(vain));
        }
        for fair in [
            ["def test_retries():", "    def broken(): raise OSError('x')", "    assert retry(broken) == 3"],
            ["def test_raises():", "    with pytest.raises(ValueError):", "        raise_for('x')"],
            ["func TestIV(t *testing.T) {", "\tif got := ToInt(\"IV\"); got != 4 {", "\t\tt.Fatalf(\"got %d\", got)"],
            ["test('x', async () => {", "  await assert.rejects(load('x'));", "  throw new Error('x');"],
            ["  try { total(-1); } catch (error) {", "    return;", "  throw new Error('it was taken');"],
            ["    try:", "        pytest.fail('it was taken')", "    except ValueError: pass"],
        ] {
            assert_eq!(vacuous(&fair), None, "{fair:?}");
        }
        for fair in [
            "    assert!(!is_even(3));",
            "    assert_eq!(add(1, 2), 3);",
            "    assert add(1, 2) == 3",
            "    assert 3 == add(1, 2)",
            "    expect(add(1, 2)).toBe(3);",
            "    assert.equal(add(1, 2), 3);",
        ] {
            assert_eq!(vacuous(&["fn a() {", fair]), None, "{fair}");
        }
    }

    #[test]
    fn public_items_are_named() {
        assert_eq!(public_items(Some(Ecosystem::Rust), &["pub fn add() {", "fn b() {", "pub(crate) fn c()"]), ["add"]);
        assert_eq!(public_items(Some(Ecosystem::Go), &["func Add(a int) int {", "func b() {"]), ["Add"]);
        assert_eq!(public_items(Some(Ecosystem::Python), &["def add(a):", "    def inner():", "def _x():"]), ["add"]);
    }
}
