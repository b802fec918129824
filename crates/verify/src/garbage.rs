//! Corrupted input for property tests of parsers: real samples that are truncated, spliced and overwritten.

use proptest::prelude::*;

/// A sample with up to three random edits, or arbitrary text.
pub(super) fn garbage(sample: &'static str) -> impl Strategy<Value = String> {
    let edit = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        ".{0,8}",
        any::<bool>(),
    );
    let edited = prop::collection::vec(edit, 0..4).prop_map(move |edits| {
        let mut text: Vec<char> = sample.chars().collect();
        for (from, to, inserted, removes_many) in edits {
            let (a, b) = (from.index(text.len() + 1), to.index(text.len() + 1));
            let (a, b) = (
                a.min(b),
                a.max(b).min(
                    a.min(b)
                        + if removes_many {
                            usize::MAX - text.len() - 1
                        } else {
                            3
                        },
                ),
            );
            let b = b.min(text.len());
            text.splice(a..b, inserted.chars());
        }
        text.into_iter().collect::<String>()
    });
    prop_oneof![4 => edited, 1 => any::<String>()]
}
