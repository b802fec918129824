//! What happens next in a call. Knows tiers, verdicts and results; does not know that MCP exists.

pub mod result;
