//! Does an explanation seem to explain nothing: a change to be tried, the error said again, words that fit any error?
//! Code cannot decide that, so it is flagged.

use std::collections::BTreeSet;

use super::draft::HypothesisDraft;
use super::evidence::EvidenceShelf;
use supervisor_text::words::lexicon::{Prose, lexicon};
use supervisor_verify::Flags;

/// A cause takes at least this many words, where words are divided by blanks.
const MECHANISM_WORDS: usize = 8;
/// And this many that the error itself does not say.
const NEW_WORDS: usize = 4;

/// What is to be asked about the words of these drafts. `error` are the stems of what is to be explained.
pub(super) fn flag_wording(
    drafts: &[HypothesisDraft],
    error: &BTreeSet<String>,
    shelf: &EvidenceShelf,
) -> Flags {
    let mut flags = Flags::default();
    for (n, draft) in drafts.iter().enumerate() {
        let place = draft.called(n);
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
        let said = Prose::whole(&draft.mechanism);
        let new = said.stems().difference(error).count();
        if new < NEW_WORDS || (draft.mechanism.is_ascii() && said.words().count() < MECHANISM_WORDS)
        {
            flags.raise(
                "thin_mechanism",
                &place,
                "hardly says more than the error itself",
            );
        }
    }
    let said = drafts
        .iter()
        .flat_map(|draft| Prose::whole(&format!("{} {}", draft.title, draft.mechanism)).stems());
    let said: BTreeSet<String> = said
        .filter(|stem| !lexicon().general.has_stem(stem))
        .collect();
    // One may speak of what happens elsewhere; all of them cannot.
    if !drafts.is_empty() && said.is_disjoint(error) && !shelf.speaks_of(&said) {
        let detail = "no hypothesis names anything that stands in the files it cites, so that they could explain any error";
        flags.raise("any_error", "all hypotheses", detail);
    }
    flags
}

/// The words that propose a change where a cause should stand.
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
        .try_and_see
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
    fn honest_sentences_about_code_that_tries_are_left_alone() {
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
