//! The directories behind an overlay: what was written, and the kernel's work directory.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::super::ignore_rules::is_built;
use super::super::rejected_files::remove_all;
use super::super::root::{Node, Root, split};
use super::super::store::make_private;
use supervisor_process::OverlayLayers;

/// Build output is discarded if more files than this were edited.
const MAX_TRACKED_FILES: usize = 2_000;

/// More written paths are not looked at.
const MAX_PATHS: usize = 20_000;

#[derive(Debug)]
pub(super) struct WriteLayer {
    dir: PathBuf,
}

/// The directory that holds what was written through an overlay.
#[derive(Debug)]
pub(in super::super) struct UpperLayer(PathBuf);

impl UpperLayer {
    /// Returns true if this path was written through the overlay, or one of its parents was removed
    /// or replaced.
    pub(in super::super) fn contains(&self, path: &[u8]) -> bool {
        let Ok(upper) = Root::open(&self.0) else {
            return false;
        };
        if path.is_empty() {
            return false;
        }
        let mut at = path;
        loop {
            match upper.meta(at) {
                Ok(Some(_)) if at.len() == path.len() => return true,
                Ok(Some(meta)) => return meta.node != Node::Dir || self.is_opaque(at),
                _ if split(at).0.is_empty() => return false,
                _ => at = split(at).0,
            }
        }
    }

    /// Everything that was written, without directories and what is built in them.
    pub(super) fn paths(&self) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let Ok(upper) = Root::open(&self.0) else {
            return found;
        };
        let mut dirs: Vec<Vec<u8>> = vec![Vec::new()];
        while let Some(dir) = dirs.pop() {
            for name in upper.names(&dir).unwrap_or_default() {
                let mut path = dir.clone();
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend(&name);
                match upper.meta(&path) {
                    Ok(Some(meta)) if meta.node != Node::Dir => found.push(path),
                    Ok(Some(_)) if !is_built(&name, false, |_| true, |_| true) => dirs.push(path),
                    _ => {}
                }
                if found.len() > MAX_PATHS {
                    return found;
                }
            }
        }
        found
    }

    /// An opaque directory hides the one below it in the project.
    fn is_opaque(&self, path: &[u8]) -> bool {
        let full_path = self.0.join(std::ffi::OsStr::from_bytes(path));
        let mut value = [0; 8];
        let read = rustix::fs::lgetxattr(&full_path, "user.overlay.opaque", &mut value[..]);
        read.is_ok_and(|length| length > 0 && value[0] == b'y')
    }
}

impl WriteLayer {
    /// Creates an empty layer.
    pub(super) fn empty(dir: PathBuf) -> io::Result<Self> {
        let layer = Self { dir };
        layer.remove_all()?;
        layer.create()
    }

    /// Creates a layer that keeps build directories of earlier calls which the project itself does
    /// not have, so that old and new files cannot be mixed.
    pub(super) fn with_build_output(dir: PathBuf, root: &Path) -> io::Result<Self> {
        let layer = Self { dir };
        if layer.open_marker().exists() {
            // The last call was killed or dropped, so it is unknown what was built from what.
            layer.remove_all()?;
        } else {
            layer.keep_build_output(root, &mut std::iter::empty());
        }
        remove(&layer.dir, b"work")?;
        let layer = layer.create()?;
        std::fs::write(layer.open_marker(), "")?;
        Ok(layer)
    }

    fn create(self) -> io::Result<Self> {
        make_private(&self.upper())?;
        make_private(&self.work())?;
        Ok(self)
    }

    pub(super) fn upper_layer(&self) -> UpperLayer {
        UpperLayer(self.upper())
    }

    pub(super) fn overlay_layers(&self, lower: &Path) -> OverlayLayers {
        if let Ok(meta) = std::fs::metadata(lower) {
            let _ = std::fs::set_permissions(self.upper(), meta.permissions());
        }
        OverlayLayers {
            lower: lower.to_owned(),
            between: None,
            upper: self.upper(),
            work: self.work(),
        }
    }

    /// Removes everything except build directories that the project itself does not have. They were
    /// built from files that may be newer than the project's, so a later build must see the files
    /// in `written` as newer still.
    pub(super) fn keep_build_output(&self, root: &Path, written: &mut dyn Iterator<Item = &[u8]>) {
        let Ok(upper) = Root::open(&self.upper()) else {
            return;
        };
        let mut keeps_any = false;
        for name in upper.names(b"").unwrap_or_default() {
            let path = std::ffi::OsStr::from_bytes(&name);
            let beside = |file: &str| root.join(file).exists();
            let inside = |file: &str| self.upper().join(path).join(file).exists();
            // Python compares only size and whole seconds, so its bytecode could belong to older
            // code.
            let keep = name != b"__pycache__"
                && upper
                    .meta(&name)
                    .ok()
                    .flatten()
                    .is_some_and(|meta| meta.node == Node::Dir)
                && is_built(&name, false, beside, inside)
                && root.join(path).symlink_metadata().is_err();
            keeps_any |= keep;
            if !keep && let Err(error) = remove_all(&upper, &name) {
                tracing::debug!(
                    "`{}` could not be removed: {error}",
                    self.upper().join(path).display()
                );
            }
        }
        let mut all: BTreeSet<Vec<u8>> = self.built_from().into_iter().collect();
        all.extend(written.map(<[u8]>::to_vec));
        // Not worth tracking for a build from this many files.
        if !keeps_any || all.len() > MAX_TRACKED_FILES {
            let _ = self.remove_all();
            return;
        }
        // The kernel's work directory is useless without a mount, and its mode of 0 would prevent
        // removing the state directory.
        if let Err(error) = remove(&self.dir, b"work") {
            tracing::warn!("`{}` could not be removed: {error}", self.work().display());
        }
        let all: Vec<Vec<u8>> = all.into_iter().collect();
        let written = std::fs::write(self.built_from_path(), all.join(&0));
        if written.and_then(|()| self.close()).is_err() {
            let _ = self.remove_all();
        }
    }

    /// Returns files from which something in the kept build directories may have been built, in a
    /// version other than the project's.
    pub(super) fn built_from(&self) -> Vec<Vec<u8>> {
        let bytes = std::fs::read(self.built_from_path()).unwrap_or_default();
        bytes
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(<[u8]>::to_vec)
            .collect()
    }

    fn close(&self) -> io::Result<()> {
        match std::fs::remove_file(self.open_marker()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Exists while an overlay of this layer is in use.
    fn open_marker(&self) -> PathBuf {
        self.dir.join("open")
    }

    fn built_from_path(&self) -> PathBuf {
        self.dir.join("built-from")
    }

    pub(super) fn remove(self) {
        if let Err(error) = self.remove_all() {
            tracing::debug!("`{}` could not be removed: {error}", self.dir.display());
        }
    }

    fn remove_all(&self) -> io::Result<()> {
        let (Some(parent), Some(name)) = (self.dir.parent(), self.dir.file_name()) else {
            return Ok(());
        };
        remove(parent, name.as_bytes())
    }

    pub(super) fn upper(&self) -> PathBuf {
        self.dir.join("upper")
    }

    fn work(&self) -> PathBuf {
        self.dir.join("work")
    }
}

/// Removes a path even though the kernel leaves unreadable directories there.
fn remove(parent: &Path, name: &[u8]) -> io::Result<()> {
    match Root::open(parent) {
        Ok(parent) => remove_all(&parent, name),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
