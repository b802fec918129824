//! Text checks on a file to which a test was added: code beside the tests, old assertions and old
//! tests must be unchanged.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::super::additions;
use supervisor_languages::Language;
use supervisor_text::words;
use supervisor_verify::rust_regions;

/// Whether two versions of a Rust file differ only in their tests. Ignores white space.
pub(super) fn has_same_code(before: &str, after: &str) -> bool {
    let rest = |source: &str| {
        let regions = rust_regions(source)?;
        Some(words::one_line(&regions.rest(source)))
    };
    match (rest(before), rest(after)) {
        (Some(old), Some(new)) => old == new,
        _ => false,
    }
}

/// Whether adding a test may remove this line, such as an import that is extended or a bracket
/// that moves.
pub(super) fn is_removable(line: &str) -> bool {
    let line = line.trim();
    let imports = [
        "use ", "import ", "from ", "const ", "let ", "var ", "require", "mod ", "alias ", "\"",
        "'",
    ];
    !line.chars().any(char::is_alphanumeric)
        || (imports.iter().any(|word| line.starts_with(word))
            && !line.contains("assert")
            && !line.contains("expect"))
        || line.starts_with("} from ")
}

/// Names of the tests that a source declares. Falls back to a pattern for languages without a
/// query for tests.
pub(super) fn declared_tests(
    ecosystem: Option<&'static Language>,
    path: &Path,
    source: &str,
) -> BTreeSet<String> {
    static TEST_DECLARATION: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r#"(?m)^\s*(?:async\s+)?(?:def (test\w*)|(?:it|test|specify)(?:\.\w+)*\s*\(?\s*["'`]([^"'`]+)["'`])"#,
        )
        .expect("valid regex")
    });
    let known = additions::declared_tests(ecosystem, path, source);
    if !known.is_empty() {
        return known;
    }
    let names = TEST_DECLARATION
        .captures_iter(source)
        .filter_map(|c| Some(c.get(1).or(c.get(2))?.as_str().to_owned()));
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_code_beside_tests_is_detected() {
        let before = "pub fn one() -> u8 { 1 }\n";
        let with_test =
            format!("{before}\n#[cfg(test)]\nmod tests {{\n    #[test]\n    fn a() {{}}\n}}\n");
        assert!(has_same_code(before, &with_test));
        assert!(!has_same_code(before, &with_test.replace("{ 1 }", "{ 2 }")));
        assert!(!has_same_code(before, "pub fn one( {"));
    }

    #[test]
    fn tests_are_found_without_a_known_language() {
        let names_in = |source: &str| {
            declared_tests(None, Path::new("x"), source)
                .into_iter()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names_in("def test_adds():\n    assert 1\n\ndef helper():\n    pass\n"),
            ["test_adds"]
        );
        assert_eq!(
            names_in(
                "import x from 'y';\ntest('adds', () => {});\nit.only(\"halves\", () => {});\n"
            ),
            ["adds", "halves"]
        );
    }

    #[test]
    fn old_assertions_are_not_removable() {
        for line in [
            "use demo::add;",
            "}",
            "import { add } from './a';",
            "  ",
            "from calc import add",
        ] {
            assert!(is_removable(line), "{line}");
        }
        for line in [
            "    assert_eq!(add(1, 2), 3);",
            "    assert add(1) == 2",
            "fn adds() {",
            "let _ = assert(x);",
        ] {
            assert!(!is_removable(line), "{line}");
        }
    }
}
