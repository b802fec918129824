//! Takes an accepted change back later, as long as what it wrote is untouched. The change is written down while
//! the snapshot it came from still stands; taking it back is an edit like any other, with a journal of its own.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use super::ArmedSnapshot;
use super::edit::{EditError, PlannedFile};
use super::manifest::Area;
use super::root::{Node, as_path};

/// What an accepted change replaced.
#[derive(Debug, Clone, Default)]
pub struct UndoRecord {
    files: BTreeMap<Vec<u8>, FileBefore>,
    /// Directories that the change made, the innermost last.
    directories: Vec<Vec<u8>>,
}

#[derive(Debug, Clone)]
struct FileBefore {
    /// Bytes and mode; `None`: it was not there.
    before: Option<(Vec<u8>, u32)>,
    /// Digest of what the change left; `None`: it is gone.
    after: Option<[u8; 32]>,
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
            let before = match &difference.was {
                Some(was) if was.node == Node::File => {
                    Some((state.snapshot.pack.read(was.at, was.size, &was.hash)?, was.mode))
                }
                None => None,
                // Directories, links and the like that went or changed are no part of a change that is accepted here.
                Some(_) => continue,
            };
            match now {
                Some(Node::Dir) if before.is_none() => record.directories.push(difference.path),
                Some(Node::File) => {
                    let after = Some(*blake3::hash(&tree.read(&difference.path)?).as_bytes());
                    record.files.insert(difference.path, FileBefore { before, after });
                }
                None => drop(record.files.insert(difference.path, FileBefore { before, after: None })),
                Some(_) => {}
            }
        }
        Ok(record)
    }

    /// Takes the change back: all of it that is still as it was left.
    pub fn undo(&mut self, record: &UndoRecord) -> Result<UndoReport, EditError> {
        let state = self.state_mut();
        let (mut plan, mut report) = (BTreeMap::new(), UndoReport::default());
        for (path, file) in &record.files {
            let name = as_path(path).to_string_lossy().into_owned();
            let now = state.before(&name, path)?;
            let digest = now.as_ref().map(|(bytes, _)| *blake3::hash(bytes).as_bytes());
            // By-products of a private view never came here.
            if digest == file.before.as_ref().map(|(bytes, _)| *blake3::hash(bytes).as_bytes()) {
                continue;
            }
            if digest != file.after {
                report.left.push(as_path(path).to_owned());
                continue;
            }
            let (after, mode) = file.before.clone().unzip();
            report.taken_back.push(as_path(path).to_owned());
            plan.insert(path.clone(), PlannedFile { name, before: now, after, mode });
        }
        state.carry_out(&plan)?;
        let tree = state.inner().layout.tree.clone();
        for path in record.directories.iter().rev() {
            let failed = |source| EditError::Io { path: as_path(path).display().to_string(), source };
            // Only an empty one goes: others may have put something there.
            if tree.meta(path).map_err(failed)?.is_some_and(|meta| meta.node == Node::Dir) {
                tree.remove_if_empty(path).map_err(failed)?;
            }
        }
        Ok(report)
    }
}
