//! Compares two explanations by the stems of their words, in any order.

use std::collections::BTreeSet;

/// Similarity limit: twice the shared words divided by the words of both.
const MIN_SIMILARITY: f64 = 0.7;
/// A lower limit for explanations that cite the same lines.
const MIN_SIMILARITY_SAME_PLACE: f64 = 0.55;

/// Whether both say the same. `same_place` is set if they cite the same lines.
pub(super) fn is_similar(
    one: &BTreeSet<String>,
    other: &BTreeSet<String>,
    same_place: bool,
) -> bool {
    let limit = if same_place {
        MIN_SIMILARITY_SAME_PLACE
    } else {
        MIN_SIMILARITY
    };
    let all = one.len() + other.len();
    let shared = one.intersection(other).count();
    #[expect(clippy::cast_precision_loss, reason = "a few dozen words")]
    let similarity = 2.0 * shared as f64 / all.max(1) as f64;
    similarity >= limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::prose::Prose;

    fn alike(a: &str, b: &str, same_place: bool) -> bool {
        is_similar(&Prose::new(a).stems(), &Prose::new(b).stems(), same_place)
    }

    #[test]
    fn rephrased_explanation_is_similar() {
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
    fn different_causes_in_one_place_are_distinct() {
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
