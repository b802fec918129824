//! Takes an accepted change back later, as long as what it wrote is untouched. The change is written down while
//! the snapshot it came from still stands; taking it back is an edit like any other, with a journal of its own.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use super::ArmedSnapshot;
use super::armed::ArmedState;
use super::edit::{EditError, EditPlan, PlannedFile};
use super::manifest::Area;
use super::root::{Node, as_path};

/// What an accepted change replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoRecord {
    pub(super) files: BTreeMap<Vec<u8>, FileBefore>,
    /// Directories that the change made, the innermost last.
    pub(super) directories: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileBefore {
    /// Bytes and mode; `None`: it was not there.
    pub(super) before: Option<(Vec<u8>, u32)>,
    /// Digest of what the change left; `None`: it is gone.
    pub(super) after: Option<[u8; 32]>,
    /// The project's own tests wrote it: if it differs since, it is left as it is and prevents nothing.
    pub(super) by_product: bool,
}

/// What taking a change back does to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoStep {
    /// Its earlier contents come back.
    Restore,
    /// The change deleted it, and it comes back.
    BringBack,
    /// The change made it, and it goes.
    Remove,
}

impl UndoRecord {
    /// The files of the change itself, by-products of tests apart.
    pub fn steps(&self) -> impl Iterator<Item = (PathBuf, UndoStep)> {
        self.files
            .iter()
            .filter(|(_, file)| !file.by_product)
            .map(|(path, file)| {
                let step = match (&file.before, &file.after) {
                    (None, _) => UndoStep::Remove,
                    (Some(_), None) => UndoStep::BringBack,
                    (Some(_), Some(_)) => UndoStep::Restore,
                };
                (as_path(path).to_owned(), step)
            })
    }
}

/// What taking a change back did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoReport {
    pub taken_back: Vec<PathBuf>,
    /// Edited by others since the change was accepted, and left as they are.
    pub left: Vec<PathBuf>,
}

impl ArmedSnapshot {
    /// What differs now from the snapshot, also what tests wrote, so that it can be taken back after it was accepted.
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
                // Directories, links and the like that went or changed are no part of a change that is accepted here.
                Some(_) => continue,
            };
            match now {
                Some(Node::Dir) if before.is_none() => record.directories.push(difference.path),
                // Never read, and so not taken back: only tests leave a file above the cap in place.
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

    /// Takes the change back: all of it that is still as it was left.
    pub fn undo(&mut self, record: &UndoRecord) -> Result<UndoReport, EditError> {
        let state = self.state_mut();
        let (plan, report) = state.plan_undo(record)?;
        state.carry_out_undo(&plan, record)?;
        Ok(report)
    }

    /// Takes all of the change back, or nothing if a file of it was changed since: then `left` names those.
    pub fn undo_whole(&mut self, record: &UndoRecord) -> Result<UndoReport, EditError> {
        let state = self.state_mut();
        let (plan, report) = state.plan_undo(record)?;
        if !report.left.is_empty() {
            return Ok(UndoReport {
                taken_back: Vec::new(),
                ..report
            });
        }
        state.carry_out_undo(&plan, record)?;
        Ok(report)
    }

    /// What [`Armed::undo_whole`] would do, without doing it.
    pub fn preview_undo(&self, record: &UndoRecord) -> Result<UndoReport, EditError> {
        Ok(self.state().plan_undo(record)?.1)
    }
}

impl ArmedState {
    fn plan_undo(&self, record: &UndoRecord) -> Result<(EditPlan, UndoReport), EditError> {
        let (mut plan, mut report) = (BTreeMap::new(), UndoReport::default());
        for (path, file) in &record.files {
            let name = as_path(path).to_string_lossy().into_owned();
            let now = match self.before(&name, path) {
                // A directory or a link stands there now: changed like any other.
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
            // By-products of a private view never came here.
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
            report.taken_back.push(as_path(path).to_owned());
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

    fn carry_out_undo(&mut self, plan: &EditPlan, record: &UndoRecord) -> Result<(), EditError> {
        self.carry_out(plan)?;
        let tree = self.inner().layout.tree.clone();
        for path in record.directories.iter().rev() {
            let failed = |source| EditError::Io {
                path: as_path(path).display().to_string(),
                source,
            };
            // Only an empty one goes: others may have put something there.
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
