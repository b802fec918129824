//! A project that was changed while work went on in a view of it: the accepted work is put onto the project as it is now, in
//! a fresh view, so that it can be tested once more before anything is written. Knows three versions of each file. Does not
//! know whether the result is any good.
//!
//! What a mounted overlay shows of a changed project below is left open by the kernel: a file that was looked at may be the
//! old one still, one that was not is the new one. So nothing is concluded from the old view.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::super::ArmedSnapshot;
use super::super::armed::aside_path;
use super::super::root::as_path;
use super::commit::{CommitError, WantedState, keep, write};
use super::{NotPrivate, PrivateProject};
use supervisor_process::Launcher;

impl PrivateProject {
    /// The same work in a fresh view of the project as it is now. Where both changed the same lines it is refused and kept.
    pub fn follow(mut self) -> Result<Self, CommitError> {
        self.drop_worker();
        let wanted = self.wanted()?;
        let bases: BTreeMap<Vec<u8>, Option<Vec<u8>>> = wanted
            .keys()
            .map(|path| (path.clone(), self.armed.original(as_path(path))))
            .collect();
        let kept = {
            let state = self.armed.state();
            aside_path(state.inner().state.path(), &state.since, &state.id).join("accepted")
        };
        let launcher: Launcher = self.launcher.clone();
        let mut fresh = match Self::arm(self.leave(), &launcher) {
            Ok(fresh) => fresh,
            Err(NotPrivate::NoView(_, why)) => return Err(CommitError::NoView(why)),
            Err(NotPrivate::Arm(error)) => return Err(error.into()),
        };
        match merge(&fresh.armed, &wanted, &bases) {
            Ok(merged) => {
                write(&mut fresh.armed, &merged)?;
                Ok(fresh)
            }
            Err(paths) => {
                keep(&kept, &wanted)?;
                drop(fresh.leave());
                Err(CommitError::Conflict { paths, kept })
            }
        }
    }
}

/// What each file shall be on top of the project as it is now; the names of those where that cannot be said.
fn merge(
    now: &ArmedSnapshot,
    wanted: &BTreeMap<Vec<u8>, WantedState>,
    bases: &BTreeMap<Vec<u8>, Option<Vec<u8>>>,
) -> Result<BTreeMap<Vec<u8>, WantedState>, Vec<PathBuf>> {
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
            // Only one side changed it, or both in the same way.
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
            WantedState {
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

/// Gives files the time of now in the view: what was built from another version of them was built before.
pub(super) fn renew(view: &Path, paths: &[Vec<u8>]) {
    for path in paths {
        let whole = view.join(as_path(path));
        if whole.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            let opened = std::fs::File::options().append(true).open(&whole);
            if let Err(error) = opened.and_then(|file| file.set_modified(SystemTime::now())) {
                tracing::debug!("`{}` keeps its time: {error}", whole.display());
            }
        }
    }
}
