//! The sub-commands, as a person at a terminal runs them.

mod action;
mod attest;
mod call;
mod demo;
mod doctor;
mod explain;
mod gc;
mod help;
mod hooks;
pub(crate) mod init;
mod launcher;
mod report;
mod serve;
mod shadow;
mod shim;
mod stats;
mod streams;
mod undo;
mod watch;
mod watch_tmux;
mod worth;
