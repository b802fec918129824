//! Are two explanations one idea in other words? Compared by the stems of the words they use, whatever their order.

use std::collections::BTreeSet;

/// Twice the shared words over all words of both. Above this, two texts say the same.
const SAME_WORDS: f64 = 0.7;
/// The same where they also point at the same lines: less need be shared.
const SAME_WORDS_SAME_PLACE: f64 = 0.55;

/// Do both say the same? `same_place` if they cite the same lines.
pub(super) fn is_like(one: &BTreeSet<String>, other: &BTreeSet<String>, same_place: bool) -> bool {
    let limit = if same_place {
        SAME_WORDS_SAME_PLACE
    } else {
        SAME_WORDS
    };
    let all = one.len() + other.len();
    let shared = one.intersection(other).count();
    #[expect(clippy::cast_precision_loss, reason = "a few dozen words")]
    let likeness = 2.0 * shared as f64 / all.max(1) as f64;
    likeness >= limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use supervisor_text::words::lexicon::Prose;

    fn alike(a: &str, b: &str, same_place: bool) -> bool {
        is_like(
            &Prose::whole(a).stems(),
            &Prose::whole(b).stems(),
            same_place,
        )
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
            assert!(alike(idea, copy, false), "{copy}");
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
            assert!(!alike(a, b, true), "{a} / {b}");
        }
    }
}
