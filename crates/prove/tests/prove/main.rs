//! Proofs of changes, with real runs.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says where it failed"
)]

mod changes;
mod evidence;
mod scripts;
mod support;
