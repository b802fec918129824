//! Rebases accepted work when the project has changed meanwhile: merges it onto the current project
//! in a fresh overlay, so that it can be tested again before anything is written.
//!
//! The old overlay cannot be used for that: what it shows after changes in the lower directory is
//! undefined. Files read before may show the old content, others the new.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::super::ActiveSnapshot;
use super::super::active_snapshot::rejected_dir;
use super::super::root::as_path;
use super::commit::{AcceptedChange, CommitError, save_files, write};
use super::{OverlayOpenError, OverlayProject};
use supervisor_process::Launcher;

impl OverlayProject {
    /// Moves the work to a fresh overlay of the current project. Where both sides changed the same
    /// lines, the work is refused and saved.
    pub fn rebase(mut self) -> Result<Self, CommitError> {
        self.drop_worker();
        let wanted = self.wanted()?;
        let bases: BTreeMap<Vec<u8>, Option<Vec<u8>>> = wanted
            .keys()
            .map(|path| (path.clone(), self.snapshot.original(as_path(path))))
            .collect();
        let kept = {
            let state = self.snapshot.state();
            rejected_dir(state.inner().state.path(), &state.since, &state.id).join("accepted")
        };
        let launcher: Launcher = self.launcher.clone();
        let mut fresh = match Self::open(self.discard(), &launcher) {
            Ok(fresh) => fresh,
            Err(OverlayOpenError::Unavailable(_, why)) => return Err(CommitError::NoOverlay(why)),
            Err(OverlayOpenError::Snapshot(error)) => return Err(error.into()),
        };
        match merge(&fresh.snapshot, &wanted, &bases) {
            Ok(merged) => {
                write(&mut fresh.snapshot, &merged)?;
                Ok(fresh)
            }
            Err(paths) => {
                save_files(&kept, &wanted)?;
                drop(fresh.discard());
                Err(CommitError::Conflict { paths, kept })
            }
        }
    }
}

/// Merges the work with the current project. Returns the paths with conflicts as the error.
fn merge(
    now: &ActiveSnapshot,
    wanted: &BTreeMap<Vec<u8>, AcceptedChange>,
    bases: &BTreeMap<Vec<u8>, Option<Vec<u8>>>,
) -> Result<BTreeMap<Vec<u8>, AcceptedChange>, Vec<PathBuf>> {
    let (mut merged, mut conflicts) = (BTreeMap::new(), Vec::new());
    for (path, wanted) in wanted {
        if wanted.is_dir {
            merged.insert(path.clone(), wanted.clone());
            continue;
        }
        let theirs = now.original(as_path(path));
        let base = bases.get(path).and_then(Option::as_ref);
        let ours = wanted.file.as_ref().map(|(bytes, _)| bytes);
        let file = match (base, ours, theirs.as_ref()) {
            // Only one side changed it, or both made the same change.
            (base, ours, theirs) if theirs == base || theirs == ours => wanted.file.clone(),
            (Some(base), Some(ours), Some(theirs)) => {
                match diffy::merge_bytes(base, ours, theirs) {
                    Ok(bytes) => wanted.file.as_ref().map(|(_, mode)| (bytes, *mode)),
                    Err(_) => {
                        conflicts.push(as_path(path).to_owned());
                        continue;
                    }
                }
            }
            _ => {
                conflicts.push(as_path(path).to_owned());
                continue;
            }
        };
        merged.insert(
            path.clone(),
            AcceptedChange {
                file,
                ..wanted.clone()
            },
        );
    }
    if conflicts.is_empty() {
        Ok(merged)
    } else {
        Err(conflicts)
    }
}

/// Sets the mtime of files to now, so that they are newer than anything built from another version
/// of them.
pub(super) fn touch(overlay: &Path, paths: &[Vec<u8>]) {
    for path in paths {
        let file_path = overlay.join(as_path(path));
        if file_path
            .symlink_metadata()
            .is_ok_and(|meta| meta.is_file())
        {
            let opened = std::fs::File::options().append(true).open(&file_path);
            if let Err(error) = opened.and_then(|file| file.set_modified(SystemTime::now())) {
                tracing::debug!("`{}` keeps its time: {error}", file_path.display());
            }
        }
    }
}
