//! The six languages, as far as packing must know them: by file name, and where code ends and strings and comments begin.
//! Knows no grammar. A file in none of them is not looked at.

use std::path::Path;

use crate::verify::Ecosystem;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lang {
    Rust,
    Python,
    Node,
    Go,
    Ruby,
    Elixir,
}

impl Lang {
    pub(super) fn of(path: &str) -> Option<Self> {
        let (_, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
        match extension {
            "rs" => Some(Self::Rust),
            "py" | "pyi" => Some(Self::Python),
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => Some(Self::Node),
            "go" => Some(Self::Go),
            "rb" | "rake" => Some(Self::Ruby),
            "ex" | "exs" => Some(Self::Elixir),
            _ => None,
        }
    }

    /// The project's language; unknown projects speak the one of their test.
    pub(super) fn of_project(ecosystem: Option<Ecosystem>, test: &Path) -> Option<Self> {
        Self::of(&test.to_string_lossy()).or(ecosystem.map(|e| match e {
            Ecosystem::Go => Self::Go,
            Ecosystem::Node => Self::Node,
            Ecosystem::Python => Self::Python,
            Ecosystem::Rust => Self::Rust,
            Ecosystem::Ruby => Self::Ruby,
            Ecosystem::Elixir => Self::Elixir,
        }))
    }

    pub(super) fn manifests(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["Cargo.toml"],
            Self::Python => &["pyproject.toml", "setup.cfg", "requirements.txt"],
            Self::Node => &["package.json"],
            Self::Go => &["go.mod"],
            Self::Ruby => &["Gemfile"],
            Self::Elixir => &["mix.exs"],
        }
    }

    /// Items end where their braces do; elsewhere indentation tells.
    pub(super) fn has_braces(self) -> bool {
        matches!(self, Self::Rust | Self::Node | Self::Go)
    }
}

/// The text with the inside of comments and strings blanked: every byte keeps its place, and every line its number.
pub(super) fn mask(lang: Lang, text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match skip(lang, bytes, at) {
            Some(end) => end.clamp(at + 1, bytes.len()),
            None => {
                at += 1;
                continue;
            }
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    // Marks are ASCII, so what is blanked begins and ends between characters.
    String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).replace('\u{fffd}', " "))
}

/// Where the comment or string that starts at `at` ends; `None` if none does.
fn skip(lang: Lang, b: &[u8], at: usize) -> Option<usize> {
    let rest = &b[at..];
    let hash_comments = matches!(lang, Lang::Python | Lang::Ruby | Lang::Elixir);
    match rest[0] {
        b'#' if hash_comments => Some(line_end(b, at)),
        b'/' if !hash_comments && rest.starts_with(b"//") => Some(line_end(b, at)),
        b'/' if !hash_comments && rest.starts_with(b"/*") => Some(block_end(lang, b, at)),
        b'/' if lang == Lang::Node && starts_pattern(b, at) => quoted(b, at, b'/', Lines::One),
        b'"' | b'\'' if hash_comments && lang != Lang::Ruby && rest.starts_with(&[rest[0]; 3]) => {
            Some(find(b, at + 3, &[rest[0]; 3]).map_or(b.len(), |i| i + 3))
        }
        b'"' if lang == Lang::Rust => match raw_hashes(b, at) {
            Some(hashes) => {
                let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
                Some(find(b, at + 1, &close).map_or(b.len(), |i| i + close.len()))
            }
            None => quoted(b, at, b'"', Lines::Many),
        },
        b'\'' if lang == Lang::Rust => char_literal(b, at),
        b'"' | b'\'' if lang == Lang::Elixir && at > 0 && b[at - 1] == b'?' => Some(at + 1),
        quote @ (b'"' | b'\'') => quoted(b, at, quote, Lines::One),
        b'`' if matches!(lang, Lang::Node | Lang::Go) => quoted(b, at, b'`', Lines::Many),
        b'=' if lang == Lang::Ruby && (at == 0 || b[at - 1] == b'\n') && rest.starts_with(b"=begin") => {
            Some(find(b, at, b"\n=end").map_or(b.len(), |i| line_end(b, i + 1)))
        }
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Lines {
    One,
    Many,
}

/// A quote that does not close on its line, where it should, is taken for a lone mark.
fn quoted(b: &[u8], at: usize, quote: u8, lines: Lines) -> Option<usize> {
    let mut i = at + 1;
    while i < b.len() {
        match b[i] {
            b'\\' => i += 1,
            b'\n' if lines == Lines::One => return None,
            c if c == quote => return Some(i + 1),
            _ => {}
        }
        i += 1;
    }
    (lines == Lines::Many).then_some(b.len())
}

fn line_end(b: &[u8], at: usize) -> usize {
    b[at..].iter().position(|c| *c == b'\n').map_or(b.len(), |i| at + i)
}

fn block_end(lang: Lang, b: &[u8], at: usize) -> usize {
    let (mut depth, mut i) = (0, at);
    while i + 1 < b.len() {
        if b[i] == b'/' && b[i + 1] == b'*' && (lang == Lang::Rust || depth == 0) {
            depth += 1;
            i += 2;
        } else if b[i] == b'*' && b[i + 1] == b'/' {
            depth -= 1;
            i += 2;
            if depth == 0 {
                return i;
            }
        } else {
            i += 1;
        }
    }
    b.len()
}

fn find(b: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    let mut i = from;
    while i + what.len() <= b.len() {
        i += b[i..].iter().position(|c| *c == what[0])?;
        if b[i..].starts_with(what) {
            return Some(i);
        }
        i += 1;
    }
    None
}

/// The number of hashes before the quote at `at`, if an `r` before them makes it a raw string.
fn raw_hashes(b: &[u8], at: usize) -> Option<usize> {
    let hashes = b[..at].iter().rev().take_while(|c| **c == b'#').count();
    let r = at.checked_sub(hashes + 1)?;
    let word_before = r.checked_sub(1).is_some_and(|i| is_word(b[i]) && b[i] != b'b');
    (b[r] == b'r' && !word_before).then_some(hashes)
}

/// `'a'` and `'\n'`, but not the lifetime `'a`.
fn char_literal(b: &[u8], at: usize) -> Option<usize> {
    if b.get(at + 1) == Some(&b'\\') {
        return quoted(b, at, b'\'', Lines::One);
    }
    let close = (at + 2..(at + 6).min(b.len())).find(|i| b[*i] == b'\'')?;
    let lifetime = close > at + 2 && b[at + 1].is_ascii();
    (!lifetime).then_some(close + 1)
}

/// A slash where no value stands before it opens a pattern.
fn starts_pattern(b: &[u8], at: usize) -> bool {
    let before = b[..at].iter().rev().find(|c| !matches!(c, b' ' | b'\t'));
    before.is_none_or(|c| b"(,=:[!&|?{};\n".contains(c))
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The words of a text: what could be a name.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_ascii() && !is_word(c as u8))
        .filter(|w| w.starts_with(|c: char| !c.is_ascii_digit()) && w.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_are_blanked_and_code_is_not() {
        for (lang, text, kept) in [
            (Lang::Rust, "let a = \"{\"; // }\nfn b<'a>(c: char) { '{' }", "let a =;fn b<'a>(c: char) { }"),
            (Lang::Rust, "let r = r#\"a \" { \"#; /* /* { */ } */ x", "let r = r#; x"),
            (Lang::Python, "a = '''\ndef no(): '''  # def\nb = 'it\\'s {'", "a =b ="),
            (Lang::Node, "const a = `{${b}`; if (/[{\"]/.test(c)) {}", "const a =; if ( .test(c)) {}"),
            (Lang::Go, "a := `{\n` + \"}\" // {", "a := +"),
            (Lang::Ruby, "=begin\ndef no\n=end\ndef yes # no", "def yes"),
            (Lang::Elixir, "x = ?\"; @doc \"\"\"\ndef no\n\"\"\"\ny", "x = ? ; @docy"),
        ] {
            let masked = mask(lang, text);
            assert_eq!(masked.len(), text.len());
            assert_eq!(masked.lines().count(), text.lines().count());
            let squeeze = |s: &str| s.split_whitespace().collect::<String>();
            assert_eq!(squeeze(&masked), squeeze(kept), "{text}");
        }
    }
}
