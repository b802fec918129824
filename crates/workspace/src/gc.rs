//! Bounds what the state directory holds of projects by age and size: snapshots, undo records, rejected work.
//! Nothing is removed that a restore needs: a project that is locked or has an open journal is not touched. A snapshot
//! at rest is a cache, and the next call takes another.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::aside::{KEPT, remove_all};
use super::journal::Journal;
use super::lock;
use super::root::Root;
use crate::state::{StateDir, allocated_bytes};

/// How much may be kept, and for how long. `[state]` in the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateBounds {
    /// What was not used for this long goes.
    pub age: Duration,
    /// What all of it may take; what was not used for longest goes first.
    pub bytes: u64,
}

/// One thing that can go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Garbage {
    pub path: PathBuf,
    pub bytes: u64,
    pub kind: GarbageKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GarbageKind {
    /// The snapshot of a project at rest.
    Snapshot,
    /// Blocks that an earlier version set aside for each project.
    OldReserve,
    /// How an accepted call can be taken back.
    Undo,
    /// Rejected work that was kept for its week.
    Rejected,
}

/// Something was used so recently that a call may be about to use it again.
const IN_USE: Duration = Duration::from_secs(60 * 60);

/// How the name of a project begins that is being removed.
const GONE: &[u8] = b".gone-";
/// How often a server holds the state directory to its bounds.
const DAILY: Duration = Duration::from_secs(24 * 60 * 60);

struct Candidate {
    garbage: Garbage,
    idle: Duration,
}

/// What goes by these bounds, without removing it.
pub fn find_garbage(state: &StateDir, bounds: StateBounds) -> Vec<Garbage> {
    let mut found: Vec<Garbage> = entries(&state.path().join("rejected"))
        .filter(|path| idle_time(path) > KEPT)
        .map(|path| garbage(path, GarbageKind::Rejected))
        .collect();
    let projects = entries(&state.path().join("projects")).filter(|path| is_at_rest(path));
    let mut candidates = Vec::new();
    for project in projects {
        let old_reserve = project.join("reserve");
        if old_reserve.exists() {
            found.push(garbage(old_reserve, GarbageKind::OldReserve));
        }
        let idle = match project
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(GONE))
        {
            // A removal that was cut short.
            true => Duration::MAX,
            false => project_idle_time(&project),
        };
        candidates.push(Candidate {
            idle,
            garbage: garbage(project, GarbageKind::Snapshot),
        });
    }
    candidates.extend(entries(&state.path().join("undo")).map(|path| Candidate {
        idle: idle_time(&path),
        garbage: garbage(path, GarbageKind::Undo),
    }));
    found.extend(beyond(candidates, bounds));
    found.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    found
}

/// Removes it, and says what is gone. What was taken into use since is kept.
pub fn remove_garbage(found: Vec<Garbage>) -> Vec<Garbage> {
    let remove = |garbage: &Garbage| match garbage.kind {
        GarbageKind::Snapshot => remove_project(&garbage.path),
        GarbageKind::OldReserve | GarbageKind::Undo => std::fs::remove_file(&garbage.path),
        GarbageKind::Rejected => remove_tree(&garbage.path),
    };
    let mut gone = Vec::new();
    for garbage in found {
        match remove(&garbage) {
            Ok(()) => gone.push(garbage),
            Err(error) => tracing::warn!("`{}` was not removed: {error}", garbage.path.display()),
        }
    }
    gone
}

/// The same for a server that starts, at most once a day for all servers of this user.
pub fn collect_daily(state: &StateDir, bounds: StateBounds) -> Vec<Garbage> {
    let mark = state.path().join("gc");
    if idle_time(&mark) < DAILY || std::fs::write(&mark, "").is_err() {
        return Vec::new();
    }
    remove_garbage(find_garbage(state, bounds))
}

/// What is too old, then the longest unused until the rest fits.
fn beyond(mut candidates: Vec<Candidate>, bounds: StateBounds) -> Vec<Garbage> {
    candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.idle));
    let mut total: u64 = candidates
        .iter()
        .map(|candidate| candidate.garbage.bytes)
        .sum();
    let mut found = Vec::new();
    for Candidate { garbage, idle } in candidates {
        if idle > bounds.age || (total > bounds.bytes && idle > IN_USE) {
            total = total.saturating_sub(garbage.bytes);
            found.push(garbage);
        }
    }
    found
}

/// No call works there, and nothing has to be undone.
fn is_at_rest(project: &Path) -> bool {
    project.is_dir() && hold_at_rest(project).is_ok_and(|held| held.is_some())
}

/// The project's lock, if no call has it and nothing has to be undone. A journal that cannot be read may be an open one.
fn hold_at_rest(project: &Path) -> io::Result<Option<std::fs::File>> {
    let Some(held) = lock::try_hold(project)? else {
        return Ok(None);
    };
    let is_open =
        project.join("journal").exists() && Journal::open(project)?.open_snapshot()?.is_some();
    Ok((!is_open).then_some(held))
}

fn remove_project(project: &Path) -> io::Result<()> {
    let Some(_held) = hold_at_rest(project)? else {
        return Err(io::Error::other("it is in use again"));
    };
    // Under another name at once: a call that comes now makes a new one, and never meets half of this.
    let gone = project.with_file_name(format!(
        "{}{}",
        String::from_utf8_lossy(GONE),
        super::random_name()
    ));
    std::fs::rename(project, &gone)?;
    remove_tree(&gone)
}

/// Also where a kept directory forbids it.
fn remove_tree(path: &Path) -> io::Result<()> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    remove_all(&Root::open(above)?, name.as_encoded_bytes())
}

/// Every call names its holder and, where it edits, writes to the journal.
fn project_idle_time(project: &Path) -> Duration {
    let used = ["journal", "holder"]
        .iter()
        .map(|name| idle_time(&project.join(name)))
        .min();
    used.filter(|idle| *idle != Duration::MAX)
        .unwrap_or_else(|| idle_time(project))
}

fn garbage(path: PathBuf, kind: GarbageKind) -> Garbage {
    Garbage {
        bytes: allocated_bytes(&path),
        path,
        kind,
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}

/// How long nothing was written there; without end for what is not there.
fn idle_time(path: &Path) -> Duration {
    let written = std::fs::symlink_metadata(path).and_then(|meta| meta.modified());
    // A time to come is a clock that was set back: as good as now.
    written.map_or(Duration::MAX, |at| {
        SystemTime::now().duration_since(at).unwrap_or_default()
    })
}
