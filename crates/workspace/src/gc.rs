//! Limits the age and size of project data in the state directory: snapshots, undo records,
//! rejected work. Never removes anything that a restore needs: projects that are locked or have an
//! open journal are skipped. The snapshot of an idle project is only a cache; the next call takes a
//! new one.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::journal::Journal;
use super::lock;
use super::rejected_files::{RETENTION, remove_all};
use super::root::Root;
use crate::state::{StateDir, allocated_bytes};

/// Limits for stored data. `[state]` in the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateBounds {
    /// Data unused for longer is removed.
    pub age: Duration,
    /// Limit for the total size; the longest unused data is removed first.
    pub bytes: u64,
}

/// Data that can be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Garbage {
    pub path: PathBuf,
    pub bytes: u64,
    pub kind: GarbageKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GarbageKind {
    /// The snapshot of an idle project.
    Snapshot,
    /// A reserve file that an earlier version created per project.
    OldReserve,
    /// The undo record of an accepted call.
    Undo,
    /// Rejected work older than a week.
    Rejected,
}

/// Data used more recently may be about to be used again.
const RECENTLY_USED: Duration = Duration::from_secs(60 * 60);

/// Name prefix of a project directory that is being removed.
const REMOVED_PREFIX: &[u8] = b".gone-";
/// How often a server collects garbage.
const COLLECT_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

struct Candidate {
    garbage: Garbage,
    idle: Duration,
}

/// Finds what exceeds these limits, without removing it.
pub fn find_garbage(state: &StateDir, bounds: StateBounds) -> Vec<Garbage> {
    let mut found: Vec<Garbage> = entries(&state.path().join("rejected"))
        .filter(|path| idle_time(path) > RETENTION)
        .map(|path| garbage(path, GarbageKind::Rejected))
        .collect();
    let projects = entries(&state.path().join("projects")).filter(|path| is_idle(path));
    let mut candidates = Vec::new();
    for project in projects {
        let old_reserve = project.join("reserve");
        if old_reserve.exists() {
            found.push(garbage(old_reserve, GarbageKind::OldReserve));
        }
        let idle = match project
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(REMOVED_PREFIX))
        {
            // An interrupted removal.
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
    found.extend(exceeding(candidates, bounds));
    found.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    found
}

/// Removes the garbage and returns what was removed. Keeps what is in use again.
pub fn remove_garbage(found: Vec<Garbage>) -> Vec<Garbage> {
    let remove = |garbage: &Garbage| match garbage.kind {
        GarbageKind::Snapshot => remove_project(&garbage.path),
        GarbageKind::OldReserve | GarbageKind::Undo => std::fs::remove_file(&garbage.path),
        GarbageKind::Rejected => remove_tree(&garbage.path),
    };
    let mut removed = Vec::new();
    for garbage in found {
        match remove(&garbage) {
            Ok(()) => removed.push(garbage),
            Err(error) => tracing::warn!("`{}` was not removed: {error}", garbage.path.display()),
        }
    }
    removed
}

/// Collects garbage at most once a day for all servers of this user.
pub fn collect_daily(state: &StateDir, bounds: StateBounds) -> Vec<Garbage> {
    let stamp = state.path().join("gc");
    if idle_time(&stamp) < COLLECT_INTERVAL || std::fs::write(&stamp, "").is_err() {
        return Vec::new();
    }
    remove_garbage(find_garbage(state, bounds))
}

/// Selects what is too old, then the longest unused until the rest fits.
fn exceeding(mut candidates: Vec<Candidate>, bounds: StateBounds) -> Vec<Garbage> {
    candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.idle));
    let mut total: u64 = candidates
        .iter()
        .map(|candidate| candidate.garbage.bytes)
        .sum();
    let mut found = Vec::new();
    for Candidate { garbage, idle } in candidates {
        if idle > bounds.age || (total > bounds.bytes && idle > RECENTLY_USED) {
            total = total.saturating_sub(garbage.bytes);
            found.push(garbage);
        }
    }
    found
}

/// Returns true if no call is active and nothing has to be undone.
fn is_idle(project: &Path) -> bool {
    project.is_dir() && lock_if_idle(project).is_ok_and(|lock_file| lock_file.is_some())
}

/// Locks the project if no call is active and nothing has to be undone. An unreadable journal is an
/// error, because it may be an open one.
fn lock_if_idle(project: &Path) -> io::Result<Option<std::fs::File>> {
    let Some(lock_file) = lock::try_lock_silently(project)? else {
        return Ok(None);
    };
    let is_open =
        project.join("journal").exists() && Journal::open(project)?.open_snapshot()?.is_some();
    Ok((!is_open).then_some(lock_file))
}

fn remove_project(project: &Path) -> io::Result<()> {
    let Some(_lock) = lock_if_idle(project)? else {
        return Err(io::Error::other("it is in use again"));
    };
    // Rename it first: a new call then creates a new directory and never sees a partly removed one.
    let removed = project.with_file_name(format!(
        "{}{}",
        String::from_utf8_lossy(REMOVED_PREFIX),
        super::random_name()
    ));
    std::fs::rename(project, &removed)?;
    remove_tree(&removed)
}

/// Removes a tree even if the mode of a directory forbids it.
fn remove_tree(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    remove_all(&Root::open(parent)?, name.as_encoded_bytes())
}

/// Every call writes `holder` and, if it edits, the journal.
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

/// Returns the time since the last write; `Duration::MAX` if the path does not exist.
fn idle_time(path: &Path) -> Duration {
    let written = std::fs::symlink_metadata(path).and_then(|meta| meta.modified());
    // A time in the future means that the clock was set back; treat it as now.
    written.map_or(Duration::MAX, |at| {
        SystemTime::now().duration_since(at).unwrap_or_default()
    })
}
