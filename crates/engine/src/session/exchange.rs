//! Texts stored beside the log: prompts, answers and diffs. Each is a file named by the hash of its
//! contents, so that repeated texts are stored once. The files are private to the user, redacted,
//! and limited in age and total size; the least recently used are removed first.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::exchange::TextId;
use crate::{ExchangeMode, LogSettings};
use supervisor_text::redact::Redactor;
use supervisor_text::words;
use supervisor_workspace::state::StateDir;

/// Directory below the state directory.
const FOLDER: &str = "exchange";
/// Maximum bytes of one text.
const MAX_TEXT_BYTES: usize = 2 * 1024 * 1024;
/// Fraction of the size limit that remains after a sweep, so that not every write needs one.
const SWEEP_TARGET: (u64, u64) = (9, 10);

/// All stored texts of this user.
#[derive(Debug)]
pub struct ExchangeStore {
    folder: PathBuf,
    state: StateDir,
    bounds: ExchangeBounds,
    /// Bytes written by this process since its last sweep; `u64::MAX` before the first.
    bytes_since_sweep: AtomicU64,
}

/// What is stored, how much, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeBounds {
    pub mode: ExchangeMode,
    pub age: Duration,
    pub bytes: u64,
}

impl From<LogSettings> for ExchangeBounds {
    fn from(settings: LogSettings) -> Self {
        Self {
            mode: settings.exchange,
            age: Duration::from_secs(u64::from(settings.exchange_days) * 24 * 60 * 60),
            bytes: settings.exchange_mb.saturating_mul(1_000_000),
        }
    }
}

impl ExchangeBounds {
    /// For reading only.
    pub(super) const NOTHING: Self = Self {
        mode: ExchangeMode::Off,
        age: Duration::MAX,
        bytes: u64::MAX,
    };
}

impl ExchangeStore {
    /// Creates no files before something is stored.
    pub fn new(state: &StateDir, bounds: ExchangeBounds) -> Self {
        let folder = state.path().join(FOLDER);
        Self {
            folder,
            state: state.clone(),
            bounds,
            bytes_since_sweep: AtomicU64::new(u64::MAX),
        }
    }

    pub fn mode(&self) -> ExchangeMode {
        self.bounds.mode
    }

    /// The path of a text, whether or not it exists; `None` for an invalid id.
    pub fn path(&self, id: &TextId) -> Option<PathBuf> {
        id.is_valid().then(|| {
            self.folder
                .join(&id.as_str()[..2])
                .join(format!("{}.txt", id.as_str()))
        })
    }

    /// `None` if it was never stored or has been removed.
    pub fn read(&self, id: &TextId) -> io::Result<Option<String>> {
        let Some(path) = self.path(id) else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        match OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
        {
            Ok(file) => file
                .take(2 * MAX_TEXT_BYTES as u64)
                .read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Stores a redacted text. An existing text is only marked as used.
    pub fn keep(&self, text: &str, redactor: &Redactor) -> io::Result<TextId> {
        // Redact before truncating: part of a key is still secret.
        let clean = redactor.redact(text);
        let clean = words::cut_middle(&clean, MAX_TEXT_BYTES);
        let id = TextId::of(&clean);
        let path = self.path(&id).expect("made of a hash");
        // No separate existence check: another server's sweep could remove the file in between.
        if !mark_as_used(&path) {
            self.write(&path, clean.as_bytes())?;
            self.sweep_after(clean.len() as u64);
        }
        Ok(id)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.state.sub(FOLDER).map_err(io::Error::other)?;
        let folder = path.parent().expect("a text lies in a folder");
        fs::create_dir_all(folder)?;
        // Atomic: the name promises the contents.
        let mut file = tempfile::Builder::new()
            .prefix(".new-")
            .tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path).map(drop).map_err(|error| error.error)
    }

    /// Sweeps at the first write, and whenever this process has added a sixteenth of the limit.
    fn sweep_after(&self, bytes: u64) {
        let so_far = self.bytes_since_sweep.load(Ordering::Relaxed);
        if so_far != u64::MAX && so_far.saturating_add(bytes) < self.bounds.bytes / 16 {
            self.bytes_since_sweep.fetch_add(bytes, Ordering::Relaxed);
            return;
        }
        self.bytes_since_sweep.store(0, Ordering::Relaxed);
        self.sweep();
    }

    /// Removes texts that are too old, then the oldest until the rest fits. Failures are retried
    /// the next time.
    pub(super) fn sweep(&self) {
        let now = SystemTime::now();
        let mut kept = Vec::new();
        for file in files(&self.folder) {
            let Ok(meta) = fs::symlink_metadata(&file) else {
                continue;
            };
            let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if now
                .duration_since(used)
                .is_ok_and(|age| age > self.bounds.age)
            {
                let _ = fs::remove_file(&file);
            } else {
                kept.push((used, meta.len(), file));
            }
        }
        let mut total: u64 = kept.iter().map(|(_, size, _)| size).sum();
        if total <= self.bounds.bytes {
            return;
        }
        kept.sort();
        for (_, size, file) in kept {
            if total <= self.bounds.bytes / SWEEP_TARGET.1 * SWEEP_TARGET.0 {
                break;
            }
            if fs::remove_file(&file).is_ok() {
                total -= size;
            }
        }
    }
}

fn mark_as_used(path: &Path) -> bool {
    File::options()
        .append(true)
        .open(path)
        .and_then(|file| file.set_modified(SystemTime::now()))
        .is_ok()
}

fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let inside = |dir: &Path| {
        fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    inside(folder).flat_map(move |dir| inside(&dir).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn store(dir: &Path, bytes: u64) -> ExchangeStore {
        let state = StateDir::at(dir.join("state")).expect("absolute");
        let bounds = ExchangeBounds {
            mode: ExchangeMode::Full,
            age: Duration::from_secs(3600),
            bytes,
        };
        ExchangeStore::new(&state, bounds)
    }

    #[test]
    fn texts_are_deduplicated_private_and_redacted() {
        let dir = tempfile::tempdir().expect("temp dir");
        let store = store(dir.path(), 1_000_000);
        let redactor = Redactor::with_values(["canary-0123456789"]);
        let one = store
            .keep("before canary-0123456789 after", &redactor)
            .expect("kept");
        let two = store
            .keep("before canary-0123456789 after", &redactor)
            .expect("kept");
        assert_eq!((&one, files(&store.folder).count()), (&two, 1));
        assert_eq!(
            store.read(&one).expect("read").as_deref(),
            Some("before [redacted] after")
        );
        let path = store.path(&one).expect("a name");
        assert_eq!(
            fs::metadata(&path).expect("there").permissions().mode() & 0o777,
            0o600
        );
        fs::remove_file(path).expect("removed");
        assert_eq!(store.read(&one).expect("read"), None);
    }

    #[test]
    fn invalid_text_ids_have_no_path() {
        let dir = tempfile::tempdir().expect("temp dir");
        let store = store(dir.path(), 1_000_000);
        for name in [
            "../../etc/passwd",
            "",
            "é",
            &"g".repeat(32),
            &"A".repeat(32),
        ] {
            let id: TextId = serde_json::from_value(serde_json::json!(name)).expect("any text");
            assert_eq!(
                (store.path(&id), store.read(&id).expect("read")),
                (None, None),
                "{name}"
            );
        }
    }

    #[test]
    fn sweep_removes_oldest_texts() {
        let dir = tempfile::tempdir().expect("temp dir");
        let store = store(dir.path(), 10_000);
        let redactor = Redactor::patterns_only();
        let keep = |n: usize, minutes: u64| {
            let id = store
                .keep(&format!("{n} ").repeat(1_500), &redactor)
                .expect("kept");
            let file = File::options()
                .append(true)
                .open(store.path(&id).expect("a name"))
                .expect("there");
            file.set_modified(SystemTime::now() - Duration::from_secs(minutes * 60))
                .expect("set");
            id
        };
        let ids: Vec<TextId> = [(1, 600), (2, 50), (3, 40), (4, 30), (5, 20)]
            .map(|(n, m)| keep(n, m))
            .into();
        store.sweep();
        let left: Vec<bool> = ids
            .iter()
            .map(|id| store.read(id).expect("read").is_some())
            .collect();
        assert_eq!(
            left,
            [false, false, true, true, true],
            "one was too old, and one too much"
        );
    }
}
