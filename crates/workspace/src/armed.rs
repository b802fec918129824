//! A project with a snapshot behind it: work may happen, and can be undone to the byte.
//! Knows what was applied here and what tests write. Does not know whether the work is any good.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::aside::Aside;
use super::changes::{ByProduct, Change, ChangeSet, Thing, UnprotectedPath, unified};
use super::compare::{Difference, TreeComparison, compare};
use super::edit::EditError;
use super::fault::{Point, end_at, point};
use super::git::steers;
use super::journal::{ArmedAs, Journal, JournalRecord, Scope, Who};
use super::lease::Lease;
use super::manifest::{Area, LeftOut};
use super::name::Name;
use super::pulse::{Pulse, PulseBeats};
use super::restore::{Restore, RestoreError, RestoreOutcome, with_reserve};
use super::root::{Meta, Node, as_path};
use super::snapshot::{self, ArmError};
use super::store::Snapshot;
use super::{Inner, lock};
use supervisor_process::{Guard, Tag, sweep_tagged};

/// A snapshot is on disk. Closed exactly once: by [`ArmedSnapshot::accept`], by [`ArmedSnapshot::restore`], or, if
/// dropped, by an undo.
#[derive(Debug)]
pub struct ArmedSnapshot(Option<ArmedState>);

#[derive(Debug)]
pub(super) struct ArmedState {
    pub(super) lease: Lease,
    pub(super) snapshot: Snapshot,
    pub(super) journal: Journal,
    pub(super) id: String,
    tag: Tag,
    pub(super) since: String,
    /// What we wrote, by path; `None` for what we deleted.
    pub(super) edited: BTreeMap<Vec<u8>, Option<Meta>>,
    /// How each by-product looked when it was marked.
    by_products: BTreeMap<Vec<u8>, Option<Meta>>,
    exposed: bool,
    pulse: Option<Pulse>,
}

/// What a restore did.
#[derive(Debug, Default)]
pub struct RestoreReport {
    /// Paths brought back.
    pub paths: Vec<PathBuf>,
    /// Where rejected work is kept for a week, if there was any.
    pub kept_in: Option<PathBuf>,
    /// Edits by other processes: left as they are.
    pub others: Vec<Change>,
    /// Edits that another process made on top of ours: undone with them, and kept aside.
    pub overwritten: Vec<PathBuf>,
    /// What files brought back had besides bytes, mode and time, and could not be given again.
    pub lost: Vec<(PathBuf, &'static str)>,
    /// Processes of a dead call that had outlived its server and their parents. What they wrote after those had died
    /// cannot be told from the user's work, and stays.
    pub outlived: usize,
}

/// How long programs may take to be gone before a restore gives up.
const AT_REST: Duration = Duration::from_secs(15);
/// Blocks that a restore may use when the disk is full.
const RESERVE: u64 = 4 << 20;

impl ArmedSnapshot {
    pub(super) fn new(lease: Lease) -> Result<Self, ArmError> {
        let inner = &lease.workspace.0;
        let failed = |source| ArmError::State {
            path: inner.project.clone(),
            source,
        };
        Aside::prune(&inner.state.path().join("rejected"));
        let projects = inner.state.path().join("projects");
        let snapshot = snapshot::take(&inner.layout, &inner.caps, &inner.store, &projects)?;
        let (device, inode) = inner.layout.tree.identity().map_err(failed)?;
        let mut journal = Journal::open(&inner.project).map_err(failed)?;
        journal.turn_over(&inner.project).map_err(failed)?;
        if inner.layout.view.is_none() {
            keep_reserve(&reserve(inner.state.path()));
            // Earlier versions set blocks aside for each project.
            let _ = std::fs::remove_file(inner.project.join("reserve"));
        }
        let tag = Tag::random();
        let armed = ArmedAs {
            id: super::random_name(),
            tag: tag.as_str().to_owned(),
            since: super::timestamp(),
            root: Name(
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
        point(Point::Armed);
        // Nothing names the older ones any more.
        if let Err(e) = inner.store.keep_only(&snapshot) {
            tracing::warn!("an older snapshot could not be removed: {e}");
        }
        let ArmedAs { id, since, .. } = armed;
        let (edited, by_products) = (BTreeMap::new(), BTreeMap::new());
        let pulse = inner
            .layout
            .view
            .is_none()
            .then(|| Pulse::start(&inner.project));
        let exposed = false;
        Ok(Self(Some(ArmedState {
            lease,
            snapshot,
            journal,
            id,
            tag,
            since,
            edited,
            by_products,
            exposed,
            pulse,
        })))
    }

    pub fn lease(&self) -> &Lease {
        &self.state().lease
    }

    /// What a restore would not bring back, known when the snapshot was taken.
    pub fn unprotected(&self) -> Vec<UnprotectedPath> {
        self.state()
            .snapshot
            .manifest
            .left_out
            .iter()
            .map(UnprotectedPath::from)
            .collect()
    }

    /// A file's bytes as they were when the snapshot was taken; `None` if it was no file then.
    pub fn original(&self, path: &Path) -> Option<Vec<u8>> {
        let snapshot = &self.state().snapshot;
        let entry = snapshot
            .manifest
            .find(Area::Tree, path.as_os_str().as_encoded_bytes())?;
        (entry.node == Node::File)
            .then(|| snapshot.pack.read(entry.at, entry.size, &entry.hash).ok())
            .flatten()
    }

    /// The project's files in the snapshot, each with the digest of its bytes.
    pub fn files(&self) -> impl Iterator<Item = (&Path, [u8; 32])> {
        let entries = self.state().snapshot.manifest.entries.iter();
        entries
            .filter(|e| e.area == Area::Tree && e.node == Node::File)
            .map(|e| (as_path(&e.path), e.hash))
    }

    /// Over everything in the snapshot but times: equal for projects that are equal in names, types, modes and bytes.
    pub fn digest(&self) -> [u8; 32] {
        let manifest = &self.state().snapshot.manifest;
        let mut hasher = blake3::Hasher::new();
        // Git writes times into its index; what it says beside them is told apart.
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

    /// The least that a restore must cover: everything, once programs have run whose doings are not marked yet.
    pub fn scope(&self) -> Scope {
        if self.state().exposed {
            Scope::Everything
        } else {
            Scope::Applied
        }
    }

    /// What differs from the snapshot now, by-products apart.
    pub fn changes(&self) -> io::Result<ChangeSet> {
        let state = self.state();
        Ok(state.change_set(&state.compare()?))
    }

    /// Refuses a changed file that is larger than any may be, before its bytes are asked for: it may be larger than memory.
    pub fn ensure_within_caps(&self, changes: &ChangeSet) -> Result<(), EditError> {
        let inner = self.state().inner();
        let limit = inner.caps.max_file_bytes;
        for change in changes.files().filter(|change| change.thing == Thing::File) {
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

    /// The same as a unified diff of at most `max` bytes.
    pub fn diff(&self, max: usize) -> io::Result<String> {
        let state = self.state();
        let mut found = state.compare()?.differences;
        found.retain(|d| !state.is_by_product(d));
        Ok(unified(&state.inner().layout, &state.snapshot, &found, max))
    }

    /// Both in one walk over the tree.
    pub fn review(&self, max: usize) -> io::Result<(ChangeSet, String)> {
        let state = self.state();
        let mut found = state.compare()?;
        let changes = state.change_set(&found);
        found.differences.retain(|d| !state.is_by_product(d));
        let diff = unified(
            &state.inner().layout,
            &state.snapshot,
            &found.differences,
            max,
        );
        Ok((changes, diff))
    }

    /// What the tests wrote there is part of the work, such as a lock file that follows a new dependency: it stays with it.
    pub fn adopt(&mut self, path: &Path) -> io::Result<()> {
        let state = self.state_mut();
        let path = path.as_os_str().as_encoded_bytes();
        let now = state.inner().layout.tree.meta(path)?;
        state.edited.insert(path.to_vec(), now);
        Ok(())
    }

    /// Over everything that differs from the snapshot now, with its contents: equal as long as nothing is written.
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
                .update(format!("{:?} {} ", found.what, found.path.len()).as_bytes())
                .update(&found.path);
            if let Some(now) = found.now.filter(|now| now.node == Node::File) {
                hasher.update(format!("{:o} ", now.mode).as_bytes());
                if now.size > state.inner().caps.max_file_bytes {
                    // Never read: it may be of any length. Every write of it shows here, too.
                    hasher.update(format!("{} {} {}", now.size, now.ino, now.ctime).as_bytes());
                } else {
                    hasher.update_reader(tree.file(&found.path)?)?;
                }
            }
        }
        Ok(*hasher.finalize().as_bytes())
    }

    /// What differs now and was not applied by us is the doing of the project's own tests: from here on it is by-product,
    /// reported, restored, and not held against a worker.
    pub fn mark_by_products(&mut self) -> io::Result<Vec<PathBuf>> {
        let state = self.state_mut();
        let mut found = state.compare()?.differences;
        found.retain(|d| d.area == Area::Tree && !state.edited.contains_key(&d.path));
        state.journal.write(&JournalRecord::ByProducts {
            paths: found.iter().map(|d| Name(d.path.clone())).collect(),
        })?;
        point(Point::ByProducts);
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

    /// The project's own tests are known to write these: by-product as soon as they are there.
    pub fn expect_by_products<'a>(&mut self, paths: impl Iterator<Item = &'a PathBuf>) {
        let names = paths.map(|path| path.as_os_str().as_encoded_bytes().to_vec());
        self.state_mut().lease.by_products.extend(names);
    }

    /// For the guard while no program runs: what it holds keeps the project locked, and its ticket undoes what is
    /// open here. Nothing is exposed by it, since it runs nothing.
    pub fn stand_by(&self) -> io::Result<Guard> {
        let state = self.state();
        Ok(Guard {
            ticket: Some(state.inner().project.clone()),
            tag: state.tag.clone(),
            ..state.lease.guard()?
        })
    }

    /// For programs about to run in the project. Until by-products are marked, whatever differs may be their doing, and
    /// a crash undoes all of it.
    pub fn guard(&mut self) -> io::Result<Guard> {
        let guard = self.stand_by()?;
        let state = self.state_mut();
        if !state.exposed {
            state.journal.write(&JournalRecord::Exposed)?;
            state.exposed = true;
            point(Point::Exposed);
        }
        Ok(guard)
    }

    /// The work stays. The project is held on to, and can be armed again.
    pub fn accept(self) -> io::Result<Lease> {
        self.accept_for("")
    }

    /// The same for the work of a call, which [`super::was_accepted`] tells from now on.
    pub fn accept_for(mut self, call: &str) -> io::Result<Lease> {
        let mut state = self.0.take().expect("taken only by what ends it");
        point(Point::Accepting);
        match state.journal.write(&JournalRecord::Accepted {
            call: call.to_owned(),
        }) {
            Ok(()) => {
                point(Point::Accepted);
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

    /// Everything in `scope` is as it was, shown by comparison; what was overwritten or deleted is kept aside.
    /// On an error the snapshot stays armed, and the next who takes the project tries again.
    pub fn restore(mut self, scope: Scope) -> Result<(Lease, RestoreReport), RestoreError> {
        let mut state = self.0.take().expect("taken only by what ends it");
        let restored = state.restore(scope)?;
        Ok((state.lease, restored))
    }

    pub(super) fn state(&self) -> &ArmedState {
        self.0.as_ref().expect("taken only by what ends it")
    }

    pub(super) fn state_mut(&mut self) -> &mut ArmedState {
        self.0.as_mut().expect("taken only by what ends it")
    }
}

/// Dropped without a decision, also by a panic, it is a rejection.
impl Drop for ArmedSnapshot {
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

impl ArmedState {
    pub(super) fn inner(&self) -> &Inner {
        &self.lease.workspace.0
    }

    /// A sign of life before files are written: those that come on time may wait for the processor.
    pub(super) fn beat(&self) {
        if self.pulse.is_some()
            && let Some(mut beats) = PulseBeats::join(&self.inner().project)
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
        // Where the repository stands is never moved back, so it is not held against a worker either.
        let (others, changes): (Vec<&Difference>, Vec<&Difference>) = changes
            .into_iter()
            .partition(|d| d.area != Area::Tree && !steers(&d.path));
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
        let _at_rest = lock::all_at_rest(&inner.project, AT_REST)
            .map_err(at_journal)?
            .ok_or(RestoreError::StillRunning)?;
        let reserve = reserve(inner.state.path());
        if self.exposed {
            // A command's parent may have been killed; what it left behind would write on.
            sweep_tagged(&self.tag);
        }
        with_reserve(&reserve, &mut || {
            self.journal.write(&JournalRecord::RollingBack { scope })
        })
        .map_err(at_journal)?;
        point(Point::RollingBack);
        let mut aside = Aside::at(aside_path(inner.state.path(), &self.since, &self.id));
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
        let outcome = restore.run(&mut aside, scope == Scope::Everything, ours)?;
        // What was removed may have been compiled; should the name come back, its time must be a later one.
        for (_, path) in outcome
            .undone
            .iter()
            .filter(|(area, _)| *area == Area::Tree)
        {
            self.lease.saw(path, super::now());
        }
        point(Point::Restored);
        with_reserve(&reserve, &mut || {
            self.journal
                .write(&JournalRecord::RolledBack { by: Who::Call })
        })
        .map_err(at_journal)?;
        point(Point::RolledBack);
        Ok(report(&outcome, &aside, overwritten))
    }

    /// Files that are not as we wrote them: they were edited after us.
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
    aside: &Aside,
    overwritten: Vec<PathBuf>,
) -> RestoreReport {
    let display = |(area, path): &(Area, Vec<u8>)| match area {
        Area::Tree => as_path(path).to_owned(),
        Area::Git | Area::Common => Path::new(".git").join(as_path(path)),
    };
    RestoreReport {
        paths: outcome.undone.iter().map(display).collect(),
        kept_in: aside.used().map(Path::to_owned),
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
        outlived: 0,
    }
}

pub(super) fn aside_path(state: &Path, since: &str, id: &str) -> PathBuf {
    state
        .join("rejected")
        .join(format!("{}-{id}", since.replace(':', "-")))
}

/// One for all projects: a disk is full for all of them at once, and the next call sets new blocks aside.
pub(super) fn reserve(state: &Path) -> PathBuf {
    state.join("reserve")
}

/// Some blocks for bad times. Where the file system cannot set blocks aside, there are none.
fn keep_reserve(path: &Path) {
    if path.exists() {
        return;
    }
    #[cfg(target_os = "linux")]
    if let Ok(file) = std::fs::File::create(path) {
        let _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, RESERVE);
    }
}

impl From<&LeftOut> for UnprotectedPath {
    fn from(left_out: &LeftOut) -> Self {
        Self {
            path: as_path(&left_out.path).to_owned(),
            why: left_out.why,
        }
    }
}
