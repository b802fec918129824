//! Builds the runtime of a command with all its threads started up front. If the system allows no
//! more threads (`ulimit -u`, a container's process limit), the command fails at once with a clear
//! error. Later, work waits for an existing thread instead of failing.

use std::io;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Threads that run tasks.
const WORKER_THREADS: usize = 2;
/// Threads for blocking work: a terminal or a file as stdin may occupy two of them permanently.
const BLOCKING_THREADS: usize = 4;
/// Keep idle threads: it may be impossible to start another one when needed.
const KEEP_ALIVE: Duration = Duration::from_secs(24 * 60 * 60);

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

/// Builds the runtime of `serve` and of every command that makes a call.
pub(super) fn build_runtime() -> Result<Runtime, RuntimeError> {
    check_threads().map_err(RuntimeError::NoThreads)?;
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(WORKER_THREADS)
        .thread_keep_alive(KEEP_ALIVE)
        .enable_all();
    let runtime = builder.build().map_err(RuntimeError::Other)?;
    // Each task blocks until all are spawned, so that each needs its own thread.
    let gate = Arc::new(RwLock::new(()));
    let write_guard = gate.write();
    for _ in 0..BLOCKING_THREADS {
        let gate = Arc::clone(&gate);
        runtime.spawn_blocking(move || drop(gate.read()));
    }
    drop(write_guard);
    Ok(runtime)
}

/// Starts and ends as many threads as the runtime needs, because the runtime panics if it cannot
/// start one.
fn check_threads() -> io::Result<()> {
    let gate = Arc::new(RwLock::new(()));
    let write_guard = gate.write();
    let start = |_| {
        let gate = Arc::clone(&gate);
        std::thread::Builder::new()
            .name(String::from("probe"))
            .spawn(move || drop(gate.read()))
    };
    let (started, failed): (Vec<_>, Vec<_>) = (0..WORKER_THREADS + BLOCKING_THREADS)
        .map(start)
        .partition(Result::is_ok);
    drop(write_guard);
    for thread in started.into_iter().flatten() {
        // It only waited, so it cannot have panicked.
        let _ = thread.join();
    }
    failed.into_iter().find_map(Result::err).map_or(Ok(()), Err)
}
