//! Are two explanations one idea in other words? Compared by the words they use, whatever their order.

use std::collections::BTreeSet;

/// Twice the shared words over all words of both. Above this, two texts say the same.
const SAME_WORDS: f64 = 0.7;
/// The same where they also point at the same lines: less need be shared.
const SAME_WORDS_SAME_PLACE: f64 = 0.55;

/// The words of a text that carry meaning, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Words(BTreeSet<String>);

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let text = text.to_lowercase();
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        Self(words.filter(|word| word.len() > 1 && !STOP.contains(word)).map(stem).collect())
    }

    /// How many of these are in no other text given.
    pub(super) fn beyond(&self, other: &Self) -> usize {
        self.0.difference(&other.0).count()
    }

    pub(super) fn with(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().cloned());
        self
    }

    pub(super) fn without(mut self, other: &Self) -> Self {
        self.0.retain(|word| !other.0.contains(word));
        self
    }

    /// Is any word in both?
    pub(super) fn meets(&self, other: &Self) -> bool {
        !self.0.is_disjoint(&other.0)
    }

    /// Do both say the same? `same_place` if they cite the same lines.
    pub(super) fn is_like(&self, other: &Self, same_place: bool) -> bool {
        let limit = if same_place { SAME_WORDS_SAME_PLACE } else { SAME_WORDS };
        let all = self.0.len() + other.0.len();
        let shared = self.0.intersection(&other.0).count();
        #[expect(clippy::cast_precision_loss, reason = "a few dozen words")]
        let likeness = 2.0 * shared as f64 / all.max(1) as f64;
        likeness >= limit
    }
}

/// `returns`, `returned` and `returning` are one word. Crude, and the same for both sides.
fn stem(word: &str) -> String {
    for ending in ["ing", "ed", "es", "s"] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() > 3
        {
            return stem.to_owned();
        }
    }
    word.to_owned()
}

const STOP: &[&str] = &[
    "the",
    "an",
    "is",
    "are",
    "was",
    "were",
    "be",
    "been",
    "being",
    "it",
    "its",
    "this",
    "that",
    "these",
    "those",
    "of",
    "in",
    "on",
    "at",
    "to",
    "by",
    "for",
    "from",
    "with",
    "and",
    "or",
    "but",
    "so",
    "as",
    "if",
    "then",
    "than",
    "when",
    "while",
    "because",
    "since",
    "which",
    "who",
    "what",
    "there",
    "here",
    "has",
    "have",
    "had",
    "do",
    "does",
    "did",
    "will",
    "would",
    "can",
    "could",
    "should",
    "may",
    "might",
    "must",
    "therefore",
    "thus",
    "hence",
    "also",
    "just",
    "simply",
    "really",
    "very",
    "due",
    "cause",
    "causes",
    "caused",
    "reason",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(a: &str, b: &str) -> bool {
        Words::of(a).is_like(&Words::of(b), false)
    }

    #[test]
    fn one_idea_in_another_order_is_one_idea() {
        let idea = "The index is taken before the list is sorted, so it points at another entry";
        for copy in [
            idea,
            "the index IS taken, before the list is sorted: so it points at another entry!",
            "It points at another entry since the index was taken before sorting the list",
            "Because the list is sorted after the index is taken, the index points at another entry",
        ] {
            assert!(alike(idea, copy), "{copy}");
        }
    }

    #[test]
    fn two_causes_in_one_place_are_two_ideas() {
        for (a, b) in [
            (
                "the cache returns a stale entry because `invalidate` is not called after a write",
                "the cache returns a stale entry because the age is compared in seconds with a limit in milliseconds",
            ),
            (
                "`first` indexes the slice without looking whether it is empty",
                "the caller passes an empty slice because the filter drops lines that end in a carriage return",
            ),
        ] {
            assert!(!Words::of(a).is_like(&Words::of(b), true), "{a} / {b}");
        }
    }
}
