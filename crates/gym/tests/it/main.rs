//! The tasks of the gym.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says where it failed"
)]

mod checks;
mod tasks;
