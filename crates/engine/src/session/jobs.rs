//! Jobs: calls that continue after their request has returned. Each has a record on disk, so that
//! its result can be fetched later, even from another server. The process that works on a job holds
//! its lock; a working job that no process holds has crashed. Only the lock holder writes the final
//! state, so each job ends exactly once.

mod crashed_job;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::CallKey;
use supervisor_workspace::state::{StateDir, StateError};

/// Directory below the state directory.
/// How long a result is kept.
pub const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// A file without a record is removed once it is this old.
const STRAY_AFTER: Duration = Duration::from_secs(60 * 60);
/// A larger record is not one of ours; results are truncated to less when they are created.
const MAX_RECORD_BYTES: u64 = 4 << 20;

/// One job, as stored on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    pub id: String,
    pub tool: String,
    #[serde(default)]
    pub project_root: String,
    /// Identifies the call in the log, or the first call of a cycle; absent in older records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// RFC 3339, UTC.
    pub began: String,
    pub changed: String,
    pub state: JobState,
    /// Why it failed; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The reply for the caller; null before the end.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Working,
    Completed,
    Failed,
    Cancelled,
}

impl JobState {
    pub fn word(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(
        "the record of a job, `{path}`, cannot be used: {source}; make it writable, or set ${}",
        supervisor_workspace::state::STATE_DIR_VAR
    )]
    Io { path: PathBuf, source: io::Error },
}

/// All jobs of this user.
#[derive(Debug, Clone)]
pub struct JobStore {
    state: StateDir,
    folder: PathBuf,
}

/// A job that this process works on. If it is dropped before its end, it counts as crashed, as if
/// the process had died.
#[derive(Debug)]
pub struct HeldJob {
    store: JobStore,
    record: JobRecord,
    _lock: File,
}

impl JobStore {
    /// Creates no files before there is a job.
    pub fn new(state: &StateDir) -> Self {
        Self {
            folder: state.jobs(),
            state: state.clone(),
        }
    }

    /// Begins a job. Its record is on disk when this returns.
    pub fn begin(
        &self,
        tool: &str,
        project_root: &str,
        first: &CallKey,
    ) -> Result<HeldJob, JobError> {
        self.state.create_jobs()?;
        self.sweep();
        let random = || {
            getrandom::u64().map_err(|error| self.io_error(&self.folder, io::Error::other(error)))
        };
        let id = format!("{:016x}{:016x}", random()?, random()?);
        let path = self.path(&id, "lock");
        let fail = |source| self.io_error(&path, source);
        let lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(fail)?;
        lock.try_lock()
            .map_err(|error| self.io_error(&path, io::Error::other(error)))?;
        let now = Timestamp::now().to_string();
        let record = JobRecord {
            id,
            tool: tool.to_owned(),
            project_root: project_root.to_owned(),
            session_id: first.session_id.clone(),
            call: first.call.clone(),
            began: now.clone(),
            changed: now,
            state: JobState::Working,
            cause: String::new(),
            message: String::new(),
            result: Value::Null,
        };
        self.write(&record)?;
        Ok(HeldJob {
            store: self.clone(),
            record,
            _lock: lock,
        })
    }

    /// Finds a job that has not expired. A job whose server died has failed.
    pub fn find(&self, id: &str) -> Option<JobRecord> {
        // The id comes from outside and becomes a path.
        let is_name =
            !id.is_empty() && id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric());
        let record = self.read(is_name.then_some(id)?)?;
        if is_expired(&record) {
            return None;
        }
        if record.state == JobState::Working {
            self.finish_if_abandoned(record)
        } else {
            Some(record)
        }
    }

    /// All jobs, newest first.
    pub fn list(&self) -> Vec<JobRecord> {
        let mut jobs: Vec<JobRecord> = self.ids().iter().filter_map(|id| self.find(id)).collect();
        jobs.sort_by(|a, b| (&b.began, &b.id).cmp(&(&a.began, &a.id)));
        jobs
    }

    /// Requests the cancellation of a working job. Returns false if there is no such job.
    pub fn request_cancel(&self, id: &str) -> Result<bool, JobError> {
        if self
            .find(id)
            .is_none_or(|job| job.state != JobState::Working)
        {
            return Ok(false);
        }
        let path = self.path(id, "stop");
        let made = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        made.map_err(|source| self.io_error(&path, source))?;
        Ok(true)
    }

    /// Checks whether a process still holds a working job. If not, writes its final state.
    fn finish_if_abandoned(&self, record: JobRecord) -> Option<JobRecord> {
        let lock = match open(&self.path(&record.id, "lock")) {
            Ok(lock) => Some(lock),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => return Some(record),
        };
        if lock.as_ref().is_some_and(|lock| lock.try_lock().is_err()) {
            return Some(record);
        }
        // We hold the lock now. Its worker may have written the final state just before releasing
        // it.
        let now = self.read(&record.id)?;
        if now.state != JobState::Working {
            return Some(now);
        }
        let ended = crashed_job::final_record(&self.state, now);
        if let Err(error) = self.write(&ended) {
            tracing::warn!("{error}");
        }
        Some(ended)
    }

    fn read(&self, id: &str) -> Option<JobRecord> {
        let file = open(&self.path(id, "json")).ok()?;
        let record: JobRecord =
            serde_json::from_reader(io::BufReader::new(file.take(MAX_RECORD_BYTES))).ok()?;
        (record.id == id).then_some(record)
    }

    /// Writes atomically: readers never see a partial record.
    fn write(&self, record: &JobRecord) -> Result<(), JobError> {
        let path = self.path(&record.id, "json");
        let write = || -> io::Result<()> {
            let mut file = tempfile::Builder::new()
                .prefix(".job")
                .tempfile_in(&self.folder)?;
            file.write_all(&serde_json::to_vec(record).map_err(io::Error::other)?)?;
            file.as_file().sync_data()?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(|source| self.io_error(&path, source))
    }

    /// Removes expired jobs.
    fn sweep(&self) {
        self.sweep_strays();
        for id in self.ids() {
            let record = self.read(&id);
            let finished = record
                .filter(|record| record.state == JobState::Working)
                .and_then(|record| self.finish_if_abandoned(record));
            if finished
                .or_else(|| self.read(&id))
                .is_some_and(|record| is_expired(&record))
            {
                for ending in ["json", "lock", "stop"] {
                    let _ = fs::remove_file(self.path(&id, ending));
                }
            }
        }
    }

    /// Removes files left by a server that died while creating a job. A recent file may belong to a
    /// job that is just beginning.
    fn sweep_strays(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let age = entry
                .metadata()
                .and_then(|meta| meta.modified())
                .ok()
                .and_then(|time| time.elapsed().ok());
            if age.is_some_and(|age| age > STRAY_AFTER) && !path.with_extension("json").exists() {
                let _ = fs::remove_file(path);
            }
        }
    }

    fn ids(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
            .collect()
    }

    fn path(&self, id: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{id}.{ending}"))
    }

    fn io_error(&self, path: &Path, source: io::Error) -> JobError {
        JobError::Io {
            path: path.to_owned(),
            source,
        }
    }
}

impl HeldJob {
    pub fn record(&self) -> &JobRecord {
        &self.record
    }

    /// Whether its cancellation was requested.
    pub fn is_cancel_requested(&self) -> bool {
        self.store.path(&self.record.id, "stop").exists()
    }

    /// Writes the final state, then releases the lock.
    pub fn end(
        self,
        state: JobState,
        cause: &str,
        message: &str,
        result: Value,
    ) -> Result<(), JobError> {
        let ended = JobRecord {
            state,
            cause: cause.to_owned(),
            message: message.to_owned(),
            result,
            changed: Timestamp::now().to_string(),
            ..self.record.clone()
        };
        self.store.write(&ended)?;
        let _ = fs::remove_file(self.store.path(&self.record.id, "stop"));
        Ok(())
    }
}

fn is_expired(record: &JobRecord) -> bool {
    let changed: Option<Timestamp> = record.changed.parse().ok();
    record.state != JobState::Working
        && changed.is_none_or(|changed| {
            Timestamp::now().duration_since(changed).unsigned_abs() > KEPT_FOR
        })
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn store() -> (tempfile::TempDir, JobStore) {
        let dir = tempfile::tempdir().expect("temp dir");
        let store = JobStore::new(&StateDir::at(dir.path().join("state")).expect("absolute"));
        (dir, store)
    }

    #[test]
    fn results_are_kept_until_they_expire() {
        let (_dir, store) = store();
        assert!(store.list().is_empty());
        let job = store
            .begin("review", "/p", &CallKey::default())
            .expect("begun");
        let id = job.record().id.clone();
        assert_eq!(
            store.find(&id).map(|job| job.state),
            Some(JobState::Working),
            "it is held"
        );
        assert!(
            !job.is_cancel_requested()
                && store.request_cancel(&id).expect("asked")
                && job.is_cancel_requested()
        );
        job.end(JobState::Completed, "", "done", json!({"status": "pass"}))
            .expect("written");
        for _ in 0..2 {
            let found = store.find(&id).expect("kept");
            assert_eq!(
                (found.state, found.result["status"].as_str()),
                (JobState::Completed, Some("pass"))
            );
        }
        assert!(!store.request_cancel(&id).expect("asked"), "it is over");
        let old = JobRecord {
            changed: "2020-01-01T00:00:00Z".into(),
            ..store.find(&id).expect("kept")
        };
        store.write(&old).expect("written");
        assert_eq!(store.find(&id), None);
        store
            .begin("review", "/p", &CallKey::default())
            .expect("begun")
            .end(JobState::Cancelled, "", "", Value::Null)
            .expect("written");
        assert_eq!(store.list().len(), 1);
        assert!(!store.path(&id, "json").exists() && !store.path(&id, "lock").exists());
    }

    #[test]
    fn abandoned_job_has_crashed() {
        let (_dir, store) = store();
        let job = store
            .begin("debug", "/p", &CallKey::default())
            .expect("begun");
        let id = job.record().id.clone();
        drop(job);
        let found: Vec<_> = (0..3).filter_map(|_| store.find(&id)).collect();
        assert!(
            found.iter().all(|job| *job == found[0]),
            "one end for every reader: {found:?}"
        );
        assert_eq!(
            (found[0].state, found[0].cause.as_str()),
            (JobState::Failed, "crashed")
        );
    }

    #[test]
    fn old_stray_files_are_removed() {
        let (_dir, store) = store();
        let held = store
            .begin("review", "/p", &CallKey::default())
            .expect("begun");
        let (old, young) = (
            store.folder.join("dead.lock"),
            store.folder.join("young.lock"),
        );
        for path in [&old, &young, &store.folder.join(".jobXyZ")] {
            File::create(path).expect("made");
        }
        let long_ago = std::time::SystemTime::now() - 2 * STRAY_AFTER;
        for path in [
            &old,
            &store.folder.join(".jobXyZ"),
            &store.path(&held.record().id, "lock"),
        ] {
            File::options()
                .write(true)
                .open(path)
                .and_then(|file| file.set_modified(long_ago))
                .expect("aged");
        }
        store
            .begin("review", "/p", &CallKey::default())
            .expect("begun");
        assert!(!old.exists() && !store.folder.join(".jobXyZ").exists() && young.exists());
        assert_eq!(
            store.find(&held.record().id).map(|job| job.state),
            Some(JobState::Working),
            "its lock is kept"
        );
    }

    #[test]
    fn job_ids_are_never_paths() {
        let (_dir, store) = store();
        for id in ["", "../x", "a/b", "a.b", "ä", &"x".repeat(65)] {
            assert_eq!(store.find(id), None, "{id}");
        }
    }
}
