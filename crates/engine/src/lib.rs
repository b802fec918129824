//! Runs tool calls: asks the tiers of a chain in order, checks each answer and produces one result
//! and one log entry per call. It is independent of MCP. Start at [`call`], which owns a call from
//! its arguments to its log entry; [`skill`] is the trait that each skill implements.

pub mod archive;
pub mod attempt;
pub mod budget;
pub mod call;
mod candidates;
mod conclude;
mod decide;
pub mod entry;
pub mod event;
pub mod evidence;
pub mod exchange;
pub mod policy;
pub mod project_access;
pub mod proposal;
pub mod reach;
pub mod result;
pub mod services;
pub mod session;
pub mod skill;
pub mod spend_ledger;
pub mod test_author;
mod tier_asker;
mod tier_attempt;
pub mod top_tier;
pub mod trace;
mod verifier;
mod walk;
pub mod work;
mod write_work;

pub use attempt::{AskRecord, Attempt, Cause, ModelEvidence, Opinion, Verdict};
pub use entry::Entry;
pub use exchange::ExchangeRecord;
pub use result::{CallResult, Gate, More, Status};
pub use top_tier::{Basis, TopTier};
// Re-exported because they are part of every attempt: readers of attempts need not depend on the
// settings.
pub use supervisor_settings::{ExchangeMode, LogSettings, TierKind};
pub use supervisor_workspace::was_accepted;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
