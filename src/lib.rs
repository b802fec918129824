//! `supervisor`: a stdio MCP server that hands engineering work to a chain of models, cheapest first.
//! Models propose; the server decides, from commands it ran itself.
//!
//! ```text
//! main → cli → server + skills → engine → answers, backend, verify, workspace, memory, team, routing, prompts → languages, process
//!              gym beside session: both read what the engine wrote
//!              session, server and cli listen to engine::event
//! ```
//!
//! | module | answers the question |
//! | --- | --- |
//! | `cli` | what did the person at the terminal ask for? one file per sub-command |
//! | `server` | how does a run look over MCP? arguments in, result and progress out |
//! | `skills` | what can be asked? per file: parameters, phases, the `#[tool]` method |
//! | `engine` | what happens next? request, chain walk, attempt, event, result |
//! | `answers` | what does an answer say, and what can code check about it? edits in any shape; structure rejects, words flag |
//! | `backend` | how is a model asked, and is it there at all? |
//! | `verify` | did it work? the only module that may say yes |
//! | `workspace` | which files changed, and how do we get back? |
//! | `routing` | which models, in which order, within which limits? |
//! | `languages` | what is a definition, an import, a test, in each language? one file per language |
//! | `process` | how is a program started, watched and ended, with all it started? |
//! | `session` | what do we remember of each call? the log and its reader |
//! | `memory` | what do we know that will be true tomorrow? notes, their proof, and the index over them |
//! | `fuzz` | do the readers of what comes from outside keep their rules, whatever bytes they get? |
//! | `gym` | what is a model worth? tasks with hidden tests, what was measured, simulations over it |
//! | `team` | does what a pipeline has produced hang together? bus, checkpoints, reports |
//! | `prompts` | what do we say to a model, and whose text is it? |
//! | `testing` | what do tests, benches and fuzz targets use? the one door to what is private |
//! | `redact` | which parts of a text are secret? |
//! | `state`, `words` | where do our own files live? how do we cut, quote and suggest? |
//!
//! The nouns of the house; everything else is named from them:
//!
//! | word | meaning |
//! | --- | --- |
//! | call | one use of a tool: from its arguments to its one result and one log entry |
//! | chain | the tiers of a call, cheapest first |
//! | tier | one model and the backend that serves it, at its place in a chain |
//! | attempt | one turn of one tier: its questions, its answer, the checks |
//! | brief | what a tier is told: discipline, task, files, evidence |
//! | answer | what a tier says to all questions of a brief; edits as data, or in place |
//! | gate | one check of an answer that the server makes itself |
//! | proof | what `verify` gives for work that holds; nothing else can make one |
//! | evidence | what refused attempts leave for the next: change, real output, reason |
//! | follow-up | one more question to the same tier inside an attempt: a repair, or a need |
//! | snapshot | the project as it was, to which everything refused returns |
//! | skill | a value that answers four questions of the engine: access, prepare, ask, check |
//!
//! `docs/architecture.md` walks one call through the files.
//!
//! Invariants, each kept by a test in `tests/it/house/map.rs` or `tests/it/house/names.rs` which reads the sources:
//! - dependencies point down the map only;
//! - `rmcp` is known to `server` and `skills` alone, `figment` to `routing`, `reqwest` to `backend`,
//!   `tokio::process` and `std::process::Command` to `process`;
//! - a `verify::Proof` is made in `verify` alone;
//! - the name of a type is a noun, and stands once unless the type is private to its file.

#![allow(
    unreachable_pub,
    reason = "`pub` in a private module is what `testing` may hand out; how far the rest is seen, its module says"
)]

mod answers;
mod backend;
mod cli;
mod engine;
mod fuzz;
mod gym;
mod languages;
mod memory;
mod process;
mod prompts;
mod redact;
mod routing;
mod server;
mod session;
mod skills;
mod state;
mod team;
#[doc(hidden)]
pub mod testing;
mod verify;
mod words;
mod workspace;

/// The whole program: arguments in, exit code out.
pub use cli::main;
