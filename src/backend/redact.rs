//! Text from a server, made fit to be shown: short, printable, and without the key that it may echo.

use secrecy::{ExposeSecret as _, SecretString};

use crate::words;

/// Longest text of a server that is passed on.
const SAID: usize = 400;

/// What a server said, on one line, cut, with the key and whatever looks like one taken out.
pub(crate) fn said(text: &str, key: Option<&SecretString>) -> String {
    let text = hide(text, key);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words::cut_end(&words::plain(&line), SAID).into_owned()
}

/// Takes the key out, and other things of its shape: servers quote a part of what they were sent.
pub(crate) fn hide(text: &str, key: Option<&SecretString>) -> String {
    let mut text = text.to_owned();
    if let Some(key) = key.map(|k| k.expose_secret()).filter(|k| !k.is_empty()) {
        text = text.replace(key, HIDDEN);
        // Some servers show the first or last letters of a refused key.
        let (half, count) = (key.len() / 2, key.chars().count());
        if count >= 16 && key.is_ascii() {
            text = text.replace(&key[..half], HIDDEN).replace(&key[half..], HIDDEN);
        }
    }
    hide_shapes(&text)
}

const HIDDEN: &str = "[hidden]";

/// `sk-…` and what follows `Bearer`.
fn hide_shapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, mark)) = ["sk-", "Bearer "].iter().filter_map(|m| rest.find(m).map(|at| (at, m.len()))).min() {
        let (before, found) = rest.split_at(at);
        let token = found[mark..].find(|c: char| !(c.is_ascii_alphanumeric() || "-_.~+/=".contains(c)));
        let end = mark + token.unwrap_or(found.len() - mark);
        let inside_a_word = before.ends_with(|c: char| c.is_ascii_alphanumeric());
        out.push_str(before);
        if end - mark >= 6 && !inside_a_word {
            out.push_str(HIDDEN);
        } else {
            out.push_str(&found[..end]);
        }
        rest = &found[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echoed_key_is_hidden_whole_in_part_and_by_its_shape() {
        let key = SecretString::from("canary-0123456789abcdef");
        assert_eq!(said("bad key canary-0123456789abcdef!", Some(&key)), "bad key [hidden]!");
        assert!(!said("Received=...456789abcdef", Some(&key)).contains("56789abcdef"));
        assert_eq!(said("key sk-proj-abcdef123 (Bearer xyzxyzxyz)", None), "key [hidden] ([hidden])");
        assert_eq!(said("risk-averse task-list-of-things sk-", None), "risk-averse task-list-of-things sk-");
    }

    #[test]
    fn long_text_becomes_one_short_line_without_control_characters() {
        let text = said(&format!("a\n\u{1b}[31m{}", "b".repeat(1000)), None);
        assert!(text.starts_with("a \\u{1b}[31mbbb") && text.len() <= SAID && text.ends_with('…'));
    }
}
