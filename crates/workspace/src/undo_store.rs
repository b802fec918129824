//! Undo records on disk: one file per accepted call in `<state>/undo`, so that a call can be undone
//! after the server has ended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::encoded_path::EncodedPath;
use super::root::as_path;
use super::store::write_synced;
use super::undo::{FileBefore, UndoRecord};
use crate::state::StateDir;

/// The directory inside the state directory.
const DIR_NAME: &str = "undo";
/// Changes that replaced more bytes than this are not stored.
const MAX_CHANGE_BYTES: usize = 32 << 20;
/// A larger file is not ours: base64 adds a third to the size.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The undo records of this user for all projects.
#[derive(Debug, Clone)]
pub struct UndoStore {
    state: StateDir,
}

/// The undo record of one accepted call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredUndo {
    /// The `call` of its log entry.
    pub call: String,
    /// The `tdd` call that it is a phase of; empty if none.
    pub cycle: String,
    /// The commit with this change, if `tdd` made one; else empty.
    pub commit: String,
    pub skill: String,
    /// RFC 3339.
    pub accepted: String,
    pub root: PathBuf,
    pub record: UndoRecord,
}

#[derive(Serialize, Deserialize)]
struct UndoFile {
    call: String,
    #[serde(default)]
    cycle: String,
    #[serde(default)]
    commit: String,
    skill: String,
    accepted: String,
    root: EncodedPath,
    files: Vec<UndoFileEntry>,
    directories: Vec<EncodedPath>,
}

#[derive(Serialize, Deserialize)]
struct UndoFileEntry {
    path: EncodedPath,
    /// Base64; absent if the file did not exist.
    before: Option<String>,
    mode: u32,
    /// Hexadecimal digest; absent if the change deleted the file.
    after: Option<String>,
    by_product: bool,
}

impl UndoStore {
    pub fn of(state: &StateDir) -> Self {
        Self {
            state: state.clone(),
        }
    }

    /// Stores a record. Returns false if the change is empty or too large.
    pub fn keep(
        &self,
        call: &str,
        cycle: &str,
        skill: &str,
        root: &Path,
        record: &UndoRecord,
    ) -> io::Result<bool> {
        let bytes: usize = record
            .files
            .values()
            .filter_map(|file| Some(file.before.as_ref()?.0.len()))
            .sum();
        if record.files.is_empty() || bytes > MAX_CHANGE_BYTES || !is_call_id(call) {
            return Ok(false);
        }
        let file = UndoFile {
            call: call.to_owned(),
            cycle: cycle.to_owned(),
            commit: String::new(),
            skill: skill.to_owned(),
            // With nanoseconds: calls follow each other closely, and the latest is undone first.
            accepted: jiff::Timestamp::now().to_string(),
            root: EncodedPath(root.as_os_str().as_encoded_bytes().to_vec()),
            files: record.files.iter().map(UndoFileEntry::from).collect(),
            directories: record
                .directories
                .iter()
                .cloned()
                .map(EncodedPath)
                .collect(),
        };
        let folder = self.state.sub(DIR_NAME).map_err(io::Error::other)?;
        write_synced(
            &folder,
            &format!("{call}.json"),
            &serde_json::to_vec(&file).map_err(io::Error::other)?,
        )?;
        Ok(true)
    }

    /// Notes that the changes of a `tdd` call that are not committed yet are in this commit.
    pub fn note_commit(&self, cycle: &str, commit: &str) -> io::Result<()> {
        let folder = self.state.sub(DIR_NAME).map_err(io::Error::other)?;
        let of_cycle = |undo: &StoredUndo| undo.cycle == cycle && undo.commit.is_empty();
        for undo in self.list().into_iter().filter(of_cycle) {
            let name = format!("{}.json", undo.call);
            let mut file: UndoFile = serde_json::from_slice(&fs::read(self.folder().join(&name))?)
                .map_err(io::Error::other)?;
            commit.clone_into(&mut file.commit);
            let bytes = serde_json::to_vec(&file).map_err(io::Error::other)?;
            write_synced(&folder, &name, &bytes)?;
        }
        Ok(())
    }

    pub fn remove(&self, call: &str) -> io::Result<()> {
        if !is_call_id(call) {
            return Ok(());
        }
        match fs::remove_file(self.folder().join(format!("{call}.json"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns every readable record, latest first.
    pub fn list(&self) -> Vec<StoredUndo> {
        let entries = fs::read_dir(self.folder())
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        let mut found: Vec<StoredUndo> = entries.filter_map(|path| load(&path)).collect();
        found.sort_by(|a, b| b.accepted.cmp(&a.accepted));
        found
    }

    fn folder(&self) -> PathBuf {
        self.state.path().join(DIR_NAME)
    }
}

/// Call ids are alphanumeric, so they are safe as file names.
fn is_call_id(call: &str) -> bool {
    !call.is_empty() && call.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn load(path: &Path) -> Option<StoredUndo> {
    if path.extension()? != "json" || fs::symlink_metadata(path).ok()?.len() > MAX_FILE_BYTES {
        return None;
    }
    let file: UndoFile = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let mut files = BTreeMap::new();
    for entry in file.files {
        let (path, before) = entry.read()?;
        files.insert(path, before);
    }
    let directories = file.directories.into_iter().map(|name| name.0).collect();
    Some(StoredUndo {
        call: file.call,
        cycle: file.cycle,
        commit: file.commit,
        skill: file.skill,
        accepted: file.accepted,
        root: as_path(&file.root.0).to_owned(),
        record: UndoRecord { files, directories },
    })
}

impl From<(&Vec<u8>, &FileBefore)> for UndoFileEntry {
    fn from((path, file): (&Vec<u8>, &FileBefore)) -> Self {
        Self {
            path: EncodedPath(path.clone()),
            before: file
                .before
                .as_ref()
                .map(|(bytes, _)| STANDARD.encode(bytes)),
            mode: file.before.as_ref().map_or(0, |(_, mode)| *mode),
            after: file
                .after
                .map(|digest| blake3::Hash::from(digest).to_hex().to_string()),
            by_product: file.by_product,
        }
    }
}

impl UndoFileEntry {
    /// Returns `None` for an invalid entry: then no part of the record is trusted.
    fn read(self) -> Option<(Vec<u8>, FileBefore)> {
        let before = match self.before {
            Some(text) => Some((STANDARD.decode(text).ok()?, self.mode)),
            None => None,
        };
        let after = match self.after {
            Some(text) => Some(*blake3::Hash::from_hex(text).ok()?.as_bytes()),
            None => None,
        };
        Some((
            self.path.0,
            FileBefore {
                before,
                after,
                by_product: self.by_product,
            },
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undo_records_round_trip() {
        let dir = tempfile::tempdir().expect("temp dir");
        let store = UndoStore::of(&StateDir::at(dir.path().join("state")).expect("absolute"));
        let file = |before: Option<&[u8]>, after: Option<&[u8]>| FileBefore {
            before: before.map(|bytes| (bytes.to_vec(), 0o755)),
            after: after.map(|bytes| *blake3::hash(bytes).as_bytes()),
            by_product: false,
        };
        let files = BTreeMap::from([
            (b"a\xff\n%".to_vec(), file(Some(b"\x00old"), Some(b"new"))),
            (b"gone".to_vec(), file(Some(b""), None)),
            (b"made".to_vec(), file(None, Some(b"x"))),
        ]);
        let record = UndoRecord {
            files,
            directories: vec![b"d".to_vec()],
        };
        assert!(
            store
                .keep("0a", "cycle-1", "tdd_green", Path::new("/p"), &record)
                .expect("kept")
        );
        assert!(
            !store
                .keep("../x", "", "tdd_green", Path::new("/p"), &record)
                .expect("refused")
        );
        let found = store.list();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&found[0].record, found[0].root.as_path(), &*found[0].cycle),
            (&record, Path::new("/p"), "cycle-1")
        );
        for (cycle, commit) in [("cycle-2", "c2"), ("cycle-1", "c1"), ("cycle-1", "c3")] {
            store.note_commit(cycle, commit).expect("noted");
        }
        assert_eq!(
            store.list()[0].commit,
            "c1",
            "only what is not committed yet"
        );
        store.remove("0a").expect("removed");
        assert!(store.list().is_empty());
    }
}
