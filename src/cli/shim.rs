//! `shim` (hidden): the parent of one command. Started by the server alone, before any thread or runtime exists.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use crate::process::shim;
use crate::workspace;

/// Runs as a shim if that is what this process was started for.
pub(super) fn dispatch() -> Option<ExitCode> {
    (std::env::args_os().nth(1)? == shim::COMMAND).then(run)
}

fn run() -> ExitCode {
    let mut beats = None;
    let beat = |ticket: &Path| {
        if let Some(beats) = beats.get_or_insert_with(|| workspace::PulseBeats::join(ticket)) {
            beats.beat_if_due();
        }
    };
    match shim::run(beat, finish) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "error: {e}");
            ExitCode::from(2)
        }
    }
}

/// The server has died: the project is put right before its lock is let go. What fails here is tried again by the next start.
fn finish(ticket: &Path) {
    if let Err(e) = workspace::finish_orphaned(ticket) {
        let _ = writeln!(std::io::stderr(), "error: {e}");
    }
}
