//! Finds the tests of projects and runs them.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says where it failed"
)]
#![allow(clippy::disallowed_methods, reason = "tests start programs themselves")]

mod checks;
mod detect;
mod ecosystems;
mod edge_cases;
mod stale;
