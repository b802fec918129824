//! What the next tier is told about those before it: what was tried, what the tests said, why it was refused.
//! Bounded where it is made, so no prompt grows without end.

use std::fmt::Write as _;

use super::Cause;
use crate::words;

/// The trail of refused attempts, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    trail: Vec<Refusal>,
}

/// One refused attempt, as the next model sees it.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub model: String,
    pub cause: Cause,
    pub feedback: String,
    /// The change that was tried and taken back; empty if none.
    pub diff: String,
    /// What the server's own test run printed; empty if none was made.
    pub output: String,
}

/// Bytes for all evidence together. A small model's window is 24 KiB; a third of it is enough.
const TOTAL: usize = 8 * 1024;

impl Evidence {
    pub fn add(&mut self, refusal: Refusal) {
        self.trail.push(refusal);
    }

    pub fn is_empty(&self) -> bool {
        self.trail.is_empty()
    }

    pub fn refusals(&self) -> &[Refusal] {
        &self.trail
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
            for (label, text, part) in
                [("tried", &refusal.diff, share / 3), ("the server saw", &refusal.output, share / 3)]
            {
                // Where a gate's sentence was all there was to see, it has been said.
                if !text.is_empty() && text.trim() != refusal.feedback.trim() {
                    let _ = write!(out, "\n{label}:\n{}", indent(&words::cut_middle(text, part)));
                }
            }
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

    fn refusal(text: &str) -> Refusal {
        Refusal {
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
            text.starts_with("\n\nPrior attempt feedback: [1 · small · rejected] answer_is_42 still fails"),
            "{text}"
        );
        assert!(text.contains("    +42") && text.contains("    assertion failed: left 41"), "{text}");
    }

    #[test]
    fn what_the_feedback_says_is_not_said_again() {
        let mut evidence = Evidence::default();
        evidence.add(Refusal { output: "the quote is not there\n".into(), ..refusal("the quote is not there") });
        assert_eq!(evidence.render().matches("the quote is not there").count(), 1);
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
}
