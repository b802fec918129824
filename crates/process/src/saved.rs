//! What a program wrote to a layer and has to outlive it, such as a login that was renewed meanwhile: an old one may be
//! worth nothing by then. Done by the shim, so that it happens also when the server was killed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::sandbox::WalledLayer;

/// No login is larger.
const MOST_BYTES: u64 = 1 << 20;

/// Files as they were when the program began.
pub(super) struct SavedFiles {
    /// In the layer, in the directory itself, and what stood there.
    files: Vec<(PathBuf, PathBuf, Option<Vec<u8>>)>,
}

impl SavedFiles {
    pub(super) fn remember(layer: &WalledLayer) -> Self {
        let remember = |name: &String| {
            let real = Path::new(&layer.dir).join(name);
            let before = read(&real).ok();
            (Path::new(&layer.upper).join(name), real, before)
        };
        Self {
            files: layer.saved.iter().map(remember).collect(),
        }
    }

    /// Writes what is new. A file that another process has changed meanwhile is newer than ours, and stays; so does one
    /// for which the program left no JSON object.
    pub(super) fn save(&self) {
        for (layer, real, before) in &self.files {
            let Ok(new) = read(layer) else { continue };
            let is_object =
                serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&new).is_ok();
            if is_object && Some(&new) != before.as_ref() && read(real).ok() == *before {
                let _ = replace(real, &new);
            }
        }
    }
}

/// A regular file, not through a link.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > MOST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// In one step: half a login is never visible.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension(format!("supervisor-{}", std::process::id()));
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        let _ = std::fs::remove_file(beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_file_is_saved_unless_it_was_renewed_outside_too() {
        let dir = tempfile::tempdir().expect("made");
        let at = |name: &str| dir.path().join(name);
        for place in ["real", "upper"] {
            std::fs::create_dir(at(place)).expect("made");
        }
        std::fs::write(at("real/login"), "{}").expect("written");
        let layer = WalledLayer {
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
        assert_eq!(login(), "{}", "no login");
        std::fs::write(at("upper/login"), "{\"token\": 2}").expect("written");
        files.save();
        assert_eq!(login(), "{\"token\": 2}");
        std::fs::write(at("upper/login"), "{\"token\": 3}").expect("written");
        files.save();
        assert_eq!(login(), "{\"token\": 2}", "not as it was in the beginning");
    }
}
