//! `just bench [SUITE…]`: prints ratios to a lower bound ("floor") measured in the same run.
//! Results never fail a build. Each suite is a file and a line in [`SUITES`].
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "benches start programs, print to the terminal and may panic"
)]

mod calls;
mod events;
mod exercism;
mod falsify;
mod notes;
mod sandbox;
mod snapshot;
mod spawn;
mod start;
mod tdd_cycle;
mod wake;

use std::process::ExitCode;

/// The program to measure. The one that cargo builds for benches has features that only tests
/// enable; set `SUPERVISOR_BIN` to measure a release build.
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
    ("field", tdd_cycle::run),
    ("falsify", falsify::run),
    ("exercism", exercism::run),
    ("walls", sandbox::run),
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
