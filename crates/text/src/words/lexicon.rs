//! Words by what they give away: one data file, one stemmer, one stop list, one reader.
//! Knows which words stand in a text. Does not know what follows from that, and refuses nothing.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use regex::Regex;
use rust_stemmers::{Algorithm, Stemmer};
use serde::de::{Deserialize, Deserializer, Error as _};

/// All lists, read when the first of them is needed.
pub fn lexicon() -> &'static Lexicon {
    static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
        toml::from_str(include_str!("lexicon.toml")).expect("the tests read the same file")
    });
    &LEXICON
}

/// What `lexicon.toml` holds; each list is explained there.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lexicon {
    pub stop: WordList,
    pub praise: WordList,
    pub approval: WordList,
    pub turn: WordList,
    pub order: WordList,
    pub small_talk: WordList,
    pub stock: WordList,
    pub telling: WordList,
    pub empty_check: WordList,
    pub try_and_see: WordList,
    pub advice: WordPattern,
    pub general: WordList,
    pub boilerplate: WordList,
    pub any_error: WordList,
    pub vague: WordList,
    pub measured: WordPattern,
    pub placeholder: WordList,
    pub placeholder_mark: WordPattern,
    pub placeholder_alone: WordList,
    pub nameless: WordList,
    pub for_now: WordList,
    pub fits_any: WordList,
    pub asks_for_words: WordList,
    pub no_unit: WordList,
    pub how_often: WordList,
    pub any_thing: WordList,
    pub any_deed: WordList,
    pub no_program: WordList,
    pub idle_program: WordList,
    pub tool: WordList,
    pub about_itself: WordList,
    pub demand: WordList,
    pub decline: WordList,
    pub greeting: WordList,
    pub wish: WordList,
    pub abbreviation: WordList,
}

/// Words and phrases in small letters.
#[derive(Debug)]
pub struct WordList {
    entries: BTreeSet<String>,
    stems: BTreeSet<String>,
    /// Entries of several words, the longest first.
    phrases: Vec<Vec<String>>,
}

/// What no list of words can say.
#[derive(Debug)]
pub struct WordPattern(Regex);

/// A text taken apart into its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prose {
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub said: String,
    form: String,
    stem: String,
    /// Part of a compound such as `fail-fast`, or of a name such as `src/fast.rs`: not the word itself.
    is_part: bool,
    is_code: bool,
}

impl WordList {
    /// Is this one of them, in whatever form?
    pub fn has(&self, word: &Word) -> bool {
        self.stems.contains(&word.stem)
    }

    /// The same for a stem of [`Prose::stems`].
    pub fn has_stem(&self, stem: &str) -> bool {
        self.stems.contains(stem)
    }

    /// Is this, letter by letter, one of them?
    pub fn has_form(&self, form: &str) -> bool {
        self.entries.contains(&form.to_lowercase())
    }

    /// As they are written in the file.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(String::as_str)
    }

    /// The first of them that stands in a text, as it is written there. Names and compounds are left alone, unless the
    /// compound itself is listed.
    pub fn find(&self, prose: &Prose) -> Option<String> {
        (0..prose.words.len()).find_map(|at| {
            let rest = &prose.words[at..];
            let said = |n: usize| {
                rest[..n]
                    .iter()
                    .map(|word| word.said.as_str())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            self.phrase_at(rest).map(said).or_else(|| {
                let first = &rest[0];
                (!first.is_part && !first.is_code && self.entries.contains(&first.form))
                    .then(|| said(1))
            })
        })
    }

    /// Is the text one of these entries and nothing else?
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

    /// The text without its phrases and words of this list, and whether there were any.
    pub fn cut_from(&self, prose: &Prose) -> (Prose, bool) {
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
        let is_cut = kept.len() < prose.words.len();
        (Prose { words: kept }, is_cut)
    }

    /// How many words the phrase takes that begins here.
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
    /// The first place where it fits, as it is written there.
    pub fn find(&self, text: &str) -> Option<String> {
        self.0
            .find(text)
            .map(|found| found.as_str().trim().to_owned())
    }
}

impl Prose {
    /// What a Markdown text says outside of code. A text that is nothing but code is taken as it is.
    pub fn of(text: &str) -> Self {
        Self::split(&outside_code(text))
    }

    /// Every word, also in code.
    pub fn whole(text: &str) -> Self {
        Self::split(text)
    }

    pub fn words(&self) -> impl Iterator<Item = &Word> {
        self.words.iter()
    }

    /// The words that the text is about.
    pub fn content(&self) -> impl Iterator<Item = &Word> {
        let stop = &lexicon().stop;
        self.words.iter().filter(|word| !stop.has_form(&word.form))
    }

    /// Their stems, each once.
    pub fn stems(&self) -> BTreeSet<String> {
        self.content()
            .filter(|word| word.form.len() > 1)
            .map(|word| word.stem.clone())
            .collect()
    }

    /// Do both speak of one thing? One word in common is enough, whatever its ending; true also if this one has no word
    /// to share. Works in any language as long as both texts are in the same one.
    pub fn shares_a_word(&self, other: &Self) -> bool {
        let mut own = self.content().peekable();
        own.peek().is_none()
            || own.any(|word| other.content().any(|candidate| word.is_akin(candidate)))
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
                        let joined = |side: Option<char>| side == Some('-');
                        let is_part = joined(chunk[..start].chars().next_back())
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
    /// One word; or, in a script that does not divide words, each two signs side by side.
    fn all_of(said: &str, is_part: bool, is_code: bool) -> Vec<Self> {
        let one = |said: &str| {
            let form = said.to_lowercase();
            let stem = STEMMER.stem(&form).into_owned();
            Self {
                said: said.to_owned(),
                form,
                stem,
                is_part,
                is_code,
            }
        };
        let signs: Vec<char> = said.chars().collect();
        if !signs.iter().any(|sign| is_undivided(*sign)) || signs.len() < 3 {
            return vec![one(said)];
        }
        signs
            .windows(2)
            .map(|pair| one(&pair.iter().collect::<String>()))
            .collect()
    }

    /// The same word, or one with another ending: `export`, `exports`; `Tabelle`, `Tabellen`.
    pub fn is_akin(&self, other: &Self) -> bool {
        let (a, b) = (&self.form, &other.form);
        let common = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
        let long = a.chars().count().max(b.chars().count());
        self.stem == other.stem || (common >= 4 && (common * 5 >= long * 3 || long - common <= 3))
    }

    pub fn is_number(&self) -> bool {
        self.form.bytes().all(|b| b.is_ascii_digit())
    }

    pub fn form(&self) -> &str {
        &self.form
    }
}

static STEMMER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

/// A name rather than a word: `fast_path`, `--quick`, `src/fast.rs`, `Mode::Fast`, `easy()`.
fn is_code(chunk: &str) -> bool {
    let bare = chunk.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    let is_dotted = || {
        let mut around = bare
            .match_indices('.')
            .filter(|(at, _)| *at > 0 && *at + 1 < bare.len());
        around.any(|(at, _)| bare[at + 1..].starts_with(char::is_alphanumeric))
    };
    ["_", "::", "()", "=", "@", "\\", "$", "//"]
        .iter()
        .any(|sign| chunk.contains(sign))
        || bare.starts_with(['/', '-', '~'])
        || is_dotted()
}

/// Scripts without blanks between words: Thai, Lao, Chinese, Japanese.
fn is_undivided(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// What a Markdown text says outside of code, without characters that cannot be seen: they could part a word.
pub fn outside_code(text: &str) -> String {
    let is_unseen = |c: &char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    let text: String = text.trim().chars().filter(|c| !is_unseen(c)).collect();
    let (mut prose, mut in_block) = (String::new(), false);
    for event in Parser::new(&text) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_block = true,
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Text(said) | Event::Html(said) | Event::InlineHtml(said) if !in_block => {
                prose.push_str(&said)
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
    fn the_file_is_read_and_no_list_is_empty() {
        assert!(lexicon().stop.entries.len() > 80);
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
    fn words_are_known_by_their_stem_and_phrases_by_their_form() {
        let stock = &lexicon().stock;
        for form in ["improve", "improves", "Improving", "improved"] {
            assert!(
                Prose::of(form).words().all(|word| stock.has(word)),
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
    fn one_word_in_common_is_enough_whatever_its_ending() {
        let share = |one: &str, other: &str| Prose::whole(one).shares_a_word(&Prose::whole(other));
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
    fn code_is_no_prose_unless_there_is_nothing_else() {
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
