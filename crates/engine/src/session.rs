//! What do we remember of each call? One line of JSON per call, in a file per session, readable with `jq`.
//! Knows entries and files. Does not know how a call came to its end.

mod bound;
mod chain;
pub mod detail;
pub mod exchange;
mod file;
#[doc(hidden)]
pub mod fuzz;
pub mod id;
pub mod jobs;
pub mod live;
pub mod log;
pub mod open;
pub mod read;
pub mod record;
pub mod since;
pub mod stats;

pub use id::{InvalidSessionId, SessionId};
pub use log::{LogError, SessionLog};
pub use open::{recover_open_calls, running_calls};
pub use read::Damage;
pub use record::{CallRecord, RecordedOutcome};
pub use stats::{Filter, Stats};
