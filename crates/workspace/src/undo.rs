//! Undoes an accepted change later, as long as the files it wrote are untouched. The record is made
//! while the snapshot of the change is open. The undo itself is an ordinary edit with its own
//! journal.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use super::ActiveSnapshot;
use super::active_snapshot::ActiveSnapshotState;
use super::edit::{EditError, EditPlan, PlannedFile};
use super::manifest::Area;
use super::root::{Node, as_path};

/// What an accepted change replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoRecord {
    pub(super) files: BTreeMap<Vec<u8>, FileBefore>,
    /// Directories that the change created, innermost last.
    pub(super) directories: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileBefore {
    /// Bytes and mode; `None` if the file did not exist.
    pub(super) before: Option<(Vec<u8>, u32)>,
    /// Digest after the change; `None` if the change deleted the file.
    pub(super) after: Option<[u8; 32]>,
    /// Written by the project's own tests. If it has changed since, it is left as it is and does
    /// not prevent the undo.
    pub(super) by_product: bool,
}

/// What an undo does to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoStep {
    /// Its earlier contents are restored.
    Restore,
    /// The change deleted it; it is created again.
    Recreate,
    /// The change created it; it is removed.
    Remove,
}

impl UndoRecord {
    /// The record of both changes, `self` first.
    pub fn followed_by(mut self, later: Self) -> Self {
        for (path, file) in later.files {
            match self.files.get_mut(&path) {
                Some(first) => {
                    first.after = file.after;
                    first.by_product &= file.by_product;
                }
                None => drop(self.files.insert(path, file)),
            }
        }
        // A file that was made and deleted again is no change.
        self.files
            .retain(|_, file| file.before.is_some() || file.after.is_some());
        self.directories.extend(later.directories);
        self
    }

    /// Returns the files of the change, without by-products of tests.
    pub fn steps(&self) -> impl Iterator<Item = (PathBuf, UndoStep)> {
        self.files
            .iter()
            .filter(|(_, file)| !file.by_product)
            .map(|(path, file)| {
                let step = match (&file.before, &file.after) {
                    (None, _) => UndoStep::Remove,
                    (Some(_), None) => UndoStep::Recreate,
                    (Some(_), Some(_)) => UndoStep::Restore,
                };
                (as_path(path).to_owned(), step)
            })
    }
}

/// The result of an undo.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoReport {
    pub undone: Vec<PathBuf>,
    /// Edited by others since the change was accepted, and left as they are.
    pub left: Vec<PathBuf>,
}

impl ActiveSnapshot {
    /// Records all current differences from the snapshot, including what tests wrote, so that they
    /// can be undone after acceptance.
    pub fn undo_record(&self) -> io::Result<UndoRecord> {
        let state = self.state();
        let tree = &state.inner().layout.tree;
        let mut record = UndoRecord::default();
        for difference in state.compare()?.differences {
            if difference.area != Area::Tree {
                continue;
            }
            let now = difference.now.map(|now| now.node);
            let by_product = state.is_by_product(&difference);
            let before = match &difference.was {
                Some(was) if was.node == Node::File => Some((
                    state.snapshot.pack.read(was.at, was.size, &was.hash)?,
                    was.mode,
                )),
                None => None,
                // Deleted or changed directories, links and special files are never part of an
                // accepted change.
                Some(_) => continue,
            };
            match now {
                Some(Node::Dir) if before.is_none() => record.directories.push(difference.path),
                // Not read and so not undone: only tests leave a file above the size limit.
                Some(Node::File)
                    if difference
                        .now
                        .is_some_and(|now| now.size > state.inner().caps.max_file_bytes) => {}
                Some(Node::File) => {
                    let mut hasher = blake3::Hasher::new();
                    hasher.update_reader(tree.file(&difference.path)?)?;
                    let after = Some(*hasher.finalize().as_bytes());
                    record.files.insert(
                        difference.path,
                        FileBefore {
                            before,
                            after,
                            by_product,
                        },
                    );
                }
                None => drop(record.files.insert(
                    difference.path,
                    FileBefore {
                        before,
                        after: None,
                        by_product,
                    },
                )),
                Some(_) => {}
            }
        }
        Ok(record)
    }

    /// Undoes every part of the change that is still as it was left.
    pub fn undo(&mut self, record: &UndoRecord) -> Result<UndoReport, EditError> {
        let state = self.state_mut();
        let (plan, report) = state.plan_undo(record)?;
        state.execute_undo(&plan, record)?;
        Ok(report)
    }

    /// Undoes the whole change, or nothing if one of its files has changed since; `left` then names
    /// those.
    pub fn undo_all_or_nothing(&mut self, record: &UndoRecord) -> Result<UndoReport, EditError> {
        let state = self.state_mut();
        let (plan, report) = state.plan_undo(record)?;
        if !report.left.is_empty() {
            return Ok(UndoReport {
                undone: Vec::new(),
                ..report
            });
        }
        state.execute_undo(&plan, record)?;
        Ok(report)
    }

    /// Returns what [`ActiveSnapshot::undo_all_or_nothing`] would do, without doing it.
    pub fn preview_undo(&self, record: &UndoRecord) -> Result<UndoReport, EditError> {
        Ok(self.state().plan_undo(record)?.1)
    }
}

impl ActiveSnapshotState {
    fn plan_undo(&self, record: &UndoRecord) -> Result<(EditPlan, UndoReport), EditError> {
        let (mut plan, mut report) = (BTreeMap::new(), UndoReport::default());
        for (path, file) in &record.files {
            let name = as_path(path).to_string_lossy().into_owned();
            let now = match self.read_current(&name, path) {
                // It is a directory or a link now: changed like any other.
                Err(EditError::NotAFile { .. }) if !file.by_product => {
                    report.left.push(as_path(path).to_owned());
                    continue;
                }
                Err(EditError::NotAFile { .. }) => continue,
                now => now?,
            };
            let digest = now
                .as_ref()
                .map(|(bytes, _)| *blake3::hash(bytes).as_bytes());
            // By-products of an overlay were never written to the project.
            if digest
                == file
                    .before
                    .as_ref()
                    .map(|(bytes, _)| *blake3::hash(bytes).as_bytes())
            {
                continue;
            }
            if digest != file.after {
                if !file.by_product {
                    report.left.push(as_path(path).to_owned());
                }
                continue;
            }
            let (after, mode) = file.before.clone().unzip();
            report.undone.push(as_path(path).to_owned());
            plan.insert(
                path.clone(),
                PlannedFile {
                    name,
                    before: now,
                    after,
                    mode,
                },
            );
        }
        Ok((plan, report))
    }

    fn execute_undo(&mut self, plan: &EditPlan, record: &UndoRecord) -> Result<(), EditError> {
        self.execute_plan(plan)?;
        let tree = self.inner().layout.tree.clone();
        for path in record.directories.iter().rev() {
            let failed = |source| EditError::Io {
                path: as_path(path).display().to_string(),
                source,
            };
            // Remove it only if it is empty: others may have added files.
            if tree
                .meta(path)
                .map_err(failed)?
                .is_some_and(|meta| meta.node == Node::Dir)
            {
                tree.remove_if_empty(path).map_err(failed)?;
            }
        }
        Ok(())
    }
}
