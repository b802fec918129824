//! The readers of input from outside, with bytes of every kind.

mod corpus;
#[path = "../../fuzz/targets.rs"]
mod targets;
