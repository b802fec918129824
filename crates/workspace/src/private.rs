//! A project that is worked on in private views: nothing is written to the user's files before the work is accepted.
//! One view is the server's own, in which candidates are put together and tested; each worker gets a fresh one, from
//! which its changes are taken. Knows layers and how a change gets from one to the next. Does not know what it is worth.
//!
//! ```text
//! worker's view ── take_in ─▶ the server's view ── commit ─▶ the project
//! ```

mod commit;
mod layers;
mod moved;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use super::armed::ArmedState;
use super::compare::{Difference, compare};
use super::edit::EditError;
use super::glance::{Drift, Glance};
use super::lease::Lease;
use super::manifest::Area;
use super::root::{Meta, Node, Root, as_path, split};
use super::snapshot::ArmError;
use super::write::fresh_time;
use super::{ArmedSnapshot, Inner, RestoreReport, Scope, Workspace, store};
use supervisor_process::{Guard, Launcher, View, ViewError, WalledProject};

pub use commit::CommitError;
pub(super) use layers::UpperLayer;
use layers::WriteLayer;

/// A project behind its views. Dropped without [`PrivateProject::commit`], nothing has happened.
#[derive(Debug)]
pub struct PrivateProject {
    // The order in which these go matters: what is armed lies in the view, and the view in its layer.
    armed: ArmedSnapshot,
    worker: Option<WorkerView>,
    view: View,
    layer: WriteLayer,
    real: Lease,
    /// The project itself when the view was made.
    glance: Glance,
    launcher: Launcher,
}

/// What one worker sees, with its changes in a layer that is thrown away.
#[derive(Debug)]
struct WorkerView {
    view: View,
    layer: WriteLayer,
}

/// Why no private view was armed.
#[derive(Debug)]
pub enum NotPrivate {
    /// There can be none here; the project itself may be armed instead.
    NoView(Lease, ViewError),
    Arm(ArmError),
}

impl PrivateProject {
    /// Mounts the server's view and takes its snapshot.
    pub fn arm(lease: Lease, launcher: &Launcher) -> Result<Self, NotPrivate> {
        let inner = lease.workspace.0.clone();
        let failed = |source| {
            NotPrivate::Arm(ArmError::State {
                path: inner.project.clone(),
                source,
            })
        };
        let place = inner.project.join("view");
        store::make_private(&place).map_err(failed)?;
        // Before anything is looked at through the view: what changes from here on is noticed.
        let glance = lease.workspace.glance().map_err(failed)?;
        if let Some(path) = glance.other_owner() {
            return Err(NotPrivate::NoView(lease, ViewError::other_owner(&path)));
        }
        let layer =
            WriteLayer::kept(place.join("tests"), inner.layout.tree.path()).map_err(failed)?;
        let view = match View::mount(launcher, &layer.over(inner.layout.tree.path())) {
            Ok(view) => view,
            Err(why) => {
                // The kernel leaves a directory of mode 0 behind also when it refuses.
                layer.remove();
                return Err(NotPrivate::NoView(lease, why));
            }
        };
        moved::renew(&view.path(), &layer.built_from());
        // Nothing that is open there has to be undone: the views of a killed call are gone with it.
        let _ = std::fs::remove_file(place.join("journal"));
        let workspace = Workspace(std::sync::Arc::new(Inner {
            layout: inner
                .layout
                .seen_through(&view.path(), layer.written())
                .map_err(failed)?,
            caps: inner.caps.clone(),
            state: inner.state.clone(),
            store: store::Store::at(place.join(&inner.store_name)).map_err(failed)?,
            project: place,
            store_name: inner.store_name.clone(),
        }));
        let seen = Lease {
            workspace,
            lock: lease.lock.try_clone().map_err(failed)?,
            place: lease.place.clone(),
            mode: lease.mode,
            by_products: std::collections::BTreeSet::new(),
            times: std::collections::BTreeMap::new(),
            record: lease.record.clone(),
        };
        let armed = seen.arm().map_err(NotPrivate::Arm)?;
        Ok(Self {
            armed,
            worker: None,
            view,
            layer,
            real: lease,
            glance,
            launcher: launcher.clone(),
        })
    }

    pub fn armed(&self) -> &ArmedSnapshot {
        &self.armed
    }

    pub fn armed_mut(&mut self) -> &mut ArmedSnapshot {
        &mut self.armed
    }

    /// The project as it looks in the server's view, for this process alone.
    pub fn path(&self) -> PathBuf {
        self.view.path()
    }

    pub fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    pub fn lease(&self) -> &Lease {
        &self.real
    }

    /// For test commands: they work in the server's view.
    pub fn guard(&mut self) -> io::Result<Guard> {
        let guard = self.armed.guard()?;
        Ok(self.guard_in(guard, &self.view))
    }

    /// For a worker about to start: it works in a view of its own, which shows the project as it is now.
    pub fn worker_guard(&mut self) -> io::Result<Guard> {
        self.drop_worker();
        let place = self.armed.state().inner().project.join("worker");
        let layer = WriteLayer::fresh(place)?;
        let view = match View::mount(&self.launcher, &layer.over(self.real.workspace.root())) {
            Ok(view) => view,
            Err(why) => {
                layer.remove();
                return Err(io::Error::other(why));
            }
        };
        let guard = self.guard_in(self.armed.stand_by()?, &view);
        self.worker = Some(WorkerView { view, layer });
        Ok(guard)
    }

    /// Nothing has to be undone should the server die, so no ticket is handed on.
    fn guard_in(&self, guard: Guard, view: &View) -> Guard {
        let project = guard.project.clone().map(|project| WalledProject {
            root: self.real.workspace.root().to_owned(),
            git: self.real.git_directories(),
            view: Some(view.holder()),
            view_files: Some(view.path()),
            record: project.record,
        });
        Guard {
            ticket: None,
            project,
            ..guard
        }
    }

    /// Takes what the last worker changed into the server's view. Only what it wrote itself counts: what the user did
    /// meanwhile shines through its view and is not in its layer. Build and cache directories are left behind.
    pub fn take_in(&mut self) -> Result<(), EditError> {
        let Some(worker) = self.worker.take() else {
            return Ok(());
        };
        let taken = self.take_from(&worker);
        worker.throw_away();
        taken
    }

    fn take_from(&mut self, worker: &WorkerView) -> Result<(), EditError> {
        let failed = |source| EditError::Io {
            path: String::from("the worker's view"),
            source,
        };
        let layout = &self.real.workspace.0.layout;
        let seen = layout
            .seen_through(&worker.view.path(), worker.layer.written())
            .map_err(failed)?;
        let state = self.armed.state_mut();
        let found = compare(&seen, &state.inner().caps, &state.snapshot).map_err(failed)?;
        let changes: Vec<&Difference> = found
            .differences
            .iter()
            .filter(|d| d.area == Area::Tree)
            .collect();
        // The deepest first, so that directories are empty when their turn comes.
        for gone in changes.iter().rev().filter(|d| d.now.is_none()) {
            let done = state.inner().layout.tree.remove(&gone.path);
            state.note_edit(&gone.path).and(done).map_err(failed)?;
        }
        for change in &changes {
            if let Some(now) = &change.now {
                state.copy_in(&seen.tree, &change.path, now)?;
            }
        }
        Ok(())
    }

    fn drop_worker(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.throw_away();
        }
    }

    /// The server's view is as it was armed, for the next attempt.
    pub fn reject(mut self) -> Result<(Self, RestoreReport), super::RestoreError> {
        self.drop_worker();
        let Self {
            armed,
            worker,
            view,
            layer,
            real,
            glance,
            launcher,
        } = self;
        let (lease, restored) = armed.restore(Scope::Everything)?;
        let path = real.workspace.root().to_owned();
        let armed = lease.arm().map_err(|error| super::RestoreError::Io {
            path,
            source: io::Error::other(error.to_string()),
        })?;
        Ok((
            Self {
                armed,
                worker,
                view,
                layer,
                real,
                glance,
                launcher,
            },
            restored,
        ))
    }

    /// Nothing is written; the project is given back.
    pub fn leave(mut self) -> Lease {
        self.drop_worker();
        let Self {
            armed,
            view,
            layer,
            real,
            ..
        } = self;
        let state = armed.state();
        let seen: BTreeSet<Vec<u8>> = state
            .edited
            .keys()
            .chain(state.lease.times.keys())
            .cloned()
            .collect();
        if let Err(error) = armed.accept() {
            tracing::debug!("the view's journal could not be closed: {error}");
        }
        drop(view);
        layer.tidy(real.workspace.root(), &mut seen.iter().map(Vec::as_slice));
        real
    }

    /// What was changed in the project itself since the view was made.
    pub fn drift(&self) -> io::Result<Drift> {
        Ok(self.glance.drift(&self.real.workspace.glance()?))
    }
}

impl WorkerView {
    fn throw_away(self) {
        drop(self.view);
        self.layer.remove();
    }
}

impl ArmedState {
    /// Remembers a path as one of ours.
    fn note_edit(&mut self, path: &[u8]) -> io::Result<()> {
        let now = self.inner().layout.tree.meta(path)?;
        if let Some(meta) = now {
            self.lease.saw(path, meta.mtime);
        }
        self.edited.insert(path.to_vec(), now);
        Ok(())
    }

    /// Copies one name of a worker's view into ours, with a fresh time: build tools believe times.
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
        let there = if path.is_empty() {
            None
        } else {
            tree.meta(path).map_err(failed)?
        };
        if there.is_some_and(|there| there.node != meta.node) {
            tree.remove(path).map_err(failed)?;
        }
        if !path.is_empty() {
            tree.make_dirs(split(path).0, 0o755).map_err(failed)?;
        }
        let temporary = super::temporary(&self.id, &super::random_name()).into_bytes();
        let copied = match meta.node {
            Node::Dir => tree
                .make_dirs(path, 0o755)
                .and_then(|_| tree.chmod(path, meta.mode)),
            // Never read: it may be larger than any disk.
            Node::File if meta.size > limit => {
                return Err(EditError::TooLarge {
                    path: name(),
                    size: meta.size,
                    limit,
                });
            }
            Node::File => {
                let mtime = fresh_time(self.newest_time(path, there.map(|there| there.mtime)));
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
            // A socket or device is shown as the special file it is; what it leads to is not ours to open.
            Node::Fifo | Node::Special if there.is_none_or(|there| there.node != meta.node) => {
                tree.make_fifo(path, 0o600)
            }
            Node::Fifo | Node::Special => Ok(()),
        };
        copied.and_then(|()| self.note_edit(path)).map_err(failed)
    }
}
