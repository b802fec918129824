//! One project, one editor at a time: an OS lock that dies with its holders, also when they are killed.
//! Knows lock files and who holds them. Does not know what they do with the project.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// How a project is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// For what only reads.
    Shared,
    /// For edits, and for anything that runs commands.
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
    Elsewhere,
    #[error("the call was cancelled while it waited for the project")]
    Cancelled,
    #[error("the lock `{}` cannot be used: {source}; is the state directory on a file system with locks?", path.display())]
    Unusable { path: PathBuf, source: io::Error },
    #[error("an earlier call was killed, and what it did cannot be undone yet: {0}")]
    NotRecovered(super::RestoreError),
}

/// Who holds a project, as far as it was written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    /// RFC 3339.
    pub since: String,
    /// In a few words, for a caller that has to wait.
    pub what: String,
    /// Tells a process from a later one with the same number.
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
    fn this(what: &str) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            since: super::timestamp(),
            what: what.to_owned(),
            started: started(pid).unwrap_or(0),
        }
    }

    fn is_alive(&self) -> bool {
        match started(self.pid) {
            Some(started) => started == self.started,
            // No such file system here: ask whether a process has that number.
            None => !Path::new("/proc/self/stat").exists() && has_process(self.pid),
        }
    }
}

/// What a holder does that puts things right.
pub(super) const RECOVERING: &str = "recovering";

/// Between two looks at a lock that another process holds.
const LOOK_AGAIN: Duration = Duration::from_millis(15);

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
                // The holder is gone, but the lock is not: a shim is putting things right.
                _ => LockError::Recovering,
            });
        }
        tokio::select! {
            () = stop.cancelled() => return Err(LockError::Cancelled),
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}

/// Waits for the lock on a directory of the project itself. No file is made for it. A file system that cannot lock
/// directories has none; then servers with different state directories do not see each other.
pub(super) async fn acquire_place(
    place: &Path,
    mode: Mode,
    wait: Duration,
    stop: &CancellationToken,
) -> Result<Option<File>, LockError> {
    let began = Instant::now();
    let Ok(dir) = File::open(place) else {
        return Ok(None);
    };
    loop {
        let tried = match mode {
            Mode::Shared => dir.try_lock_shared(),
            Mode::Exclusive => dir.try_lock(),
        };
        match tried {
            Ok(()) => return Ok(Some(dir)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if began.elapsed() >= wait => {
                return Err(LockError::Elsewhere);
            }
            Err(TryLockError::WouldBlock) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return Err(LockError::Cancelled),
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}

/// `None` if another process holds it. Never unlock what this returns, only close it: a shim may hold the same lock.
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
    let tried = match mode {
        Mode::Shared => file.try_lock_shared(),
        Mode::Exclusive => file.try_lock(),
    };
    match tried {
        Ok(()) => {
            note_holder(project, what);
            Ok(Some(file))
        }
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(unusable(source)),
    }
}

/// The lock of a project at rest, without a word about who holds it; `None` if it is held.
pub(super) fn try_hold(project: &Path) -> io::Result<Option<File>> {
    let file = open(&project.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// The file whose share every command's parent holds while it works in the project.
pub(super) fn open_trees(project: &Path) -> io::Result<File> {
    open(&project.join("trees"))
}

/// Waits until no command works in the project. As long as the file is held, none starts.
pub(super) fn all_at_rest(project: &Path, patience: Duration) -> io::Result<Option<File>> {
    let file = open_trees(project)?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if began.elapsed() < patience => {
                std::thread::sleep(LOOK_AGAIN)
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// For `busy` messages only; the lock itself is the truth.
pub(super) fn note_holder(project: &Path, what: &str) {
    let text = serde_json::to_vec(&Holder::this(what)).unwrap_or_default();
    // In one step, so that it is never read half-written; after a power cut no process holds the lock, so it need not
    // be on disk.
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

/// When the process began, in the kernel's own count; `None` if it has ended, also if it was not reaped yet.
/// The name before these words may hold spaces and parentheses.
fn started(pid: u32) -> Option<u64> {
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
