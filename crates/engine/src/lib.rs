//! What happens next in a call. Knows tiers, verdicts and results; does not know that MCP exists.
//! Begin at [`call`], which owns a call from its arguments to its log entry; [`skill`] is what a skill must answer.

pub mod archive;
mod asking;
pub mod attempt;
pub mod author;
pub mod budget;
pub mod call;
mod conclude;
mod decide;
pub mod entry;
pub mod event;
pub mod evidence;
pub mod exchange;
mod judge;
mod keeping;
pub mod means;
pub mod policy;
pub mod proposal;
pub mod result;
pub mod session;
pub mod site;
pub mod skill;
pub mod top_tier;
mod trial;
mod walk;
pub mod work;

pub use attempt::{AskRecord, Attempt, Cause, ModelEvidence, Opinion, Verdict};
pub use entry::Entry;
pub use exchange::ExchangeRecord;
pub use result::{CallResult, Gate, More, Status};
pub use top_tier::{Basis, TopTier};
// Part of every attempt, so that who reads one need not know the settings.
pub use supervisor_settings::{ExchangeMode, LogSettings, TierKind};
pub use supervisor_workspace::was_accepted;
