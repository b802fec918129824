//! Project locks: one editor at a time. An OS lock ends with its holders, even when they are
//! killed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// How a project is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// For reading.
    Shared,
    /// For editing, and for running commands.
    Exclusive,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("busy: {holder}")]
    Busy { holder: Holder },
    #[error("busy: recovering; a call that was killed is being undone, try again in a moment")]
    Recovering,
    #[error(
        "busy: another server, which keeps its state elsewhere, works on this project; wait for it, or give both the same \
         $SUPERVISOR_STATE_DIR"
    )]
    OtherStateDir,
    #[error("the call was cancelled while it waited for the project")]
    Cancelled,
    #[error("the lock `{}` cannot be used: {source}; is the state directory on a file system with locks?", path.display())]
    Unusable { path: PathBuf, source: io::Error },
    #[error("an earlier call was killed, and what it did cannot be undone yet: {0}")]
    NotRecovered(super::RestoreError),
}

/// The recorded holder of a project's lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    /// RFC 3339.
    pub since: String,
    /// A short description for a caller that has to wait.
    pub what: String,
    /// Start time, to tell a process from a later one with the same pid.
    started: u64,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "process {} works on this project since {} ({}); wait for it or cancel it",
            self.pid, self.since, self.what
        )
    }
}

impl Holder {
    fn current(what: &str) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            since: super::timestamp(),
            what: what.to_owned(),
            started: start_time(pid).unwrap_or(0),
        }
    }

    fn is_alive(&self) -> bool {
        match start_time(self.pid) {
            Some(started) => started == self.started,
            // No procfs: check whether a process has that pid.
            None => !Path::new("/proc/self/stat").exists() && has_process(self.pid),
        }
    }
}

/// The `what` of a holder that recovers a project.
pub(super) const RECOVERING: &str = "recovering";

/// Interval for polling a lock.
const POLL_INTERVAL: Duration = Duration::from_millis(15);

/// Waits for the lock of a project, at most `wait`.
pub(super) async fn acquire(
    project: &Path,
    mode: Mode,
    what: &str,
    wait: Duration,
    stop: &CancellationToken,
) -> Result<File, LockError> {
    let began = Instant::now();
    loop {
        if let Some(file) = try_acquire(project, mode, what)? {
            return Ok(file);
        }
        if began.elapsed() >= wait {
            return Err(match holder(project) {
                Some(holder) if holder.is_alive() && holder.what != RECOVERING => {
                    LockError::Busy { holder }
                }
                // The holder is gone but the lock is not: a shim is recovering.
                _ => LockError::Recovering,
            });
        }
        tokio::select! {
            () = stop.cancelled() => return Err(LockError::Cancelled),
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

/// Waits for a lock on a directory of the project itself, without creating a file. Returns `None`
/// if the file system cannot lock directories; servers with different state directories then do not
/// see each other.
pub(super) async fn acquire_dir_lock(
    dir_path: &Path,
    mode: Mode,
    wait: Duration,
    stop: &CancellationToken,
) -> Result<Option<File>, LockError> {
    let began = Instant::now();
    let Ok(dir) = File::open(dir_path) else {
        return Ok(None);
    };
    loop {
        let result = match mode {
            Mode::Shared => dir.try_lock_shared(),
            Mode::Exclusive => dir.try_lock(),
        };
        match result {
            Ok(()) => return Ok(Some(dir)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if began.elapsed() >= wait => {
                return Err(LockError::OtherStateDir);
            }
            Err(TryLockError::WouldBlock) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return Err(LockError::Cancelled),
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

/// Returns `None` if another process holds the lock. Never unlock the file, only close it: a shim
/// may hold the same lock.
pub(super) fn try_acquire(
    project: &Path,
    mode: Mode,
    what: &str,
) -> Result<Option<File>, LockError> {
    let path = project.join("lock");
    let unusable = |source| LockError::Unusable {
        path: path.clone(),
        source,
    };
    let file = open(&path).map_err(unusable)?;
    let result = match mode {
        Mode::Shared => file.try_lock_shared(),
        Mode::Exclusive => file.try_lock(),
    };
    match result {
        Ok(()) => {
            record_holder(project, what);
            Ok(Some(file))
        }
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(unusable(source)),
    }
}

/// Takes the lock without recording a holder; `None` if it is held.
pub(super) fn try_lock_silently(project: &Path) -> io::Result<Option<File>> {
    let file = open(&project.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// Opens the tree lock. Every shim holds a shared lock on it while its command works in the
/// project.
pub(super) fn open_tree_lock(project: &Path) -> io::Result<File> {
    open(&project.join("trees"))
}

/// Waits until no command works in the project. None starts while the returned file is held.
pub(super) fn wait_until_idle(project: &Path, timeout: Duration) -> io::Result<Option<File>> {
    let file = open_tree_lock(project)?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if began.elapsed() < timeout => {
                std::thread::sleep(POLL_INTERVAL);
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// Records the holder for `busy` messages. Only the lock itself is authoritative.
pub(super) fn record_holder(project: &Path, what: &str) {
    let text = serde_json::to_vec(&Holder::current(what)).unwrap_or_default();
    // Atomic, so that it is never read half-written. No need to sync: after a power cut no process
    // holds the lock.
    let new = project.join(format!("holder.{}", std::process::id()));
    let _ = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, project.join("holder")));
}

pub(super) fn holder(project: &Path) -> Option<Holder> {
    serde_json::from_slice(&std::fs::read(project.join("holder")).ok()?).ok()
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Returns the start time of a process in clock ticks; `None` if it has ended, even if it is not
/// reaped yet. The process name may contain spaces and parentheses.
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = words.next()?;
    if matches!(state, "Z" | "X") {
        None
    } else {
        words.nth(18)?.parse().ok()
    }
}

fn has_process(pid: u32) -> bool {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}
