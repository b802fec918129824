//! Locates the directory for our own files: the platform's state directory, private to the user,
//! never inside the project.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

/// Overrides the platform's state directory.
pub const STATE_DIR_VAR: &str = "SUPERVISOR_STATE_DIR";

/// What belongs to one caller of a server with several, by the caller's name.
const CALLERS: &str = "callers";

/// The directory that holds snapshots, journals, rejected files and session logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDir {
    path: PathBuf,
    /// The session logs, if they are elsewhere.
    sessions: Option<PathBuf>,
    /// Whose calls these are, if the server has several callers.
    caller: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(
        "no home directory is known, so there is no place for the state directory; set ${STATE_DIR_VAR}"
    )]
    NoHome,
    #[error("${STATE_DIR_VAR} is `{0}`, which is not an absolute path")]
    Relative(PathBuf),
    #[error(
        "the state directory `{path}` cannot be used: {source}; set ${STATE_DIR_VAR} to one that can be written"
    )]
    Unusable { path: PathBuf, source: io::Error },
    #[error(
        "the state directory `{0}` belongs to another user; set ${STATE_DIR_VAR} to one of your own"
    )]
    NotOurs(PathBuf),
}

impl StateDir {
    /// Finds the directory without creating it: the variable if set, otherwise the platform's state
    /// directory.
    pub fn locate() -> Result<Self, StateError> {
        match std::env::var_os(STATE_DIR_VAR).filter(|v| !v.is_empty()) {
            Some(path) => Self::at(PathBuf::from(path)),
            None => {
                let base = etcetera::choose_base_strategy().map_err(|_| StateError::NoHome)?;
                // macOS has no state directory; the data directory is the closest.
                let path = base.state_dir().unwrap_or_else(|| base.data_dir());
                // With a relative HOME it would be below the current directory, which is the
                // project.
                if path.is_absolute() {
                    Self::at(path.join("supervisor"))
                } else {
                    Err(StateError::NoHome)
                }
            }
        }
    }

    /// Uses a directory given by the caller.
    pub fn at(path: PathBuf) -> Result<Self, StateError> {
        if path.is_absolute() {
            Ok(Self {
                path,
                sessions: None,
                caller: None,
            })
        } else {
            Err(StateError::Relative(path))
        }
    }

    /// Keeps the session logs in this directory of the user, if there is one.
    #[must_use]
    pub fn with_sessions(self, sessions: Option<PathBuf>) -> Self {
        Self { sessions, ..self }
    }

    /// Keeps the session logs and the jobs of this caller in a folder of its own. `name` is a file name.
    #[must_use]
    pub fn for_caller(self, name: &str) -> Self {
        let own = self.path.join(CALLERS).join(name);
        Self {
            sessions: Some(own.join("sessions")),
            caller: Some(name.to_owned()),
            ..self
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of the jobs, whether or not it exists.
    pub fn jobs(&self) -> PathBuf {
        match &self.caller {
            None => self.path.join("jobs"),
            Some(name) => self.path.join(CALLERS).join(name).join("jobs"),
        }
    }

    /// Creates the directory of the jobs where it is missing.
    pub fn create_jobs(&self) -> Result<PathBuf, StateError> {
        self.ensure(&self.path)?;
        let path = self.jobs();
        self.ensure(&path)?;
        Ok(path)
    }

    /// The directory of the session logs, whether or not it exists.
    pub fn sessions(&self) -> PathBuf {
        self.sessions
            .clone()
            .unwrap_or_else(|| self.path.join("sessions"))
    }

    /// Creates the directory of the session logs where it is missing. The mode of one that the user
    /// chose is left alone.
    pub fn create_sessions(&self) -> Result<PathBuf, StateError> {
        match &self.sessions {
            None => self.sub("sessions"),
            Some(path) => create_private(path).map(|()| path.clone()),
        }
    }

    /// Returns a subdirectory. Creates it and its parents, with mode 0700, where missing.
    pub fn sub(&self, name: &str) -> Result<PathBuf, StateError> {
        self.ensure(&self.path)?;
        let path = self.path.join(name);
        self.ensure(&path)?;
        Ok(path)
    }

    /// Returns the directory after creating it if necessary and testing that a file can be written
    /// there.
    pub fn writable(&self) -> Result<&Path, StateError> {
        self.ensure(&self.path)?;
        tempfile::tempfile_in(&self.path).map_err(|source| StateError::Unusable {
            path: self.path.clone(),
            source,
        })?;
        Ok(&self.path)
    }

    fn ensure(&self, path: &Path) -> Result<(), StateError> {
        let unusable = |source| StateError::Unusable {
            path: path.to_owned(),
            source,
        };
        create_private(path)?;
        let meta = std::fs::metadata(path).map_err(unusable)?;
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(StateError::NotOurs(path.to_owned()));
        }
        if meta.permissions().mode() & 0o077 != 0 {
            std::fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(unusable)?;
        }
        Ok(())
    }
}

fn create_private(path: &Path) -> Result<(), StateError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| StateError::Unusable {
            path: path.to_owned(),
            source,
        })
}

/// Returns the disk usage of a path and everything below it. Does not follow links, and counts
/// unreadable entries as zero. A file with several hard links counts with its share for each of
/// them, so that the parts add up to the whole.
pub fn allocated_bytes(path: &Path) -> u64 {
    let Ok(meta) = std::fs::symlink_metadata(path) else {
        return 0;
    };
    let own = meta.blocks() * 512;
    if !meta.is_dir() {
        return own / meta.nlink().max(1);
    }
    let below = std::fs::read_dir(path).into_iter().flatten().flatten();
    below
        .map(|entry| allocated_bytes(&entry.path()))
        .sum::<u64>()
        + own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_directories_are_made_private() {
        let dir = tempfile::tempdir().expect("temp dir");
        std::fs::create_dir(dir.path().join("s")).expect("mkdir");
        std::fs::set_permissions(dir.path().join("s"), Permissions::from_mode(0o755))
            .expect("chmod");
        let state = StateDir::at(dir.path().join("s")).expect("absolute");
        let sub = state.sub("sessions").expect("made");
        for path in [state.path(), &sub] {
            let mode = std::fs::metadata(path).expect("stat").permissions().mode() & 0o777;
            assert_eq!(mode, 0o700, "{}", path.display());
        }
    }

    #[test]
    fn relative_state_directory_is_refused() {
        let error = StateDir::at("here".into()).expect_err("relative");
        assert!(
            error.to_string().contains("SUPERVISOR_STATE_DIR"),
            "{error}"
        );
    }
}
