//! `inner` and `view` (hidden): put up walls around one command, or hold a private view of a project. Started by this
//! program alone, before any thread or runtime exists.

use std::io::Write;
use std::process::ExitCode;

use crate::process::shim::ShimError;
use crate::process::{inner, view};

/// Runs as one of them if that is what this process was started for.
pub(super) fn dispatch() -> Option<ExitCode> {
    let command = std::env::args_os().nth(1)?;
    if command == inner::COMMAND {
        // It becomes its command, or has told its shim why not.
        return Some(conclude(inner::run(), ExitCode::from(126)));
    }
    (command == view::COMMAND).then(|| conclude(view::run(), ExitCode::SUCCESS))
}

fn conclude(ended: Result<(), ShimError>, code: ExitCode) -> ExitCode {
    match ended {
        Ok(()) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}
