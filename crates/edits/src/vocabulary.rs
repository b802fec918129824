//! Words that models use for keys and actions, read from `vocabulary.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The contents of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EditVocabulary {
    pub(super) keys: EditKeys,
    pub(super) answer: AnswerKeys,
    pub(super) actions: ActionWords,
    nothing: NothingWords,
    pub(super) blocks: BlockWords,
    /// Info string to file extensions.
    pub(super) languages: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EditKeys {
    pub(super) path: Vec<String>,
    pub(super) content: Vec<String>,
    pub(super) search: Vec<String>,
    pub(super) replace: Vec<String>,
    pub(super) action: Vec<String>,
    pub(super) diff: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerKeys {
    pub(super) edits: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) need: Vec<String>,
    pub(super) contradiction: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActionWords {
    pub(super) delete: Vec<String>,
    pub(super) change: Vec<String>,
    pub(super) whole: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NothingWords {
    words: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BlockWords {
    pub(super) shown_only: Vec<String>,
    pub(super) json: Vec<String>,
    pub(super) diff: Vec<String>,
    pub(super) markdown: Vec<String>,
}

static WORDS: LazyLock<EditVocabulary> = LazyLock::new(|| {
    toml::from_str(include_str!("vocabulary.toml"))
        .expect("the file is compiled in, and a test reads it")
});

pub(super) fn vocabulary() -> &'static EditVocabulary {
    &WORDS
}

/// Whether the word is in this list, ignoring case and separators.
pub(super) fn is_one_of(word: &str, list: &[String]) -> bool {
    let fold = |c: char| {
        if matches!(c, '-' | ' ') {
            '_'
        } else {
            c.to_ascii_lowercase()
        }
    };
    // Words in the lists are short, so longer ones cannot match.
    word.len() <= 40
        && list
            .iter()
            .any(|known| known.chars().map(fold).eq(word.trim().chars().map(fold)))
}

/// Whether the text is empty or a phrase such as "none" or "n/a".
pub fn means_none(text: &str) -> bool {
    let bare = text
        .trim()
        .trim_matches(['.', '!', '"', '\'', '`', '*', '(', ')', '[', ']', '_'])
        .trim();
    bare.is_empty()
        || WORDS
            .nothing
            .words
            .iter()
            .any(|word| word.eq_ignore_ascii_case(bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_loosely() {
        assert!(
            is_one_of("File-Path", &vocabulary().keys.path)
                && is_one_of("newString", &["newstring".into()])
        );
        assert!(!is_one_of("profile", &vocabulary().keys.path));
        for nothing in [
            "",
            "none",
            "None.",
            "N/A",
            "**No contradiction**",
            "null",
            "(none)",
        ] {
            assert!(means_none(nothing), "{nothing}");
        }
        assert!(!means_none("the test wants 41 and the spec 42"));
    }
}
