//! What an ask can cost, and what it is charged when it does not tell. Knows sizes and prices, and no budget.

use super::Ask;
use supervisor_settings::{TOKEN_BYTES, Tier, TierKind};

/// USD that an ask is charged if neither its cost nor a price of its model is known.
pub const UNKNOWN_USD: f64 = 0.25;
/// Tokens that an answer of unknown length is charged.
pub const UNKNOWN_TOKENS: u64 = 4_000;

/// Money and tokens; `None` is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CostBound {
    pub usd: Option<f64>,
    pub tokens: Option<u64>,
}

/// What is known about the cost of an ask before it is made.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CostForecast {
    /// At most.
    pub worst: CostBound,
    /// What it is charged if it does not tell.
    pub likely: CostBound,
}

impl CostForecast {
    /// Of one question and one answer: tokens by size, and the prices of the model.
    pub fn of_one_answer(ask: &Ask, tier: &Tier) -> Self {
        let bytes = ask.system.len() + ask.prompt.len() + ask.schema.to_string().len();
        let tokens_in = (bytes as u64).div_ceil(TOKEN_BYTES as u64);
        let tokens_out = ask.longest_answer(&tier.model).map(u64::from);
        let prices = tier.model.price_in.zip(tier.model.price_out);
        let price = |out: u64| {
            prices.map(|(dear_in, dear_out)| {
                (tokens_in as f64 * dear_in + out as f64 * dear_out) / 1e6
            })
        };
        // A model on the own machine without a price costs nothing.
        let unpriced = tier.model.price_in.is_none() && tier.model.price_out.is_none();
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
