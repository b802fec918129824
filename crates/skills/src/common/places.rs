//! Where notes, their index and training data lie. Nothing of a project can say so.

use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use etcetera::BaseStrategy as _;

use supervisor_memory::index::IndexError;
use supervisor_memory::{NoteFolder, NoteIndex};
use supervisor_settings::Routing;
use supervisor_workspace::state::StateDir;

/// One opener at a time within this server; other servers wait for SQLite's own lock.
static OPENING: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);

/// The folder of notes and the index over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrainPlaces {
    pub notes: PathBuf,
    index: PathBuf,
}

impl BrainPlaces {
    pub fn of(routing: &Routing, state: &StateDir) -> Result<Self, String> {
        let notes = notes_folder(routing)?;
        let state = state.sub("brain").map_err(|e| e.to_string())?;
        // One index a folder of notes: another folder has other notes.
        let name = blake3::hash(notes.as_os_str().as_encoded_bytes()).to_hex();
        Ok(Self {
            notes,
            index: state.join(format!("{}.sqlite", &name[..16])),
        })
    }
}

/// The folder of notes, which need not be there yet.
pub fn notes_folder(routing: &Routing) -> Result<PathBuf, String> {
    match &routing.brain_dir {
        Some(dir) => Ok(dir.clone()),
        None => Ok(data_dir()?.join("brain")),
    }
}

/// Asks the index, brought up to date first. One that turns out to be damaged is made anew, once: it holds nothing that
/// the notes do not.
pub fn with_index<T>(
    places: &BrainPlaces,
    notes: &NoteFolder,
    tell: &mut dyn FnMut(usize, usize),
    mut ask: impl FnMut(&NoteIndex) -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    let _alone = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut attempt = |tell: &mut dyn FnMut(usize, usize)| {
        let mut index = NoteIndex::open(&places.index)?;
        index.refresh(notes, tell)?;
        ask(&index)
    };
    match attempt(tell) {
        Err(error) if error.is_damage() => {
            NoteIndex::remove(&places.index);
            attempt(tell)
        }
        other => other,
    }
}

/// `supervisor` in the platform's directory for data.
pub fn data_dir() -> Result<PathBuf, String> {
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
