//! The words of a text, for comparing it with another: by stems, and whatever the endings.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

/// Words that any two sentences may have in common.
const STOP_WORDS: &str = "\
a about also am an and any all are as at be because been being but by can cannot cause could did do does due each \
every for from had has have he hence her here his how i if in into is it its just may me might must my need no not of \
on or our out reason really shall she should simply since so some such than that the their them then there therefore \
these they this those thus to up us very want was we were what when which while who why will with would you your";

static STEMMER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

/// The words of a text that are not stop words.
#[derive(Debug)]
pub(crate) struct Prose {
    words: Vec<Word>,
}

#[derive(Debug)]
struct Word {
    /// In lower case.
    form: String,
    stem: String,
}

impl Prose {
    pub(crate) fn new(text: &str) -> Self {
        static STOPS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| STOP_WORDS.split(' ').collect());
        let words = text
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .filter(|word| !word.is_empty())
            .flat_map(|word| word_forms(&word.to_lowercase()))
            .filter(|form| !STOPS.contains(form.as_str()))
            .map(|form| Word {
                stem: STEMMER.stem(&form).into_owned(),
                form,
            })
            .collect();
        Self { words }
    }

    /// The words in lower case.
    pub(crate) fn forms(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| word.form.as_str())
    }

    /// The distinct stems of words longer than a letter.
    pub(crate) fn stems(&self) -> BTreeSet<String> {
        self.words
            .iter()
            .filter(|word| word.form.len() > 1)
            .map(|word| word.stem.clone())
            .collect()
    }

    /// Whether both texts have a word in common, whatever its ending. Also true if this text has no
    /// words. Works in any language if both texts use the same one.
    pub(crate) fn shares_word(&self, other: &Self) -> bool {
        self.words.is_empty()
            || self.words.iter().any(|word| {
                other
                    .words
                    .iter()
                    .any(|candidate| word.is_related(candidate))
            })
    }
}

impl Word {
    /// Whether both are the same word, maybe with a different ending: `export`, `exports`;
    /// `Tabelle`, `Tabellen`.
    fn is_related(&self, other: &Self) -> bool {
        let (a, b) = (&self.form, &other.form);
        let common = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
        let longest = a.chars().count().max(b.chars().count());
        self.stem == other.stem
            || (common >= 4 && (common * 5 >= longest * 3 || longest - common <= 3))
    }
}

/// One word, or all pairs of adjacent characters in scripts without spaces.
fn word_forms(word: &str) -> Vec<String> {
    let chars: Vec<char> = word.chars().collect();
    if !chars.iter().any(|c| is_script_without_spaces(*c)) || chars.len() < 3 {
        return vec![word.to_owned()];
    }
    chars.windows(2).map(|pair| pair.iter().collect()).collect()
}

/// Whether the script has no spaces between words: Thai, Lao, Chinese, Japanese.
fn is_script_without_spaces(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_share_word_with_different_ending() {
        let share = |one: &str, other: &str| Prose::new(one).shares_word(&Prose::new(other));
        for (one, other) in [
            ("Users can export tables", "An exported table has a header"),
            ("read CSV files", "Every CSV row becomes one record"),
            ("at most 200 connections", "p95 with 200 clients"),
            (
                "Die Tabelle wird exportiert",
                "Tabellen haben eine Kopfzeile",
            ),
            ("表を書き出す", "書き出した表に見出しがある"),
            ("do it", "anything at all"),
            ("scan before storing", "nothing is stored"),
        ] {
            assert!(share(one, other), "{one} / {other}");
        }
        for (one, other) in [
            ("It must read CSV files", "It must answer by mail"),
            ("contains rows", "controls access"),
            ("表を書き出す", "利用者がログインする"),
            ("the log", "in a login form"),
        ] {
            assert!(!share(one, other), "{one} / {other}");
        }
    }
}
