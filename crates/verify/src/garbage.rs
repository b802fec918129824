//! What a parser of other programs' words must survive: real samples, cut, spliced and scribbled over.

use proptest::prelude::*;

/// A sample with up to four wounds, or something else entirely.
pub(super) fn garbage(sample: &'static str) -> impl Strategy<Value = String> {
    let wound = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        ".{0,8}",
        any::<bool>(),
    );
    let wounded = prop::collection::vec(wound, 0..4).prop_map(move |wounds| {
        let mut text: Vec<char> = sample.chars().collect();
        for (from, to, scribble, cut) in wounds {
            let (a, b) = (from.index(text.len() + 1), to.index(text.len() + 1));
            let (a, b) = (
                a.min(b),
                a.max(b)
                    .min(a.min(b) + if cut { usize::MAX - text.len() - 1 } else { 3 }),
            );
            let b = b.min(text.len());
            text.splice(a..b, scribble.chars());
        }
        text.into_iter().collect::<String>()
    });
    prop_oneof![4 => wounded, 1 => any::<String>()]
}
