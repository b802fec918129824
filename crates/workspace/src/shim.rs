//! The shim's part in recovery: if the server dies, the shim of a running command restores the project.

use std::process::ExitCode;

/// Call this first in `main` instead of [`supervisor_process::run_if_shim`], so that shims restore projects.
#[cfg(target_os = "linux")]
pub fn run_if_shim() -> Option<ExitCode> {
    use std::io::Write;
    use std::path::Path;

    use crate::{HeartbeatFile, finish_orphaned};

    let mut beats = None;
    let on_alive = |recovery_dir: &Path| {
        if let Some(beats) = beats.get_or_insert_with(|| HeartbeatFile::join(recovery_dir)) {
            beats.beat_if_due();
        }
    };
    // The server has died: restore the project before its lock is released. The next start retries what fails here.
    let on_orphaned = |recovery_dir: &Path| {
        if let Err(error) = finish_orphaned(recovery_dir) {
            let _ = writeln!(std::io::stderr(), "error: {error}");
        }
    };
    supervisor_process::run_if_shim_with(on_alive, on_orphaned)
}

/// There is no shim on this system.
#[cfg(not(target_os = "linux"))]
pub fn run_if_shim() -> Option<ExitCode> {
    None
}
