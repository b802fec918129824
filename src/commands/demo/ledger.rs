//! Sums up what the demo cost and what it would have cost. Tokens and prices are scripted; the sums
//! are computed from the log.

use std::path::Path;

use anyhow::Context as _;

use supervisor_engine::Entry;

/// Sums over the log of one demo, in USD.
#[derive(Debug, PartialEq)]
pub(super) struct Ledger {
    /// `None` if the cost of any answer is unknown, which is not zero.
    pub(super) paid: Option<f64>,
    /// Estimated cost if the top tier had answered every call alone.
    pub(super) top_tier: Option<f64>,
    pub(super) top_model: String,
    pub(super) calls: usize,
    pub(super) answers: usize,
    /// Answers that cost something.
    pub(super) paid_answers: usize,
}

impl Ledger {
    pub(super) fn from_log(log: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(log)
            .with_context(|| format!("reading the log `{}`", log.display()))?;
        let entries: Vec<Entry> = text
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        Ok(Self::sum(&entries))
    }

    fn sum(entries: &[Entry]) -> Self {
        let costs = || {
            entries
                .iter()
                .flat_map(|entry| &entry.attempts)
                .map(|attempt| attempt.cost_usd)
        };
        let tops = || entries.iter().map(|entry| entry.top_tier.as_ref());
        Self {
            paid: costs().sum(),
            top_tier: tops().map(|top| top?.cost_usd).sum(),
            top_model: tops()
                .flatten()
                .next()
                .map(|top| top.model.clone())
                .unwrap_or_default(),
            calls: entries.len(),
            answers: costs().count(),
            paid_answers: costs()
                .filter(|cost| cost.is_some_and(|usd| usd > 0.0))
                .count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entry(cost: &Value, top: &Value) -> Entry {
        let attempt = |cost: &Value| json!({"attempt": 1, "model": "m", "tier": "local", "duration_ms": 1, "cost_usd": cost});
        let top_tier = json!({"model": "top", "cost_usd": top, "basis": "asked"});
        let entry = json!({
            "session_id": "s", "timestamp": "", "skill": "x", "final_status": "pass", "top_tier": top_tier,
            "attempts": [attempt(&json!(0.0)), attempt(cost)],
        });
        serde_json::from_value(entry).expect("an entry")
    }

    #[test]
    fn unknown_cost_is_not_zero() {
        let ledger = Ledger::sum(&[
            entry(&json!(0.25), &json!(0.5)),
            entry(&json!(0.25), &json!(0.25)),
        ]);
        let (paid, top_tier) = (Some(0.5), Some(0.75));
        assert_eq!(
            ledger,
            Ledger {
                paid,
                top_tier,
                top_model: "top".into(),
                calls: 2,
                answers: 4,
                paid_answers: 2
            }
        );
        let ledger = Ledger::sum(&[
            entry(&Value::Null, &json!(0.5)),
            entry(&json!(0.25), &Value::Null),
        ]);
        assert_eq!((ledger.paid, ledger.top_tier), (None, None));
    }
}
