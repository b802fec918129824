//! Statistics of the calls of one skill, or of all: status, cost, and what the top tier alone would
//! have cost.

use serde::Serialize;

use super::round_to_nano_usd;
use crate::session::{CallRecord, RecordedOutcome};
use crate::{Basis, Cause};

/// Totals over some calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Calls {
    pub calls: usize,
    pub pass: usize,
    pub fail: usize,
    pub error: usize,
    /// Ended with a status of an older or later log version.
    pub other: usize,
    /// Refused because of their arguments; not among `calls`.
    pub wrong_arguments: usize,
    /// Sum over attempts whose cost is known, including the verifier.
    pub cost_usd: f64,
    /// Attempts whose cost is unknown.
    pub cost_unknown: usize,
    /// Tokens of attempts that a subscription paid; these are not in `cost_usd`.
    #[serde(skip_serializing_if = "is_none_used")]
    pub subscription_tokens: u64,
    pub top_tier: TopTierCost,
    pub compared: ComparedCosts,
}

/// What asking only the last tier of each chain would have cost. `asked` + `estimated` +
/// `no_model_asked` + `unknown` is the number of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TopTierCost {
    /// Sum over the calls for which it is known.
    pub cost_usd: f64,
    /// The top tier was asked, so the cost is exact.
    pub asked: usize,
    /// Estimated from the tokens of the last answer and the top tier's prices.
    pub estimated: usize,
    pub no_model_asked: usize,
    /// No tokens, no prices, no answer, or an entry from before this was recorded.
    pub unknown: usize,
}

/// Calls for which both costs are completely known: the actual cost and that of the top tier alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ComparedCosts {
    pub calls: usize,
    pub cost_usd: f64,
    pub top_tier_cost_usd: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none_used(tokens: &u64) -> bool {
    *tokens == 0
}

/// Totals while they are being collected.
#[derive(Debug, Default)]
pub struct CallTally(Calls);

impl CallTally {
    pub fn calls(&self) -> usize {
        self.0.calls
    }

    pub fn add(&mut self, record: &CallRecord) {
        let all = &mut self.0;
        if record.entry.cause == Some(Cause::Arguments) {
            all.wrong_arguments += 1;
            return;
        }
        all.calls += 1;
        match record.outcome {
            RecordedOutcome::Pass => all.pass += 1,
            RecordedOutcome::Fail => all.fail += 1,
            RecordedOutcome::Error => all.error += 1,
            RecordedOutcome::Skipped | RecordedOutcome::Other(_) => all.other += 1,
        }
        let (mut cost, mut unknown, mut is_prepaid) = (0.0, 0, false);
        for attempt in record
            .entry
            .attempts
            .iter()
            .filter(|attempt| attempt.was_asked())
        {
            match attempt.cost_usd {
                _ if attempt.subscription => {
                    is_prepaid = true;
                    all.subscription_tokens += attempt.tokens();
                }
                Some(usd) => cost += usd,
                None => unknown += 1,
            }
        }
        all.cost_usd += cost;
        all.cost_unknown += unknown;
        let known = record
            .entry
            .top_tier
            .as_ref()
            .and_then(|top| Some((top.basis, top.cost_usd?)));
        let Some((basis, usd)) = known else {
            all.top_tier.unknown += 1;
            return;
        };
        match basis {
            Basis::Asked => all.top_tier.asked += 1,
            Basis::Estimated => all.top_tier.estimated += 1,
            Basis::NoModelAsked => all.top_tier.no_model_asked += 1,
        }
        all.top_tier.cost_usd += usd;
        if unknown == 0 && !is_prepaid {
            all.compared.calls += 1;
            all.compared.cost_usd += cost;
            all.compared.top_tier_cost_usd += usd;
        }
    }

    pub fn finish(self) -> Calls {
        let mut all = self.0;
        for usd in [
            &mut all.cost_usd,
            &mut all.top_tier.cost_usd,
            &mut all.compared.cost_usd,
            &mut all.compared.top_tier_cost_usd,
        ] {
            *usd = round_to_nano_usd(*usd);
        }
        all
    }
}
