//! Flags wording that explains nothing: advice to try a change, the error repeated, text that fits
//! any error. Code cannot decide this, so it only raises flags.

use std::collections::BTreeSet;

use super::draft::HypothesisDraft;
use super::evidence::EvidenceSources;
use supervisor_text::words::lexicon::{Prose, lexicon};
use supervisor_verify::Flags;

/// Min words of a mechanism, in text with spaces between words.
const MIN_MECHANISM_WORDS: usize = 8;
/// Min words that are not in the error itself.
const MIN_NEW_WORDS: usize = 4;

/// Flags the wording of these drafts. `error` holds the stems of the error text.
pub(super) fn flag_wording(
    drafts: &[HypothesisDraft],
    error: &BTreeSet<String>,
    sources: &EvidenceSources,
) -> Flags {
    let mut flags = Flags::default();
    for (n, draft) in drafts.iter().enumerate() {
        let place = draft.label(n);
        if let Some(phrase) = [&draft.title, &draft.mechanism, &draft.because]
            .into_iter()
            .find_map(|t| try_and_see(t))
        {
            flags.raise(
                "try_and_see",
                &place,
                format!("says `{phrase}`, which seems to be trying instead of explaining"),
            );
        }
        let prose = Prose::whole(&draft.mechanism);
        let new = prose.stems().difference(error).count();
        if new < MIN_NEW_WORDS
            || (draft.mechanism.is_ascii() && prose.words().count() < MIN_MECHANISM_WORDS)
        {
            flags.raise(
                "thin_mechanism",
                &place,
                "hardly says more than the error itself",
            );
        }
    }
    let stems = drafts
        .iter()
        .flat_map(|draft| Prose::whole(&format!("{} {}", draft.title, draft.mechanism)).stems());
    let stems: BTreeSet<String> = stems
        .filter(|stem| !lexicon().generic_explanation.has_stem(stem))
        .collect();
    // A single hypothesis may be about something not cited; all of them cannot.
    if !drafts.is_empty() && stems.is_disjoint(error) && !sources.mention_any(&stems) {
        let detail = "no hypothesis names anything that stands in the files it cites, so that they could explain any error";
        flags.raise("any_error", "all hypotheses", detail);
    }
    flags
}

/// The phrase that proposes a change instead of a cause.
fn try_and_see(text: &str) -> Option<String> {
    let bare = text
        .to_lowercase()
        .replace(['’', '`'], "'")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let advice = || {
        lexicon().advice.find(&bare).map(|found| {
            found
                .trim_matches([' ', ',', '.', ';', ':', '('])
                .to_owned()
        })
    };
    lexicon()
        .trial_and_error
        .find(&Prose::whole(&bare))
        .or_else(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_to_try_something_is_found() {
        for text in [
            "Try increasing the timeout.",
            "The cache is stale, try and see.",
            "You could try changing the order of the calls",
            "Maybe restart the service first",
            "Change the limit to 10 and check again",
            "just add a sleep and see",
            "Perhaps the index is wrong; see if it helps to sort",
            "Upgrading the driver might help",
            "Something with the queue, just try another size",
            "We should try to replace the parser",
        ] {
            assert!(try_and_see(text).is_some(), "{text}");
        }
    }

    #[test]
    fn descriptions_of_code_that_tries_are_not_flagged() {
        for text in [
            "`try_lock` returns an error when the writer holds the mutex, and `?` passes it on",
            "the retry loop starts over with the old token because `refresh` is called after the request",
            "workers try adding to a full queue, and `push` drops the oldest entry without a word",
            "the entry is removed twice: once in `drop` and once in `evict`",
            "the try/except around `load` swallows the KeyError, so `table` stays empty",
            "both threads try to lock `b` before `a`, which is a deadlock",
            "the code tries to open the file before the directory is created",
            "the test will see if `len` is 0 and take the early return",
            "setting `capacity` to 0 makes `get(0)` return None, which is unwrapped",
            "when users change the locale the cached formatter is not made again, and checks compare old strings",
        ] {
            assert_eq!(try_and_see(text), None, "{text}");
        }
    }
}
