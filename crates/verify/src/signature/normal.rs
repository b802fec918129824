//! A line of output without what differs from run to run: colours, times, numbers, addresses, where a project lies.
//! Knows text alone. Does not know which lines matter.

use std::sync::LazyLock;

use regex::Regex;

use supervisor_text::words;

/// A longer line is data.
const LONGEST_LINE: usize = 2_000;

// Without Unicode tables, so the classes are written out.
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"([0-9]{4}-[0-9]{2}-[0-9]{2}[t ])?[0-9]{1,2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(z|[+-][0-9]{2}:?[0-9]{2})?",
    )
});
static DIRECTORIES: LazyLock<Regex> =
    LazyLock::new(|| known(r#"(file://)?([a-z]:)?[^\s"'`(),:;<>\[\]{}=|]*[/\\]"#));
static LINE_NUMBER: LazyLock<Regex> = LazyLock::new(|| known(r"(\.[a-z]{1,4}):[0-9]+(:[0-9]+)?"));
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| known(r#"([^\s"'`(),:;<>\[\]{}=|]+\.[a-z]{1,4})(:[0-9]+|", line [0-9]+)"#));

fn known(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern that the tests compile")
}

/// The line as it is compared: lower case, one kind of quote, `#` for every number and address, paths by their last name.
pub(super) fn normal(line: &str) -> String {
    let line = words::cut_end(line, LONGEST_LINE).to_lowercase();
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
            _ if !inside_word && word > 0 && is_number(&rest[..word]) => {
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
    // `1.5` and `3` are one number each.
    while out.contains("#.#") {
        out = out.replace("#.#", "#");
    }
    out.trim().trim_end_matches(':').to_owned()
}

/// An address or a hash: `0x7ffd`, `9f86d081`.
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    hex && (digits.len() < word.len()
        || (digits.len() >= 8 && digits.bytes().any(|b| b.is_ascii_digit())))
}

/// The file that a line points at, by its last name: `a.rs` of `--> /p/src/a.rs:12:5`. What lies in a library does not
/// count.
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
    let line = words::cut_end(line, LONGEST_LINE).to_lowercase();
    let path = PLACE.captures(&line)?.get(1)?.as_str().to_owned();
    Some(path.rsplit(['/', '\\']).next().unwrap_or(&path).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_put_aside() {
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
            (
                "error[E0425]: cannot find `add` in 1.5.2",
                "error[e0425]: cannot find 'add' in #",
            ),
            ("took 1.50 s, commit 9f86d081884c7d65", "took # s, commit #"),
            ("test_2 in file:///p/c.js:3:1", "test_2 in c.js"),
            (r"C:\work\a.py:3: boom", "a.py: boom"),
        ] {
            assert_eq!(normal(line), is, "{line}");
        }
    }

    #[test]
    fn a_line_points_at_a_file_of_the_project_or_at_none() {
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
