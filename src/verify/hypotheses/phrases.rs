//! "Try it and see" is no explanation. The list is short on purpose: honest sentences about code that tries and retries
//! must pass.

use std::sync::LazyLock;

use regex::Regex;

/// Said instead of an explanation.
const PHRASES: &[&str] = &[
    "try and see",
    "try it and see",
    "try this and see",
    "just try",
    "see if it helps",
    "see if that helps",
    "see if this helps",
    "see whether it helps",
    "see if it works",
    "see if that works",
    "see if it goes away",
    "see if that fixes",
    "see if it fixes",
    "see if this fixes",
    "see what happens",
    "might help",
    "may help",
    "could help",
    "maybe restart",
    "perhaps restart",
    "maybe reinstall",
    "turn it off and on",
    "play around",
    "play with",
    "fiddle with",
    "tinker with",
    "trial and error",
    "hope for the best",
    "hopefully fixes",
    "hopefully solves",
    "if that does not work",
    "if that doesn't work",
    "if this doesn't work",
];

/// An instruction to change something, where a cause should stand.
static ADVICE: LazyLock<Regex> = LazyLock::new(|| {
    let changing = "chang|add|remov|replac|upgrad|downgrad|updat|reinstall|restart|sett|increas|decreas|rais|lower|clear|\
                    disabl|enabl|rewrit|switch|bump|rebuild|wrapp|delet|mov";
    let change = "change|add|remove|replace|upgrade|downgrade|update|reinstall|restart|set|increase|decrease|raise|lower|\
                  clear|disable|enable|rewrite|switch|bump|rebuild|wrap|delete|move";
    let before = "(^|[.;:,!?(] ?|just |then |you |we |could |can |should |maybe |perhaps |might |let's |and )";
    Regex::new(&format!(
        "{before}try ({changing})[a-z]*ing |{before}try to ({change}) |(^|[.;:!?] |just |simply )({change}) [^.;]{{1,80}} \
         and (check|see|retry|rerun|re-run|test|try)( |$|[.,;!?])"
    ))
    .expect("a pattern that the tests compile")
});

/// The words that give no explanation, if there are any.
pub(super) fn try_and_see(text: &str) -> Option<String> {
    let text = text.to_lowercase().replace(['’', '`'], "'");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let phrase = PHRASES.iter().find(|phrase| {
        let is_border = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
        text.match_indices(**phrase).any(|(at, _)| {
            is_border(text[..at].chars().next_back()) && is_border(text[at + phrase.len()..].chars().next())
        })
    });
    phrase.map(|phrase| (*phrase).to_owned()).or_else(|| {
        ADVICE.find(&text).map(|found| found.as_str().trim_matches([' ', ',', '.', ';', ':', '(']).to_owned())
    })
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
    fn honest_sentences_about_code_that_tries_pass() {
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
