//! Describes a policy decision in a sentence, with the numbers behind it.

use std::fmt::Write as _;

use super::{PolicyDecision, TaskClass, TierEstimate};
use supervisor_text::words;

impl PolicyDecision {
    pub(super) fn to_sentence(&self) -> String {
        let kind = self.class.describe();
        if self.explored {
            return format!(
                "the chain is walked as it is written, as in 1 of 50 calls, to keep learning ({kind})"
            );
        }
        if self.is_configured_chain() {
            return format!(
                "the chain is walked as it is written: no other way looks cheaper for {kind}"
            );
        }
        let first = &self.order[0];
        let mut text = match self.is_configured_order() {
            true => format!("the chain is walked in its order for {kind}"),
            false => format!("`{first}` is asked first for {kind}"),
        };
        let before: Vec<&TierEstimate> = self
            .tiers
            .iter()
            .take_while(|tier| tier.model != *first)
            .collect();
        for tier in before {
            let what = if self.skipped.contains(&tier.model) {
                "is skipped"
            } else {
                "comes later"
            };
            let _ = write!(
                text,
                "; `{}` {what}: accepted in {} of {} here{}, and {:.0} % are expected",
                tier.model,
                tier.accepted,
                words::count(tier.judged as usize, "turn"),
                unable_note(tier.unable),
                tier.rate * 100.0
            );
        }
        for (tier, tries) in self.fewer_tries() {
            let _ = write!(text, "; {}", describe_fewer_tries(tier, tries));
        }
        let _ = write!(
            text,
            "; a call then takes ${:.3} and {:.1} min on average instead of ${:.3} and {:.1} min",
            self.expected.usd, self.expected.minutes, self.as_written.usd, self.as_written.minutes
        );
        text
    }
}

/// Explains why the first omitted try is not worth its cost.
fn describe_fewer_tries(tier: &TierEstimate, tries: u32) -> String {
    let (times, left_out) = match tries {
        1 => (String::from("once"), "a second try"),
        n => (format!("{n} times at most"), "one more"),
    };
    let known = tier.by_try.get(tries as usize).or(tier.by_try.last());
    let record = known.map_or_else(String::new, |odds| {
        let seen = match odds.judged {
            0 => String::from("was not seen here yet"),
            judged => format!("was accepted in {} of {judged} here", odds.accepted),
        };
        format!(
            ": {left_out} {seen}, and {:.0} % are expected",
            odds.rate * 100.0
        )
    });
    format!(
        "`{}` is asked {times} and not {} times{record}",
        tier.model, tier.allowed
    )
}

impl TaskClass {
    /// `tdd_green in python (small)`
    pub fn describe(&self) -> String {
        match self.language.as_str() {
            "any" => format!("{} ({})", self.skill, self.size.word()),
            language => format!("{} in {language} ({})", self.skill, self.size.word()),
        }
    }
}

/// Explains lost turns that no check refused; a clause that follows their number.
pub fn unable_note(unable: u32) -> String {
    if unable == 0 {
        String::new()
    } else {
        format!(", {unable} of them not finished within its limits")
    }
}
