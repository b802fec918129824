//! What happens next in a call. Knows tiers, verdicts and results; does not know that MCP exists.

mod asking;
pub mod attempt;
pub mod budget;
pub mod entry;
pub mod event;
pub mod evidence;
pub mod job;
mod judge;
pub mod means;
pub mod proposal;
pub mod result;
pub mod run;
pub mod site;
pub mod top_tier;
mod trial;
mod walk;

pub use attempt::{Attempt, Cause, Opinion, Verdict};
pub use entry::Entry;
pub use result::{CallResult, Gate, More, Status};
pub use top_tier::{Basis, TopTier};
// Part of every attempt, so that who reads one need not know the settings.
pub use crate::routing::TierKind;
