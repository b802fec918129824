//! `gym --self --twins WHO`: measures how many wrong answers are found by hidden tests that a model
//! writes ("twins"). With `hidden`, the task's own hidden tests take the place of the model's,
//! which gives the upper bound of what the mechanism can find.

use super::plan::REFERENCE;
use super::table;
use supervisor_engine::result::CallResult;
use supervisor_gym::results::{GymOutcome, TwinCounts};

/// Author name that selects the task's own hidden tests instead of a model.
pub(super) const HIDDEN_TESTS: &str = "hidden";
/// How many tests the author is asked for.
pub(super) const TWINS_REQUESTED: u32 = 5;

/// Reads the twin counts from the result of a call.
pub(super) fn twin_counts(result: &CallResult) -> Option<TwinCounts> {
    serde_json::from_value(result.more.details.get("twins")?.clone()).ok()
}

/// Renders, by language, how many of the accepted wrong and right answers a twin flagged.
pub(super) fn render_table(outcomes: &[GymOutcome], width: Option<u16>) -> String {
    let mut languages: Vec<&str> = outcomes
        .iter()
        .map(|outcome| outcome.language.as_str())
        .collect();
    languages.sort_unstable();
    languages.dedup();
    let with_twins = || {
        outcomes
            .iter()
            .filter(|o| o.accepted && o.twins.as_ref().is_some_and(|t| t.written > 0))
    };
    let row = |name: &str, language: &str| {
        let flagged = |is_right: bool| {
            let of = |o: &&GymOutcome| {
                (language.is_empty() || o.language == language) && o.hidden_passed == Some(is_right)
            };
            let failed = |o: &&GymOutcome| o.twins.as_ref().is_some_and(|twins| twins.failed > 0);
            let (all, found) = (
                with_twins().filter(of).count(),
                with_twins().filter(of).filter(failed).count(),
            );
            if all == 0 {
                String::from("–")
            } else {
                format!("{found} of {all}")
            }
        };
        let dropped: u32 = with_twins()
            .filter(|o| language.is_empty() || o.language == language)
            .filter_map(|o| Some(o.twins.as_ref()?.dropped.values().sum::<u32>()))
            .sum();
        vec![
            name.to_owned(),
            flagged(false),
            flagged(true),
            dropped.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = languages
        .iter()
        .map(|language| row(language, language))
        .chain([row("all", "")])
        .collect();
    let mut text = table::table(
        width,
        &["flagged by twins", "wrong", "right", "dropped"],
        rows.into_iter(),
    );
    text += "wrong: accepted, and then failed the hidden tests. dropped: tests of the author that were not sound.\n";
    let without = outcomes
        .iter()
        .filter(|o| o.accepted && o.twins.as_ref().is_none_or(|t| t.written == 0));
    let (mut reasons, mut count): (Vec<&str>, usize) = (Vec::new(), 0);
    for outcome in without {
        count += 1;
        reasons.extend(outcome.twins.as_ref().map(|twins| twins.why.as_str()));
    }
    reasons.sort_unstable();
    reasons.dedup();
    if count > 0 {
        let why = if reasons.is_empty() {
            String::from("refactorings have none")
        } else {
            reasons.join("; ")
        };
        text += &format!(
            "{count} accepted without twins: {}\n",
            supervisor_text::words::cut_end(&supervisor_text::words::plain(&why), 400)
        );
    }
    for outcome in with_twins().filter(|o| o.model == REFERENCE) {
        if outcome.twins.as_ref().is_some_and(|twins| twins.failed > 0) {
            text += &format!("a twin fails on the reference of {}\n", outcome.task);
        }
    }
    text
}
