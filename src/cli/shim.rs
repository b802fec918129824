//! `shim` (hidden): the parent of one command. Started by the server alone, before any thread or runtime exists.

use std::io::Write;
use std::process::ExitCode;

use crate::process::shim;

/// Runs as a shim if that is what this process was started for.
pub(super) fn dispatch() -> Option<ExitCode> {
    (std::env::args_os().nth(1)? == shim::COMMAND).then(run)
}

fn run() -> ExitCode {
    // To connect: the workspace's restore belongs here.
    match shim::run(|_ticket| {}) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "error: {e}");
            ExitCode::from(2)
        }
    }
}
