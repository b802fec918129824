//! Why answers were not taken, grouped: the same sentence about another test is the same reason.

use std::collections::HashMap;

use supervisor_engine::session::stats::AnswerClass;
use supervisor_engine::{Attempt, Cause};
use supervisor_text::words;

/// Bytes of a reason's sentence.
const LONGEST: usize = 140;
/// A log may hold any number of sentences; beyond this many they are counted together.
const MOST: usize = 2_000;

/// One reason and how often it was given.
#[derive(Debug, Clone)]
pub(super) struct RefusalReason {
    pub(super) cause: Option<Cause>,
    pub(super) class: AnswerClass,
    /// The check that said no; empty where the log does not name it.
    pub(super) gate: String,
    /// The sentence, with names and numbers taken out.
    pub(super) pattern: String,
    pub(super) times: usize,
    /// How often for each model, by its place among the names.
    pub(super) models: HashMap<usize, usize>,
}

#[derive(Debug, Default)]
pub(super) struct ReasonTally {
    reasons: Vec<RefusalReason>,
    places: HashMap<(Option<Cause>, String, String), usize>,
}

impl ReasonTally {
    /// Counts the attempt, if it was not accepted. The answer is its reason's place.
    pub(super) fn add(&mut self, attempt: &Attempt, model: usize) -> Option<usize> {
        let class = AnswerClass::of(attempt);
        if class == AnswerClass::Accepted {
            return None;
        }
        let gate = attempt
            .gates
            .iter()
            .rfind(|gate| !gate.pass)
            .map(|gate| gate.id.clone())
            .unwrap_or_default();
        let mut key = (attempt.cause, gate, generalise(&attempt.feedback));
        if self.reasons.len() >= MOST && !self.places.contains_key(&key) {
            key = (attempt.cause, String::new(), "another reason".into());
        }
        let reasons = &mut self.reasons;
        let place = *self.places.entry(key.clone()).or_insert_with(|| {
            let (cause, gate, pattern) = key;
            reasons.push(RefusalReason {
                cause,
                class,
                gate,
                pattern,
                times: 0,
                models: HashMap::new(),
            });
            reasons.len() - 1
        });
        let reason = &mut self.reasons[place];
        reason.times += 1;
        *reason.models.entry(model).or_default() += 1;
        Some(place)
    }

    /// By place.
    pub(super) fn into_reasons(self) -> Vec<RefusalReason> {
        self.reasons
    }
}

/// The first line, with what is quoted and what is a number taken out.
fn generalise(feedback: &str) -> String {
    let line = feedback
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("no reason was given");
    let mut out = String::new();
    let mut chars = words::cut_end(line, 4 * LONGEST).into_owned();
    chars.push('\n');
    let mut rest = chars.trim_end_matches('\n');
    while let Some(first) = rest.chars().next() {
        let quoted = matches!(first, '`' | '"')
            .then(|| rest[1..].find(first))
            .flatten();
        if let Some(end) = quoted {
            out.push_str(if first == '`' { "`…`" } else { "\"…\"" });
            rest = &rest[end + 2..];
        } else if first.is_ascii_digit() {
            out.push('n');
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    // Three tests by name and two by name are one reason.
    for list in ["`…`, `…`", "`…` and `…`"] {
        while out.contains(list) {
            out = out.replace(list, "`…`");
        }
    }
    words::cut_end(&out, LONGEST).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_sentence_about_other_tests_is_the_same_reason() {
        assert_eq!(
            generalise("\n`a::b` still fails after 12.5 s\nmore"),
            "`…` still fails after n s"
        );
        assert_eq!(
            generalise("2 tests fail: `a`, `b`, `c`"),
            generalise("17 tests fail: `x`")
        );
        assert_eq!(generalise("an `odd quote"), "an `odd quote");
        assert_eq!(generalise(""), "no reason was given");
        assert!(generalise(&"é".repeat(3_000)).len() <= LONGEST);
    }
}
