//! The recorded tasks: a directory each, with a description, the files before the change and the tests.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use supervisor_workspace::state::StateDir;

use crate::run::Replayed;

/// Days after which a task is removed.
pub const KEPT_DAYS: i64 = 14;
const FOLDER: &str = "shadow";
const SETTINGS_FILE: &str = "on.json";
/// Written by `shadow off`, so that the plugin does not switch it on again.
const OFF_FILE: &str = "off";
/// The plugin's option, as its hooks pass it on.
const VARIABLE: &str = "SUPERVISOR_SHADOW";
/// State and logs of the replays.
const CALLS: &str = "calls";
/// Copies that are worked on by a run.
const COPIES: &str = "copies";
const LOCK_FILE: &str = "run.lock";
const TASK_FILE: &str = "task.json";
const TREE: &str = "tree";

/// Where the tasks are.
#[derive(Debug, Clone)]
pub struct ShadowStore {
    dir: PathBuf,
}

/// What `shadow on` was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShadowSettings {
    pub since: Timestamp,
    /// A model to ask in the place of the local tiers of the chain. Only this one may be outside of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Most that one run may spend, and take.
    pub budget_usd: f64,
    pub minutes: f64,
    /// Switched on by the plugin's option, and so switched off by it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_plugin: bool,
}

impl Default for ShadowSettings {
    fn default() -> Self {
        Self {
            since: Timestamp::now(),
            model: None,
            budget_usd: 1.0,
            minutes: 120.0,
            by_plugin: false,
        }
    }
}

/// The run that holds the store's lock. Copies are removed when it ends, and after a kill when the next one begins.
#[derive(Debug)]
pub(crate) struct RunLock {
    lock: fs::File,
    copies: PathBuf,
}

impl Drop for RunLock {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.copies);
        // A child that is just being started still has the file open.
        let _ = self.lock.unlock();
    }
}

/// One change that the host made and `prove` found proven.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShadowTask {
    pub id: String,
    pub recorded_at: Timestamp,
    pub project_root: PathBuf,
    pub language: String,
    /// Lines of code, without tests, that the change added or removed.
    pub lines: usize,
    /// What was asked for; redacted.
    #[serde(default)]
    pub description: String,
    /// The file of the tests that fail without the change.
    pub test_path: String,
    pub tests: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_cmd: Option<String>,
    /// What the host used for it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostUsage>,
    /// What came of the replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
}

/// Tokens of the host's transcript.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HostUsage {
    pub tokens_in: u64,
    pub tokens_out: u64,
    /// From the cache, and therefore cheaper.
    pub tokens_cached: u64,
    /// Only if the transcript names it, or the prices of all its models are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl ShadowStore {
    pub fn of(state: &StateDir) -> Self {
        Self::at(state.path().join(FOLDER))
    }

    pub fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// `None` while shadow mode is off.
    pub fn settings(&self) -> Option<ShadowSettings> {
        let written = fs::read(self.dir.join(SETTINGS_FILE)).ok()?;
        serde_json::from_slice(&written).ok()
    }

    pub fn switch_on(&self, settings: &ShadowSettings) -> io::Result<()> {
        create_private(&self.dir)?;
        fs::write(
            self.dir.join(SETTINGS_FILE),
            serde_json::to_vec_pretty(settings)?,
        )?;
        remove_if_there(&self.dir.join(OFF_FILE))
    }

    /// Recorded tasks stay until they are purged or too old.
    pub fn switch_off(&self) -> io::Result<()> {
        create_private(&self.dir)?;
        fs::write(self.dir.join(OFF_FILE), "")?;
        remove_if_there(&self.dir.join(SETTINGS_FILE))
    }

    /// Follows the plugin's option, which only its hooks know. `shadow on` and `shadow off` have the last word.
    pub fn follow_plugin(&self) -> io::Result<()> {
        let wanted = std::env::var_os(VARIABLE).map(|value| value == "1" || value == "true");
        match (wanted, self.settings()) {
            (Some(true), None) if !self.dir.join(OFF_FILE).exists() => {
                self.switch_on(&ShadowSettings {
                    by_plugin: true,
                    ..ShadowSettings::default()
                })
            }
            (Some(false), Some(settings)) if settings.by_plugin => {
                remove_if_there(&self.dir.join(SETTINGS_FILE))
            }
            _ => Ok(()),
        }
    }

    /// State and logs of the replays.
    pub fn calls(&self) -> PathBuf {
        self.dir.join(CALLS)
    }

    /// The directory in which a run works on a copy of this task.
    pub fn copy(&self, task: &ShadowTask) -> PathBuf {
        let dir = self.dir.canonicalize();
        dir.unwrap_or_else(|_| self.dir.clone())
            .join(COPIES)
            .join(&task.id)
    }

    /// `None` while another run goes on. Removes what a killed run left.
    pub(crate) fn lock(&self) -> io::Result<Option<RunLock>> {
        create_private(&self.dir)?;
        let lock = fs::File::create(self.dir.join(LOCK_FILE))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        let copies = self.dir.join(COPIES);
        match fs::remove_dir_all(&copies) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        create_private(&copies)?;
        Ok(Some(RunLock { lock, copies }))
    }

    /// All tasks, oldest first. What cannot be read is left out.
    pub fn tasks(&self) -> Vec<ShadowTask> {
        let mut tasks: Vec<ShadowTask> = fs::read_dir(&self.dir)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| fs::read(entry.path().join(TASK_FILE)).ok())
            .filter_map(|bytes| serde_json::from_slice(&bytes).ok())
            .collect();
        tasks.sort_by(|a, b| (a.recorded_at, &a.id).cmp(&(b.recorded_at, &b.id)));
        tasks
    }

    /// Removes tasks and logs of replays older than [`KEPT_DAYS`], and returns how many tasks that were.
    pub fn expire(&self, now: Timestamp) -> io::Result<usize> {
        let oldest = now - SignedDuration::from_hours(24 * KEPT_DAYS);
        let old = self
            .tasks()
            .into_iter()
            .filter(|task| task.recorded_at < oldest);
        let mut removed = 0;
        for task in old {
            fs::remove_dir_all(self.dir.join(&task.id))?;
            removed += 1;
        }
        remove_older(&self.calls(), oldest.into())?;
        Ok(removed)
    }

    /// Removes all tasks and the logs of their replays, and returns how many tasks that were.
    pub fn purge(&self) -> io::Result<usize> {
        let mut removed = 0;
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            if entry.file_type()?.is_dir() {
                removed += usize::from(entry.path().join(TASK_FILE).is_file());
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(removed)
    }

    /// Adds a task whose files `write` puts into the given directory. A task that cannot be written whole is not added.
    pub(crate) fn add(
        &self,
        task: &ShadowTask,
        write: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<()> {
        create_private(&self.dir)?;
        let dir = self.dir.join(&task.id);
        if dir.exists() {
            return Ok(());
        }
        let temp = tempfile::Builder::new()
            .prefix(".new-")
            .tempdir_in(&self.dir)?;
        create_private(&temp.path().join(TREE))?;
        write(&temp.path().join(TREE))?;
        fs::write(
            temp.path().join(TASK_FILE),
            serde_json::to_vec_pretty(task)?,
        )?;
        fs::rename(temp.path(), dir)?;
        // It is not there any more.
        let _ = temp.keep();
        Ok(())
    }

    /// Replaces what is stored about a task.
    pub(crate) fn update(&self, task: &ShadowTask) -> io::Result<()> {
        let dir = self.dir.join(&task.id);
        let mut file = tempfile::NamedTempFile::new_in(&dir)?;
        io::Write::write_all(&mut file, &serde_json::to_vec_pretty(task)?)?;
        file.persist(dir.join(TASK_FILE))?;
        Ok(())
    }

    /// The files before the change, with the tests of the change.
    pub(crate) fn tree(&self, task: &ShadowTask) -> PathBuf {
        self.dir.join(&task.id).join(TREE)
    }
}

fn remove_if_there(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the files below a directory that were last written before this time.
fn remove_older(dir: &Path, oldest: SystemTime) -> io::Result<()> {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let meta = entry.metadata()?;
        if meta.is_dir() {
            remove_older(&entry.path(), oldest)?;
        } else if meta.modified()? < oldest {
            remove_if_there(&entry.path())?;
        }
    }
    Ok(())
}

fn create_private(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
}

/// Copies a directory of plain files.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
