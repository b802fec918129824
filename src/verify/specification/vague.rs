//! Does a criterion promise what nobody can measure? "Fast" is no promise; "fast: p95 ≤ 200 ms" is one.
//! English words, and the commonest German ones; what stands in backticks, in identifiers, paths and compounds such as `fail-fast` is a name.

use std::sync::LazyLock;

use regex::Regex;

use super::super::proof::Check;
use super::draft::{Draft, GivenCriterion};
use super::placeholders::outside_code;
use super::testable::Test;
use super::{quoted, verdict};

/// Whole words, each in the forms it is used in. Left out are those that are as often used in an honest sense:
/// `simple`, `good`, `secure`, `sufficient` (permissions), `graceful` (shutdown).
const WORDS: &[&str] = &[
    "fast",
    "faster",
    "fastest",
    "quick",
    "quicker",
    "quickly",
    "quickest",
    "speedy",
    "speedily",
    "swiftly",
    "easy",
    "easier",
    "easily",
    "effortless",
    "effortlessly",
    "robust",
    "robustly",
    "robustness",
    "scalable",
    "scalability",
    "intuitive",
    "intuitively",
    "efficient",
    "efficiently",
    "efficiency",
    "reliable",
    "reliably",
    "reliability",
    "seamless",
    "seamlessly",
    "performant",
    "responsive",
    "responsiveness",
    "flexible",
    "flexibly",
    "flexibility",
    "modern",
    "smooth",
    "smoothly",
    "gracefully",
    "elegant",
    "elegantly",
    "powerful",
    "optimal",
    "optimally",
    "convenient",
    "conveniently",
    "appropriate",
    "appropriately",
    "adequate",
    "adequately",
    "reasonable",
    "reasonably",
    "sufficiently",
    "acceptably",
    "nice",
    "nicely",
    "maintainable",
    "user-friendly",
    "easy-to-use",
    "high-performance",
    "low-latency",
    "state-of-the-art",
    "best-in-class",
    "world-class",
    "lightning-fast",
    "blazing-fast",
    "super-fast",
    "ultra-fast",
    "near-instant",
    "instantly",
    "instantaneous",
    "promptly",
    "timely",
    "rapid",
    "rapidly",
    "snappy",
    "high-quality",
    "comprehensive",
    "comprehensively",
    "schnell",
    "schnelle",
    "schneller",
    "zügig",
    "zeitnah",
    "benutzerfreundlich",
    "nutzerfreundlich",
    "benutzerfreundliche",
    "intuitiv",
    "zuverlässig",
    "zuverlässige",
    "reibungslos",
    "angemessen",
    "angemessene",
];

/// Phrases in which nobody says what is seen.
const PHRASES: &[&str] = &[
    "scales well",
    "works well",
    "performs well",
    "works correctly",
    "works properly",
    "works fine",
    "works perfectly",
    "work correctly",
    "work properly",
    "functions correctly",
    "functions properly",
    "behaves correctly",
    "as expected",
    "as intended",
    "as desired",
    "as needed",
    "as possible",
    "low latency",
    "good performance",
    "high performance",
    "high quality",
    "short time",
    "best practice",
    "best practices",
    "industry standards",
    "wie erwartet",
    "wie gewünscht",
    "so gut wie möglich",
    "so schnell wie möglich",
];

/// A number with a unit, or one that something is held to.
static MEASURED: LazyLock<Regex> = LazyLock::new(|| {
    let units = "ms|µs|us|ns|s|secs?|seconds?|milliseconds?|mins?|minutes?|h|hours?|days?|percent|[kKMGT]i?B|B|bytes?|[kMG]?Hz|fps|rps|qps|px|lines?|rows?|requests?|times|x";
    let bounds = "at most|at least|within|under|below|over|above|than|up to|exactly|maximum(?: of)?|minimum(?: of)?|limit of|every";
    Regex::new(&format!(
        r"(?:^|[^A-Za-z0-9_.])[0-9]+(?:[.,][0-9]+)*[ \u{{a0}}]?(?:%|(?:{units})(?:$|[^A-Za-z0-9_]))|(?:[<>=≤≥]|(?i-u:{bounds}))[ \u{{a0}}]*[0-9]"
    ))
    .expect("the pattern is constant and tested")
});

pub(super) fn examine(draft: &Draft, tests: &[Option<Test>]) -> Check {
    let given = draft.criteria.iter().zip(tests).enumerate();
    let faults =
        given.filter(|(_, (_, test))| !matches!(test, Some(Test::Number { .. }))).filter_map(|(n, (criterion, _))| {
            let word = find(criterion)?;
            Some(format!(
                "{} says {} without a number; say how much, with a unit, or what is seen instead",
                criterion.place(n),
                quoted(&word)
            ))
        });
    verdict("measurable", &faults.collect::<Vec<_>>(), || {
        String::from("no criterion rests on a word nobody can measure")
    })
}

/// The first vague word of a criterion that has no measure.
fn find(criterion: &GivenCriterion) -> Option<String> {
    let test = &criterion.test;
    let texts = [&criterion.text, &test.given, &test.when, &test.then];
    if texts.iter().any(|text| MEASURED.is_match(text)) {
        return None;
    }
    texts.iter().find_map(|text| vague_word(text))
}

fn vague_word(text: &str) -> Option<String> {
    let prose = outside_code(text);
    let spoken = prose.split_whitespace().filter(|chunk| !is_code(chunk));
    let words = spoken.flat_map(|chunk| chunk.split(|c: char| !c.is_alphanumeric() && c != '-'));
    let found = words.map(|word| word.trim_matches('-')).find(|word| WORDS.contains(&word.to_lowercase().as_str()));
    found.map(str::to_owned).or_else(|| in_two_words(&prose))
}

/// Compounds are written with a blank as well, and some phrases are as empty as words.
fn in_two_words(prose: &str) -> Option<String> {
    let bare = |word: &str| word.trim_matches(|c: char| c.is_ascii_punctuation()).to_lowercase();
    let spaced = prose.split_whitespace().map(bare).collect::<Vec<_>>().join(" ");
    let compounds = WORDS.iter().filter(|word| word.contains('-')).map(|word| word.replace('-', " "));
    let mut phrases = compounds.chain(PHRASES.iter().map(ToString::to_string));
    phrases.find(|phrase| format!(" {spaced} ").contains(&format!(" {phrase} ")))
}

/// A name rather than a word: `fast_path`, `--quick`, `src/fast.rs`, `Mode::Fast`, `easy()`.
fn is_code(chunk: &str) -> bool {
    let bare = chunk.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    let dotted = || {
        let mut around = bare.match_indices('.').filter(|(at, _)| *at > 0 && *at + 1 < bare.len());
        around.any(|(at, _)| bare[at + 1..].starts_with(char::is_alphanumeric))
    };
    ["_", "::", "()", "=", "@", "\\", "$", "//"].iter().any(|sign| bare.contains(sign))
        || bare.starts_with(['/', '-', '~'])
        || dotted()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(text: &str) -> Option<String> {
        find(&GivenCriterion { id: "AC-1".into(), text: text.into(), ..Default::default() })
    }

    #[test]
    fn a_word_nobody_can_measure_is_named() {
        for (text, word) in [
            ("The import is fast", "fast"),
            ("It responds Quickly.", "Quickly"),
            ("User-friendly output", "User-friendly"),
            ("user friendly output", "user friendly"),
            ("errors are handled gracefully, always", "gracefully"),
            ("It is fast/reliable", "fast"),
            ("a (robust) parser", "robust"),
            ("fast for 3 users", "fast"),
            ("fast on v2", "fast"),
            ("fast as R2 says", "fast"),
            ("it is fa\u{ad}st", "fast"),
            ("The export works as expected.", "as expected"),
            ("The export works correctly, always", "works correctly"),
            ("It exports with as little memory as possible", "as possible"),
            ("CSV export follows best practices.", "best practices"),
            ("Die Suche ist schnell.", "schnell"),
            ("Der Export läuft zuverlässig", "zuverlässig"),
        ] {
            assert_eq!(of(text).as_deref(), Some(word), "{text}");
        }
        let scenario = json!({"id": "AC-1", "text": "search", "test": {"given": "rows", "when": "asked", "then": "it responds fast"}});
        assert_eq!(find(&serde_json::from_value(scenario).expect("a criterion")).as_deref(), Some("fast"));
    }

    #[test]
    fn a_number_makes_it_a_promise_and_names_are_no_words() {
        for text in [
            "The import is fast: p95 ≤ 200 ms",
            "Quick enough: 10 000 rows in 2s",
            "easy: at most 3 clicks",
            "efficient, 40% less memory",
            "Uses fast_path for small input",
            "Serves breakfast orders",
            "The flag `--fast` is known",
            "The flag --fast is known",
            "Only fast-forward merges are made",
            "It stops fail-fast at the first error",
            "Reads src/fast.rs and Mode::Quick",
            "Writes quick.csv",
            "Without sufficient permissions it answers 403",
            "Builds with Swift",
            "The simplex method ends",
            "The expected exit code is 3",
            "An umlaut is written correctly as two bytes",
            "Der Schnellzug hält",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
