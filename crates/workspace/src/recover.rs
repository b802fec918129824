//! Puts right what a killed call left behind: every armed snapshot that was not closed. Doing it twice does no harm,
//! and a crash in the midst of it is just another one to recover from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::RestoreReport;
use super::armed::{aside_path, report, reserve};
use super::aside::Aside;
use super::compare::{Difference, compare};
use super::fault::{Point, point};
use super::journal::{self, Journal, JournalRecord, Open, Scope, Who};
use super::layout::Layout;
use super::lock::{self, Mode, note_holder};
use super::manifest::Area;
use super::name::Name;
use super::pulse::Pulse;
use super::restore::{Restore, RestoreError, with_reserve};
use super::root::as_path;
use super::store::Store;
use crate::state::StateDir;
use supervisor_process::{Tag, sweep_tagged};
use supervisor_text::words;

/// What was found at one project.
#[derive(Debug)]
pub struct Recovery {
    /// The project's root, as far as it is known.
    pub root: PathBuf,
    pub outcome: RecoveryOutcome,
}

#[derive(Debug)]
pub enum RecoveryOutcome {
    Restored(RestoreReport),
    /// A process is at work there, or is putting it right.
    Busy,
    Failed(RestoreError),
}

/// One line for people: the project and what came of it.
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
                if restored.outlived > 0 {
                    let programs = words::count(restored.outlived, "program");
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

/// Looks at every project in the state directory and restores what was left armed. Projects at rest are not listed.
pub fn recover(state: &StateDir) -> io::Result<Vec<Recovery>> {
    Aside::prune(&state.path().join("rejected"));
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(state.path().join("projects")) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(e) => return Err(e),
    };
    for entry in entries {
        let project = entry?.path();
        let Ok(Some(open)) = Journal::open(&project).and_then(|mut j| j.open_snapshot()) else {
            if has_open_view(&project)
                && let Ok(Some(_held)) = lock::try_hold(&project)
            {
                end_viewers(&project)?;
            }
            continue;
        };
        let root = as_path(&open.armed.root.0).to_owned();
        let outcome = match lock::try_acquire(&project, Mode::Exclusive, lock::RECOVERING) {
            Ok(Some(_held)) => match finish(&project, None, Who::Recovery) {
                Ok(Some(restored)) => RecoveryOutcome::Restored(restored),
                // Closed between our look and the lock.
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

/// Is the work of this call in its project? The journal says so from the commit point on, also after a crash.
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

/// Was a call killed while it worked in a private view?
pub(super) fn has_open_view(project: &Path) -> bool {
    let view = project.join("view");
    view.join("journal").exists()
        && Journal::open(&view)
            .and_then(|mut journal| journal.open_snapshot())
            .is_ok_and(|open| open.is_some())
}

/// Ends what works on in the private view of a killed call; nothing has to be undone there. The project's lock is held.
pub(super) fn end_viewers(project: &Path) -> io::Result<()> {
    let mut journal = Journal::open(&project.join("view"))?;
    let Some(open) = journal.open_snapshot()? else {
        return Ok(());
    };
    if let Some(tag) = Tag::parse(&open.armed.tag) {
        sweep_tagged(&tag);
    }
    journal.write(&JournalRecord::RolledBack { by: Who::Recovery })
}

/// For the parent of a command whose server has died. Its tree has ended, it holds the project's lock and, alone, the
/// tree lock; so nothing needs to be waited for.
pub fn finish_orphaned(ticket: &Path) -> Result<Option<RestoreReport>, RestoreError> {
    note_holder(ticket, lock::RECOVERING);
    finish(ticket, None, Who::Shim)
}

/// Restores a project whose lock is held. `root` is where it is now, if that is known.
pub(super) fn finish(
    project: &Path,
    root: Option<&Path>,
    who: Who,
) -> Result<Option<RestoreReport>, RestoreError> {
    let at_journal = |source| RestoreError::Journal {
        path: project.join("journal"),
        source,
    };
    let mut journal = Journal::open(project).map_err(at_journal)?;
    let Some(open) = journal.open_snapshot().map_err(at_journal)? else {
        return Ok(None);
    };
    // The parents of its commands may have been killed too: end what carries the call's mark, then restore.
    let tag = (who == Who::Recovery)
        .then(|| Tag::parse(&open.armed.tag))
        .flatten();
    let outlived = tag.map_or(0, |tag| sweep_tagged(&tag));
    let layout = find(&open, root)?;
    let store = Store::at(project.join(&open.armed.store)).map_err(at_journal)?;
    let of_snapshot = |source| RestoreError::Snapshot {
        project: project.to_owned(),
        source,
    };
    let snapshot = store.load(&open.armed.manifest).map_err(of_snapshot)?;
    let scope = open.scope();
    // `<state>/projects/<key>` is where a project lies.
    let state = project.ancestors().nth(2).unwrap_or(project);
    let reserve = reserve(state);
    if open.rolling_back.is_none() {
        with_reserve(&reserve, &mut || {
            journal.write(&JournalRecord::RollingBack { scope })
        })
        .map_err(at_journal)?;
        point(Point::RollingBack);
    }
    let mut aside = Aside::at(aside_path(state, &open.armed.since, &open.armed.id));
    let restore = Restore {
        layout: &layout,
        caps: &open.armed.caps,
        snapshot: &snapshot,
        id: &open.armed.id,
        times: &BTreeMap::new(),
        reserve: &reserve,
    };
    let ended = if who == Who::Recovery {
        Pulse::ended(project)
    } else {
        None
    };
    let is_later = |d: &Difference| {
        ended
            .zip(d.now)
            .is_some_and(|(ended, now)| now.ctime > ended)
    };
    let mut later = open.later.clone();
    if who == Who::Recovery {
        let at_root = |source| RestoreError::Io {
            path: layout.tree.path().to_owned(),
            source,
        };
        let found = compare(&layout, &open.armed.caps, &snapshot)
            .map_err(at_root)?
            .differences;
        let found = found.into_iter().filter(is_later).map(|d| (d.area, d.path));
        let met: Vec<_> = found.filter(|one| !later.contains(one)).collect();
        if !met.is_empty() {
            let record = met
                .iter()
                .map(|(area, path)| (*area, Name(path.clone())))
                .collect();
            let record = JournalRecord::Recovering { later: record };
            with_reserve(&reserve, &mut || journal.write(&record)).map_err(at_journal)?;
            later.extend(met);
        }
    }
    // From here on what changes is this process's doing. If it is killed, too, the next one must not take half of that for
    // the work of others.
    let _pulse = Pulse::start(project);
    // Whatever came after all processes of the call were dead is the work of others, however much later this is.
    let ours = |d: &Difference| match scope {
        _ if is_later(d) || later.contains(&(d.area, d.path.clone())) => false,
        Scope::Everything => true,
        Scope::Applied => {
            d.area == Area::Tree
                && (open.edited.contains(&d.path) || open.by_products.contains(&d.path))
        }
    };
    let outcome = restore.run(&mut aside, scope == Scope::Everything, ours)?;
    point(Point::Restored);
    with_reserve(&reserve, &mut || {
        journal.write(&JournalRecord::RolledBack { by: who })
    })
    .map_err(at_journal)?;
    point(Point::RolledBack);
    Ok(Some(RestoreReport {
        outlived,
        ..report(&outcome, &aside, Vec::new())
    }))
}

/// The project's directory, which must be the very one that was armed: it may have been renamed since.
fn find(open: &Open, root: Option<&Path>) -> Result<Layout, RestoreError> {
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
