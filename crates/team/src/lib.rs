//! Does what a pipeline has produced so far hang together? The message bus of a team, the folder of its session,
//! checkpoints over what was written there, and the reports about it.
//! Decides by code wherever code can decide, and writes nothing but reports, their sidecars, wisdom and the bus.
//! Does not know MCP, and asks no model itself: what only a model can answer is handed out as a question.

pub mod bus;
pub mod check;
pub mod checks;
pub mod definition;
pub mod document;
pub mod fault;
pub mod isolation;
pub mod message;
pub mod observer;
pub mod place;
pub mod plan;
pub mod report;
pub mod request;
pub mod session_file;
pub mod sidecar;
pub mod terms;
pub mod verdict;
