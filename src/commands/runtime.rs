//! The runtime of a command, with its threads made before anything is begun. Where the system gives none (`ulimit -u`, a
//! container's limit of processes) that is said at once; later, work waits for a thread that is there instead of failing.

use std::io;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Threads that run tasks.
const WORKERS: usize = 2;
/// Threads for work that blocks: a terminal or a file as stdin may hold two of them for good.
const BLOCKING: usize = 4;
/// Idle threads stay: when one is needed, there may be no other to be had.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, thiserror::Error)]
pub(super) enum RuntimeError {
    #[error(
        "no more threads or processes can be started: {0}; end other programs of this user, or raise the limit \
         (`ulimit -u`, or `pids` of the container)"
    )]
    NoThreads(io::Error),
    #[error("the runtime could not be started: {0}")]
    Other(io::Error),
}

/// The runtime of `serve` and of every command that makes a call.
pub(super) fn build_runtime() -> Result<Runtime, RuntimeError> {
    check_threads().map_err(RuntimeError::NoThreads)?;
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(WORKERS)
        .thread_keep_alive(KEPT_FOR)
        .enable_all();
    let runtime = builder.build().map_err(RuntimeError::Other)?;
    // Each thread takes one and holds it until all are there, so that each needs a thread of its own.
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write();
    for _ in 0..BLOCKING {
        let gate = Arc::clone(&gate);
        runtime.spawn_blocking(move || drop(gate.read()));
    }
    drop(closed);
    Ok(runtime)
}

/// The runtime's own threads cannot be tried: it panics. So as many others are made, and let go again.
fn check_threads() -> io::Result<()> {
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write();
    let start = |_| {
        let gate = Arc::clone(&gate);
        std::thread::Builder::new()
            .name(String::from("probe"))
            .spawn(move || drop(gate.read()))
    };
    let (made, refused): (Vec<_>, Vec<_>) =
        (0..WORKERS + BLOCKING).map(start).partition(Result::is_ok);
    drop(closed);
    for thread in made.into_iter().flatten() {
        // It only waited, so it cannot have panicked.
        let _ = thread.join();
    }
    refused
        .into_iter()
        .find_map(Result::err)
        .map_or(Ok(()), Err)
}
