//! Snapshots a project, lets work happen in it, and then either keeps the work or restores every
//! byte, even after `kill -9`.
//!
//! ```text
//! Workspace ── lock ─▶ Lease ── take_snapshot ─▶ ArmedSnapshot ── accept ──▶ Lease
//!                                                  │ ╰─── restore ─▶ Lease  (then a new snapshot for the next tier)
//!                                                  ╰ dropped: restored at once; killed: restored by the next process
//! ```
//!
//! The storage format is private to this module: a content-addressed pack and a manifest.

mod active_snapshot;
mod attributes;
mod changes;
mod compare;
mod edit;
mod encoded_path;
mod fault_points;
mod folder;
#[doc(hidden)]
pub mod fuzz;
mod gc;
mod git;
mod heartbeat;
mod ignore_rules;
mod journal;
mod layout;
mod lease;
mod lock;
mod manifest;
mod metadata_snapshot;
mod overlay;
mod pack;
mod project_files;
mod read;
mod recover;
mod rejected_files;
mod restore;
mod root;
mod shared_packs;
mod shim;
mod snapshot;
pub mod state;
mod store;
mod undo;
mod undo_store;
mod walk;
mod write;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::Access;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub use active_snapshot::{ActiveSnapshot, RestoreReport};
pub use changes::{Change, ChangeKind, ChangeSet, EntryType};
pub use edit::{AppliedEdits, EditError};
pub use fault_points::FaultPoint;
pub use fault_points::end_at;
pub use folder::{ConfinedFolder, FolderEntry, FolderError, FolderLock};
pub use gc::{Garbage, GarbageKind, StateBounds, collect_daily, find_garbage, remove_garbage};
pub use heartbeat::HeartbeatFile;
pub use journal::Scope;
pub use lease::Lease;
pub use lock::{LockError, Mode};
pub use manifest::UnprotectedReason;
pub use metadata_snapshot::{Drift, FileReadError, MetadataSnapshot};
pub use overlay::{CommitError, OverlayOpenError, OverlayProject};
pub use project_files::{FileStamp, ProjectFile, ProjectFileKind, project_files};
pub use recover::{RecoveryOutcome, finish_orphaned, recover, was_accepted};
pub use restore::RestoreError;
pub use shim::run_if_shim;
pub use snapshot::SnapshotError;
pub use supervisor_edits::Edit;
pub use undo::{UndoRecord, UndoReport, UndoStep};
pub use undo_store::{StoredUndo, UndoStore};

use crate::state::{StateDir, StateError};
use layout::Layout;
use store::Store;

/// Limits on what is snapshotted, and patterns to leave out. `[workspace]` in the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotLimits {
    pub max_files: u64,
    pub max_file_bytes: u64,
    pub max_total_bytes: u64,
    /// Ignored files up to this size are snapshotted too: `.env`, small databases.
    pub max_ignored_file_bytes: u64,
    /// Patterns in `.gitignore` syntax, relative to the root.
    pub exclude: Vec<String>,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self {
            max_files: 200_000,
            max_file_bytes: 256 << 20,
            max_total_bytes: 4 << 30,
            max_ignored_file_bytes: 1 << 20,
            exclude: Vec::new(),
        }
    }
}

/// Why a directory cannot be used as a project.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("`{}` is not an absolute path; give the project's full path", .0.display())]
    Relative(PathBuf),
    #[error("`{}` does not exist; give the path of an existing project", .0.display())]
    Missing(PathBuf),
    #[error("`{}` is not a directory; give the project's directory, not a file in it", .0.display())]
    NotADirectory(PathBuf),
    #[error("`{}` is the whole file system; give a project's own directory", .0.display())]
    FileSystemRoot(PathBuf),
    #[error("`{}` is your home directory or lies above it; give a project's own directory", .0.display())]
    Home(PathBuf),
    #[error("`{}` cannot be read by this user; change its permissions or work on a copy", .0.display())]
    Unreadable(PathBuf),
    #[error("`{}` cannot be written by this user; change its permissions or work on a copy", .0.display())]
    Unwritable(PathBuf),
    #[error(
        "`{}` holds the state directory `{}`, or lies in it; set $SUPERVISOR_STATE_DIR to a place outside the project",
        root.display(), state.display()
    )]
    ContainsState { root: PathBuf, state: PathBuf },
    #[error(transparent)]
    State(#[from] StateError),
    #[error("`{}` cannot be opened: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// An opened project directory. Nothing is locked yet.
#[derive(Debug, Clone)]
pub struct Workspace(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    layout: Layout,
    caps: SnapshotLimits,
    state: StateDir,
    /// State directory with lock and journal, keyed by the top of the repository: `/repo` and
    /// `/repo/pkg` share one.
    project: PathBuf,
    /// Pack and manifest of this root.
    store: Store,
    /// Name of the store's directory inside `project`.
    store_name: String,
}

impl Workspace {
    /// Opens a project for editing. Refuses roots that cannot be intended, such as `/` or the home
    /// directory.
    pub fn open(root: &Path, caps: SnapshotLimits, state: &StateDir) -> Result<Self, OpenError> {
        let canonical = validate_root(root)?;
        if !has_access(&canonical, Access::WRITE_OK) {
            return Err(OpenError::Unwritable(root.to_owned()));
        }
        Self::at(canonical, caps, state)
    }

    /// Opens a project for reading; it may belong to another user.
    pub fn open_read_only(
        root: &Path,
        caps: SnapshotLimits,
        state: &StateDir,
    ) -> Result<Self, OpenError> {
        Self::at(validate_root(root)?, caps, state)
    }

    fn at(root: PathBuf, caps: SnapshotLimits, state: &StateDir) -> Result<Self, OpenError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Io { path, source }
        };
        let projects = state.sub("projects")?;
        let state_dir = projects.canonicalize().map_err(failed(&projects))?;
        let state_dir = state_dir.parent().unwrap_or(&state_dir);
        if state_dir.starts_with(&root) || root.starts_with(state_dir) {
            return Err(OpenError::ContainsState {
                root,
                state: state_dir.to_owned(),
            });
        }
        let layout = Layout::open(&root).map_err(failed(&root))?;
        let top = directory_key(layout.top()).map_err(failed(&root))?;
        let store_name = format!("root-{}", directory_key(&root).map_err(failed(&root))?);
        let project = projects.join(top);
        store::make_private(&project).map_err(failed(&project))?;
        let store = Store::at(project.join(&store_name)).map_err(failed(&project))?;
        Ok(Self(Arc::new(Inner {
            layout,
            caps,
            state: state.clone(),
            project,
            store,
            store_name,
        })))
    }

    /// Returns the canonical path of the project.
    pub fn root(&self) -> &Path {
        self.0.layout.tree.path()
    }

    /// Locks the project for a call, waiting at most `wait`. `what` is shown to callers that find
    /// it busy. If an earlier call was killed, its changes are undone first.
    pub async fn lock(
        &self,
        mode: Mode,
        what: &str,
        wait: Duration,
        stop: &CancellationToken,
    ) -> Result<Lease, LockError> {
        lease::lock(self, mode, what, wait, stop).await
    }
}

/// Validates a root and returns its canonical path.
fn validate_root(root: &Path) -> Result<PathBuf, OpenError> {
    let given = || root.to_owned();
    if !root.is_absolute() {
        return Err(OpenError::Relative(given()));
    }
    let canonical = root.canonicalize().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => OpenError::Missing(given()),
        io::ErrorKind::NotADirectory => OpenError::NotADirectory(given()),
        _ => OpenError::Io {
            path: given(),
            source,
        },
    })?;
    if !canonical.is_dir() {
        return Err(OpenError::NotADirectory(given()));
    }
    if canonical.parent().is_none() {
        return Err(OpenError::FileSystemRoot(given()));
    }
    let home = etcetera::home_dir()
        .ok()
        .and_then(|home| home.canonicalize().ok());
    if home.is_some_and(|home| home.starts_with(&canonical)) {
        return Err(OpenError::Home(given()));
    }
    if !has_access(&canonical, Access::READ_OK | Access::EXEC_OK) {
        return Err(OpenError::Unreadable(given()));
    }
    Ok(canonical)
}

/// Returns true if this process has the given access.
fn has_access(path: &Path, access: Access) -> bool {
    rustix::fs::accessat(rustix::fs::CWD, path, access, rustix::fs::AtFlags::EACCESS).is_ok()
}

/// Identifies a directory by device and inode, independent of the path used to reach it.
fn directory_key(path: &Path) -> io::Result<String> {
    let (device, inode) = root::Root::open(path)?.identity()?;
    Ok(format!("{device:x}-{inode:x}"))
}

/// Nanoseconds since the Unix epoch.
fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn timestamp() -> String {
    jiff::Timestamp::now()
        .round(jiff::Unit::Second)
        .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
        .to_string()
}

/// Name of a temporary file of ours in the project, before it is renamed into place.
fn temporary_name(id: &str, rest: &str) -> String {
    format!(".supervisor-{id}-{rest}")
}

/// Returns sixteen unguessable hexadecimal digits: the standard hasher takes its keys from the
/// system.
fn random_name() -> String {
    use std::hash::{BuildHasher, Hasher};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u64(COUNT.fetch_add(1, Ordering::Relaxed));
    hasher.write_i64(now());
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
