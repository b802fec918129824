//! Estimates what a question can cost, and what to charge if the backend reports no cost.

use super::Ask;
use supervisor_settings::{TOKEN_BYTES, Tier, TierKind};

/// USD charged if neither the cost nor the model's price is known.
pub const UNKNOWN_USD: f64 = 0.25;
/// Tokens charged for an answer of unknown length.
pub const UNKNOWN_TOKENS: u64 = 4_000;

/// Money and tokens; `None` is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CostBound {
    pub usd: Option<f64>,
    pub tokens: Option<u64>,
}

/// Estimated cost of a question before it is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CostForecast {
    /// Upper bound.
    pub worst: CostBound,
    /// Charged if the backend reports no cost.
    pub likely: CostBound,
}

impl CostForecast {
    /// Estimate for one question and one answer, from text size and the model's prices.
    pub fn of_one_answer(ask: &Ask, tier: &Tier) -> Self {
        let bytes = ask.system.len() + ask.prompt.len() + ask.schema.to_string().len();
        let tokens_in = (bytes as u64).div_ceil(TOKEN_BYTES as u64);
        let tokens_out = ask.max_answer_tokens(&tier.model).map(u64::from);
        let prices = tier.model.price_in.zip(tier.model.price_out);
        let price = |out: u64| {
            prices.map(|(price_in, price_out)| {
                (tokens_in as f64 * price_in + out as f64 * price_out) / 1e6
            })
        };
        // A local model without a price is free.
        let is_zero = |price: Option<f64>| price.unwrap_or_default() == 0.0;
        let unpriced = is_zero(tier.model.price_in) && is_zero(tier.model.price_out);
        let free = tier.backend.tier == TierKind::Local && unpriced;
        let likely_out = tokens_out.unwrap_or(UNKNOWN_TOKENS);
        let likely_usd = if free {
            0.0
        } else {
            price(likely_out).unwrap_or(UNKNOWN_USD)
        };
        let usd = if free {
            Some(0.0)
        } else {
            tokens_out.and_then(price)
        };
        Self {
            worst: CostBound {
                usd,
                tokens: tokens_out.map(|out| tokens_in + out),
            },
            likely: CostBound {
                usd: Some(likely_usd),
                tokens: Some(tokens_in + likely_out),
            },
        }
    }
}
