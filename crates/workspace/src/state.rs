//! Where our own files live: the platform's state directory, private to the user, never in the project.
//! Knows paths and permissions. Does not know what is written there.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

/// Overrides the platform's directory.
pub const STATE_DIR_VAR: &str = "SUPERVISOR_STATE_DIR";

/// The directory that holds snapshots, journals, rejected files and session logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDir(PathBuf);

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
    /// Finds the directory without touching it: the variable, else the platform's place for state.
    pub fn locate() -> Result<Self, StateError> {
        match std::env::var_os(STATE_DIR_VAR).filter(|v| !v.is_empty()) {
            Some(path) => Self::at(PathBuf::from(path)),
            None => {
                let base = etcetera::choose_base_strategy().map_err(|_| StateError::NoHome)?;
                // macOS has no state directory of its own; data is the nearest.
                let path = base.state_dir().unwrap_or_else(|| base.data_dir());
                // With a relative HOME it would lie below the current directory, which is the project.
                if path.is_absolute() {
                    Ok(Self(path.join("supervisor")))
                } else {
                    Err(StateError::NoHome)
                }
            }
        }
    }

    /// A directory named by the caller.
    pub fn at(path: PathBuf) -> Result<Self, StateError> {
        if path.is_absolute() {
            Ok(Self(path))
        } else {
            Err(StateError::Relative(path))
        }
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A directory below this one, made private (0700) together with its parents where missing.
    pub fn sub(&self, name: &str) -> Result<PathBuf, StateError> {
        self.ensure(&self.0)?;
        let path = self.0.join(name);
        self.ensure(&path)?;
        Ok(path)
    }

    /// The directory itself, made if it was missing, after a file has really been written there.
    pub fn writable(&self) -> Result<&Path, StateError> {
        self.ensure(&self.0)?;
        tempfile::tempfile_in(&self.0).map_err(|source| StateError::Unusable {
            path: self.0.clone(),
            source,
        })?;
        Ok(&self.0)
    }

    fn ensure(&self, path: &Path) -> Result<(), StateError> {
        let unusable = |source| StateError::Unusable {
            path: path.to_owned(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(unusable)?;
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

/// What a name and everything below it takes on disk. Links are not followed; what cannot be read counts as nothing. A
/// file with several names counts for each of them with its share, so that the parts add up to the whole.
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
    fn what_we_make_is_private_even_if_it_was_open_before() {
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
    fn a_relative_directory_is_refused_by_name() {
        let error = StateDir::at("here".into()).expect_err("relative");
        assert!(
            error.to_string().contains("SUPERVISOR_STATE_DIR"),
            "{error}"
        );
    }
}
