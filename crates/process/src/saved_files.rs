//! Saves files that a program wrote to an overlay and that must outlive it, such as a renewed
//! login: the old one may be invalid by then. The shim does this, so it also happens when the
//! server was killed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::sandbox::LayerMount;

/// Larger files are not saved.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The files to save, with their content when the program started.
pub(super) struct SavedFiles {
    /// Path in the layer, path in the directory itself, and the original content.
    files: Vec<(PathBuf, PathBuf, Option<Vec<u8>>)>,
}

impl SavedFiles {
    pub(super) fn remember(layer: &LayerMount) -> Self {
        let remember = |name: &String| {
            let real = Path::new(&layer.dir).join(name);
            let original = read(&real).ok();
            (Path::new(&layer.upper).join(name), real, original)
        };
        Self {
            files: layer.saved.iter().map(remember).collect(),
        }
    }

    /// Saves changed files. A file that another process has changed meanwhile is newer than ours
    /// and stays, and so does one for which the program left something other than a JSON object.
    pub(super) fn save(&self) {
        for (layer, real, original) in &self.files {
            let Ok(new) = read(layer) else { continue };
            let is_object =
                serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&new).is_ok();
            if is_object && Some(&new) != original.as_ref() && read(real).ok() == *original {
                let _ = replace(real, &new);
            }
        }
    }
}

/// Reads a regular file without following links.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > MAX_FILE_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Replaces atomically: a partly written login is never visible.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(format!("supervisor-{}", std::process::id()));
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_changed_outside_is_not_overwritten() {
        let dir = tempfile::tempdir().expect("made");
        let at = |name: &str| dir.path().join(name);
        for place in ["real", "upper"] {
            std::fs::create_dir(at(place)).expect("made");
        }
        std::fs::write(at("real/login"), "{}").expect("written");
        let layer = LayerMount {
            dir: at("real").into(),
            upper: at("upper").into(),
            work: at("work").into(),
            saved: vec![String::from("login")],
        };
        let login = || std::fs::read_to_string(at("real/login")).expect("there");
        let files = SavedFiles::remember(&layer);
        files.save();
        assert_eq!(login(), "{}", "nothing was written");
        std::fs::write(at("upper/login"), "garbage").expect("written");
        files.save();
        assert_eq!(login(), "{}", "not a JSON object");
        std::fs::write(at("upper/login"), "{\"token\": 2}").expect("written");
        files.save();
        assert_eq!(login(), "{\"token\": 2}");
        std::fs::write(at("upper/login"), "{\"token\": 3}").expect("written");
        files.save();
        assert_eq!(
            login(),
            "{\"token\": 2}",
            "the file has changed since the start"
        );
    }
}
