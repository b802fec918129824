//! The recorded tasks: a directory each, with a description, the files before the change and the tests.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use supervisor_workspace::state::StateDir;

use crate::run::Replayed;

/// Days after which a task is removed.
pub const KEPT_DAYS: i64 = 14;
const FOLDER: &str = "shadow";
const SETTINGS_FILE: &str = "on.json";
const VARIABLE: &str = "SUPERVISOR_SHADOW";
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
}

impl Default for ShadowSettings {
    fn default() -> Self {
        Self {
            since: Timestamp::now(),
            model: None,
            budget_usd: 1.0,
            minutes: 120.0,
        }
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
    /// Only if the transcript names it.
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

    /// `None` while shadow mode is off. The plugin switches it on by a variable.
    pub fn settings(&self) -> Option<ShadowSettings> {
        let written = fs::read(self.dir.join(SETTINGS_FILE)).ok();
        let by_plugin =
            || std::env::var_os(VARIABLE).is_some_and(|value| value == "1" || value == "true");
        written
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .or_else(|| by_plugin().then(ShadowSettings::default))
    }

    pub fn switch_on(&self, settings: &ShadowSettings) -> io::Result<()> {
        create_private(&self.dir)?;
        fs::write(
            self.dir.join(SETTINGS_FILE),
            serde_json::to_vec_pretty(settings)?,
        )
    }

    /// Recorded tasks stay until they are purged or too old.
    pub fn switch_off(&self) -> io::Result<()> {
        match fs::remove_file(self.dir.join(SETTINGS_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
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

    /// Removes what is older than [`KEPT_DAYS`], and returns how many that were.
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
