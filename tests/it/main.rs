//! End-to-end tests of the program, over stdio and the command line. One test program, because linking it takes long.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says where it failed"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "the tests start the program under test, and git"
)]

mod answers;
mod backend;
mod cli;
mod engine;
mod first_version;
mod fuzz;
mod gym;
mod house;
mod memory;
mod messages;
mod old_state;
mod server;
mod session;
mod skills;
mod support;
mod team;
mod verify;
mod workspace;
