//! Do two texts speak of the same thing? A weak test, made against maps that were filled in without reading: one word in
//! common is enough, whatever its ending. Works in any language as long as both texts are in the same one, which whoever
//! writes is told; small words count only where they are known, in English.

/// Words that any two sentences may share.
const SMALL: &[&str] = &[
    "a", "an", "and", "any", "all", "also", "are", "as", "at", "be", "been", "but", "by", "can", "could", "do", "does",
    "each", "every", "for", "from", "had", "has", "have", "he", "how", "i", "if", "in", "into", "is", "it", "its",
    "may", "me", "might", "must", "my", "need", "needs", "no", "not", "of", "on", "or", "our", "out", "shall", "she",
    "should", "so", "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
    "those", "to", "up", "us", "want", "was", "we", "were", "what", "when", "which", "who", "will", "with", "would",
    "you", "your",
];

/// True also if one of them has no word to share.
pub(super) fn share_a_word(one: &str, other: &str) -> bool {
    let (one, other) = (content_words(one), content_words(other));
    one.is_empty() || one.iter().any(|word| other.iter().any(|candidate| akin(word, candidate)))
}

/// What a text speaks of, in small letters.
pub(super) fn content_words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    // Where words are not divided, two signs side by side are as good as a word.
    let mut last_sign: Option<char> = None;
    for c in text.chars().chain([' ']) {
        let sign = is_undivided(c).then_some(c);
        if let (Some(a), Some(b)) = (last_sign, sign) {
            found.push([a, b].iter().collect());
        }
        last_sign = sign;
        if c.is_alphanumeric() && sign.is_none() {
            word.extend(c.to_lowercase());
        } else if !word.is_empty() {
            found.push(std::mem::take(&mut word));
        }
    }
    found.retain(|word| !SMALL.contains(&word.as_str()));
    found
}

/// Scripts without blanks between words: Thai, Lao, Chinese, Japanese.
fn is_undivided(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The same word, or one with another ending: `export`, `exports`, `exporting`.
fn akin(a: &str, b: &str) -> bool {
    let common = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
    let (short, long) = (a.chars().count().min(b.chars().count()), a.chars().count().max(b.chars().count()));
    a == b
        || (common == short && long == short + 1 && short > 1)
        || (common >= 4 && (common * 5 >= long * 3 || long - common <= 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_in_common_is_enough_whatever_its_ending() {
        for (one, other) in [
            ("Users can export tables", "An exported table has a header"),
            ("read CSV files", "Every CSV row becomes one record"),
            ("at most 200 connections", "p95 with 200 clients"),
            ("Die Tabelle wird exportiert", "Tabellen haben eine Kopfzeile"),
            ("表を書き出す", "書き出した表に見出しがある"),
            ("do it", "anything at all"),
            ("scan before storing", "nothing is stored"),
        ] {
            assert!(share_a_word(one, other), "{one} / {other}");
        }
    }

    #[test]
    fn small_words_and_like_beginnings_are_not_enough() {
        for (one, other) in [
            ("It must read CSV files", "It must answer by mail"),
            ("contains rows", "controls access"),
            ("表を書き出す", "利用者がログインする"),
            ("the log", "in a login form"),
        ] {
            assert!(!share_a_word(one, other), "{one} / {other}");
        }
    }
}
