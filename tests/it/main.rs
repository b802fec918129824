//! One integration binary, in folders by the modules of the map; each file is about one promise. `house` keeps the map.
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
mod fuzz;
mod gym;
mod house;
mod memory;
mod process;
mod routing;
mod server;
mod session;
mod skills;
mod support;
mod team;
mod verify;
mod workspace;
