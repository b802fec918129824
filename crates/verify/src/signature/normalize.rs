//! Removes from a line of output what differs from run to run: times, numbers, addresses and directories.

use std::sync::LazyLock;

use regex::Regex;

use supervisor_text::words;

/// Longer lines are probably data and are cut.
const MAX_LINE_BYTES: usize = 2_000;

// The regex crate is built with few Unicode tables, so character classes are written out.
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"([0-9]{4}-[0-9]{2}-[0-9]{2}[t ])?[0-9]{1,2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(z|[+-][0-9]{2}:?[0-9]{2})?",
    )
});
static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}"));
static DIRECTORIES: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(file://)?([a-z]:)?[^\s"'`(),:;<>\[\]{}=|]*[/\\]"#));
static LINE_NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\.[a-z]{1,4}):[0-9]+(:[0-9]+)?"));
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"([^\s"'`(),:;<>\[\]{}=|]+\.[a-z]{1,4})(:[0-9]+|", line [0-9]+)"#));

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern that the tests compile")
}

/// Normalises a line for comparison: lower case, one kind of quote, `#` for every number and address, and only the file
/// name of each path.
pub(super) fn normalize(line: &str) -> String {
    let line = words::cut_end(line, MAX_LINE_BYTES).to_lowercase();
    let line = UUID.replace_all(&line, "#");
    let line = TIME.replace_all(&line, " ");
    let line = DIRECTORIES.replace_all(&line, "");
    let line = LINE_NUMBER.replace_all(&line, "$1");
    let mut out = String::with_capacity(line.len());
    let mut rest = line.as_ref();
    while let Some(c) = rest.chars().next() {
        let inside_word = out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let word = rest
            .find(|c: char| !c.is_alphanumeric())
            .unwrap_or(rest.len());
        let taken = match c {
            _ if !inside_word && word > 0 && is_hex_number(&rest[..word]) => {
                out.push('#');
                word
            }
            '0'..='9' if !inside_word => {
                out.push('#');
                rest.find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(rest.len())
            }
            '`' | '"' | '‘' | '’' | '“' | '”' => {
                out.push('\'');
                c.len_utf8()
            }
            c if c.is_whitespace() => {
                if !out.is_empty() && !out.ends_with(' ') {
                    out.push(' ');
                }
                c.len_utf8()
            }
            c => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    // `1.5` is one number.
    while out.contains("#.#") {
        out = out.replace("#.#", "#");
    }
    out.trim().trim_end_matches(':').to_owned()
}

/// Whether the word is an address or a hash: `0x7ffd`, `9f86d081`.
fn is_hex_number(word: &str) -> bool {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    hex && (digits.len() < word.len()
        || (digits.len() >= 8 && digits.bytes().any(|b| b.is_ascii_digit())))
}

/// The file name that a line refers to: `a.rs` in `--> /p/src/a.rs:12:5`. Files of libraries are ignored.
pub(super) fn place(line: &str) -> Option<String> {
    const LIBRARIES: &[&str] = &[
        "site-packages",
        "node_modules",
        "/rustc/",
        ".cargo/registry",
        "/usr/lib",
        "/runtime/",
        "node:internal",
    ];
    if LIBRARIES.iter().any(|library| line.contains(library)) {
        return None;
    }
    let line = words::cut_end(line, MAX_LINE_BYTES).to_lowercase();
    let path = PLACE.captures(&line)?.get(1)?.as_str().to_owned();
    Some(path.rsplit(['/', '\\']).next().unwrap_or(&path).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_parts_are_removed() {
        for (line, is) in [
            (
                "thread 'main' panicked at /home/me/p/src/a.rs:12:5:",
                "thread 'main' panicked at a.rs",
            ),
            (
                "  index out of bounds: the len is 3 but the index is 17",
                "index out of bounds: the len is # but the index is #",
            ),
            ("2026-01-02T03:04:05.678Z ERROR boom", "error boom"),
            ("[03:04:05] boom at 0x7ffd00aa", "[ ] boom at #"),
            ("KeyError: “a”", "keyerror: 'a'"),
            ("no 3f2504e0-aaaa-11d3-beef-0305e82c3301", "no #"),
            (
                "error[E0425]: cannot find `add` in 1.5.2",
                "error[e0425]: cannot find 'add' in #",
            ),
            ("took 1.50 s, commit 9f86d081884c7d65", "took # s, commit #"),
            ("test_2 in file:///p/c.js:3:1", "test_2 in c.js"),
            (r"C:\work\a.py:3: boom", "a.py: boom"),
        ] {
            assert_eq!(normalize(line), is, "{line}");
        }
    }

    #[test]
    fn place_ignores_library_files() {
        assert_eq!(place("  --> /p/src/a.rs:12:5").as_deref(), Some("a.rs"));
        assert_eq!(
            place("  File \"/p/pkg/b.py\", line 7, in f").as_deref(),
            Some("b.py")
        );
        assert_eq!(
            place("    at f (file:///p/c.js:3:1)").as_deref(),
            Some("c.js")
        );
        assert_eq!(place("  File \"/v/site-packages/x.py\", line 7"), None);
        assert_eq!(place("ValueError: 12:30"), None);
    }
}
