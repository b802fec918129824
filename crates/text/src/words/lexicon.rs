//! Word lists for the checks of prose. `lexicon.toml` holds the lists; [`Prose`] splits a text into words, and
//! [`WordList`] finds entries in it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use regex::Regex;
use rust_stemmers::{Algorithm, Stemmer};
use serde::de::{Deserialize, Deserializer, Error as _};

/// All lists, loaded on first use.
pub fn lexicon() -> &'static Lexicon {
    static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
        toml::from_str(include_str!("lexicon.toml")).expect("the tests read the same file")
    });
    &LEXICON
}

/// The content of `lexicon.toml`, which explains each list.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lexicon {
    pub stop_words: WordList,
    pub praise: WordList,
    pub approval: WordList,
    pub contrast: WordList,
    pub instruction: WordList,
    pub filler: WordList,
    pub generic_advice: WordList,
    pub plain_description: WordList,
    pub empty_check: WordList,
    pub trial_and_error: WordList,
    pub advice: WordPattern,
    pub generic_explanation: WordList,
    pub boilerplate: WordList,
    pub generic_error: WordList,
    pub vague: WordList,
    pub measurable: WordPattern,
    pub placeholder: WordList,
    pub placeholder_mark: WordPattern,
    pub placeholder_only: WordList,
    pub empty_statement: WordList,
    pub time_qualifier: WordList,
    pub generic_decision: WordList,
    pub generic_question: WordList,
    pub boolean_unit: WordList,
    pub count_unit: WordList,
    pub generic_subject: WordList,
    pub generic_action: WordList,
    pub not_a_program: WordList,
    pub trivial_program: WordList,
    pub tool: WordList,
    pub info_flag: WordList,
    pub demand: WordList,
    pub exclusion: WordList,
    pub greeting: WordList,
    pub closing: WordList,
    pub abbreviation: WordList,
}

/// Words and phrases in lower case.
#[derive(Debug)]
pub struct WordList {
    entries: BTreeSet<String>,
    stems: BTreeSet<String>,
    /// Entries of several words, the longest first.
    phrases: Vec<Vec<String>>,
}

/// A regular expression, for what a word list cannot express.
#[derive(Debug)]
pub struct WordPattern(Regex);

/// The words of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prose {
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// The text in lower case.
    form: String,
    stem: String,
    /// Part of a compound such as `fail-fast`, so not the word itself.
    is_part: bool,
    /// Part of a name such as `src/fast.rs`.
    is_code: bool,
}

impl WordList {
    /// Whether the list contains this word in any inflected form.
    pub fn has(&self, word: &Word) -> bool {
        self.stems.contains(&word.stem)
    }

    /// Like [`Self::has`], for a stem from [`Prose::stems`].
    pub fn has_stem(&self, stem: &str) -> bool {
        self.stems.contains(stem)
    }

    /// Whether the list contains exactly this word, ignoring case.
    pub fn has_form(&self, form: &str) -> bool {
        self.entries.contains(&form.to_lowercase())
    }

    /// The entries as written in the file, in lower case.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(String::as_str)
    }

    /// The first entry that occurs in a text, as written there. Skips names and parts of compounds, unless the compound
    /// itself is listed.
    pub fn find(&self, prose: &Prose) -> Option<String> {
        (0..prose.words.len()).find_map(|at| {
            let rest = &prose.words[at..];
            let first_words = |n: usize| {
                rest[..n]
                    .iter()
                    .map(|word| word.text.as_str())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            self.phrase_at(rest).map(first_words).or_else(|| {
                let first = &rest[0];
                (!first.is_part && !first.is_code && self.entries.contains(&first.form))
                    .then(|| first_words(1))
            })
        })
    }

    /// Whether the whole text is one entry.
    pub fn is_whole(&self, prose: &Prose) -> bool {
        self.entries.contains(
            &prose
                .words
                .iter()
                .map(|word| word.form.as_str())
                .collect::<Vec<_>>()
                .join(" "),
        )
    }

    /// Removes all entries of this list from the text, and says whether there were any.
    pub fn remove_from(&self, prose: &Prose) -> (Prose, bool) {
        let (mut kept, mut at) = (Vec::new(), 0);
        while at < prose.words.len() {
            let rest = &prose.words[at..];
            let taken = self
                .phrase_at(rest)
                .unwrap_or_else(|| usize::from(self.entries.contains(&rest[0].form)));
            if taken == 0 {
                kept.push(rest[0].clone());
            }
            at += taken.max(1);
        }
        let is_changed = kept.len() < prose.words.len();
        (Prose { words: kept }, is_changed)
    }

    /// The number of words of the phrase that starts here.
    fn phrase_at(&self, words: &[Word]) -> Option<usize> {
        let fits = |phrase: &&Vec<String>| {
            phrase.len() <= words.len()
                && phrase
                    .iter()
                    .zip(words)
                    .all(|(entry, word)| *entry == word.form)
        };
        self.phrases.iter().find(fits).map(Vec::len)
    }
}

impl WordPattern {
    /// The first match, as written in the text.
    pub fn find(&self, text: &str) -> Option<String> {
        self.0
            .find(text)
            .map(|found| found.as_str().trim().to_owned())
    }
}

impl Prose {
    /// The words of a Markdown text outside of code. If the text is only code, all of its words.
    pub fn of(text: &str) -> Self {
        Self::split(&outside_code(text))
    }

    /// All words, including code.
    pub fn whole(text: &str) -> Self {
        Self::split(text)
    }

    pub fn words(&self) -> impl Iterator<Item = &Word> {
        self.words.iter()
    }

    /// The words that are not stop words.
    pub fn content(&self) -> impl Iterator<Item = &Word> {
        let stop_words = &lexicon().stop_words;
        self.words
            .iter()
            .filter(|word| !stop_words.has_form(&word.form))
    }

    /// The distinct stems of the content words.
    pub fn stems(&self) -> BTreeSet<String> {
        self.content()
            .filter(|word| word.form.len() > 1)
            .map(|word| word.stem.clone())
            .collect()
    }

    /// Whether both texts have a content word in common, whatever its ending. Also true if this text has no content words.
    /// Works in any language if both texts use the same one.
    pub fn shares_word(&self, other: &Self) -> bool {
        let mut own = self.content().peekable();
        own.peek().is_none()
            || own.any(|word| other.content().any(|candidate| word.is_related(candidate)))
    }

    fn split(text: &str) -> Self {
        let mut words = Vec::new();
        for chunk in text.split_whitespace() {
            let is_code = is_code(chunk);
            let mut from = None;
            for (at, c) in chunk.char_indices().chain([(chunk.len(), ' ')]) {
                let in_word = at < chunk.len() && (c.is_alphanumeric() || c == '_');
                match (from, in_word) {
                    (None, true) => from = Some(at),
                    (Some(start), false) => {
                        let is_hyphen = |side: Option<char>| side == Some('-');
                        let is_part = is_hyphen(chunk[..start].chars().next_back())
                            || (c == '-' && at + 1 < chunk.len());
                        words.extend(Word::all_of(&chunk[start..at], is_part, is_code));
                        from = None;
                    }
                    _ => {}
                }
            }
        }
        Self { words }
    }
}

impl Word {
    /// One word, or all pairs of adjacent characters in scripts without spaces.
    fn all_of(text: &str, is_part: bool, is_code: bool) -> Vec<Self> {
        let one = |text: &str| {
            let form = text.to_lowercase();
            let stem = STEMMER.stem(&form).into_owned();
            Self {
                text: text.to_owned(),
                form,
                stem,
                is_part,
                is_code,
            }
        };
        let chars: Vec<char> = text.chars().collect();
        if !chars.iter().any(|c| is_script_without_spaces(*c)) || chars.len() < 3 {
            return vec![one(text)];
        }
        chars
            .windows(2)
            .map(|pair| one(&pair.iter().collect::<String>()))
            .collect()
    }

    /// Whether both are the same word, maybe with a different ending: `export`, `exports`; `Tabelle`, `Tabellen`.
    pub fn is_related(&self, other: &Self) -> bool {
        let (a, b) = (&self.form, &other.form);
        let common = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
        let longest = a.chars().count().max(b.chars().count());
        self.stem == other.stem
            || (common >= 4 && (common * 5 >= longest * 3 || longest - common <= 3))
    }

    pub fn is_number(&self) -> bool {
        self.form.bytes().all(|b| b.is_ascii_digit())
    }

    pub fn form(&self) -> &str {
        &self.form
    }
}

static STEMMER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

/// Whether the chunk is a name in code and not a word: `fast_path`, `--quick`, `src/fast.rs`, `Mode::Fast`, `easy()`.
fn is_code(chunk: &str) -> bool {
    let bare = chunk.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    let is_dotted = || {
        let mut inner_dots = bare
            .match_indices('.')
            .filter(|(at, _)| *at > 0 && *at + 1 < bare.len());
        inner_dots.any(|(at, _)| bare[at + 1..].starts_with(char::is_alphanumeric))
    };
    ["_", "::", "()", "=", "@", "\\", "$", "//"]
        .iter()
        .any(|sign| chunk.contains(sign))
        || bare.starts_with(['/', '-', '~'])
        || is_dotted()
}

/// Whether the script has no spaces between words: Thai, Lao, Chinese, Japanese.
fn is_script_without_spaces(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The text of a Markdown document outside of code. Removes invisible characters, which could split a word.
pub fn outside_code(text: &str) -> String {
    let is_invisible = |c: &char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    let text: String = text.trim().chars().filter(|c| !is_invisible(c)).collect();
    let (mut prose, mut in_block) = (String::new(), false);
    for event in Parser::new(&text) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_block = true,
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) if !in_block => {
                prose.push_str(&text)
            }
            Event::Start(Tag::Emphasis | Tag::Strong)
            | Event::End(TagEnd::Emphasis | TagEnd::Strong) => {}
            _ => prose.push(' '),
        }
    }
    if prose.chars().any(char::is_alphanumeric) {
        prose
    } else {
        text.replace('`', " ")
    }
}

impl<'de> Deserialize<'de> for WordList {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let entries: BTreeSet<String> = text
            .split([',', '\n'])
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .map(str::to_lowercase)
            .collect();
        let single = entries.iter().filter(|entry| !entry.contains(' '));
        let stems = single
            .map(|entry| STEMMER.stem(entry).into_owned())
            .collect();
        let words = |entry: &String| entry.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut phrases: Vec<Vec<String>> = entries
            .iter()
            .filter(|entry| entry.contains(' '))
            .map(words)
            .collect();
        phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.len()));
        Ok(Self {
            entries,
            stems,
            phrases,
        })
    }
}

impl<'de> Deserialize<'de> for WordPattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Regex::new(String::deserialize(from)?.trim())
            .map(Self)
            .map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_list_is_empty() {
        assert!(lexicon().stop_words.entries.len() > 80);
        let text: toml::Table = toml::from_str(include_str!("lexicon.toml")).expect("TOML");
        for (name, list) in text {
            let entries = list
                .as_str()
                .expect("a text")
                .split([',', '\n'])
                .filter(|e| !e.trim().is_empty())
                .count();
            assert!(entries > 0, "{name}");
        }
    }

    #[test]
    fn words_match_by_stem_and_phrases_by_form() {
        let generic_advice = &lexicon().generic_advice;
        for form in ["improve", "improves", "Improving", "improved"] {
            assert!(
                Prose::of(form).words().all(|word| generic_advice.has(word)),
                "{form}"
            );
        }
        let vague = &lexicon().vague;
        for (text, found) in [
            ("It is Fast.", Some("Fast")),
            ("User-friendly output", Some("User friendly")),
            ("works as expected, always", Some("as expected")),
            ("only fast-forward merges", None),
            (
                "the flag `--fast` and --fast, src/fast.rs, fast_path, Mode::Fast, fast()",
                None,
            ),
            ("within a short response time", None),
            ("it is fa\u{ad}st", Some("fast")),
            ("*fast*", Some("fast")),
        ] {
            assert_eq!(vague.find(&Prose::of(text)).as_deref(), found, "{text}");
        }
    }

    #[test]
    fn texts_share_word_with_different_ending() {
        let share = |one: &str, other: &str| Prose::whole(one).shares_word(&Prose::whole(other));
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

    #[test]
    fn code_is_skipped_unless_alone() {
        assert_eq!(
            outside_code("Counts `TODO` comments")
                .split_whitespace()
                .collect::<Vec<_>>(),
            ["Counts", "comments"]
        );
        assert_eq!(outside_code("`TBD`").trim(), "TBD");
        assert_eq!(outside_code("an odd ` tick").trim(), "an odd ` tick");
        assert_eq!(
            outside_code("Excel: <insert more>").trim(),
            "Excel: <insert more>"
        );
        assert!(!outside_code("a\n\n```\nTODO\n```\n").contains("TODO"));
    }
}
