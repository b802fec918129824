//! Text helpers: truncation, suggestions for misspelt names, escapes for untrusted text, and lists for messages.
//! Submodules compare texts and read front matter.

pub mod diff;
pub mod front_matter;

use std::borrow::Cow;
use std::fmt::Write as _;

/// Cuts `text` to about `max` bytes. Keeps head and tail and says how much is missing.
pub fn cut_middle(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let marker = format!("\n… [{} bytes cut] …\n", text.len() - max);
    let room = max.saturating_sub(marker.len());
    let head = floor_char(text, room / 2);
    let tail = ceil_char(text, text.len() - (room - head));
    Cow::Owned(format!("{}{marker}{}", &text[..head], &text[tail..]))
}

/// Cuts `text` after at most `max` bytes and appends an ellipsis.
pub fn cut_end(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let keep = floor_char(text, max.saturating_sub('…'.len_utf8()));
    Cow::Owned(format!("{}…", &text[..keep]))
}

/// The known name that is most similar to `written`, if one is similar enough.
pub fn did_you_mean<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let written = written.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&written, &name.to_lowercase()), name))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// Makes untrusted text safe to show: control and bidirectional characters become visible escapes. Keeps tabs and
/// newlines.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe_to_show) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe_to_show(c) {
            let _ = write!(out, "\\u{{{:x}}}", c as u32);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Foreign text for a message: as [`plain`] gives it, and cut at the end.
pub fn short(text: &str, max: usize) -> String {
    cut_end(&plain(text), max).into_owned()
}

/// The text on one line, with single spaces.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `1 test`, `2 tests`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// `` `a`, `b` or `c` ``, for messages that list accepted values.
pub fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|n| format!("`{n}`")).collect();
    match quoted.split_last() {
        None => String::from("nothing"),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// `` `a`, `b` and 3 others ``, for messages that name the first few of many.
pub fn list<S: AsRef<str>>(names: impl IntoIterator<Item = S>, max: usize) -> String {
    let names: Vec<String> = names
        .into_iter()
        .map(|name| format!("`{}`", plain(name.as_ref())))
        .collect();
    let (shown, more) = names.split_at(names.len().min(max));
    match more.len() {
        0 => shown.join(", "),
        more => format!("{} and {}", shown.join(", "), count(more, "other")),
    }
}

/// `a, b and 3 others`: like [`list`], without backquotes.
pub fn series<S: AsRef<str>>(items: impl IntoIterator<Item = S>, max: usize) -> String {
    let items: Vec<String> = items
        .into_iter()
        .map(|item| plain(item.as_ref()).into_owned())
        .collect();
    let (shown, more) = items.split_at(items.len().min(max));
    match more.len() {
        0 => shown.join(", "),
        more => format!("{} and {}", shown.join(", "), count(more, "other")),
    }
}

fn is_unsafe_to_show(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn floor_char(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil_char(text: &str, mut at: usize) -> usize {
    while at < text.len() && !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_middle_keeps_head_and_tail() {
        let text = format!("start {} end", "é".repeat(200));
        let cut = cut_middle(&text, 100);
        assert!(cut.len() <= 104, "{}", cut.len());
        assert!(cut.starts_with("start") && cut.ends_with(" end") && cut.contains("bytes cut"));
        assert_eq!(cut_middle("short", 100), "short");
    }

    #[test]
    fn only_similar_name_is_suggested() {
        assert_eq!(did_you_mean("reveiw", ["review", "debug"]), Some("review"));
        assert_eq!(did_you_mean("zzz", ["review", "debug"]), None);
    }

    #[test]
    fn escape_codes_become_visible() {
        assert_eq!(plain("a\u{1b}[31mb\u{202e}\n"), "a\\u{1b}[31mb\\u{202e}\n");
    }

    #[test]
    fn lists_read_like_sentences() {
        assert_eq!(one_of(["a"]), "`a`");
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(list(["a", "b"], 2), "`a`, `b`");
        assert_eq!(list(["a", "b", "c"], 1), "`a` and 2 others");
    }
}
