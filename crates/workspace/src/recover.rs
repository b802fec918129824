//! Recovers from killed calls: restores every snapshot that was not closed. Running it twice is
//! harmless, and a crash during recovery is recovered like any other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::RestoreReport;
use super::active_snapshot::{rejected_dir, report, reserve_path};
use super::compare::{Difference, compare};
use super::encoded_path::EncodedPath;
use super::fault_points::{FaultPoint, point};
use super::heartbeat::Heartbeat;
use super::journal::{self, Journal, JournalRecord, OpenSnapshot, RestoredBy, Scope};
use super::layout::Layout;
use super::lock::{self, Mode, record_holder};
use super::manifest::Area;
use super::rejected_files::RejectedFiles;
use super::restore::{Restore, RestoreError, with_reserve};
use super::root::as_path;
use super::store::Store;
use crate::state::StateDir;
use supervisor_process::{ProcessTag, sweep_tagged};
use supervisor_text::words;

/// The result for one project.
#[derive(Debug)]
pub struct Recovery {
    /// The project's root as recorded in the journal.
    pub root: PathBuf,
    pub outcome: RecoveryOutcome,
}

#[derive(Debug)]
pub enum RecoveryOutcome {
    Restored(RestoreReport),
    /// A call is active there, or is being recovered.
    Busy,
    Failed(RestoreError),
}

/// One line: the project and the outcome.
impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", words::plain(&self.root.to_string_lossy()))?;
        match &self.outcome {
            RecoveryOutcome::Restored(restored) => {
                write!(f, "{} restored", words::count(restored.paths.len(), "path"))?;
                if let Some(kept) = &restored.kept_in {
                    write!(
                        f,
                        ", what was there is kept in {} for 7 days",
                        kept.display()
                    )?;
                }
                if !restored.others.is_empty() {
                    write!(
                        f,
                        ", {} of others left alone",
                        words::count(restored.others.len(), "edit")
                    )?;
                }
                if restored.surviving_processes > 0 {
                    let programs = words::count(restored.surviving_processes, "program");
                    write!(
                        f,
                        ", {programs} of the call had outlived it and ended now: look at what is left"
                    )?;
                }
                Ok(())
            }
            RecoveryOutcome::Busy => {
                f.write_str("a call is at work there, or is being undone right now")
            }
            RecoveryOutcome::Failed(error) => write!(f, "{error}"),
        }
    }
}

/// Restores every open snapshot in the state directory. Idle projects are not listed.
pub fn recover(state: &StateDir) -> io::Result<Vec<Recovery>> {
    RejectedFiles::prune(&state.path().join("rejected"));
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(state.path().join("projects")) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(e) => return Err(e),
    };
    for entry in entries {
        let project = entry?.path();
        let Ok(Some(open)) = Journal::open(&project).and_then(|mut j| j.open_snapshot()) else {
            if has_open_overlay(&project)
                && let Ok(Some(_lock)) = lock::try_lock_silently(&project)
            {
                end_overlay_processes(&project)?;
            }
            continue;
        };
        let root = as_path(&open.armed.root.0).to_owned();
        let outcome = match lock::try_acquire(&project, Mode::Exclusive, lock::RECOVERING) {
            Ok(Some(_lock)) => match finish(&project, None, RestoredBy::Recovery) {
                Ok(Some(restored)) => RecoveryOutcome::Restored(restored),
                // Closed before we got the lock.
                Ok(None) => continue,
                Err(e) => RecoveryOutcome::Failed(e),
            },
            Ok(None) => RecoveryOutcome::Busy,
            Err(lock::LockError::Unusable { path, source }) => {
                RecoveryOutcome::Failed(RestoreError::Journal { path, source })
            }
            Err(_) => RecoveryOutcome::Busy,
        };
        found.push(Recovery { root, outcome });
    }
    Ok(found)
}

/// Returns true if the work of this call was accepted. The journal records this from the commit
/// point on, so the answer survives a crash.
pub fn was_accepted(state: &StateDir, call: &str) -> bool {
    let projects = std::fs::read_dir(state.path().join("projects"))
        .into_iter()
        .flatten()
        .flatten();
    !call.is_empty()
        && projects
            .map(|entry| entry.path())
            .any(|project| journal::has_accepted(&project, call))
}

/// Returns true if a call was killed while it worked in an overlay.
pub(super) fn has_open_overlay(project: &Path) -> bool {
    let overlay_dir = project.join("view");
    overlay_dir.join("journal").exists()
        && Journal::open(&overlay_dir)
            .and_then(|mut journal| journal.open_snapshot())
            .is_ok_and(|open| open.is_some())
}

/// Kills processes that are still running in the overlay of a killed call. Nothing has to be undone
/// there. The caller holds the project lock.
pub(super) fn end_overlay_processes(project: &Path) -> io::Result<()> {
    let mut journal = Journal::open(&project.join("view"))?;
    let Some(open) = journal.open_snapshot()? else {
        return Ok(());
    };
    if let Some(tag) = ProcessTag::parse(&open.armed.tag) {
        sweep_tagged(&tag);
    }
    journal.write(&JournalRecord::RolledBack {
        by: RestoredBy::Recovery,
    })
}

/// Recovers a project from a shim whose server has died. Its tree has ended, and it holds the
/// project lock and, exclusively, the tree lock, so there is nothing to wait for.
pub fn finish_orphaned(recovery_dir: &Path) -> Result<Option<RestoreReport>, RestoreError> {
    record_holder(recovery_dir, lock::RECOVERING);
    finish(recovery_dir, None, RestoredBy::Shim)
}

/// Restores a project whose lock is held. `root` is its current path, if known.
pub(super) fn finish(
    project: &Path,
    root: Option<&Path>,
    who: RestoredBy,
) -> Result<Option<RestoreReport>, RestoreError> {
    let at_journal = |source| RestoreError::Journal {
        path: project.join("journal"),
        source,
    };
    let mut journal = Journal::open(project).map_err(at_journal)?;
    let Some(open) = journal.open_snapshot().map_err(at_journal)? else {
        return Ok(None);
    };
    // The shims may have been killed too: kill every process with the call's tag, then restore.
    let tag = (who == RestoredBy::Recovery)
        .then(|| ProcessTag::parse(&open.armed.tag))
        .flatten();
    let surviving_processes = tag.map_or(0, |tag| sweep_tagged(&tag));
    let layout = open_project(&open, root)?;
    let store = Store::at(project.join(&open.armed.store)).map_err(at_journal)?;
    let at_snapshot = |source| RestoreError::Snapshot {
        project: project.to_owned(),
        source,
    };
    let snapshot = store.load(&open.armed.manifest).map_err(at_snapshot)?;
    let scope = open.scope();
    // A project's state directory is `<state>/projects/<key>`.
    let state = project.ancestors().nth(2).unwrap_or(project);
    let reserve = reserve_path(state);
    if open.rolling_back.is_none() {
        with_reserve(&reserve, &mut || {
            journal.write(&JournalRecord::RollingBack { scope })
        })
        .map_err(at_journal)?;
        point(FaultPoint::RollingBack);
    }
    let mut rejected = RejectedFiles::at(rejected_dir(state, &open.armed.since, &open.armed.id));
    let restore = Restore {
        layout: &layout,
        caps: &open.armed.caps,
        snapshot: &snapshot,
        id: &open.armed.id,
        times: &BTreeMap::new(),
        reserve: &reserve,
    };
    let last_alive = if who == RestoredBy::Recovery {
        Heartbeat::last_alive(project)
    } else {
        None
    };
    let is_later = |d: &Difference| {
        last_alive
            .zip(d.now)
            .is_some_and(|(last_alive, now)| now.ctime > last_alive)
    };
    let mut later = open.later.clone();
    if who == RestoredBy::Recovery {
        let at_root = |source| RestoreError::Io {
            path: layout.tree.path().to_owned(),
            source,
        };
        let found = compare(&layout, &open.armed.caps, &snapshot)
            .map_err(at_root)?
            .differences;
        let found = found.into_iter().filter(is_later).map(|d| (d.area, d.path));
        let new_paths: Vec<_> = found.filter(|one| !later.contains(one)).collect();
        if !new_paths.is_empty() {
            let record = new_paths
                .iter()
                .map(|(area, path)| (*area, EncodedPath(path.clone())))
                .collect();
            let record = JournalRecord::Recovering { later: record };
            with_reserve(&reserve, &mut || journal.write(&record)).map_err(at_journal)?;
            later.extend(new_paths);
        }
    }
    // Changes from now on are made by this process. If it is killed too, the next recovery must not
    // attribute them to others.
    let _heartbeat = Heartbeat::start(project);
    // Changes after the death of all processes of the call are the work of others, however late
    // this recovery runs.
    let ours = |d: &Difference| match scope {
        _ if is_later(d) || later.contains(&(d.area, d.path.clone())) => false,
        Scope::Everything => true,
        Scope::Applied => {
            d.area == Area::Tree
                && (open.edited.contains(&d.path) || open.by_products.contains(&d.path))
        }
    };
    let outcome = restore.run(&mut rejected, scope == Scope::Everything, ours)?;
    point(FaultPoint::Restored);
    with_reserve(&reserve, &mut || {
        journal.write(&JournalRecord::RolledBack { by: who })
    })
    .map_err(at_journal)?;
    point(FaultPoint::RolledBack);
    Ok(Some(RestoreReport {
        surviving_processes,
        ..report(&outcome, &rejected, Vec::new())
    }))
}

/// Opens the project's directory. It must be the same directory as in the snapshot; it may have
/// been renamed since.
fn open_project(open: &OpenSnapshot, root: Option<&Path>) -> Result<Layout, RestoreError> {
    let armed = (open.armed.root_device, open.armed.root_inode);
    let recorded = as_path(&open.armed.root.0);
    for path in [Some(recorded), root].into_iter().flatten() {
        if let Ok(layout) = Layout::open(path)
            && layout.tree.identity().is_ok_and(|found| found == armed)
        {
            return Ok(layout);
        }
    }
    let source = io::Error::new(
        io::ErrorKind::NotFound,
        "the project that was armed is not there any more",
    );
    Err(RestoreError::Io {
        path: recorded.to_owned(),
        source,
    })
}
