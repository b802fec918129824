//! Sanitizes text from a server or program: one short, printable line without secrets.

use supervisor_text::redact::Redactor;
use supervisor_text::words;

/// Maximum length of the result.
const MAX_LEN: usize = 400;

pub(crate) fn sanitize(text: &str, secrets: &Redactor) -> String {
    // Truncate roughly first: the following steps are linear in the text, which may be megabytes.
    let text = words::cut_middle(text, 16 * MAX_LEN);
    let text = secrets.redact(&text);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words::cut_end(&words::plain(&line), MAX_LEN).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_one_short_redacted_line() {
        let secrets = Redactor::with_values(["canary-0123456789"]);
        let text = sanitize(
            &format!("a\n\u{1b}[31m canary-0123456789 {}", "b".repeat(100_000)),
            &secrets,
        );
        assert!(
            text.starts_with("a \\u{1b}[31m [redacted] bbb") && text.ends_with('…'),
            "{text}"
        );
        assert!(text.len() <= MAX_LEN);
    }
}
