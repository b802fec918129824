//! Settings as users write them: files, variables, calls, and the messages about mistakes.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says where it failed"
)]

mod chain;
mod env;
mod messages;
