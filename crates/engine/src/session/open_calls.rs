//! Files of running calls, one per call, locked by its server. If a server dies, the next one finds
//! an unlocked file and writes the missing entry, so the log has exactly one line per call.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{LogError, SessionId, SessionLog};
use crate::services::OpenRecord;
use crate::{Attempt, Cause, Entry, Status, was_accepted};
use supervisor_workspace::state::StateDir;

/// Directory below the state directory.
const FOLDER: &str = "open";
const EXTENSION: &str = "jsonl";
/// Extension of a file that is not locked yet.
const UNLOCKED: &str = "new";
/// A file without a lock is abandoned after this time.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);
/// A larger file is not one of ours.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// One line of such a file. The last line about each attempt wins.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OpenLine {
    /// The call as it begins.
    Began(Box<Entry>),
    /// An attempt that begins (with cause `crashed`, in case nothing follows) or has ended.
    Attempt(Box<Attempt>),
    /// The final entry, written here before it is appended to the log.
    Ended(Box<Entry>),
}

/// The file of a running call. Its lock is released when the process ends, however it ends.
pub(super) struct OpenCallFile {
    path: PathBuf,
    file: Mutex<File>,
    log: SessionLog,
}

/// A call that is running, or was running when its server died.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningCall {
    /// Includes the attempts so far; the last one may still be running.
    pub entry: Entry,
    /// If false, no process holds it any more; the next server to start writes its entry.
    pub is_alive: bool,
    /// When the file was last written.
    pub last_write: SystemTime,
}

impl OpenCallFile {
    pub(super) fn create(
        state: &StateDir,
        log: SessionLog,
        entry: &Entry,
    ) -> Result<Self, LogError> {
        let folder = state.sub(FOLDER)?;
        let path = folder.join(format!("{}.{EXTENSION}", entry.call));
        // Recovery takes an unlocked file for that of a dead server, so the file gets its name only
        // after it is locked and has its first line.
        let unlocked = path.with_extension(UNLOCKED);
        let fail = |source| LogError::Open {
            path: path.clone(),
            source,
        };
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&unlocked)
            .map_err(fail)?;
        file.lock().map_err(fail)?;
        let open = Self {
            file: Mutex::new(file),
            log,
            path: path.clone(),
        };
        open.write(&OpenLine::Began(Box::new(entry.clone())))
            .and_then(|()| fs::rename(&unlocked, &path))
            .map_err(fail)?;
        Ok(open)
    }

    fn write(&self, line: &OpenLine) -> io::Result<()> {
        let mut tree = serde_json::to_value(line).expect("plain data serialises");
        self.log.redactor().redact_json(&mut tree);
        let mut text = tree.to_string();
        text.push('\n');
        self.file.lock().write_all(text.as_bytes())
    }
}

impl OpenRecord for OpenCallFile {
    fn note(&self, attempt: &Attempt) {
        if let Err(error) = self.write(&OpenLine::Attempt(Box::new(attempt.clone()))) {
            tracing::warn!("`{}` cannot be written: {error}", self.path.display());
        }
    }

    fn close(self: Box<Self>, entry: &Entry) -> Result<(), String> {
        // If we die between the two writes, recovery writes the entry from here, unless the log
        // already has it.
        let noted = self.write(&OpenLine::Ended(Box::new(entry.clone())));
        self.log.append(entry).map_err(|error| error.to_string())?;
        if let Err(error) = noted {
            tracing::debug!("`{}` cannot be written: {error}", self.path.display());
        }
        fs::remove_file(&self.path)
            .map_err(|error| format!("`{}` cannot be removed: {error}", self.path.display()))
    }
}

/// Writes the entries of calls whose server died. Returns how many.
pub fn recover_open_calls(log: &SessionLog) -> usize {
    remove_abandoned(log.state());
    let mut written = 0;
    for path in files(log.state(), EXTENSION) {
        match recover_one(log, &path) {
            Ok(true) => written += 1,
            Ok(false) => {}
            Err(error) => tracing::warn!(
                "the killed call `{}` cannot be logged: {error}",
                path.display()
            ),
        }
    }
    written
}

/// The running calls of all servers of this user, oldest first.
pub fn running_calls(state: &StateDir) -> Vec<RunningCall> {
    let one = |path: PathBuf| {
        let file = open(&path).ok()?;
        let is_alive = file.try_lock_shared().is_err();
        let last_write = file
            .metadata()
            .and_then(|meta| meta.modified())
            .unwrap_or(SystemTime::UNIX_EPOCH);
        let (entry, _) = read(&path)?;
        Some(RunningCall {
            entry,
            is_alive,
            last_write,
        })
    };
    let mut calls: Vec<RunningCall> = files(state, EXTENSION).filter_map(one).collect();
    calls.sort_by(|a, b| a.entry.timestamp.cmp(&b.entry.timestamp));
    calls
}

/// Whether the file of this call still exists.
pub(super) fn is_open(state: &StateDir, call: &str) -> bool {
    !call.is_empty()
        && state
            .path()
            .join(FOLDER)
            .join(format!("{call}.{EXTENSION}"))
            .exists()
}

/// Returns false if a process holds the file, or it is gone.
fn recover_one(log: &SessionLog, path: &Path) -> Result<bool, String> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.to_string()),
    };
    if file.try_lock().is_err() {
        return Ok(false);
    }
    // Another server may have removed the file before we got the lock.
    if file.metadata().map_err(|error| error.to_string())?.nlink() == 0 {
        return Ok(false);
    }
    let last_write = file
        .metadata()
        .and_then(|meta| meta.modified())
        .unwrap_or_else(|_| SystemTime::now());
    let Some((mut entry, has_ended)) = read(path) else {
        // The server died before the first line was complete, so nothing was done yet.
        fs::remove_file(path).map_err(|error| error.to_string())?;
        return Ok(false);
    };
    if !has_ended {
        set_end_time(&mut entry, last_write);
        // The journal decides: after its commit point nothing is undone.
        if was_accepted(log.state(), &entry.call) {
            mark_accepted(&mut entry);
        } else {
            mark_crashed(&mut entry);
        }
    }
    let id: SessionId = entry
        .session_id
        .parse()
        .map_err(|error: super::InvalidSessionId| error.to_string())?;
    let is_logged = log
        .reader(&id)
        .map_err(|e| e.to_string())?
        .any(|record| record.entry.call == entry.call);
    if !is_logged {
        log.append(&entry).map_err(|error| error.to_string())?;
    }
    fs::remove_file(path).map_err(|error| error.to_string())?;
    Ok(!is_logged)
}

/// Sets the end of an interrupted call to the time of its last write.
fn set_end_time(entry: &mut Entry, last_write: SystemTime) {
    let began: Option<jiff::Timestamp> = entry.timestamp.parse().ok();
    let ended = jiff::Timestamp::try_from(last_write).unwrap_or_else(|_| jiff::Timestamp::now());
    if let Some(began) = began {
        entry.duration_ms =
            u64::try_from(ended.as_millisecond() - began.as_millisecond()).unwrap_or(0);
    }
    entry.timestamp = ended.to_string();
}

/// The change is in the project, but the server died before it could reply.
fn mark_accepted(entry: &mut Entry) {
    entry.final_status = Status::Pass;
    if let Some(last) = entry.attempts.iter().max_by_key(|attempt| attempt.attempt) {
        entry.model_used = last.model.clone();
    }
    entry.message = String::from(
        "accepted, and the change is in the project; the server ended before it could answer, so that the rest of its answer is lost",
    );
}

/// The call left nothing behind.
fn mark_crashed(entry: &mut Entry) {
    entry.final_status = Status::Error;
    entry.cause = Some(Cause::Crashed);
    entry.message = String::from(
        "the server ended in the middle of this call; whatever it had changed was undone, or `supervisor recover` does it",
    );
}

fn read(path: &Path) -> Option<(Entry, bool)> {
    let size = fs::symlink_metadata(path).ok()?.len();
    let text = (size <= MAX_FILE_BYTES)
        .then(|| fs::read(path).ok())
        .flatten()?;
    let mut entry: Option<Entry> = None;
    let mut has_ended = false;
    // Skips a line that was cut off when its writer died.
    for line in text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
    {
        match line {
            OpenLine::Began(began) => entry = Some(*began),
            OpenLine::Ended(ended) => (entry, has_ended) = (Some(*ended), true),
            OpenLine::Attempt(attempt) => {
                let Some(entry) = entry.as_mut() else {
                    continue;
                };
                entry
                    .attempts
                    .retain(|earlier| earlier.attempt != attempt.attempt);
                entry.attempts.push(*attempt);
            }
        }
    }
    let mut entry = entry?;
    entry.upgrade();
    Some((entry, has_ended))
}

fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    OpenOptions::new()
        .read(true)
        .append(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// Removes files whose server died before it had locked them.
fn remove_abandoned(state: &StateDir) {
    for path in files(state, UNLOCKED) {
        let is_abandoned = fs::symlink_metadata(&path)
            .and_then(|meta| meta.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED_AFTER));
        if is_abandoned && let Err(error) = fs::remove_file(&path) {
            tracing::debug!("`{}` cannot be removed: {error}", path.display());
        }
    }
}

fn files(state: &StateDir, extension: &'static str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(state.path().join(FOLDER))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .map(|entry| entry.path())
        .filter(move |path| path.extension().is_some_and(|end| end == extension))
}
