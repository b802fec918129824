//! Writes one line per call. Blocking, for microseconds and one sync of the disk; the caller decides on which thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::bound::{self, CutField};
use super::exchange::{ExchangeBounds, ExchangeStore};
use super::file::{self, FileError, Tail};
use super::open::OpenCallFile;
use super::read::{History, LogReader};
use super::{InvalidSessionId, SessionId};
use crate::Entry;
use crate::exchange::{ExchangeRecord, ExchangeTexts, TextId};
use crate::means::{LiveHeader, LiveRecord, OpenRecord, Recorder};
use crate::{ExchangeMode, LogSettings};
use supervisor_text::redact::Redactor;
use supervisor_workspace::state::{STATE_DIR_VAR, StateDir, StateError};

/// The directory below the state directory.
const SESSIONS: &str = "sessions";
/// Asked for before a call begins, so that its line fits when it ends.
const ROOM: u64 = 4 * bound::LINE_MAX as u64;

/// All sessions of this user. Cheap to clone; any number of them may write, in any number of processes.
#[derive(Debug, Clone)]
pub struct SessionLog {
    state: StateDir,
    directory: PathBuf,
    redactor: Arc<Redactor>,
    exchange: Arc<ExchangeStore>,
}

/// A line is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenEntry {
    pub path: PathBuf,
    /// With its newline.
    pub bytes: usize,
    /// What did not fit. Each cut is marked in the line as well.
    pub cut: Vec<CutField>,
    /// True if a dead writer's half line was found before ours and closed.
    pub repaired: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(transparent)]
    Id(#[from] InvalidSessionId),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "the session logs in `{path}` cannot be listed: {source}; make it a directory of your own, or set ${STATE_DIR_VAR}"
    )]
    List { path: PathBuf, source: io::Error },
    #[error(
        "the record of a call at work, `{path}`, cannot be made: {source}; make its folder writable, or set ${STATE_DIR_VAR}"
    )]
    Open { path: PathBuf, source: io::Error },
}

impl SessionLog {
    /// Makes the directory, private to the user. Keys are taken out of every line by their shape.
    pub fn open(state: &StateDir) -> Result<Self, LogError> {
        state.sub(SESSIONS)?;
        Ok(Self::to_read(state))
    }

    /// To read alone: makes nothing, and a directory that is missing has no sessions.
    pub fn to_read(state: &StateDir) -> Self {
        Self {
            directory: state.path().join(SESSIONS),
            state: state.clone(),
            redactor: Arc::default(),
            exchange: Arc::new(ExchangeStore::new(state, ExchangeBounds::NOTHING)),
        }
    }

    /// Keeps what models were asked and answered, within these bounds.
    #[must_use]
    pub fn keeping(self, settings: LogSettings) -> Self {
        Self {
            exchange: Arc::new(ExchangeStore::new(&self.state, settings.into())),
            ..self
        }
    }

    /// The texts that are kept beside the log.
    pub fn exchange(&self) -> &ExchangeStore {
        &self.exchange
    }

    pub(super) fn state(&self) -> &StateDir {
        &self.state
    }

    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Takes out what this redactor knows.
    #[must_use]
    pub fn redacting(self, redactor: Arc<Redactor>) -> Self {
        Self { redactor, ..self }
    }

    /// Where the logs lie.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn path(&self, id: &SessionId) -> PathBuf {
        self.directory.join(format!("{id}.jsonl"))
    }

    /// Could a line be written now? Asked before the first model is, so that no work is done which cannot be recorded.
    pub fn ready(&self, id: &SessionId) -> Result<(), LogError> {
        let path = self.path(id);
        let file = self.in_directory(|| file::open_to_append(&path))?;
        let space = rustix::fs::fstatvfs(&file).map_err(|e| FileError::Io {
            path: path.clone(),
            source: e.into(),
        })?;
        // A file system that counts nothing says 0 of 0.
        if space.f_blocks > 0 && space.f_bavail.saturating_mul(space.f_frsize) < ROOM {
            return Err(FileError::NoRoom {
                path,
                source: io::ErrorKind::StorageFull.into(),
            }
            .into());
        }
        Ok(())
    }

    /// Appends the entry to its session, without secrets and within bounds. It is on disk when this returns.
    pub fn append(&self, entry: &Entry) -> Result<WrittenEntry, LogError> {
        let id: SessionId = entry.session_id.parse()?;
        let tree = serde_json::to_value(entry)
            .expect("an entry has no map with keys that are not strings");
        self.append_value(&id, tree)
    }

    /// The same for an entry that a caller made, whatever else it has in it.
    pub fn append_value(&self, id: &SessionId, mut tree: Value) -> Result<WrittenEntry, LogError> {
        // First secrets, then length: half a key is still half a key.
        self.redactor.redact_json(&mut tree);
        if let Some(fields) = tree.as_object_mut() {
            // The line's own digest takes this name.
            fields.remove("chain");
        }
        let (line, cut) = bound::line(tree);
        let path = self.path(id);
        let appended = self.in_directory(|| file::append(&path, &line))?;
        Ok(WrittenEntry {
            path,
            bytes: appended.bytes,
            cut,
            repaired: appended.tail == Tail::Torn,
        })
    }

    /// Everything that can be read of a session; nothing, if there is none.
    pub fn read(&self, id: &SessionId) -> Result<History, LogError> {
        Ok(self.reader(id)?.into_history())
    }

    /// The same one by one, for logs of any size.
    pub fn reader(&self, id: &SessionId) -> Result<LogReader, LogError> {
        Ok(LogReader::new(id, file::open_to_read(&self.path(id))?))
    }

    /// The sessions that have a log, by name. Files that are none are passed over.
    pub fn sessions(&self) -> Result<Vec<SessionId>, LogError> {
        let fail = |source| LogError::List {
            path: self.directory.clone(),
            source,
        };
        let mut found = Vec::new();
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(fail(error)),
        };
        for entry in entries {
            let name = entry.map_err(fail)?.file_name();
            found.extend(session_of(Path::new(&name)));
        }
        found.sort();
        Ok(found)
    }

    fn keep_text(&self, text: &str, is_wanted: bool) -> Option<TextId> {
        if !is_wanted || text.is_empty() || self.exchange.mode() == ExchangeMode::Off {
            return None;
        }
        match self.exchange.keep(text, &self.redactor) {
            Ok(id) => Some(id),
            Err(error) => {
                // The call goes on: what is missing is an aid for people, not the record itself.
                tracing::warn!("what a model said cannot be kept in the state directory: {error}");
                None
            }
        }
    }

    /// Runs `action`, once more if another process has removed the directory since it was made.
    fn in_directory<T>(&self, action: impl Fn() -> Result<T, FileError>) -> Result<T, LogError> {
        match action() {
            Err(FileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                self.state.sub(SESSIONS)?;
                Ok(action()?)
            }
            other => Ok(other?),
        }
    }
}

fn session_of(file: &Path) -> Option<SessionId> {
    file.to_str()?.strip_suffix(".jsonl")?.parse().ok()
}

impl Recorder for SessionLog {
    fn session(&self, written: Option<&str>) -> Result<String, String> {
        let id = match written {
            Some(written) => written.parse::<SessionId>().map_err(|e| e.to_string())?,
            None => {
                SessionId::generate().map_err(|e| format!("no session_id could be made: {e}"))?
            }
        };
        Ok(id.into())
    }

    fn ready(&self, session: &str) -> Result<(), String> {
        let id: SessionId = session
            .parse()
            .map_err(|e: InvalidSessionId| e.to_string())?;
        Self::ready(self, &id).map_err(|e| e.to_string())
    }

    fn show_live(&self, call: &LiveHeader) -> Box<dyn LiveRecord> {
        super::live::show(&self.state, call)
    }

    fn begin(&self, entry: &Entry) -> Result<Box<dyn OpenRecord>, String> {
        let open =
            OpenCallFile::create(&self.state, self.clone(), entry).map_err(|e| e.to_string())?;
        Ok(Box::new(open))
    }

    fn keep_exchange(&self, texts: &ExchangeTexts) -> ExchangeRecord {
        let is_full = self.exchange.mode() == ExchangeMode::Full;
        ExchangeRecord {
            rules: self.keep_text(&texts.rules, is_full),
            prompt: self.keep_text(&texts.prompt, is_full),
            answer: self.keep_text(&texts.answer, true),
            in_place: false,
        }
    }

    fn keep_diff(&self, diff: &str) -> Option<TextId> {
        self.keep_text(diff, true)
    }

    fn locate(&self, text: &TextId) -> Option<PathBuf> {
        self.exchange.path(text)
    }
}
