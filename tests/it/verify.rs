//! `supervisor verify` and the falsification of accepted tests, end to end.

mod cheats;
mod cli;
mod secrets;
