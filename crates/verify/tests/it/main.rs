//! Finds the tests of projects and runs them.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says where it failed"
)]

mod detect;
mod ecosystems;
mod edge_cases;
mod stale;
