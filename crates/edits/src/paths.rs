//! Finds the path an answer names: in a line before a block, in an info string, or in the first
//! line of a block. Handles the ways in which models decorate paths.

use std::sync::LazyLock;

use regex::Regex;

use super::path_resolution::{FileLookup, find_file};
use super::rule::ParseRule;

/// Longer lines are not searched.
const MAX_LINE_LEN: usize = 600;

/// A path as written, and the rule that found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedPath {
    pub(super) path: String,
    pub(super) rule: ParseRule,
}

/// The path in a line before a block: alone, decorated, or in a sentence.
pub(super) fn path_in_line(line: &str, facts: &FileLookup<'_>) -> Option<NamedPath> {
    let line = line.trim();
    if line.is_empty() || line.len() > MAX_LINE_LEN {
        return None;
    }
    let is_heading = line.starts_with('#');
    if let Some(path) = path_alone(line, facts) {
        let rule = if is_heading {
            ParseRule::PathInHeading
        } else {
            ParseRule::PathBeforeFence
        };
        return Some(NamedPath { path, rule });
    }
    let rule = if is_heading {
        ParseRule::PathInHeading
    } else {
        ParseRule::PathInSentence
    };
    path_in_sentence(line, facts).map(|path| NamedPath { path, rule })
}

/// Matches `File: src/lib.rs`, `**src/lib.rs**:`, `### 1. `src/lib.rs` (new)`, `=== src/lib.rs
/// ===`.
fn path_alone(line: &str, facts: &FileLookup<'_>) -> Option<String> {
    static LABEL: LazyLock<Regex> = LazyLock::new(|| {
        let label = r"(?i)^(?:(?:\d+[.)]|[-*+•])\s+)?(?:(?:updated|modified|new|changed|edited|create|created|edit|update|modify|full|complete)\s+)?(?:(?:file\s*(?:name|path)?|path|filename|filepath|target|in)\b\s*[:=]?\s*)?";
        Regex::new(label).expect("the pattern is valid")
    });
    let undecorated = undecorate(line);
    let rest = undecorate(&undecorated[LABEL.find(undecorated).map_or(0, |m| m.end())..]);
    // Drop a remark in brackets: `(new file)`.
    let rest = match rest.rfind(" (").filter(|_| rest.ends_with(')')) {
        Some(at) => undecorate(&rest[..at]),
        None => rest,
    };
    is_path(rest, facts).then(|| rest.to_owned())
}

fn undecorate(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || "#*`\"':=>[]{}|—–".contains(c) || (c == '-'))
        .trim_end_matches([',', ';'])
}

/// The only path in a sentence, quoted ones first. If there are several, the one that may be
/// edited.
fn path_in_sentence(line: &str, facts: &FileLookup<'_>) -> Option<String> {
    static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r#"`([^`\s][^`]*)`|\*\*([^*\s][^*]*)\*\*|"([^"\s][^"]*)"|'([^'\s]+)'|\]\(([^)\s]+)\)"#,
        )
        .expect("the pattern is valid")
    });
    let quoted = QUOTED
        .captures_iter(line)
        .filter_map(|c| (1..=5).find_map(|n| c.get(n)))
        .map(|m| m.as_str());
    let bare = line
        .split(|c: char| c.is_whitespace() || "()[]<>,;".contains(c))
        .map(|word| {
            word.trim_matches(|c: char| "`*\"':!?".contains(c))
                .trim_end_matches('.')
        });
    let mut paths: Vec<&str> = quoted
        .chain(bare)
        .filter(|word| is_certainly_path(word, facts))
        .collect();
    paths.sort_unstable();
    paths.dedup();
    if paths.len() > 1 {
        paths.retain(|path| {
            !facts.is_protected(&find_file(path, facts).unwrap_or_else(|| (*path).to_owned()))
        });
    }
    match paths.as_slice() {
        [path] => Some((*path).to_owned()),
        _ => None,
    }
}

/// Whether this can be a path, where a path is expected.
pub(super) fn is_path(word: &str, facts: &FileLookup<'_>) -> bool {
    if word.is_empty()
        || word.len() > 300
        || word.contains("://")
        || word.contains(['`', '"', '*', '<', '>', '\n'])
    {
        return false;
    }
    if find_file(word, facts).is_some() {
        return true;
    }
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    !word.contains(char::is_whitespace) && has_extension(name)
}

/// Whether this can only be a path.
fn is_certainly_path(word: &str, facts: &FileLookup<'_>) -> bool {
    is_path(word, facts)
        && !word.contains(['(', ')'])
        && (word.contains('/') || find_file(word, facts).is_some() || has_known_extension(word))
}

fn has_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, extension)| {
        (1..=10).contains(&extension.len())
            && extension.chars().all(|c| c.is_ascii_alphanumeric())
            && !extension.chars().all(|c| c.is_ascii_digit())
            && !stem.is_empty()
    })
}

fn has_known_extension(word: &str) -> bool {
    let extension = word.rsplit_once('.').map_or("", |(_, extension)| extension);
    super::vocabulary::vocabulary()
        .languages
        .values()
        .any(|known| known.iter().any(|k| k == extension))
}

/// Matches `rust src/lib.rs`, `rust:src/lib.rs`, `src/lib.rs`, `py title="a.py"`, `js {file:
/// "a.js"}`.
pub(super) fn path_in_info(info: &str, facts: &FileLookup<'_>) -> Option<NamedPath> {
    if info.is_empty() || info.len() > MAX_LINE_LEN {
        return None;
    }
    let words = info
        .split(|c: char| c.is_whitespace() || "=:{},\"'".contains(c))
        .map(|w| w.trim_matches(['#', '/', '*', '(', ')']));
    let mut found = words
        .filter(|word| word.contains('.') || word.contains('/'))
        .filter(|word| is_path(word, facts));
    // Keep the slash of an absolute path.
    let path = found.next()?;
    let path = match info.find(path) {
        Some(at) if info[..at].ends_with('/') && !info[..at].ends_with("//") => {
            &info[at - 1..at + path.len()]
        }
        _ => path,
    };
    Some(NamedPath {
        path: path.to_owned(),
        rule: ParseRule::PathInInfo,
    })
}

/// The path in the first line of a block, in a comment or bare.
pub(super) fn path_in_first_line(line: &str, facts: &FileLookup<'_>) -> Option<NamedPath> {
    static COMMENT: LazyLock<Regex> = LazyLock::new(|| {
        let comment = r"^\s*(?://+!?|#+|--|;+|/\*+|<!--|%+|\(\*)?\s*(?i:(?:file\s*(?:name|path)?|path)\s*[:=]\s*)?(\S+?)\s*(?:\*/|-->|\*\)|:)?\s*$";
        Regex::new(comment).expect("the pattern is valid")
    });
    if line.len() > MAX_LINE_LEN || line.starts_with("#!") {
        return None;
    }
    let word = COMMENT
        .captures(line)?
        .get(1)?
        .as_str()
        .trim_matches(['`', '*', '"', '\'']);
    let is_meant = is_path(word, facts)
        && (word.contains('/') || find_file(word, facts).is_some() || has_known_extension(word));
    // `require "x.rb"` has two words; `a.b()` is a call.
    (is_meant && !word.contains(['(', ')', ';', '='])).then(|| NamedPath {
        path: word.to_owned(),
        rule: ParseRule::PathInFirstLine,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::SampleProject;
    use super::*;

    static PROJECT: LazyLock<SampleProject> = LazyLock::new(|| {
        SampleProject::new(&[("src/lib.rs", ""), ("tests/roman.rs", ""), ("Makefile", "")])
            .protecting("tests/")
    });

    fn facts() -> FileLookup<'static> {
        FileLookup::new(&*PROJECT)
    }

    #[test]
    fn path_is_found_before_a_block() {
        for line in [
            "src/lib.rs",
            "./src/lib.rs",
            "**src/lib.rs**",
            "`src/lib.rs`:",
            "### `src/lib.rs`",
            "## File: src/lib.rs",
            "1. **src/lib.rs** (updated)",
            "- src/lib.rs",
            "=== src/lib.rs ===",
            "--- src/lib.rs ---",
            "[src/lib.rs]",
            "// src/lib.rs".trim_start_matches("// "),
            "Filename: `src/lib.rs`",
            "Here is the updated `src/lib.rs`:",
            "I changed src/lib.rs so that `tests/roman.rs` passes:",
            "Updated file: src/lib.rs",
            "Save this as **src/lib.rs**.",
            "See [the code](src/lib.rs):",
        ] {
            let found = path_in_line(line, &facts())
                .map(|named| find_file(&named.path, &facts()).unwrap_or(named.path));
            assert_eq!(found.as_deref(), Some("src/lib.rs"), "{line}");
        }
        assert_eq!(
            path_in_line("Makefile", &facts())
                .map(|n| n.path)
                .as_deref(),
            Some("Makefile")
        );
        assert_eq!(
            path_in_line("src/new_thing.rs", &facts())
                .map(|n| n.path)
                .as_deref(),
            Some("src/new_thing.rs")
        );
    }

    #[test]
    fn other_words_are_not_paths() {
        for line in [
            "Here is the code:",
            "call `roman.to_i()` then",
            "version 1.5",
            "e.g. so",
            "see https://a.b/c.rs",
            "",
        ] {
            assert_eq!(path_in_line(line, &facts()), None, "{line}");
        }
    }

    #[test]
    fn info_strings_and_first_lines_name_paths() {
        for info in [
            "rust src/lib.rs",
            "rust:src/lib.rs",
            "src/lib.rs",
            "rust title=\"src/lib.rs\"",
            "rust {file: 'src/lib.rs'}",
            "rust // src/lib.rs",
        ] {
            assert_eq!(
                path_in_info(info, &facts()).map(|n| n.path).as_deref(),
                Some("src/lib.rs"),
                "{info}"
            );
        }
        assert_eq!(
            path_in_info("rust:/p/demo/src/lib.rs", &facts())
                .map(|n| n.path)
                .as_deref(),
            Some("/p/demo/src/lib.rs")
        );
        assert_eq!(path_in_info("rust", &facts()), None);
        for line in [
            "// src/lib.rs",
            "# src/lib.rs",
            "/* src/lib.rs */",
            "<!-- src/lib.rs -->",
            "// File: src/lib.rs",
            "src/lib.rs",
            "# path = src/lib.rs",
        ] {
            assert_eq!(
                path_in_first_line(line, &facts())
                    .map(|n| n.path)
                    .as_deref(),
                Some("src/lib.rs"),
                "{line}"
            );
        }
        for line in [
            "use std::fmt;",
            "import os.path",
            "#!/usr/bin/env python",
            "foo.bar()",
            "x = a.b",
            "// see below",
            "from a.b import c",
        ] {
            assert_eq!(path_in_first_line(line, &facts()), None, "{line}");
        }
    }
}
