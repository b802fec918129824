//! Calls walked with scripted models, and the session log.
#![allow(clippy::unwrap_used, reason = "a test that unwraps says where it failed")]

mod agent;
mod chain;
mod person;
mod record;
mod rounds;
mod session;
