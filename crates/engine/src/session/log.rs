//! Writes one line per call. This blocks for microseconds and one disk sync; the caller chooses the
//! thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::exchange::{ExchangeBounds, ExchangeStore};
use super::file::{self, FileError, Tail};
use super::line_limit::{self, CutField};
use super::open_calls::OpenCallFile;
use super::read::{History, LogReader};
use super::{InvalidSessionId, SessionId};
use crate::Entry;
use crate::exchange::{ExchangeRecord, ExchangeTexts, TextId};
use crate::services::{LiveHeader, LiveRecord, OpenRecord, Recorder};
use crate::{ExchangeMode, LogSettings};
use supervisor_text::redact::Redactor;
use supervisor_workspace::state::{STATE_DIR_VAR, StateDir, StateError};

/// Free disk space required before a call begins, so that its line fits when it ends.
const MIN_FREE_BYTES: u64 = 4 * line_limit::MAX_LINE_LEN as u64;

/// The logs of all sessions of this user. Cheap to clone; any number of clones and processes may
/// write.
#[derive(Debug, Clone)]
pub struct SessionLog {
    state: StateDir,
    directory: PathBuf,
    redactor: Arc<Redactor>,
    exchange: Arc<ExchangeStore>,
}

/// A line that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenEntry {
    pub path: PathBuf,
    /// Including the newline.
    pub bytes: usize,
    /// What was cut. Each cut is marked in the line as well.
    pub cut: Vec<CutField>,
    /// True if the last line was incomplete and had to be terminated.
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
    /// Creates the directory, private to the user. Keys are redacted from every line by their
    /// shape.
    pub fn open(state: &StateDir) -> Result<Self, LogError> {
        state.create_sessions()?;
        Ok(Self::to_read(state))
    }

    /// Opens for reading only: creates nothing, and a missing directory has no sessions.
    pub fn to_read(state: &StateDir) -> Self {
        Self {
            directory: state.sessions(),
            state: state.clone(),
            redactor: Arc::default(),
            exchange: Arc::new(ExchangeStore::new(state, ExchangeBounds::NOTHING)),
        }
    }

    /// Stores prompts and answers within these limits.
    #[must_use]
    pub fn with_exchange(self, settings: LogSettings) -> Self {
        Self {
            exchange: Arc::new(ExchangeStore::new(&self.state, settings.into())),
            ..self
        }
    }

    /// The texts stored beside the log.
    pub fn exchange(&self) -> &ExchangeStore {
        &self.exchange
    }

    pub(super) fn state(&self) -> &StateDir {
        &self.state
    }

    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Also redacts what this redactor knows.
    #[must_use]
    pub fn with_redactor(self, redactor: Arc<Redactor>) -> Self {
        Self { redactor, ..self }
    }

    /// The directory of the logs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn path(&self, id: &SessionId) -> PathBuf {
        self.directory.join(format!("{id}.jsonl"))
    }

    /// Checks that a line can be written. Called before the first model is asked, so that no work
    /// is done that cannot be recorded.
    pub fn ready(&self, id: &SessionId) -> Result<(), LogError> {
        let path = self.path(id);
        let file = self.in_directory(|| file::open_to_append(&path))?;
        let space = rustix::fs::fstatvfs(&file).map_err(|e| FileError::Io {
            path: path.clone(),
            source: e.into(),
        })?;
        // Some file systems report 0 of 0 blocks.
        if space.f_blocks > 0 && space.f_bavail.saturating_mul(space.f_frsize) < MIN_FREE_BYTES {
            return Err(FileError::NoRoom {
                path,
                source: io::ErrorKind::StorageFull.into(),
            }
            .into());
        }
        Ok(())
    }

    /// Appends a redacted and bounded entry to its session. It is on disk when this returns.
    pub fn append(&self, entry: &Entry) -> Result<WrittenEntry, LogError> {
        let id: SessionId = entry.session_id.parse()?;
        let tree = serde_json::to_value(entry)
            .expect("an entry has no map with keys that are not strings");
        self.append_value(&id, tree)
    }

    /// Like [`Self::append`], for an entry created by a caller, with any additional fields.
    pub fn append_value(&self, id: &SessionId, mut tree: Value) -> Result<WrittenEntry, LogError> {
        // Redact before truncating: part of a key is still secret.
        self.redactor.redact_json(&mut tree);
        if let Some(fields) = tree.as_object_mut() {
            // The digest of the line uses this name.
            fields.remove("chain");
        }
        let (line, cut) = line_limit::bounded_line(tree);
        let path = self.path(id);
        let appended = self.in_directory(|| file::append(&path, &line))?;
        Ok(WrittenEntry {
            path,
            bytes: appended.bytes,
            cut,
            repaired: appended.tail == Tail::Torn,
        })
    }

    /// Everything readable of a session; empty if there is none.
    pub fn read(&self, id: &SessionId) -> Result<History, LogError> {
        Ok(self.reader(id)?.into_history())
    }

    /// Iterates over the entries, for logs of any size.
    pub fn reader(&self, id: &SessionId) -> Result<LogReader, LogError> {
        Ok(LogReader::new(id, file::open_to_read(&self.path(id))?))
    }

    /// The sessions that have a log, by name. Other files are ignored.
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

    fn keep_text(&self, text: &str, is_enabled: bool) -> Option<TextId> {
        if !is_enabled || text.is_empty() || self.exchange.mode() == ExchangeMode::Off {
            return None;
        }
        match self.exchange.keep(text, &self.redactor) {
            Ok(id) => Some(id),
            Err(error) => {
                // Continue without it: the text only helps people and is not the record itself.
                tracing::warn!("what a model said cannot be kept in the state directory: {error}");
                None
            }
        }
    }

    /// Runs `action`, and retries once if another process removed the directory.
    fn in_directory<T>(&self, action: impl Fn() -> Result<T, FileError>) -> Result<T, LogError> {
        match action() {
            Err(FileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                self.state.create_sessions()?;
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
    fn session(&self, requested: Option<&str>) -> Result<String, String> {
        let id = match requested {
            Some(requested) => requested.parse::<SessionId>().map_err(|e| e.to_string())?,
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
