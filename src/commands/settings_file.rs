//! The user's models.toml: locates, reads and atomically replaces it.

use crate::built_in;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use similar::TextDiff;

use supervisor_settings as routing;
use supervisor_settings::{RoutingError, Sources};

#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsFileError {
    #[error(
        "no config directory is known, so there is no place for models.toml; name a file with `--config FILE`"
    )]
    NoConfigDir,
    #[error(
        "`{path}` cannot be read: {why}; correct its permissions, or name another file with `--config FILE`"
    )]
    Unreadable { path: PathBuf, why: io::Error },
    #[error(
        "`{path}` cannot be written: {why}; make its directory writable, or name another file with `--config FILE`"
    )]
    Unwritable { path: PathBuf, why: io::Error },
}

pub(super) struct SettingsFile {
    path: PathBuf,
}

impl SettingsFile {
    /// Locates the file that the server will read.
    pub(super) fn locate(sources: &Sources) -> Result<Self, SettingsFileError> {
        let path = sources.user_path().ok_or(SettingsFileError::NoConfigDir)?;
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `None` if the file does not exist yet.
    pub(super) fn read(&self) -> Result<Option<String>, SettingsFileError> {
        match fs::read(&self.path) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(SettingsFileError::Unreadable {
                path: self.path.clone(),
                why,
            }),
        }
    }

    /// Checks that these settings can be loaded.
    pub(super) fn check(&self, text: &str) -> anyhow::Result<()> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(text.as_bytes())?;
        let sources = Sources {
            user_file: Some(file.path().to_owned()),
            ..Sources::built_in(built_in::MODELS_TOML)
        };
        routing::load(&sources)
            .map(drop)
            .map_err(|why: RoutingError| anyhow::anyhow!("{why}"))
    }

    /// Replaces the file atomically: a concurrent reader sees the old or the new settings. The old
    /// ones are kept as `.bak`.
    pub(super) fn write(&self, text: &str, before: Option<&str>) -> Result<(), SettingsFileError> {
        let unwritable = |why| SettingsFileError::Unwritable {
            path: self.path.clone(),
            why,
        };
        let dir = self
            .path
            .parent()
            .filter(|dir| !dir.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        fs::create_dir_all(dir).map_err(unwritable)?;
        if let Some(before) = before {
            let mut backup = self.path.clone().into_os_string();
            backup.push(".bak");
            fs::write(backup, before).map_err(unwritable)?;
        }
        let mut file = tempfile::NamedTempFile::new_in(dir).map_err(unwritable)?;
        file.write_all(text.as_bytes()).map_err(unwritable)?;
        file.as_file().sync_all().map_err(unwritable)?;
        file.persist(&self.path).map_err(|e| unwritable(e.error))?;
        Ok(())
    }
}

/// The change as a unified diff.
pub(super) fn diff(before: &str, after: &str, path: &str) -> String {
    let from = if before.is_empty() { "/dev/null" } else { path };
    TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header(from, path)
        .to_string()
}
