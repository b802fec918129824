//! Locations of notes, their index and training data. A project cannot change them.

use std::path::PathBuf;
use std::sync::LazyLock;

use parking_lot::Mutex;

use etcetera::BaseStrategy as _;

use supervisor_memory::index::IndexError;
use supervisor_memory::{NoteFolder, NoteIndex};
use supervisor_settings::Routing;
use supervisor_workspace::state::StateDir;

/// Serialises index access within this process. Other processes wait on SQLite's own lock.
static INDEX_LOCK: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);

/// The notes folder and its index file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BrainPaths {
    pub notes: PathBuf,
    index: PathBuf,
}

impl BrainPaths {
    pub(crate) fn of(routing: &Routing, state: &StateDir) -> Result<Self, String> {
        let notes = notes_folder(routing)?;
        let state = state.sub("brain").map_err(|e| e.to_string())?;
        // Each notes folder has its own index file.
        let name = blake3::hash(notes.as_os_str().as_encoded_bytes()).to_hex();
        Ok(Self {
            notes,
            index: state.join(format!("{}.sqlite", &name[..16])),
        })
    }
}

/// The notes folder. It need not exist yet.
pub fn notes_folder(routing: &Routing) -> Result<PathBuf, String> {
    match &routing.brain_dir {
        Some(dir) => Ok(dir.clone()),
        None => Ok(data_dir()?.join("brain")),
    }
}

/// Refreshes the index and queries it. A damaged index is deleted and rebuilt once; it holds
/// nothing that is not in the notes.
pub(crate) fn with_index<T>(
    places: &BrainPaths,
    notes: &NoteFolder,
    on_progress: &mut dyn FnMut(usize, usize),
    mut query: impl FnMut(&NoteIndex) -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    let _guard = INDEX_LOCK.lock();
    let mut attempt = |on_progress: &mut dyn FnMut(usize, usize)| {
        let mut index = NoteIndex::open(&places.index)?;
        index.refresh(notes, on_progress)?;
        query(&index)
    };
    match attempt(on_progress) {
        Err(error) if error.is_damage() => {
            NoteIndex::remove(&places.index);
            attempt(on_progress)
        }
        other => other,
    }
}

/// The `supervisor` directory in the platform's data directory.
pub(crate) fn data_dir() -> Result<PathBuf, String> {
    let unknown = || String::from("no home directory is known; set $HOME, or `dir` under [brain]");
    let dir = etcetera::choose_base_strategy()
        .map_err(|_| unknown())?
        .data_dir()
        .join("supervisor");
    if dir.is_absolute() {
        Ok(dir)
    } else {
        Err(unknown())
    }
}
