//! What the next tier is told about earlier attempts: the change, the test output and the reason
//! for the refusal. The length is bounded here, so that prompts do not grow without limit.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Cause;
use super::work::FailingTests;
use supervisor_text::words;

/// Refused attempts, oldest first, and the follow-ups of the current attempt.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    refusals: Vec<PriorRefusal>,
    follow_ups: Vec<FollowUp>,
}

/// One refused attempt, as the next model sees it.
#[derive(Debug, Clone)]
pub struct PriorRefusal {
    pub model: String,
    pub cause: Cause,
    pub feedback: String,
    /// The change that was tried and undone; empty if none.
    pub diff: String,
    /// Output of the server's own test run; empty if there was none.
    pub output: String,
    /// What the change did to the failing tests, if the next model is to see it.
    pub failing: Option<FailingTests>,
}

/// One more question to the same tier, inside the same attempt. It does not count against `max_attempts`.
///
/// A check that cannot use an answer yet refuses it with [`super::work::RefusedWork::follow_up`]
/// set. The engine then restores the project, calls [`super::skill::Skill::ask`] once more with the
/// follow-up in [`Evidence::follow_ups`], and checks the new answer in place of the old one. It
/// grants two `Need` and one `Repair` for each tier of a call, within the tier's time limit and
/// charged to the budget. After that the refusal is final, so it must carry the cause and feedback
/// that are right without a further answer. Every round is in the attempt's `asks`.
///
/// [`Evidence::render`] prints [`FollowUp::message`], so a skill that appends the rendered block to
/// its prompt needs nothing else for a repair. For a `Need` the skill reads [`FollowUp::request`]
/// in `ask` and includes what was requested.
#[derive(Debug, Clone, PartialEq)]
pub struct FollowUp {
    pub kind: FollowUpKind,
    /// Text for the model about its last answer.
    pub message: String,
    /// Data for the skill's next `ask`; null if none.
    pub request: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FollowUpKind {
    /// The answer could not be parsed: repeat the question with the exact complaint.
    Repair,
    /// The answer requests files, symbols or a search first.
    Need,
}

/// Maximum bytes of an unreadable answer that its model is shown again.
const MAX_REPEATED_BYTES: usize = 2 * 1024;

impl FollowUp {
    /// For an answer that cannot be parsed. Repeats the complaint and the beginning and end of the
    /// answer.
    pub fn repair(complaint: &str, answer: &str) -> Self {
        let mut message = format!(
            "Your last answer could not be used: {}\nAnswer the same task again, whole, in the form asked for.",
            words::cut_middle(&words::plain(complaint), 1_000)
        );
        if !answer.trim().is_empty() {
            let _ = write!(
                message,
                "\nYou wrote:\n{}",
                indent(&words::cut_middle(
                    &words::plain(answer),
                    MAX_REPEATED_BYTES
                ))
            );
        }
        Self {
            kind: FollowUpKind::Repair,
            message,
            request: Value::Null,
        }
    }

    /// For an answer that requests more material. `message` tells the model what it is shown now, and
    /// what could not be found.
    pub fn need(message: impl Into<String>, request: Value) -> Self {
        Self {
            kind: FollowUpKind::Need,
            message: message.into(),
            request,
        }
    }
}

/// How many follow-ups a tier has left in this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FollowUpAllowance {
    repairs: u32,
    needs: u32,
}

impl Default for FollowUpAllowance {
    fn default() -> Self {
        Self {
            repairs: 1,
            needs: 2,
        }
    }
}

impl FollowUpAllowance {
    /// Uses one up; `false` if none is left.
    pub(super) fn grant(&mut self, kind: FollowUpKind) -> bool {
        let left = match kind {
            FollowUpKind::Repair => &mut self.repairs,
            FollowUpKind::Need => &mut self.needs,
        };
        let granted = *left > 0;
        *left = left.saturating_sub(1);
        granted
    }
}

/// Maximum bytes for all evidence together: a third of a small model's window of 24 KiB.
const MAX_EVIDENCE_BYTES: usize = 8 * 1024;

impl Evidence {
    pub fn add(&mut self, refusal: PriorRefusal) {
        self.refusals.push(refusal);
    }

    pub fn is_empty(&self) -> bool {
        self.refusals.is_empty() && self.follow_ups.is_empty()
    }

    /// The model of the last refused answer, if tests refused it.
    pub fn last_rejected(&self) -> Option<&str> {
        let last = self.refusals.last()?;
        (last.cause == Cause::Rejected && !last.diff.is_empty()).then_some(last.model.as_str())
    }

    /// Follow-ups of this attempt so far, oldest first.
    pub fn follow_ups(&self) -> &[FollowUp] {
        &self.follow_ups
    }

    /// A copy with one more follow-up.
    #[must_use]
    pub(super) fn with_follow_up(&self, follow_up: FollowUp) -> Self {
        let mut more = self.clone();
        more.follow_ups.push(follow_up);
        more
    }

    /// The block to append to a task; empty if nothing was tried yet.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let share = MAX_EVIDENCE_BYTES / self.refusals.len().max(1);
        for (n, refusal) in self.refusals.iter().enumerate() {
            let _ = write!(
                out,
                "\n\nPrior attempt feedback: [{} · {} · {}] {}",
                n + 1,
                refusal.model,
                refusal.cause.word(),
                words::cut_middle(&refusal.feedback, share / 4)
            );
            if let Some(failing) = &refusal.failing {
                out += &failing.describe(share / 4);
            }
            // Models learn most from the test output, so diff and output get more space than the
            // feedback.
            for (label, text, part) in [
                ("tried", &refusal.diff, share / 3),
                ("the server saw", &refusal.output, share / 3),
            ] {
                // Skip output that only repeats the feedback.
                if !text.is_empty() && text.trim() != refusal.feedback.trim() {
                    let _ = write!(
                        out,
                        "\n{label}:\n{}",
                        indent(&words::cut_middle(text, part))
                    );
                }
            }
        }
        for follow_up in &self.follow_ups {
            let _ = write!(
                out,
                "\n\n{}",
                words::cut_middle(&follow_up.message, MAX_EVIDENCE_BYTES / 2)
            );
        }
        out
    }
}

impl FailingTests {
    /// The failing assertion, and which tests the change fixed, left and broke; within about `max`
    /// bytes.
    fn describe(&self, max: usize) -> String {
        let mut out = String::new();
        if !self.assertion.trim().is_empty() {
            let assertion = words::cut_middle(&self.assertion, max / 2);
            let _ = write!(out, "\nthe failing assertion:\n{}", indent(&assertion));
        }
        for (label, names) in [
            ("passes with this change", &self.fixed),
            ("still fails", &self.still),
            ("failed only with this change", &self.broken),
        ] {
            if !names.is_empty() {
                let names = names.join(", ");
                let _ = write!(out, "\n{label}: {}", words::cut_end(&names, max / 6));
            }
        }
        out
    }
}

/// Indents text so that it cannot be mistaken for our own.
fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> PriorRefusal {
        PriorRefusal {
            model: "small".into(),
            cause: Cause::Rejected,
            feedback: text.into(),
            diff: "-41\n+42".into(),
            output: "assertion failed: left 41".into(),
            failing: None,
        }
    }

    #[test]
    fn next_model_sees_what_changed_in_failing_tests() {
        let failing = FailingTests {
            fixed: vec!["zero".into()],
            still: vec!["one".into(), "two".into()],
            broken: vec!["old".into()],
            assertion: "left: 3\nright: 4".into(),
        };
        let mut evidence = Evidence::default();
        assert_eq!(evidence.last_rejected(), None);
        evidence.add(PriorRefusal {
            failing: Some(failing),
            ..refusal("one still fails")
        });
        assert_eq!(evidence.last_rejected(), Some("small"));
        let text = evidence.render();
        for part in [
            "the failing assertion:\n    left: 3\n    right: 4\n",
            "\npasses with this change: zero",
            "\nstill fails: one, two",
            "\nfailed only with this change: old",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn next_tier_sees_earlier_attempts() {
        let mut evidence = Evidence::default();
        assert_eq!(evidence.render(), "");
        evidence.add(refusal("answer_is_42 still fails"));
        let text = evidence.render();
        assert!(
            text.starts_with(
                "\n\nPrior attempt feedback: [1 · small · rejected] answer_is_42 still fails"
            ),
            "{text}"
        );
        assert!(
            text.contains("    +42") && text.contains("    assertion failed: left 41"),
            "{text}"
        );
    }

    #[test]
    fn output_equal_to_feedback_is_omitted() {
        let mut evidence = Evidence::default();
        evidence.add(PriorRefusal {
            output: "the quote is not there\n".into(),
            ..refusal("the quote is not there")
        });
        assert_eq!(
            evidence.render().matches("the quote is not there").count(),
            1
        );
    }

    #[test]
    fn evidence_length_is_bounded() {
        let mut evidence = Evidence::default();
        for _ in 0..20 {
            let mut long = refusal(&"why ".repeat(9_000));
            long.diff = "d".repeat(90_000);
            long.output = "o\n".repeat(90_000);
            evidence.add(long);
        }
        let size = evidence.render().len();
        // Indentation happens after truncation and may multiply very short lines.
        assert!(size < MAX_EVIDENCE_BYTES * 4, "{size}");
    }

    #[test]
    fn repair_is_granted_once_and_repeats_answer() {
        let mut allowance = FollowUpAllowance::default();
        let granted = |allowance: &mut FollowUpAllowance, kind| {
            (0..4).filter(|_| allowance.grant(kind)).count()
        };
        assert_eq!(granted(&mut allowance, FollowUpKind::Repair), 1);
        assert_eq!(granted(&mut allowance, FollowUpKind::Need), 2);
        let evidence = Evidence::default()
            .with_follow_up(FollowUp::repair("no edits in it", "I would rather talk."));
        let text = evidence.render();
        assert!(
            text.contains("could not be used: no edits in it")
                && text.contains("    I would rather talk."),
            "{text}"
        );
        assert!(!evidence.is_empty());
    }
}
