//! Which files changed, and how do we get back? A project is opened, locked and armed; then it may be worked on, and
//! ends either accepted or exactly as it was, also after `kill -9`.
//! Knows files, locks and journals. Does not know who works on the project, or why.
//!
//! ```text
//! Workspace ── lock ─▶ Lease ── arm ─▶ Armed ── accept ──▶ Lease
//!                                        │ ╰─── restore ─▶ Lease      (then armed again for the next tier)
//!                                        ╰ dropped or killed: restored by the next process
//! ```
//!
//! How a snapshot is kept is private to this module: a content-addressed pack and a manifest today.

mod armed;
mod aside;
mod attributes;
mod changes;
mod compare;
mod edit;
mod fault;
mod folder;
#[doc(hidden)]
pub mod fuzz;
mod gc;
mod git;
mod glance;
mod ignored;
mod journal;
mod layout;
mod lease;
mod lock;
mod manifest;
mod name;
mod pack;
mod private;
mod pulse;
mod read;
mod recover;
mod restore;
mod root;
mod shared;
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

pub use armed::{ArmedSnapshot, RestoreReport};
pub use changes::{Change, ChangeKind, ChangeSet, Thing};
pub use edit::{AppliedEdits, EditError};
pub use fault::Point;
pub use fault::end_at;
pub use folder::{ConfinedFolder, FolderEntry, FolderError, FolderLock};
pub use gc::{Garbage, GarbageKind, StateBounds, collect_daily, find_garbage, remove_garbage};
pub use glance::{Drift, Glance, PeekError};
pub use journal::Scope;
pub use lease::Lease;
pub use lock::{LockError, Mode};
pub use manifest::Why;
pub use private::{CommitError, NotPrivate, PrivateProject};
pub use pulse::PulseBeats;
pub use recover::{RecoveryOutcome, finish_orphaned, recover, was_accepted};
pub use restore::RestoreError;
pub use shim::run_if_shim;
pub use snapshot::ArmError;
pub use supervisor_edits::Edit;
pub use undo::{UndoRecord, UndoReport, UndoStep};
pub use undo_store::{StoredUndo, UndoStore};

use crate::state::{StateDir, StateError};
use layout::Layout;
use store::Store;

/// How much may be protected, and what is left out by name. `[workspace]` in the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caps {
    pub max_files: u64,
    pub max_file_bytes: u64,
    pub max_total_bytes: u64,
    /// Ignored files up to this size are protected too: `.env`, small databases.
    pub max_ignored_file_bytes: u64,
    /// Patterns as in `.gitignore`, relative to the root.
    pub exclude: Vec<String>,
}

impl Default for Caps {
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

/// Why a directory cannot be worked in.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("`{}` is not an absolute path; give the project's full path", .0.display())]
    Relative(PathBuf),
    #[error("`{}` does not exist; give the path of an existing project", .0.display())]
    Missing(PathBuf),
    #[error("`{}` is not a directory; give the project's directory, not a file in it", .0.display())]
    NotADirectory(PathBuf),
    #[error("`{}` is the whole file system; give a project's own directory", .0.display())]
    WholeSystem(PathBuf),
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
    HoldsState { root: PathBuf, state: PathBuf },
    #[error(transparent)]
    State(#[from] StateError),
    #[error("`{}` cannot be opened: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// A project's directory, opened. Nothing is locked yet.
#[derive(Debug, Clone)]
pub struct Workspace(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    layout: Layout,
    caps: Caps,
    state: StateDir,
    /// Lock and journal, keyed by the repository's top: `/repo` and `/repo/pkg` are one project.
    project: PathBuf,
    /// Pack and manifest of this very root.
    store: Store,
    /// The store's directory, relative to the project's.
    store_name: String,
}

impl Workspace {
    /// Opens a project to work in, after refusing every root that cannot have been meant.
    pub fn open(root: &Path, caps: Caps, state: &StateDir) -> Result<Self, OpenError> {
        let checked = checked(root)?;
        if !allowed(&checked, Access::WRITE_OK) {
            return Err(OpenError::Unwritable(root.to_owned()));
        }
        Self::at(checked, caps, state)
    }

    /// Opens a project for what only reads: it may belong to another user.
    pub fn open_to_read(root: &Path, caps: Caps, state: &StateDir) -> Result<Self, OpenError> {
        Self::at(checked(root)?, caps, state)
    }

    fn at(root: PathBuf, caps: Caps, state: &StateDir) -> Result<Self, OpenError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Io { path, source }
        };
        let projects = state.sub("projects")?;
        let held = projects.canonicalize().map_err(failed(&projects))?;
        let held = held.parent().unwrap_or(&held);
        if held.starts_with(&root) || root.starts_with(held) {
            return Err(OpenError::HoldsState {
                root,
                state: held.to_owned(),
            });
        }
        let layout = Layout::open(&root).map_err(failed(&root))?;
        let top = key(layout.top()).map_err(failed(&root))?;
        let store_name = format!("root-{}", key(&root).map_err(failed(&root))?);
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

    /// The canonical path.
    pub fn root(&self) -> &Path {
        self.0.layout.tree.path()
    }

    /// Takes the project for a call, waiting at most `wait`. `what` is shown to callers that find it busy meanwhile.
    /// If an earlier call was killed, what it did is undone first.
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

/// The canonical path of a root that can be meant.
fn checked(root: &Path) -> Result<PathBuf, OpenError> {
    let named = || root.to_owned();
    if !root.is_absolute() {
        return Err(OpenError::Relative(named()));
    }
    let canonical = root.canonicalize().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => OpenError::Missing(named()),
        io::ErrorKind::NotADirectory => OpenError::NotADirectory(named()),
        _ => OpenError::Io {
            path: named(),
            source,
        },
    })?;
    if !canonical.is_dir() {
        return Err(OpenError::NotADirectory(named()));
    }
    if canonical.parent().is_none() {
        return Err(OpenError::WholeSystem(named()));
    }
    let home = etcetera::home_dir()
        .ok()
        .and_then(|home| home.canonicalize().ok());
    if home.is_some_and(|home| home.starts_with(&canonical)) {
        return Err(OpenError::Home(named()));
    }
    if !allowed(&canonical, Access::READ_OK | Access::EXEC_OK) {
        return Err(OpenError::Unreadable(named()));
    }
    Ok(canonical)
}

/// Whether this process may.
fn allowed(path: &Path, access: Access) -> bool {
    rustix::fs::accessat(rustix::fs::CWD, path, access, rustix::fs::AtFlags::EACCESS).is_ok()
}

/// Device and inode: the same directory has one name here, however it was reached.
fn key(path: &Path) -> io::Result<String> {
    let (device, inode) = root::Root::open(path)?.identity()?;
    Ok(format!("{device:x}-{inode:x}"))
}

/// Nanoseconds since 1970.
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

/// The name of a file of ours in the project, for the moment before it is renamed into place.
fn temporary(id: &str, rest: &str) -> String {
    format!(".supervisor-{id}-{rest}")
}

/// Sixteen hexadecimal digits that cannot be guessed: the keys of the standard hasher come from the system.
fn random_name() -> String {
    use std::hash::{BuildHasher, Hasher};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u64(COUNT.fetch_add(1, Ordering::Relaxed));
    hasher.write_i64(now());
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}
