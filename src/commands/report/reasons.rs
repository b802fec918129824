//! Groups the reasons why answers were not accepted: the same message about another test is the
//! same reason.

use std::collections::HashMap;

use supervisor_engine::session::stats::AnswerClass;
use supervisor_engine::{Attempt, Cause};
use supervisor_text::words;

/// Maximum length of a pattern.
const MAX_PATTERN_LEN: usize = 140;
/// Maximum number of reasons; further ones are counted together.
const MAX_REASONS: usize = 2_000;

/// One reason and how often it was given.
#[derive(Debug, Clone)]
pub(super) struct RefusalReason {
    pub(super) cause: Option<Cause>,
    pub(super) class: AnswerClass,
    /// The gate that failed; empty if the log does not name it.
    pub(super) gate: String,
    /// The message with names and numbers replaced.
    pub(super) pattern: String,
    pub(super) times: usize,
    /// Count per model, by the index of its name.
    pub(super) models: HashMap<usize, usize>,
}

#[derive(Debug, Default)]
pub(super) struct ReasonTally {
    reasons: Vec<RefusalReason>,
    indices: HashMap<(Option<Cause>, String, String), usize>,
}

impl ReasonTally {
    /// Counts the attempt unless it was accepted, and returns the index of its reason.
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
        if self.reasons.len() >= MAX_REASONS && !self.indices.contains_key(&key) {
            key = (attempt.cause, String::new(), "another reason".into());
        }
        let reasons = &mut self.reasons;
        let index = *self.indices.entry(key.clone()).or_insert_with(|| {
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
        let reason = &mut self.reasons[index];
        reason.times += 1;
        *reason.models.entry(model).or_default() += 1;
        Some(index)
    }

    /// All reasons, by index.
    pub(super) fn into_reasons(self) -> Vec<RefusalReason> {
        self.reasons
    }
}

/// Takes the first line and replaces quoted text and numbers.
fn generalise(feedback: &str) -> String {
    let line = feedback
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("no reason was given");
    let mut out = String::new();
    let mut chars = words::cut_end(line, 4 * MAX_PATTERN_LEN).into_owned();
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
    // Lists of different length are the same reason.
    for list in ["`…`, `…`", "`…` and `…`"] {
        while out.contains(list) {
            out = out.replace(list, "`…`");
        }
    }
    words::cut_end(&out, MAX_PATTERN_LEN).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_message_about_other_tests_is_grouped() {
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
        assert!(generalise(&"é".repeat(3_000)).len() <= MAX_PATTERN_LEN);
    }
}
