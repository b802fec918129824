//! What the demo cost, and what it would have cost. Tokens and prices are scripted; the sums are the log's.

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

/// Sums over the log of one demo, in USD.
#[derive(Debug, PartialEq)]
pub(super) struct Ledger {
    pub(super) paid: f64,
    /// Had every call gone to the top tier alone; `None` if the log does not say.
    pub(super) top_tier: Option<f64>,
    pub(super) calls: usize,
    pub(super) answers: usize,
    /// Answers that cost something.
    pub(super) bought: usize,
}

impl Ledger {
    pub(super) fn of(log: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(log).with_context(|| format!("reading the log `{}`", log.display()))?;
        let entries: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Self::sum(&entries))
    }

    fn sum(entries: &[Value]) -> Self {
        let attempts = || entries.iter().filter_map(|entry| entry["attempts"].as_array()).flatten();
        let costs = || attempts().filter_map(|attempt| attempt["cost_usd"].as_f64());
        Self {
            paid: costs().sum(),
            top_tier: entries.iter().map(|entry| entry["top_tier"]["cost_usd"].as_f64()).sum(),
            calls: entries.len(),
            answers: attempts().count(),
            bought: costs().filter(|usd| *usd > 0.0).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_cost_is_not_nothing() {
        let entry =
            |top: Value| json!({"attempts": [{"cost_usd": 0.0}, {"cost_usd": 0.25}], "top_tier": {"cost_usd": top}});
        let ledger = Ledger::sum(&[entry(json!(0.5)), entry(json!(0.25))]);
        assert_eq!(ledger, Ledger { paid: 0.5, top_tier: Some(0.75), calls: 2, answers: 4, bought: 2 });
        assert_eq!(Ledger::sum(&[entry(json!(0.5)), entry(Value::Null)]).top_tier, None);
    }
}
