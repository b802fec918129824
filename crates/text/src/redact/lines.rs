//! Redaction that keeps line numbers, so that the text can be cited afterwards.

use std::borrow::Cow;

use super::{Redactor, patterns, redacted};

impl Redactor {
    /// The text without secrets, with the same line count, and the lines on which secrets begin that should not be in
    /// source code.
    pub fn redact_lines<'a>(&self, text: &'a str) -> (Cow<'a, str>, Vec<usize>) {
        let mut certain = Vec::new();
        let clean = self.replace_lines(text, &mut redacted, &mut |number, line| {
            if self.values.is_match(line) || patterns::is_certain(line) {
                certain.push(number);
            }
        });
        (clean, certain)
    }

    /// Replaces each secret by what `mark` makes of it and keeps the line count. `on_secret` gets the number and the
    /// text of each line on which one begins.
    pub(super) fn replace_lines<'a>(
        &self,
        text: &'a str,
        mark: &mut dyn FnMut(&str) -> String,
        on_secret: &mut dyn FnMut(usize, &str),
    ) -> Cow<'a, str> {
        if matches!(self.replace(text, &mut redacted), Cow::Borrowed(_)) {
            return Cow::Borrowed(text);
        }
        let (mut out, mut in_block) = (String::with_capacity(text.len()), false);
        for (n, line) in text.split_inclusive('\n').enumerate() {
            let end = &line[line.trim_end_matches(['\n', '\r']).len()..];
            let line = &line[..line.len() - end.len()];
            if in_block && may_be_key_text(line) {
                in_block = !line.contains("-----END");
                out.push_str(&mark(line));
            } else {
                let clean = self.replace(line, mark);
                in_block = line.contains("-----BEGIN")
                    && line.contains("PRIVATE KEY")
                    && !line.contains("-----END");
                if matches!(clean, Cow::Owned(_)) {
                    on_secret(n + 1, line);
                }
                out.push_str(&clean);
            }
            out.push_str(end);
        }
        Cow::Owned(out)
    }
}

/// Lines of a key body: base64, and headers in older formats.
fn may_be_key_text(line: &str) -> bool {
    line.contains("-----END")
        || line
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b" \t+/=\\\"',:-.".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_are_kept_and_keys_removed() {
        let redactor = Redactor::with_values(["not-in-this-text"]);
        let text = "a\n  -----BEGIN RSA PRIVATE KEY-----\nMIIEx\n\nyz==\n-----END RSA PRIVATE KEY-----\r\nlet b = 1;\nKEY = sk-ant-api03-AbC_dEf-123456\n";
        let (clean, found) = redactor.redact_lines(text);
        assert_eq!(
            clean,
            "a\n  [redacted]\n[redacted]\n[redacted]\n[redacted]\n[redacted]\r\nlet b = 1;\nKEY = [redacted]\n"
        );
        assert_eq!(found, [2, 8]);
        // Truncated before its end, as in a diff.
        let (clean, found) =
            redactor.redact_lines("-----BEGIN PRIVATE KEY-----\nMIIEx\nlet b = 1;");
        assert_eq!(
            (clean.as_ref(), found),
            ("[redacted]\n[redacted]\nlet b = 1;", vec![1])
        );
        assert!(
            matches!(redactor.redact_lines("nothing\nhere"), (Cow::Borrowed(_), none) if none.is_empty())
        );
    }
}
