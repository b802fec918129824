//! `just bench [SUITE…]`: figures as ratios to a floor measured in the same run. Nothing here can fail a build.
//! One file per suite, one line in the table.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench talks to the terminal and may stop where it stands"
)]

mod calls;
mod events;
mod falsify;
mod field;
mod notes;
mod snapshot;
mod spawn;
mod start;
mod wake;
mod walls;

use std::process::ExitCode;

/// The program that is measured. What cargo builds beside a bench has features that only tests bring in; the one that
/// users build is named by `SUPERVISOR_BIN`.
fn program() -> String {
    std::env::var("SUPERVISOR_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_supervisor").to_owned())
}

type Suite = (&'static str, fn());

const SUITES: &[Suite] = &[
    ("start", start::run),
    ("spawn", spawn::spawn),
    ("flood", spawn::flood),
    ("snapshot", snapshot::run),
    ("calls", calls::run),
    ("events", events::run),
    ("notes", notes::run),
    ("wake", wake::run),
    ("field", field::run),
    ("falsify", falsify::run),
    ("walls", walls::run),
];

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(start::BARE) {
        return start::bare_server();
    }
    if std::env::args().nth(1).as_deref() == Some(calls::AGENT) {
        return calls::agent();
    }
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    for (name, run) in SUITES {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            println!("\n== {name}");
            run();
        }
    }
    ExitCode::SUCCESS
}
