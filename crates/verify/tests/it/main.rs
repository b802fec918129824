//! Which tests are found, and what real runs of them show.
#![allow(clippy::unwrap_used, reason = "a test that unwraps says where it failed")]

mod corners;
mod detect;
mod ecosystems;
mod stale;
