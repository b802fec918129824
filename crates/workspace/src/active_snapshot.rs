//! A project with a snapshot on disk: work may happen, and every byte can be restored.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::changes::{ByProduct, Change, ChangeSet, EntryType, UnprotectedPath, unified_diff};
use super::compare::{Difference, TreeComparison, compare};
use super::edit::EditError;
use super::encoded_path::EncodedPath;
use super::fault_points::{FaultPoint, end_at, point};
use super::git::is_git_control_file;
use super::heartbeat::{Heartbeat, HeartbeatFile};
use super::journal::{Journal, JournalRecord, RestoredBy, Scope, SnapshotRecord};
use super::lease::Lease;
use super::manifest::{Area, ExcludedPath};
use super::rejected_files::RejectedFiles;
use super::restore::{Restore, RestoreError, RestoreOutcome, with_reserve};
use super::root::{Meta, Node, as_path};
use super::snapshot::{self, SnapshotError};
use super::store::Snapshot;
use super::{Inner, lock};
use supervisor_process::{ProcessTag, ProjectGuard, sweep_tagged};

/// A snapshot on disk. It is closed exactly once: by [`ActiveSnapshot::accept`], by
/// [`ActiveSnapshot::restore`], or by an undo when it is dropped.
#[derive(Debug)]
pub struct ActiveSnapshot(Option<ActiveSnapshotState>);

#[derive(Debug)]
pub(super) struct ActiveSnapshotState {
    pub(super) lease: Lease,
    pub(super) snapshot: Snapshot,
    pub(super) journal: Journal,
    pub(super) id: String,
    tag: ProcessTag,
    pub(super) since: String,
    /// Metadata of what we wrote, by path; `None` for what we deleted.
    pub(super) edited: BTreeMap<Vec<u8>, Option<Meta>>,
    /// Metadata of each by-product when it was marked.
    by_products: BTreeMap<Vec<u8>, Option<Meta>>,
    exposed: bool,
    heartbeat_thread: Option<Heartbeat>,
}

/// The result of a restore.
#[derive(Debug, Default)]
pub struct RestoreReport {
    /// Restored paths.
    pub paths: Vec<PathBuf>,
    /// Directory that keeps the rejected work for a week, if there was any.
    pub kept_in: Option<PathBuf>,
    /// Edits by other processes, left as they are.
    pub others: Vec<Change>,
    /// Edits that another process made on top of ours: undone with them, and saved with the
    /// rejected work.
    pub overwritten: Vec<PathBuf>,
    /// Properties of restored files besides bytes, mode and time that could not be restored.
    pub lost: Vec<(PathBuf, &'static str)>,
    /// Processes of a dead call that survived its server and their parents. What they wrote after
    /// those had died cannot be told from the user's work, and stays.
    pub surviving_processes: usize,
}

/// How long a restore waits for running programs before it gives up.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes reserved for a restore when the disk is full.
const RESERVE_BYTES: u64 = 4 << 20;

impl ActiveSnapshot {
    pub(super) fn new(lease: Lease) -> Result<Self, SnapshotError> {
        let inner = &lease.workspace.0;
        let failed = |source| SnapshotError::State {
            path: inner.project.clone(),
            source,
        };
        RejectedFiles::prune(&inner.state.path().join("rejected"));
        let projects = inner.state.path().join("projects");
        let snapshot = snapshot::take(&inner.layout, &inner.caps, &inner.store, &projects)?;
        let (device, inode) = inner.layout.tree.identity().map_err(failed)?;
        let mut journal = Journal::open(&inner.project).map_err(failed)?;
        journal.rotate(&inner.project).map_err(failed)?;
        if inner.layout.overlay.is_none() {
            create_reserve(&reserve_path(inner.state.path()));
            // Earlier versions kept a reserve in each project.
            let _ = std::fs::remove_file(inner.project.join("reserve"));
        }
        let tag = ProcessTag::random();
        let armed = SnapshotRecord {
            id: super::random_name(),
            tag: tag.as_str().to_owned(),
            since: super::timestamp(),
            root: EncodedPath(
                inner
                    .layout
                    .tree
                    .path()
                    .as_os_str()
                    .as_encoded_bytes()
                    .to_vec(),
            ),
            root_device: device,
            root_inode: inode,
            store: inner.store_name.clone(),
            manifest: snapshot.name.clone(),
            caps: inner.caps.clone(),
        };
        journal
            .write(&JournalRecord::Armed(Box::new(armed.clone())))
            .map_err(failed)?;
        point(FaultPoint::Armed);
        // No journal refers to the older snapshots any more.
        if let Err(e) = inner.store.keep_only(&snapshot) {
            tracing::warn!("an older snapshot could not be removed: {e}");
        }
        let SnapshotRecord { id, since, .. } = armed;
        let (edited, by_products) = (BTreeMap::new(), BTreeMap::new());
        let heartbeat_thread = inner
            .layout
            .overlay
            .is_none()
            .then(|| Heartbeat::start(&inner.project));
        let exposed = false;
        Ok(Self(Some(ActiveSnapshotState {
            lease,
            snapshot,
            journal,
            id,
            tag,
            since,
            edited,
            by_products,
            exposed,
            heartbeat_thread,
        })))
    }

    pub fn lease(&self) -> &Lease {
        &self.state().lease
    }

    /// Returns the paths that a restore would not bring back, as known when the snapshot was taken.
    pub fn unprotected(&self) -> Vec<UnprotectedPath> {
        self.state()
            .snapshot
            .manifest
            .left_out
            .iter()
            .map(UnprotectedPath::from)
            .collect()
    }

    /// Returns a file's bytes in the snapshot; `None` if it was not a file then.
    pub fn original(&self, path: &Path) -> Option<Vec<u8>> {
        let snapshot = &self.state().snapshot;
        let entry = snapshot
            .manifest
            .find(Area::Tree, path.as_os_str().as_encoded_bytes())?;
        (entry.node == Node::File)
            .then(|| snapshot.pack.read(entry.at, entry.size, &entry.hash).ok())
            .flatten()
    }

    /// Returns the project's files in the snapshot with the digests of their bytes.
    pub fn files(&self) -> impl Iterator<Item = (&Path, [u8; 32])> {
        let entries = self.state().snapshot.manifest.entries.iter();
        entries
            .filter(|e| e.area == Area::Tree && e.node == Node::File)
            .map(|e| (as_path(&e.path), e.hash))
    }

    /// Returns a digest of everything in the snapshot except times: equal for projects with equal
    /// names, types, modes and bytes.
    pub fn digest(&self) -> [u8; 32] {
        let manifest = &self.state().snapshot.manifest;
        let mut hasher = blake3::Hasher::new();
        // Git's index contains times, so it is hashed separately by its entries.
        for entry in manifest
            .entries
            .iter()
            .filter(|e| e.area == Area::Tree || e.path != b"index")
        {
            hasher.update(
                format!(
                    "{:?} {:?} {:o} {} ",
                    entry.area,
                    entry.node,
                    entry.mode,
                    entry.path.len()
                )
                .as_bytes(),
            );
            hasher.update(&entry.path).update(&entry.hash);
        }
        hasher.update(&manifest.index.unwrap_or_default());
        *hasher.finalize().as_bytes()
    }

    /// Returns the smallest scope that a restore must cover: everything, if programs have run and
    /// by-products are not marked yet.
    pub fn scope(&self) -> Scope {
        if self.state().exposed {
            Scope::Everything
        } else {
            Scope::Applied
        }
    }

    /// Returns what differs from the snapshot, with by-products listed separately.
    pub fn changes(&self) -> io::Result<ChangeSet> {
        let state = self.state();
        Ok(state.change_set(&state.compare()?))
    }

    /// Refuses changed files above the size limit before they are read: they may be larger than
    /// memory.
    pub fn ensure_within_caps(&self, changes: &ChangeSet) -> Result<(), EditError> {
        let inner = self.state().inner();
        let limit = inner.caps.max_file_bytes;
        for change in changes
            .files()
            .filter(|change| change.entry_type == EntryType::File)
        {
            let path = || change.path.to_string_lossy().into_owned();
            let meta = inner
                .layout
                .tree
                .meta(change.path.as_os_str().as_encoded_bytes());
            let meta = meta.map_err(|source| EditError::Io {
                path: path(),
                source,
            })?;
            if let Some(size) = meta.map(|meta| meta.size).filter(|size| *size > limit) {
                return Err(EditError::TooLarge {
                    path: path(),
                    size,
                    limit,
                });
            }
        }
        Ok(())
    }

    /// Returns the changes as a unified diff of at most `max` bytes.
    pub fn diff(&self, max: usize) -> io::Result<String> {
        let state = self.state();
        let mut found = state.compare()?.differences;
        found.retain(|d| !state.is_by_product(d));
        Ok(unified_diff(
            &state.inner().layout,
            &state.snapshot,
            &found,
            max,
        ))
    }

    /// Returns changes and diff from a single walk over the tree.
    pub fn review(&self, max: usize) -> io::Result<(ChangeSet, String)> {
        let state = self.state();
        let mut found = state.compare()?;
        let changes = state.change_set(&found);
        found.differences.retain(|d| !state.is_by_product(d));
        let diff = unified_diff(
            &state.inner().layout,
            &state.snapshot,
            &found.differences,
            max,
        );
        Ok((changes, diff))
    }

    /// Makes a file that the tests wrote part of the work, such as a lock file that follows a new
    /// dependency.
    pub fn adopt(&mut self, path: &Path) -> io::Result<()> {
        let state = self.state_mut();
        let path = path.as_os_str().as_encoded_bytes();
        let now = state.inner().layout.tree.meta(path)?;
        state.edited.insert(path.to_vec(), now);
        Ok(())
    }

    /// Returns a digest of everything that differs from the snapshot, including contents: equal as
    /// long as nothing is written.
    pub fn fingerprint(&self) -> io::Result<[u8; 32]> {
        let state = self.state();
        let tree = &state.inner().layout.tree;
        let mut hasher = blake3::Hasher::new();
        for found in state
            .compare()?
            .differences
            .iter()
            .filter(|d| d.area == Area::Tree && !state.is_by_product(d))
        {
            hasher
                .update(format!("{:?} {} ", found.kind, found.path.len()).as_bytes())
                .update(&found.path);
            if let Some(now) = found.now.filter(|now| now.node == Node::File) {
                hasher.update(format!("{:o} ", now.mode).as_bytes());
                if now.size > state.inner().caps.max_file_bytes {
                    // Do not read it: it may have any length. Every write changes these values too.
                    hasher.update(format!("{} {} {}", now.size, now.ino, now.ctime).as_bytes());
                } else {
                    hasher.update_reader(tree.file(&found.path)?)?;
                }
            }
        }
        Ok(*hasher.finalize().as_bytes())
    }

    /// Marks every difference that we did not apply as a by-product of the project's own tests.
    /// By-products are reported and restored, and not held against a worker.
    pub fn mark_by_products(&mut self) -> io::Result<Vec<PathBuf>> {
        let state = self.state_mut();
        let mut found = state.compare()?.differences;
        found.retain(|d| d.area == Area::Tree && !state.edited.contains_key(&d.path));
        state.journal.write(&JournalRecord::ByProducts {
            paths: found.iter().map(|d| EncodedPath(d.path.clone())).collect(),
        })?;
        point(FaultPoint::ByProducts);
        state.exposed = false;
        state
            .by_products
            .extend(found.iter().map(|d| (d.path.clone(), d.now)));
        state
            .lease
            .by_products
            .extend(found.iter().map(|d| d.path.clone()));
        Ok(found.iter().map(|d| as_path(&d.path).to_owned()).collect())
    }

    /// Registers paths that the project's own tests are known to write: they count as by-products
    /// as soon as they appear.
    pub fn expect_by_products<'a>(&mut self, paths: impl Iterator<Item = &'a PathBuf>) {
        let names = paths.map(|path| path.as_os_str().as_encoded_bytes().to_vec());
        self.state_mut().lease.by_products.extend(names);
    }

    /// Returns a guard for times when no program runs. It keeps the project locked, and recovery
    /// undoes what is open here. It does not mark the snapshot as exposed.
    pub fn idle_guard(&self) -> io::Result<ProjectGuard> {
        let state = self.state();
        Ok(ProjectGuard {
            recovery_dir: Some(state.inner().project.clone()),
            tag: state.tag.clone(),
            ..state.lease.guard()?
        })
    }

    /// Returns a guard for programs that run in the project. Until by-products are marked, any
    /// difference may be theirs, and recovery after a crash undoes all of it.
    pub fn guard(&mut self) -> io::Result<ProjectGuard> {
        let guard = self.idle_guard()?;
        let state = self.state_mut();
        if !state.exposed {
            state.journal.write(&JournalRecord::Exposed)?;
            state.exposed = true;
            point(FaultPoint::Exposed);
        }
        Ok(guard)
    }

    /// Keeps the work. The lease stays valid for another snapshot.
    pub fn accept(self) -> io::Result<Lease> {
        self.accept_for_call("")
    }

    /// Keeps the work of a call; [`super::was_accepted`] reports it from now on.
    pub fn accept_for_call(mut self, call: &str) -> io::Result<Lease> {
        let mut state = self
            .0
            .take()
            .expect("taken only when the snapshot is closed");
        point(FaultPoint::Accepting);
        match state.journal.write(&JournalRecord::Accepted {
            call: call.to_owned(),
        }) {
            Ok(()) => {
                point(FaultPoint::Accepted);
                if !call.is_empty() {
                    end_at("CallAccepted");
                }
                Ok(state.lease)
            }
            Err(e) => {
                self.0 = Some(state);
                Err(e)
            }
        }
    }

    /// Restores everything in `scope` and verifies it by comparison. What is overwritten or deleted
    /// is saved as rejected work. On an error the snapshot stays open, and the next process that
    /// locks the project tries again.
    pub fn restore(mut self, scope: Scope) -> Result<(Lease, RestoreReport), RestoreError> {
        let mut state = self
            .0
            .take()
            .expect("taken only when the snapshot is closed");
        let restored = state.restore(scope)?;
        Ok((state.lease, restored))
    }

    pub(super) fn state(&self) -> &ActiveSnapshotState {
        self.0
            .as_ref()
            .expect("taken only when the snapshot is closed")
    }

    pub(super) fn state_mut(&mut self) -> &mut ActiveSnapshotState {
        self.0
            .as_mut()
            .expect("taken only when the snapshot is closed")
    }
}

/// A drop without a decision, for example by a panic, rejects the work.
impl Drop for ActiveSnapshot {
    fn drop(&mut self) {
        if let Some(mut state) = self.0.take() {
            let scope = if state.exposed {
                Scope::Everything
            } else {
                Scope::Applied
            };
            if let Err(e) = state.restore(scope) {
                tracing::error!("an attempt that was given up could not be undone: {e}");
            }
        }
    }
}

impl ActiveSnapshotState {
    pub(super) fn inner(&self) -> &Inner {
        &self.lease.workspace.0
    }

    /// Sends a heartbeat before files are written, because the timed ones may be delayed on a busy
    /// machine.
    pub(super) fn heartbeat(&self) {
        if self.heartbeat_thread.is_some()
            && let Some(mut beats) = HeartbeatFile::join(&self.inner().project)
        {
            beats.beat();
        }
    }

    pub(super) fn compare(&self) -> io::Result<TreeComparison> {
        compare(&self.inner().layout, &self.inner().caps, &self.snapshot)
    }

    pub(super) fn is_by_product(&self, d: &Difference) -> bool {
        d.area == Area::Tree
            && self.lease.by_products.contains(&d.path)
            && !self.edited.contains_key(&d.path)
    }

    fn change_set(&self, found: &TreeComparison) -> ChangeSet {
        let (by_products, changes): (Vec<_>, Vec<_>) = found
            .differences
            .iter()
            .partition(|d| self.is_by_product(d));
        // Refs, HEAD and the index are never moved back, so they are not held against a worker
        // either.
        let (others, changes): (Vec<&Difference>, Vec<&Difference>) = changes
            .into_iter()
            .partition(|d| d.area != Area::Tree && !is_git_control_file(&d.path));
        let by_product = |d: &Difference| ByProduct {
            path: as_path(&d.path).to_owned(),
            changed_since: self.by_products.get(&d.path) != Some(&d.now),
        };
        ChangeSet {
            changes: changes.into_iter().map(Change::from).collect(),
            by_products: by_products.into_iter().map(by_product).collect(),
            others: others
                .into_iter()
                .chain(&found.others)
                .map(Change::from)
                .collect(),
            unprotected: found.left_out.iter().map(UnprotectedPath::from).collect(),
        }
    }

    fn restore(&mut self, scope: Scope) -> Result<RestoreReport, RestoreError> {
        let inner = self.lease.workspace.0.clone();
        let at_journal = |source| RestoreError::Journal {
            path: inner.project.join("journal"),
            source,
        };
        let _idle = lock::wait_until_idle(&inner.project, IDLE_TIMEOUT)
            .map_err(at_journal)?
            .ok_or(RestoreError::StillRunning)?;
        let reserve = reserve_path(inner.state.path());
        if self.exposed {
            // A command's parent may have been killed; processes it left behind would keep writing.
            sweep_tagged(&self.tag);
        }
        with_reserve(&reserve, &mut || {
            self.journal.write(&JournalRecord::RollingBack { scope })
        })
        .map_err(at_journal)?;
        point(FaultPoint::RollingBack);
        let mut rejected =
            RejectedFiles::at(rejected_dir(inner.state.path(), &self.since, &self.id));
        let restore = Restore {
            layout: &inner.layout,
            caps: &inner.caps,
            snapshot: &self.snapshot,
            id: &self.id,
            times: &self.lease.times,
            reserve: &reserve,
        };
        let overwritten = self.overwritten();
        let ours = |d: &Difference| match scope {
            Scope::Everything => true,
            Scope::Applied => {
                d.area == Area::Tree
                    && (self.edited.contains_key(&d.path)
                        || self.lease.by_products.contains(&d.path))
            }
        };
        let outcome = restore.run(&mut rejected, scope == Scope::Everything, ours)?;
        // Removed files may have been compiled. If the name is used again, its time must be later.
        for (_, path) in outcome
            .undone
            .iter()
            .filter(|(area, _)| *area == Area::Tree)
        {
            self.lease.record_time(path, super::now());
        }
        point(FaultPoint::Restored);
        with_reserve(&reserve, &mut || {
            self.journal.write(&JournalRecord::RolledBack {
                by: RestoredBy::Call,
            })
        })
        .map_err(at_journal)?;
        point(FaultPoint::RolledBack);
        Ok(report(&outcome, &rejected, overwritten))
    }

    /// Returns files that someone edited after us.
    fn overwritten(&self) -> Vec<PathBuf> {
        let tree = &self.inner().layout.tree;
        let touched = |path: &[u8], ours: &Option<Meta>| match (tree.meta(path), ours) {
            (Ok(Some(now)), Some(ours)) => {
                (now.mtime, now.size, now.node) != (ours.mtime, ours.size, ours.node)
            }
            (Ok(now), ours) => now.is_some() != ours.is_some(),
            (Err(_), _) => true,
        };
        self.edited
            .iter()
            .filter(|(p, ours)| touched(p, ours))
            .map(|(p, _)| as_path(p).to_owned())
            .collect()
    }
}

pub(super) fn report(
    outcome: &RestoreOutcome,
    rejected: &RejectedFiles,
    overwritten: Vec<PathBuf>,
) -> RestoreReport {
    let display = |(area, path): &(Area, Vec<u8>)| match area {
        Area::Tree => as_path(path).to_owned(),
        Area::Git | Area::Common => Path::new(".git").join(as_path(path)),
    };
    RestoreReport {
        paths: outcome.undone.iter().map(display).collect(),
        kept_in: rejected.path_if_used().map(Path::to_owned),
        others: outcome
            .others
            .differences
            .iter()
            .chain(&outcome.others.others)
            .map(Change::from)
            .collect(),
        overwritten,
        lost: outcome
            .lost
            .iter()
            .map(|(path, what)| (as_path(path).to_owned(), *what))
            .collect(),
        surviving_processes: 0,
    }
}

pub(super) fn rejected_dir(state: &Path, since: &str, id: &str) -> PathBuf {
    state
        .join("rejected")
        .join(format!("{}-{id}", since.replace(':', "-")))
}

/// One reserve for all projects: the disk is full for all of them at once, and the next call
/// creates a new reserve.
pub(super) fn reserve_path(state: &Path) -> PathBuf {
    state.join("reserve")
}

/// Allocates the reserve, unless the file system cannot preallocate.
fn create_reserve(path: &Path) {
    if path.exists() {
        return;
    }
    #[cfg(target_os = "linux")]
    if let Ok(file) = std::fs::File::create(path) {
        let _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, RESERVE_BYTES);
    }
}

impl From<&ExcludedPath> for UnprotectedPath {
    fn from(left_out: &ExcludedPath) -> Self {
        Self {
            path: as_path(&left_out.path).to_owned(),
            why: left_out.why,
        }
    }
}
