//! Backends against scripted programs and servers.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says where it failed"
)]

mod anthropic;
mod claude_cli;
mod installed;
mod model_list;
mod openai;
mod probes;
mod samples;
mod settle;
