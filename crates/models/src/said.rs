//! Text from a server or a program, made fit to be shown: one short line, printable, without secrets.

use supervisor_text::redact::Redactor;
use supervisor_text::words;

/// Longest text that is passed on.
const LONGEST: usize = 400;

pub fn said(text: &str, secrets: &Redactor) -> String {
    // Cut roughly first: what follows is linear in the text, which may be megabytes.
    let text = words::cut_middle(text, 16 * LONGEST);
    let text = secrets.redact(&text);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words::cut_end(&words::plain(&line), LONGEST).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echoed_key_is_hidden_and_long_text_becomes_one_short_line_without_control_characters() {
        let secrets = Redactor::knowing(["canary-0123456789"]);
        let text = said(
            &format!("a\n\u{1b}[31m canary-0123456789 {}", "b".repeat(100_000)),
            &secrets,
        );
        assert!(
            text.starts_with("a \\u{1b}[31m [redacted] bbb") && text.ends_with('…'),
            "{text}"
        );
        assert!(text.len() <= LONGEST);
    }
}
