//! Removes the greeting, thanks and signature of requirements written as a letter. Only clear cases
//! are removed, and never the whole text.

/// Longer lines are not a greeting or closing.
const MAX_FRAME_WORDS: usize = 6;
/// Longer endings are not a signature.
const MAX_SIGNATURE_LINES: usize = 8;
const GREETINGS: &[&str] = &[
    "hi",
    "hello",
    "hey",
    "dear",
    "good morning",
    "good afternoon",
    "hallo",
    "liebe",
    "lieber",
    "sehr geehrte",
    "guten tag",
    "guten morgen",
    "moin",
    "beste",
    "bonjour",
    "hola",
];
const CLOSINGS: &[&str] = &[
    "thanks",
    "thank you",
    "many thanks",
    "regards",
    "kind regards",
    "best regards",
    "best wishes",
    "cheers",
    "best",
    "danke",
    "vielen dank",
    "viele grüße",
    "beste grüße",
    "mit freundlichen grüßen",
    "mfg",
    "gruß",
    "groeten",
    "merci",
];

/// The lines of a text without the frame of a letter.
pub(super) fn strip_letter_frame(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    let signature = lines.iter().rposition(|line| line.trim_end() == "--");
    if let Some(at) = signature.filter(|at| *at > 0 && lines.len() - at <= MAX_SIGNATURE_LINES + 1)
    {
        lines.truncate(at);
    }
    let have_content = |lines: &[&str]| lines.iter().any(|line| super::has_content(line));
    if let Some(at) = lines
        .iter()
        .rposition(|line| starts_with_any(line, CLOSINGS))
    {
        // Only the author's name may follow.
        let names = lines[at + 1..]
            .iter()
            .filter(|line| super::has_content(line))
            .count();
        let short = lines[at + 1..]
            .iter()
            .all(|line| line.split_whitespace().count() <= 3 && !line.contains('.'));
        if names <= 1 && short && have_content(&lines[..at]) {
            lines.truncate(at);
        }
    }
    if let Some(at) = lines.iter().position(|line| super::has_content(line)) {
        let greets =
            lines[at].trim_end().ends_with([',', '!']) && starts_with_any(lines[at], GREETINGS);
        if greets && have_content(&lines[at + 1..]) {
            lines.drain(..=at);
        }
    }
    lines
}

/// Whether a short line starts with one of these words.
fn starts_with_any(line: &str, beginnings: &[&str]) -> bool {
    let line = line.trim().to_lowercase();
    let begins = |start: &&str| {
        line.strip_prefix(*start)
            .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    line.split_whitespace().count() <= MAX_FRAME_WORDS
        && !line.contains(|c: char| c.is_ascii_digit() || c == '`' || c == ':')
        && beginnings.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greeting_thanks_and_signature_are_left_out() {
        let letter = "Hi all,\n\nSend a reminder.\n\nThanks,\nMarijke\n\n--\nMarijke de Vries\n+31 10 123 45 67";
        assert_eq!(
            strip_letter_frame(letter).join("|").trim_matches('|'),
            "Send a reminder."
        );
        let german = "Sehr geehrte Damen und Herren,\nRechnungen als PDF.\nMit freundlichen Grüßen\nA. Beispiel";
        assert_eq!(
            strip_letter_frame(german).join("|"),
            "Rechnungen als PDF.|Mit freundlichen Grüßen|A. Beispiel"
        );
        assert_eq!(
            strip_letter_frame(&german.replace("A. B", "B")).join("|"),
            "Rechnungen als PDF."
        );
    }

    #[test]
    fn possible_requirements_are_kept() {
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
            assert_eq!(strip_letter_frame(text).join("\n"), text, "{text}");
        }
    }
}
