//! Entry points of the helper processes. A program that uses this crate calls [`run_if_shim`] first in `main`, before any
//! thread exists: the launcher starts the same program again as the parent of each command.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use crate::shim::ShimError;
use crate::{inner, overlay, shim};

/// Runs as a shim, a sandbox or an overlay if that is what this process was started for.
pub fn run_if_shim() -> Option<ExitCode> {
    run_if_shim_with(|_| {}, |_| {})
}

/// The same, for a program that restores projects: `on_alive` and `on_orphaned` as for [`shim::run`].
pub fn run_if_shim_with(
    on_alive: impl FnMut(&Path),
    on_orphaned: impl FnOnce(&Path),
) -> Option<ExitCode> {
    let command = std::env::args_os().nth(1)?;
    if command == shim::COMMAND {
        return Some(exit(shim::run(on_alive, on_orphaned), ExitCode::SUCCESS));
    }
    if command == inner::COMMAND {
        // On success it has become its command, so it returns only after telling its shim why not.
        return Some(exit(inner::run(), ExitCode::from(126)));
    }
    (command == overlay::COMMAND).then(|| exit(overlay::run(), ExitCode::SUCCESS))
}

fn exit(ended: Result<(), ShimError>, code: ExitCode) -> ExitCode {
    match ended {
        Ok(()) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}
