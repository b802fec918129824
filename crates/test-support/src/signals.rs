//! Tests send SIGINT to programs they start. A test run in the background of a script is started with SIGINT ignored,
//! which those programs would inherit.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;

/// Programs that are started from now on get the default disposition of SIGINT back, because a handler is not inherited.
/// Without need none is installed: Ctrl-C shall end a test run.
#[ctor::ctor(unsafe)]
fn restore_interrupt() {
    if is_ignored(SIGINT) {
        let _ = signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)));
    }
}

/// Only known on Linux.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
