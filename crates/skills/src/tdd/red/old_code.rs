//! What an added test may not touch, by the text of its file: code beside the tests, old assertions, old tests.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::super::additions;
use supervisor_languages::Language;
use supervisor_verify::rust_regions;

/// A Rust file whose tests alone differ. White space between items is not behaviour.
pub(super) fn same_code(before: &str, after: &str) -> bool {
    let rest = |source: &str| {
        let regions = rust_regions(source)?;
        Some(
            regions
                .rest(source)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        )
    };
    match (rest(before), rest(after)) {
        (Some(was), Some(is)) => was == is,
        _ => false,
    }
}

/// Lines that an added test may take along: imports that grow, brackets that move.
pub(super) fn may_go(line: &str) -> bool {
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

/// The tests that a source declares, also where a language has no word of its own for them.
pub(super) fn declared(
    ecosystem: Option<&'static Language>,
    path: &Path,
    source: &str,
) -> BTreeSet<String> {
    static ANY: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r#"(?m)^\s*(?:async\s+)?(?:def (test\w*)|(?:it|test|specify)(?:\.\w+)*\s*\(?\s*["'`]([^"'`]+)["'`])"#,
        )
        .expect("a pattern that the tests below compile")
    });
    let known = additions::declared(ecosystem, path, source);
    if !known.is_empty() {
        return known;
    }
    let names = ANY
        .captures_iter(source)
        .filter_map(|c| Some(c.get(1).or(c.get(2))?.as_str().to_owned()));
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_tests_of_one_file_are_told_apart() {
        let before = "pub fn one() -> u8 { 1 }\n";
        let with_test =
            format!("{before}\n#[cfg(test)]\nmod tests {{\n    #[test]\n    fn a() {{}}\n}}\n");
        assert!(same_code(before, &with_test));
        assert!(!same_code(before, &with_test.replace("{ 1 }", "{ 2 }")));
        assert!(!same_code(before, "pub fn one( {"));
    }

    #[test]
    fn tests_are_counted_in_languages_without_a_word_for_them() {
        let of = |source: &str| {
            declared(None, Path::new("x"), source)
                .into_iter()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of("def test_adds():\n    assert 1\n\ndef helper():\n    pass\n"),
            ["test_adds"]
        );
        assert_eq!(
            of("import x from 'y';\ntest('adds', () => {});\nit.only(\"halves\", () => {});\n"),
            ["adds", "halves"]
        );
    }

    #[test]
    fn an_old_assertion_may_not_go() {
        for line in [
            "use demo::add;",
            "}",
            "import { add } from './a';",
            "  ",
            "from calc import add",
        ] {
            assert!(may_go(line), "{line}");
        }
        for line in [
            "    assert_eq!(add(1, 2), 3);",
            "    assert add(1) == 2",
            "fn adds() {",
            "let _ = assert(x);",
        ] {
            assert!(!may_go(line), "{line}");
        }
    }
}
