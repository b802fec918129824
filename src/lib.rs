//! `supervisor`: a stdio MCP server that hands engineering work to a chain of models, cheapest first.
//! Models propose; the server decides, from commands it ran itself.
//!
//! ```text
//! main → cli → server + skills → engine → backend, verify, workspace, routing, prompts → process
//!              session, server and cli listen to engine::event
//! ```
//!
//! | module | answers the question |
//! | --- | --- |
//! | [`cli`] | what did the person at the terminal ask for? one file per sub-command |
//! | [`server`] | how does a run look over MCP? arguments in, result and progress out |
//! | [`skills`] | what can be asked? per file: parameters, phases, the `#[tool]` method |
//! | [`engine`] | what happens next? request, chain walk, attempt, event, result |
//! | [`backend`] | how is a model asked, and is it there at all? |
//! | [`verify`] | did it work? the only module that may say yes |
//! | [`workspace`] | which files changed, and how do we get back? |
//! | [`routing`] | which models, in which order, within which limits? |
//! | [`process`] | how is a program started, watched and ended, with all it started? |
//! | [`session`] | what do we remember of each call? the log and its reader |
//! | [`prompts`] | what do we say to a model, and whose text is it? |
//! | [`redact`] | which parts of a text are secret? |
//! | [`state`], [`words`] | where do our own files live? how do we cut, quote and suggest? |
//!
//! Invariants, each kept by a test in `tests/it/map.rs` which reads the sources:
//! - dependencies point down the map only;
//! - `rmcp` is known to `server` and `skills` alone, `figment` to `routing`, `reqwest` to `backend`,
//!   `tokio::process` and `std::process::Command` to `process`;
//! - a [`verify::Proof`] is made in `verify` alone.

pub mod backend;
pub mod cli;
pub mod engine;
pub mod process;
pub mod prompts;
pub mod redact;
pub mod routing;
pub mod server;
pub mod session;
pub mod skills;
pub mod state;
pub mod verify;
pub mod words;
pub mod workspace;
