//! RequirementItems come as letters too. What frames a letter asks for nothing: the greeting, the thanks, the signature.
//! Only what is plainly one of these goes, and never all there is.

use supervisor_text::words::lexicon::{WordList, lexicon};

/// More words than this say something.
const MOST_WORDS: usize = 6;
/// More lines than this are no signature.
const MOST_LINES: usize = 8;

/// The lines of a text, without the frame of a letter.
pub(super) fn without_frame(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    let signature = lines.iter().rposition(|line| line.trim_end() == "--");
    if let Some(at) = signature.filter(|at| *at > 0 && lines.len() - at <= MOST_LINES + 1) {
        lines.truncate(at);
    }
    let said = |lines: &[&str]| lines.iter().any(|line| super::says(line));
    if let Some(at) = lines.iter().rposition(|line| is(line, &lexicon().wish)) {
        // The author's name stands below, and nothing else.
        let names = lines[at + 1..]
            .iter()
            .filter(|line| super::says(line))
            .count();
        let short = lines[at + 1..]
            .iter()
            .all(|line| line.split_whitespace().count() <= 3 && !line.contains('.'));
        if names <= 1 && short && said(&lines[..at]) {
            lines.truncate(at);
        }
    }
    if let Some(at) = lines.iter().position(|line| super::says(line)) {
        let greets =
            lines[at].trim_end().ends_with([',', '!']) && is(lines[at], &lexicon().greeting);
        if greets && said(&lines[at + 1..]) {
            lines.drain(..=at);
        }
    }
    lines
}

/// A short line that begins with one of these, as a word.
fn is(line: &str, beginnings: &WordList) -> bool {
    let line = line.trim().to_lowercase();
    let begins = |start: &str| {
        line.strip_prefix(start)
            .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    line.split_whitespace().count() <= MOST_WORDS
        && !line.contains(|c: char| c.is_ascii_digit() || c == '`' || c == ':')
        && beginnings.entries().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greeting_thanks_and_signature_are_left_out() {
        let letter = "Hi all,\n\nSend a reminder.\n\nThanks,\nMarijke\n\n--\nMarijke de Vries\n+31 10 123 45 67";
        assert_eq!(
            without_frame(letter).join("|").trim_matches('|'),
            "Send a reminder."
        );
        let german = "Sehr geehrte Damen und Herren,\nRechnungen als PDF.\nMit freundlichen Grüßen\nA. Beispiel";
        assert_eq!(
            without_frame(german).join("|"),
            "Rechnungen als PDF.|Mit freundlichen Grüßen|A. Beispiel"
        );
        assert_eq!(
            without_frame(&german.replace("A. B", "B")).join("|"),
            "Rechnungen als PDF."
        );
    }

    #[test]
    fn what_may_ask_for_something_stays() {
        for text in [
            "Hi all,",
            "Thanks, Marijke",
            "Hello world is printed.\nTwice.",
            "Dear customers, your bill: 3 EUR\nis the subject of the mail.",
            "--\nread CSV\nwrite JSON",
            "read CSV\n--\n1\n2\n3\n4\n5\n6\n7\n8\n9",
            "Read CSV.\nThanks to the cache it answers in 3 ms.",
            "Read CSV.\nBest\nWrite JSON.\nWrite XML.",
            "Hidden files are skipped,\nlinks too.",
        ] {
            assert_eq!(without_frame(text).join("\n"), text, "{text}");
        }
    }
}
