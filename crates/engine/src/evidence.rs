//! What the next tier is told about those before it: what was tried, what the tests said, why it was refused.
//! Bounded where it is made, so no prompt grows without end.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Cause;
use supervisor_text::words;

/// The trail of refused attempts, oldest first, and what the attempt at hand has already been asked and answered.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    trail: Vec<PriorRefusal>,
    follow_ups: Vec<FollowUp>,
}

/// One refused attempt, as the next model sees it.
#[derive(Debug, Clone)]
pub struct PriorRefusal {
    pub model: String,
    pub cause: Cause,
    pub feedback: String,
    /// The change that was tried and taken back; empty if none.
    pub diff: String,
    /// What the server's own test run printed; empty if none was made.
    pub output: String,
}

/// One more question to the same tier, inside the same attempt. It does not count against `max_attempts`.
///
/// A check that cannot use an answer yet refuses it with [`super::work::RefusedWork::follow_up`] set. The engine then
/// brings the project back, calls [`super::skill::Skill::ask`] once more with the follow-up in
/// [`Evidence::follow_ups`], and checks the new answer in place of the old one. It grants two `Need` and one `Repair`
/// for each tier of a call, within the tier's time limit and charged to the budget; after that the refusal stands, so
/// it must carry the cause and the feedback that are right without a further answer. Every round is in the attempt's
/// `asks`.
///
/// [`Evidence::render`] prints [`FollowUp::said`], so that a skill which appends the rendered block to its prompt needs
/// nothing else for a repair. For a `Need` the skill reads [`FollowUp::request`] in `ask` and packs what was wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct FollowUp {
    pub kind: FollowUpKind,
    /// What the model is told about its last answer.
    pub said: String,
    /// What the skill wants to find again when it asks; null if nothing.
    pub request: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FollowUpKind {
    /// The answer could not be read: the exact complaint, and the same question again.
    Repair,
    /// The answer names files, symbols or a search that it needs first.
    Need,
}

/// Bytes of an unreadable answer that its writer is shown again.
const REPEATED: usize = 2 * 1024;

impl FollowUp {
    /// An answer that cannot be read, with the complaint. The beginning and end of the answer are shown again.
    pub fn repair(complaint: &str, answer: &str) -> Self {
        let mut said = format!(
            "Your last answer could not be used: {}\nAnswer the same task again, whole, in the form asked for.",
            words::cut_middle(&words::plain(complaint), 1_000)
        );
        if !answer.trim().is_empty() {
            let _ = write!(
                said,
                "\nYou wrote:\n{}",
                indent(&words::cut_middle(&words::plain(answer), REPEATED))
            );
        }
        Self {
            kind: FollowUpKind::Repair,
            said,
            request: Value::Null,
        }
    }

    /// An answer that needs more before it can be given. `said` tells the model what it is shown now, and what could not
    /// be found.
    pub fn need(said: impl Into<String>, request: Value) -> Self {
        Self {
            kind: FollowUpKind::Need,
            said: said.into(),
            request,
        }
    }
}

/// How many further questions a tier has left in this call.
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
    /// Uses one up; `false` if there is none left.
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

/// Bytes for all evidence together. A small model's window is 24 KiB; a third of it is enough.
const TOTAL: usize = 8 * 1024;

impl Evidence {
    pub fn add(&mut self, refusal: PriorRefusal) {
        self.trail.push(refusal);
    }

    pub fn is_empty(&self) -> bool {
        self.trail.is_empty() && self.follow_ups.is_empty()
    }

    /// What this tier was already asked in this attempt, oldest first.
    pub fn follow_ups(&self) -> &[FollowUp] {
        &self.follow_ups
    }

    /// The same, with one more question in this attempt.
    #[must_use]
    pub(super) fn followed_by(&self, follow_up: FollowUp) -> Self {
        let mut more = self.clone();
        more.follow_ups.push(follow_up);
        more
    }

    /// The block to append to a task; empty if nothing was tried yet.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let share = TOTAL / self.trail.len().max(1);
        for (n, refusal) in self.trail.iter().enumerate() {
            let _ = write!(
                out,
                "\n\nPrior attempt feedback: [{} · {} · {}] {}",
                n + 1,
                refusal.model,
                refusal.cause.word(),
                words::cut_middle(&refusal.feedback, share / 4)
            );
            // The test output is what a model learns most from, so it gets the larger part.
            for (label, text, part) in [
                ("tried", &refusal.diff, share / 3),
                ("the server saw", &refusal.output, share / 3),
            ] {
                // Where a gate's sentence was all there was to see, it has been said.
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
            let _ = write!(out, "\n\n{}", words::cut_middle(&follow_up.said, TOTAL / 2));
        }
        out
    }
}

/// Indented text cannot be mistaken for ours.
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
        }
    }

    #[test]
    fn the_next_tier_sees_who_tried_what_and_why_it_failed() {
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
    fn what_the_feedback_says_is_not_said_again() {
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
    fn evidence_never_outgrows_its_room() {
        let mut evidence = Evidence::default();
        for _ in 0..20 {
            let mut long = refusal(&"why ".repeat(9_000));
            long.diff = "d".repeat(90_000);
            long.output = "o\n".repeat(90_000);
            evidence.add(long);
        }
        let size = evidence.render().len();
        // Indentation of very short lines may multiply them; the cut happens before it.
        assert!(size < TOTAL * 4, "{size}");
    }

    #[test]
    fn a_repair_repeats_the_complaint_and_the_answer_and_is_granted_once() {
        let mut allowance = FollowUpAllowance::default();
        let granted = |allowance: &mut FollowUpAllowance, kind| {
            (0..4).filter(|_| allowance.grant(kind)).count()
        };
        assert_eq!(granted(&mut allowance, FollowUpKind::Repair), 1);
        assert_eq!(granted(&mut allowance, FollowUpKind::Need), 2);
        let evidence = Evidence::default()
            .followed_by(FollowUp::repair("no edits in it", "I would rather talk."));
        let text = evidence.render();
        assert!(
            text.contains("could not be used: no edits in it")
                && text.contains("    I would rather talk."),
            "{text}"
        );
        assert!(!evidence.is_empty());
    }
}
