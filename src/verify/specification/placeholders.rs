//! Is anything left to be filled in? Marks such as TBD, phrases such as "to be defined", and texts that are nothing else.
//! What stands in backticks is code and may hold any word, unless the whole text stands there.

use std::sync::LazyLock;

use regex::Regex;

use super::super::proof::Check;
use super::draft::Draft;
use super::{quoted, says, verdict};
use crate::words;

// Only ASCII classes: Unicode's tables are left out of the build.
static MARKS: LazyLock<Regex> = LazyLock::new(|| {
    let marks = [
        // In capitals: a todo list is an honest subject.
        r"(?-u:\b)(?:TODO|XXX+|T\.B\.D\.?|WIP)(?-u:\b)",
        r"(?i-u:\btodo:|\btbd\b|\btba\b|\btbc\b|\bfixme\b)",
        r"\?\?\?+",
        r"(?i-u:\b(?:to be|yet to be|will be) (?:defined|determined|decided|specified|clarified|announced|discussed|filled in)(?: later)?\b)",
        r"(?i-u:\b(?:coming soon|fill (?:this|me) in|placeholder text|lorem ipsum|details? (?:to|will) follow)\b)",
        r"(?i-u:\b(?:to be|will be) (?:added|written|provided|agreed|confirmed|worked out) (?:later|soon|separately|with (?:the |all )?(?:stakeholders?|team|customers?|clients?|users?|business))\b)",
        r"(?i-u:\bnot yet (?:decided|determined|clear|agreed)\b)",
        r"[<\[{](?i-u:insert|your|placeholder|fill|describe|todo|tbd|add|enter|replace)(?:[ _:-][^<>\[\]{}]{0,60})?[>\]}]",
        r"_{4,}",
    ];
    Regex::new(&marks.join("|")).expect("the marks are constant and tested")
});

/// Texts that are nothing but a stand-in.
const ALONE: &[&str] = &[
    "n/a",
    "na",
    "none",
    "nothing",
    "nil",
    "null",
    "unknown",
    "placeholder",
    "string",
    "text",
    "todo",
    "same as above",
    "see above",
    "example",
    "foo",
    "wip",
    "pending",
    "depends",
    "it depends",
    "later",
    "unclear",
    "not applicable",
    "as discussed",
    "as above",
];

pub(super) fn examine(draft: &Draft) -> Check {
    let mut texts = draft.texts();
    // The sign of a unit is all there is to it.
    texts.retain(|(place, text)| !(place.starts_with("`unit`") && text.contains(['%', '‰', '€', '$', '£', '¥', '°'])));
    let faults = texts.iter().filter_map(|(place, text)| {
        let mark = find(text)?;
        Some(format!("{place} holds the placeholder {}; write what is meant, or ask in `questions`", quoted(&mark)))
    });
    let faults: Vec<String> = faults.collect();
    verdict("placeholders", &faults, || format!("none in {}", words::count(texts.len(), "text")))
}

/// The first mark in a text.
pub(super) fn find(text: &str) -> Option<String> {
    let prose = outside_code(text);
    let looked_at = if says(&prose) { prose } else { text.replace('`', " ") };
    if let Some(mark) = MARKS.find(&looked_at) {
        return Some(mark.as_str().trim().to_owned());
    }
    let alone = looked_at.trim().trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    (ALONE.contains(&alone.as_str()) || !says(&looked_at)).then(|| text.trim().to_owned())
}

/// The text without what stands between two backticks, and without what nobody sees: it could part a word.
pub(super) fn outside_code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd backtick at the end opens nothing.
    let closed = if parts.len() % 2 == 1 { parts.len() } else { parts.len() - 1 };
    let prose = parts.iter().enumerate().filter(|(n, _)| n % 2 == 0 || *n >= closed).map(|(_, part)| *part);
    let unseen = |c: &char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    prose.collect::<Vec<_>>().join(" ").chars().filter(|c| !unseen(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_open_is_found_wherever_it_stands() {
        for text in [
            "TBD",
            "tbd.",
            "The format is TBD",
            "TODO",
            "Todo: write this",
            "FIXME later",
            "???",
            "limit is ???",
            "The schema is to be defined",
            "To be determined later",
            "will be decided",
            "Lorem ipsum dolor",
            "<insert metric here>",
            "[your name]",
            "{placeholder}",
            "XXX",
            "None.",
            "n/a",
            "...",
            "`TBD`",
            "see above",
            "____",
            "The format is T\u{200b}BD",
            "Will be added later.",
            "To be confirmed with the stakeholders",
            "The limit is not yet decided",
            "Details will follow",
            "Pending.",
            "It depends",
        ] {
            assert!(find(text).is_some(), "{text}");
        }
    }

    #[test]
    fn honest_words_that_look_alike_are_left_alone() {
        for text in [
            "A todo list in the terminal",
            "Counts `TODO` comments in source files",
            "The order waits to be confirmed by the buyer",
            "None of the rows is lost",
            "Text is read as UTF-8",
            "Is it one file or several??",
            "The generic type Vec<T> is kept",
            "Prints [OK] for each file",
            "Unknown columns are refused",
            "The tool prints `<insert>`",
            "A row that will be added twice is refused",
            "Pending orders are listed",
            "Accounts not yet known are refused",
            "The order is to be confirmed by the buyer",
        ] {
            assert_eq!(find(text), None, "{text}");
        }
    }
}
