//! The session log: one line of JSON per call, in one file per session, readable with `jq`.
//! [`SessionLog`] writes and reads it; [`stats`] aggregates it; [`jobs`] and [`live`] store jobs
//! and running calls.

pub mod detail;
pub mod exchange;
mod file;
#[doc(hidden)]
pub mod fuzz;
mod hash_chain;
pub mod id;
pub mod jobs;
mod line_limit;
pub mod live;
pub mod log;
pub mod open_calls;
pub mod read;
pub mod record;
pub mod since;
pub mod stats;

pub use id::{InvalidSessionId, SessionId};
pub use log::{LogError, SessionLog};
pub use open_calls::{recover_open_calls, running_calls};
pub use read::Damage;
pub use record::{CallRecord, RecordedOutcome};
pub use stats::{Filter, Stats};
