//! Works on a project in overlays: nothing is written to the user's files before the work is
//! accepted. The server has one overlay, in which candidates are assembled and tested. Each worker
//! gets a fresh one, from which its changes are taken.
//!
//! ```text
//! worker's overlay ── take_worker_changes ─▶ server's overlay ── commit ─▶ the project
//! ```

mod commit;
mod layers;
mod rebase;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use super::active_snapshot::ActiveSnapshotState;
use super::compare::{Difference, compare};
use super::edit::EditError;
use super::lease::Lease;
use super::manifest::Area;
use super::metadata_snapshot::{Drift, MetadataSnapshot};
use super::root::{Meta, Node, Root, as_path, split};
use super::snapshot::SnapshotError;
use super::write::fresh_time;
use super::{ActiveSnapshot, Inner, RestoreReport, Scope, Workspace, store};
use supervisor_process::{
    Launcher, OverlayError, OverlayLayers, OverlayMount, ProjectGuard, SandboxedProject,
};

pub use commit::CommitError;
pub(super) use layers::UpperLayer;
use layers::WriteLayer;

/// A project behind overlays. If it is dropped without [`OverlayProject::commit`], the project is
/// unchanged.
#[derive(Debug)]
pub struct OverlayProject {
    // Drop order matters: the snapshot uses the overlay, and the overlay uses its layer.
    snapshot: ActiveSnapshot,
    worker: Option<WorkerOverlay>,
    overlay: OverlayMount,
    layer: WriteLayer,
    lease: Lease,
    /// Metadata of the project itself when the overlay was mounted.
    metadata: MetadataSnapshot,
    launcher: Launcher,
}

/// The overlay of one worker; its layer is thrown away.
#[derive(Debug)]
struct WorkerOverlay {
    overlay: OverlayMount,
    layer: WriteLayer,
    /// A run of tests: what it writes is not an edit.
    is_run: bool,
}

/// Why the overlay could not be opened.
#[derive(Debug)]
pub enum OverlayOpenError {
    /// Overlays are not available here; the caller may take a snapshot of the project itself
    /// instead.
    Unavailable(Lease, OverlayError),
    Snapshot(SnapshotError),
}

impl OverlayProject {
    /// Mounts the server's overlay and takes its snapshot.
    pub fn open(lease: Lease, launcher: &Launcher) -> Result<Self, OverlayOpenError> {
        let inner = lease.workspace.0.clone();
        let failed = |source| {
            OverlayOpenError::Snapshot(SnapshotError::State {
                path: inner.project.clone(),
                source,
            })
        };
        let state_dir = inner.project.join("view");
        store::make_private(&state_dir).map_err(failed)?;
        // Before anything is read through the overlay, so that later changes are noticed.
        let metadata = lease.workspace.metadata_snapshot().map_err(failed)?;
        if let Some(path) = metadata.other_owner() {
            return Err(OverlayOpenError::Unavailable(
                lease,
                OverlayError::other_owner(&path),
            ));
        }
        let layer =
            WriteLayer::with_build_output(state_dir.join("tests"), inner.layout.tree.path())
                .map_err(failed)?;
        let overlay =
            match OverlayMount::mount(launcher, &layer.overlay_layers(inner.layout.tree.path())) {
                Ok(overlay) => overlay,
                Err(why) => {
                    // The kernel leaves a directory of mode 0 behind even when the mount fails.
                    layer.remove();
                    return Err(OverlayOpenError::Unavailable(lease, why));
                }
            };
        rebase::touch(&overlay.path(), &layer.built_from());
        // An open snapshot there needs no undo: the overlays of a killed call are gone with it.
        let _ = std::fs::remove_file(state_dir.join("journal"));
        let workspace = Workspace(std::sync::Arc::new(Inner {
            layout: inner
                .layout
                .through_overlay(&overlay.path(), layer.upper_layer())
                .map_err(failed)?,
            caps: inner.caps.clone(),
            state: inner.state.clone(),
            store: store::Store::at(state_dir.join(&inner.store_name)).map_err(failed)?,
            project: state_dir,
            store_name: inner.store_name.clone(),
        }));
        let overlay_lease = Lease {
            workspace,
            lock: lease.lock.try_clone().map_err(failed)?,
            dir_lock: lease.dir_lock.clone(),
            mode: lease.mode,
            by_products: std::collections::BTreeSet::new(),
            times: std::collections::BTreeMap::new(),
            record: lease.record.clone(),
        };
        let snapshot = overlay_lease
            .take_snapshot()
            .map_err(OverlayOpenError::Snapshot)?;
        Ok(Self {
            snapshot,
            worker: None,
            overlay,
            layer,
            lease,
            metadata,
            launcher: launcher.clone(),
        })
    }

    pub fn snapshot(&self) -> &ActiveSnapshot {
        &self.snapshot
    }

    pub fn snapshot_mut(&mut self) -> &mut ActiveSnapshot {
        &mut self.snapshot
    }

    /// Returns the path of the server's overlay, valid only in this process.
    pub fn path(&self) -> PathBuf {
        self.overlay.path()
    }

    pub fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Returns a guard for test commands, which run in the server's overlay.
    pub fn guard(&mut self) -> io::Result<ProjectGuard> {
        let guard = self.snapshot.guard()?;
        Ok(self.guard_in(guard, &self.overlay))
    }

    /// Returns a guard for a new worker, which runs in its own overlay of the current project.
    pub fn worker_guard(&mut self) -> io::Result<ProjectGuard> {
        self.mount_layer(false)
    }

    /// Returns a guard for one run of tests, in a layer of its own on top of the server's overlay.
    /// [`Self::take_worker_changes`] copies what it did to files of the project; what it built and
    /// cached is thrown away. The server's overlay must not be written while it runs.
    pub fn run_guard(&mut self) -> io::Result<ProjectGuard> {
        self.mount_layer(true)
    }

    fn mount_layer(&mut self, is_run: bool) -> io::Result<ProjectGuard> {
        self.drop_worker();
        let state_dir = self.snapshot.state().inner().project.join("worker");
        let layer = WriteLayer::empty(state_dir)?;
        let layers = OverlayLayers {
            between: is_run.then(|| self.layer.upper()),
            ..layer.overlay_layers(self.lease.workspace.root())
        };
        let overlay = match OverlayMount::mount(&self.launcher, &layers) {
            Ok(overlay) => overlay,
            Err(why) => {
                layer.remove();
                return Err(io::Error::other(why));
            }
        };
        let mut guard = self.guard_in(self.snapshot.idle_guard()?, &overlay);
        if let Some(project) = &mut guard.project {
            project.is_single_run = is_run;
        }
        self.worker = Some(WorkerOverlay {
            overlay,
            layer,
            is_run,
        });
        Ok(guard)
    }

    /// Nothing has to be undone if the server dies, so there is no recovery directory.
    fn guard_in(&self, guard: ProjectGuard, overlay: &OverlayMount) -> ProjectGuard {
        let project = guard.project.clone().map(|project| SandboxedProject {
            root: self.lease.workspace.root().to_owned(),
            git: self.lease.git_directories(),
            overlay_holder: Some(overlay.holder()),
            overlay_files: Some(overlay.path()),
            is_single_run: false,
            record: project.record,
        });
        ProjectGuard {
            recovery_dir: None,
            project,
            ..guard
        }
    }

    /// Copies the last worker's changes into the server's overlay. Only its own writes count: the
    /// user's edits meanwhile are visible in its overlay but not in its layer. Build and cache
    /// directories are left behind.
    pub fn take_worker_changes(&mut self) -> Result<(), EditError> {
        let Some(worker) = self.worker.take() else {
            return Ok(());
        };
        let result = self.copy_worker_changes(&worker);
        worker.discard();
        result
    }

    fn copy_worker_changes(&mut self, worker: &WorkerOverlay) -> Result<(), EditError> {
        let failed = |source| EditError::Io {
            path: String::from("the worker's view"),
            source,
        };
        let layout = &self.lease.workspace.0.layout;
        let seen = layout
            .through_overlay(&worker.overlay.path(), worker.layer.upper_layer())
            .map_err(failed)?;
        let state = self.snapshot.state_mut();
        let found = compare(&seen, &state.inner().caps, &state.snapshot).map_err(failed)?;
        let tree = state.inner().layout.tree.clone();
        let changes: Vec<&Difference> = found
            .differences
            .iter()
            .filter(|d| d.area == Area::Tree && !(worker.is_run && is_equal(d, &seen.tree, &tree)))
            .collect();
        // Deepest first, so that directories are empty when they are removed.
        for gone in changes.iter().rev().filter(|d| d.now.is_none()) {
            tree.remove(&gone.path).map_err(failed)?;
        }
        for change in &changes {
            if let Some(now) = &change.now {
                state.copy_in(&seen.tree, &change.path, now)?;
            }
            if !worker.is_run {
                state.record_edit(&change.path).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Files of the project that the last run of tests wrote, also if it put them back. Files that were written in the
    /// server's overlay before count only if they are edits.
    pub fn files_written_by_run(&self) -> Vec<PathBuf> {
        let Some(run) = self.worker.as_ref().filter(|worker| worker.is_run) else {
            return Vec::new();
        };
        let (state, before) = (self.snapshot.state(), self.layer.upper_layer());
        let tree = &state.inner().layout.tree;
        let is_file =
            |path: &[u8]| matches!(tree.meta(path), Ok(Some(meta)) if meta.node == Node::File);
        let mut written = run.layer.upper_layer().paths();
        written.retain(|path| {
            is_file(path) && (state.edited.contains_key(path) || !before.contains(path))
        });
        written
            .iter()
            .map(|path| as_path(path).to_owned())
            .collect()
    }

    /// Throws away what the last worker or run did.
    pub fn drop_worker(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.discard();
        }
    }

    /// Restores the server's overlay to its snapshot, for the next attempt.
    pub fn reject(mut self) -> Result<(Self, RestoreReport), super::RestoreError> {
        self.drop_worker();
        let Self {
            snapshot,
            worker,
            overlay,
            layer,
            lease,
            metadata,
            launcher,
        } = self;
        let (overlay_lease, restored) = snapshot.restore(Scope::Everything)?;
        let path = lease.workspace.root().to_owned();
        let snapshot = overlay_lease
            .take_snapshot()
            .map_err(|error| super::RestoreError::Io {
                path,
                source: io::Error::other(error.to_string()),
            })?;
        Ok((
            Self {
                snapshot,
                worker,
                overlay,
                layer,
                lease,
                metadata,
                launcher,
            },
            restored,
        ))
    }

    /// Discards all work and returns the lease of the project.
    pub fn discard(mut self) -> Lease {
        self.drop_worker();
        let Self {
            snapshot,
            overlay,
            layer,
            lease,
            ..
        } = self;
        let state = snapshot.state();
        let touched: BTreeSet<Vec<u8>> = state
            .edited
            .keys()
            .chain(state.lease.times.keys())
            .cloned()
            .collect();
        if let Err(error) = snapshot.accept() {
            tracing::debug!("the view's journal could not be closed: {error}");
        }
        drop(overlay);
        layer.keep_build_output(
            lease.workspace.root(),
            &mut touched.iter().map(Vec::as_slice),
        );
        lease
    }

    /// Returns what changed in the project itself since the overlay was mounted.
    pub fn drift(&self) -> io::Result<Drift> {
        Ok(self
            .metadata
            .drift(&self.lease.workspace.metadata_snapshot()?))
    }
}

/// Whether a changed file is the same in both trees. Programs that only open a file for writing copy it into their layer.
fn is_equal(change: &Difference, a: &Root, b: &Root) -> bool {
    let Some(now) = change.now.filter(|now| now.node == Node::File) else {
        return false;
    };
    match b.meta(&change.path) {
        Ok(Some(other)) => {
            (now.node, now.size, now.mode) == (other.node, other.size, other.mode)
                && a.read(&change.path)
                    .is_ok_and(|ours| b.read(&change.path).is_ok_and(|theirs| ours == theirs))
        }
        _ => false,
    }
}

impl WorkerOverlay {
    fn discard(self) {
        drop(self.overlay);
        self.layer.remove();
    }
}

impl ActiveSnapshotState {
    /// Records a path as edited by us.
    fn record_edit(&mut self, path: &[u8]) -> io::Result<()> {
        let now = self.inner().layout.tree.meta(path)?;
        if let Some(meta) = now {
            self.lease.record_time(path, meta.mtime);
        }
        self.edited.insert(path.to_vec(), now);
        Ok(())
    }

    /// Copies one path from a worker's overlay into ours, with a fresh mtime because build tools
    /// rely on it.
    fn copy_in(&mut self, from: &Root, path: &[u8], meta: &Meta) -> Result<(), EditError> {
        let name = || as_path(path).to_string_lossy().into_owned();
        let failed = |source| EditError::Io {
            path: name(),
            source,
        };
        let (tree, limit) = (
            self.inner().layout.tree.clone(),
            self.inner().caps.max_file_bytes,
        );
        let existing = if path.is_empty() {
            None
        } else {
            tree.meta(path).map_err(failed)?
        };
        if existing.is_some_and(|existing| existing.node != meta.node) {
            tree.remove(path).map_err(failed)?;
        }
        if !path.is_empty() {
            tree.make_dirs(split(path).0, 0o755).map_err(failed)?;
        }
        let temporary = super::temporary_name(&self.id, &super::random_name()).into_bytes();
        let copied = match meta.node {
            Node::Dir => tree
                .make_dirs(path, 0o755)
                .and_then(|_| tree.chmod(path, meta.mode)),
            // Do not read it: it may be larger than any disk.
            Node::File if meta.size > limit => {
                return Err(EditError::TooLarge {
                    path: name(),
                    size: meta.size,
                    limit,
                });
            }
            Node::File => {
                let mtime =
                    fresh_time(self.newest_time(path, existing.map(|existing| existing.mtime)));
                from.file(path).and_then(|file| {
                    let mut file = io::Read::take(file, limit);
                    let fill = |to: &mut std::fs::File| io::copy(&mut file, to).map(drop);
                    tree.stage(path, temporary, meta.mode, mtime, false, fill)?
                        .commit()
                })
            }
            Node::Link => from
                .link_target(path)
                .and_then(|target| tree.stage_link(path, temporary, &target)?.commit()),
            // A fifo stands for a socket or device, so that the change is visible; the target is
            // never opened.
            Node::Fifo | Node::Special
                if existing.is_none_or(|existing| existing.node != meta.node) =>
            {
                tree.make_fifo(path, 0o600)
            }
            Node::Fifo | Node::Special => Ok(()),
        };
        copied.map_err(failed)
    }
}
