//! Shadow mode: proven changes are recorded, and replayed by cheaper models while nobody waits. [`ShadowStore`] keeps
//! the tasks, [`record`] adds one, [`run`] replays them, [`Report`] says what follows.

mod machine;
mod record;
mod report;
mod run;
mod store;
mod transcript;

pub use machine::{Machine, MachineState, ThisMachine};
pub use record::{RecordError, RecordRequest, record};
pub use report::{Report, ShadowKind};
pub use run::{Replay, ReplayEnd, Replayed, RunEnd, RunLimits, RunSummary, run};
pub use store::{HostUsage, KEPT_DAYS, ShadowSettings, ShadowStore, ShadowTask};
pub use transcript::{Transcript, read_transcript};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
