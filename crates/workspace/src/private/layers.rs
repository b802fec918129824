//! The directories behind a view: what was written lies in one, beside the kernel's own. Knows how an overlay writes down
//! what is gone. Does not know which of it matters.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::super::aside::remove_all;
use super::super::ignored::is_built;
use super::super::root::{Node, Root, split};
use super::super::store::make_private;
use supervisor_process::ViewLayers;

/// More files than these are not remembered as edited.
const MOST_REMEMBERED: usize = 2_000;

#[derive(Debug)]
pub(super) struct WriteLayer {
    dir: PathBuf,
}

/// The directory that holds what was written through a view.
#[derive(Debug)]
pub(in super::super) struct UpperLayer(PathBuf);

impl UpperLayer {
    /// Was this name written through the view, or one above it removed or replaced?
    pub(in super::super) fn holds(&self, path: &[u8]) -> bool {
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

    /// A directory that stands alone: what lies below it in the project is gone.
    fn is_opaque(&self, path: &[u8]) -> bool {
        let whole = self.0.join(std::ffi::OsStr::from_bytes(path));
        let mut value = [0; 8];
        let read = rustix::fs::lgetxattr(&whole, "user.overlay.opaque", &mut value[..]);
        read.is_ok_and(|length| length > 0 && value[0] == b'y')
    }
}

impl WriteLayer {
    /// An empty one.
    pub(super) fn fresh(dir: PathBuf) -> io::Result<Self> {
        let layer = Self { dir };
        layer.remove_all()?;
        layer.make()
    }

    /// One that keeps what build tools have made, where the project has nothing of its own at that place: then nothing
    /// old can be mixed with anything new.
    pub(super) fn kept(dir: PathBuf, root: &Path) -> io::Result<Self> {
        let layer = Self { dir };
        if layer.open_mark().exists() {
            // The last call was killed or dropped: it is unknown what was built from what.
            layer.remove_all()?;
        } else {
            layer.tidy(root, &mut std::iter::empty());
        }
        remove(&layer.dir, b"work")?;
        let layer = layer.make()?;
        std::fs::write(layer.open_mark(), "")?;
        Ok(layer)
    }

    fn make(self) -> io::Result<Self> {
        make_private(&self.upper())?;
        make_private(&self.work())?;
        // The layer's own mode is the one that the project's root is seen with.
        Ok(self)
    }

    pub(super) fn written(&self) -> UpperLayer {
        UpperLayer(self.upper())
    }

    pub(super) fn over(&self, lower: &Path) -> ViewLayers {
        if let Ok(meta) = std::fs::metadata(lower) {
            let _ = std::fs::set_permissions(self.upper(), meta.permissions());
        }
        ViewLayers {
            lower: lower.to_owned(),
            upper: self.upper(),
            work: self.work(),
        }
    }

    /// Throws away all but build directories that the project itself does not have. These were built from files that may
    /// have been younger than the project's own are: a build that uses them again must see `written` as younger still.
    pub(super) fn tidy(&self, root: &Path, written: &mut dyn Iterator<Item = &[u8]>) {
        let Ok(upper) = Root::open(&self.upper()) else {
            return;
        };
        let mut is_kept = false;
        for name in upper.names(b"").unwrap_or_default() {
            let path = std::ffi::OsStr::from_bytes(&name);
            let beside = |file: &str| root.join(file).exists();
            let inside = |file: &str| self.upper().join(path).join(file).exists();
            // Python believes a file's size and whole second, so its bytecode could be older code's.
            let kept = name != b"__pycache__"
                && upper
                    .meta(&name)
                    .ok()
                    .flatten()
                    .is_some_and(|meta| meta.node == Node::Dir)
                && is_built(&name, false, beside, inside)
                && root.join(path).symlink_metadata().is_err();
            is_kept |= kept;
            if !kept && let Err(error) = remove_all(&upper, &name) {
                tracing::debug!(
                    "`{}` could not be removed: {error}",
                    self.upper().join(path).display()
                );
            }
        }
        let mut all: BTreeSet<Vec<u8>> = self.built_from().into_iter().collect();
        all.extend(written.map(<[u8]>::to_vec));
        // A build that so much has gone into is not worth remembering all of it.
        if !is_kept || all.len() > MOST_REMEMBERED {
            let _ = self.remove_all();
            return;
        }
        // The kernel's own directory is of no use without a view, and it could not be removed with the state: its mode is 0.
        if let Err(error) = remove(&self.dir, b"work") {
            tracing::warn!("`{}` could not be removed: {error}", self.work().display());
        }
        let all: Vec<Vec<u8>> = all.into_iter().collect();
        let written = std::fs::write(self.built_from_path(), all.join(&0));
        if written.and_then(|()| self.close()).is_err() {
            let _ = self.remove_all();
        }
    }

    /// Files that something in the kept build directories may have been made from, in another version than the project's.
    pub(super) fn built_from(&self) -> Vec<Vec<u8>> {
        let bytes = std::fs::read(self.built_from_path()).unwrap_or_default();
        bytes
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(<[u8]>::to_vec)
            .collect()
    }

    fn close(&self) -> io::Result<()> {
        match std::fs::remove_file(self.open_mark()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// There as long as a view of this layer is worked in.
    fn open_mark(&self) -> PathBuf {
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
        let (Some(above), Some(name)) = (self.dir.parent(), self.dir.file_name()) else {
            return Ok(());
        };
        remove(above, name.as_bytes())
    }

    fn upper(&self) -> PathBuf {
        self.dir.join("upper")
    }

    fn work(&self) -> PathBuf {
        self.dir.join("work")
    }
}

/// The kernel leaves unreadable directories there.
fn remove(above: &Path, name: &[u8]) -> io::Result<()> {
    match Root::open(above) {
        Ok(above) => remove_all(&above, name),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
