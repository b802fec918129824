//! Flags wording that promises nothing, leaves something open or fits any project. "Fast" promises
//! nothing, "fast: p95 ≤ 200 ms" does. Code cannot decide whether "to be confirmed" is an order's
//! state or a gap, so nothing is rejected here.

use super::draft::{CriterionDraft, SpecificationDraft};
use super::testable::{CriterionTest, commands};
use super::{has_content, quoted, same_words};
use supervisor_text::words::lexicon::{Prose, Word, lexicon, outside_code};
use supervisor_verify::Flags;

/// Raises flags about the wording of a draft. A test is `None` where it is invalid.
pub(super) fn flag_wording(
    draft: &SpecificationDraft,
    tests: &[Option<CriterionTest>],
    flags: &mut Flags,
) {
    for (place, text) in draft.texts() {
        // A unit may consist of its symbol only.
        let is_unit_symbol =
            place.starts_with("`unit`") && text.contains(['%', '‰', '€', '$', '£', '¥', '°']);
        if let Some(mark) = placeholder(text).filter(|_| !is_unit_symbol) {
            flags.raise(
                "placeholder",
                place,
                format!("holds the placeholder {}", quoted(&mark)),
            );
        }
    }
    for (n, (criterion, test)) in draft.criteria.iter().zip(tests).enumerate() {
        let place = criterion.place(n);
        if let Some(word) =
            vague_word(criterion).filter(|_| !matches!(test, Some(CriterionTest::Number { .. })))
        {
            flags.raise(
                "vague",
                &place,
                format!("says {} without a number", quoted(&word)),
            );
        }
        if let Some((kind, why)) = test
            .as_ref()
            .and_then(|test| doubt_test(&criterion.text, test))
        {
            flags.raise(kind, place, why);
        }
    }
    for (section, _, texts) in draft.lists() {
        if let Some(first) = texts.first().filter(|_| {
            texts
                .iter()
                .all(|text| has_content(text) && names_nothing(text))
        }) {
            flags.raise(
                "names_nothing",
                format!("`{section}`"),
                format!("{} names nothing", quoted(first)),
            );
        }
    }
    // A weak entry is accepted beside a specific one.
    if let Some(first) = draft.approach.first()
        && draft
            .approach
            .iter()
            .all(|d| adds_nothing(&d.rationale, &d.decision))
    {
        let why = format!(
            "no decision has a reason of its own: {} fits any",
            quoted(&first.rationale)
        );
        flags.raise("vain_reason", "`approach`", why);
    }
    if let Some(first) = draft.risks.first()
        && draft
            .risks
            .iter()
            .all(|r| adds_nothing(&r.mitigation, &r.risk) || adds_nothing(&r.risk, ""))
    {
        let (risk, mitigation) = (quoted(&first.risk), quoted(&first.mitigation));
        flags.raise(
            "vain_reason",
            "`risks`",
            format!("no risk is of this project: {risk}, {mitigation} fit any"),
        );
    }
}

/// The first placeholder in a text.
pub(super) fn placeholder(text: &str) -> Option<String> {
    let (list, prose) = (lexicon(), Prose::of(text));
    let mark = list
        .placeholder_mark
        .find(&outside_code(text))
        .or_else(|| list.placeholder.find(&prose));
    mark.or_else(|| {
        list.placeholder_only
            .is_whole(&prose)
            .then(|| text.trim().to_owned())
    })
}

/// The first vague word of a criterion without a measure.
fn vague_word(criterion: &CriterionDraft) -> Option<String> {
    let test = &criterion.test;
    let texts = [&criterion.text, &test.given, &test.when, &test.then];
    if texts
        .iter()
        .any(|text| lexicon().measurable.find(text).is_some())
    {
        return None;
    }
    texts
        .iter()
        .find_map(|text| lexicon().vague.find(&Prose::of(text)))
}

/// Doubts whether the test can fail.
fn doubt_test(text: &str, test: &CriterionTest) -> Option<(&'static str, String)> {
    let list = lexicon();
    match test {
        CriterionTest::Command(command) => commands::find_doubt(command),
        CriterionTest::Number { metric, unit, .. } => {
            let whole = Prose::whole(unit);
            if list.boolean_unit.is_whole(&whole) {
                return Some((
                    "no_unit",
                    format!("is measured in {}, which is no unit", quoted(unit)),
                ));
            }
            let counts_itself = same_words(metric, text) && list.count_unit.is_whole(&whole);
            counts_itself.then(|| ("no_unit", String::from("has a metric that only repeats it")))
        }
        CriterionTest::Scenario { given, when, .. } => {
            is_generic_scenario(when, given).then(|| {
                (
                    "no_event",
                    format!("in its scenario nothing happens but {}", quoted(when)),
                )
            })
        }
    }
}

/// Whether a scenario fits any project: "when the feature is used" is an event only if something
/// specific is given.
fn is_generic_scenario(when: &str, given: &str) -> bool {
    let list = lexicon();
    let is_general = |word: &Word| list.generic_subject.has(word) || list.generic_action.has(word);
    let is_specific = |text: &str| Prose::whole(text).content().any(|word| !is_general(word));
    !is_specific(when) && !is_specific(given)
}

/// Whether every word of a text fits any project or is already in `beside`.
fn adds_nothing(text: &str, beside: &str) -> bool {
    let known = Prose::whole(beside);
    let is_known = |word: &Word| known.words().any(|there| there.form() == word.form());
    !Prose::whole(text)
        .content()
        .any(|word| !lexicon().generic_decision.has(word) && !is_known(word) && !word.is_number())
}

/// Whether the text only stands for everything unnamed, such as "everything else".
fn names_nothing(text: &str) -> bool {
    let (rest, _) = lexicon().time_qualifier.remove_from(&Prose::whole(text));
    lexicon().empty_statement.is_whole(&rest) || lexicon().placeholder_only.is_whole(&rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vague(text: &str) -> Option<String> {
        vague_word(&CriterionDraft {
            id: "AC-1".into(),
            text: text.into(),
            ..Default::default()
        })
    }

    #[test]
    fn placeholders_are_found() {
        for text in [
            "TBD",
            "tbd.",
            "The format is TBD",
            "TODO",
            "Todo: write this",
            "FIXME later",
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
            "`TBD`",
            "see above",
            "The format is T\u{200b}BD",
            "Will be added later.",
            "To be confirmed with the stakeholders",
            "The limit is not yet decided",
            "Details will follow",
            "Pending.",
            "It depends",
        ] {
            assert!(placeholder(text).is_some(), "{text}");
        }
    }

    #[test]
    fn placeholder_lookalikes_are_accepted() {
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
            assert_eq!(placeholder(text), None, "{text}");
        }
    }

    #[test]
    fn vague_word_is_named() {
        for (text, word) in [
            ("The import is fast", "fast"),
            ("It responds Quickly.", "Quickly"),
            ("User-friendly output", "User friendly"),
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
            (
                "It exports with as little memory as possible",
                "as possible",
            ),
            ("CSV export follows best practices.", "best practices"),
            ("Die Suche ist schnell.", "schnell"),
            ("Der Export läuft zuverlässig", "zuverlässig"),
        ] {
            assert_eq!(vague(text).as_deref(), Some(word), "{text}");
        }
    }

    #[test]
    fn measured_or_technical_words_are_not_vague() {
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
            "The response time is logged",
        ] {
            assert_eq!(vague(text), None, "{text}");
        }
    }

    #[test]
    fn generic_reasons_are_recognised() {
        for (text, beside) in [
            ("Test well.", "There may be bugs."),
            ("Careful planning.", "Delays."),
            ("Make sure it works.", "It might not work."),
            ("Monitor.", "Unknown risks."),
            ("Mitigation 1", "Risk 1"),
            ("Avoid scope creep", "Scope creep"),
            ("Because Rust is used.", "Use Rust."),
            ("They are proven.", "Use best practices."),
            ("It is the best option", "A `--format` option"),
            ("Technical risk", ""),
        ] {
            assert!(adds_nothing(text, beside), "{text} / {beside}");
        }
        for (text, beside) in [
            (
                "Rate limit by IP address.",
                "Anonymous search can be abused.",
            ),
            (
                "Refuse them, naming the first wrong byte",
                "Encodings other than UTF-8",
            ),
            ("It reports percentiles", "Measure with k6"),
            ("Required by R1", "Implement the export"),
            ("Test with 64 retries", "Overflow"),
            ("Erst im Testsystem üben", "Die Umstellung dauert länger"),
            ("列ごとに確認する", "文字化け"),
        ] {
            assert!(!adds_nothing(text, beside), "{text} / {beside}");
        }
        for text in [
            "Everything else.",
            "Nothing is out of scope",
            "No known constraints at this time.",
            "Time",
        ] {
            assert!(names_nothing(text), "{text}");
        }
        for text in [
            "Everything else that the board decides",
            "PostgreSQL 16",
            "Live before July",
            "No network",
            "Offline",
        ] {
            assert!(!names_nothing(text), "{text}");
        }
    }

    #[test]
    fn generic_scenario_is_recognised() {
        for (when, given) in [
            ("The feature is used.", "the application is running"),
            ("the system is tested", "the feature is implemented"),
            ("it is used", "the system is running"),
            ("tested", "the requirement"),
        ] {
            assert!(is_generic_scenario(when, given), "{when} / {given}");
        }
        for (when, given) in [
            ("the tool is run", "the arguments `2` and `3`"),
            ("the feature is used", "a member without a card"),
            ("it is used", "an expired token"),
            ("it is run", "the job of yesterday"),
            ("the service is deployed", "two replicas"),
            ("the tool is run without arguments", "a terminal"),
            ("mdlint runs", "a file with one finding"),
        ] {
            assert!(!is_generic_scenario(when, given), "{when} / {given}");
        }
    }
}
