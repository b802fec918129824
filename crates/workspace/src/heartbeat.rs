//! Heartbeat of a call: the mtime of a file says until when processes of the call may have been
//! working. The server updates it while a snapshot is open, and so does each shim while its tree is
//! alive, because a program may keep working while the server is blocked. Recovery attributes later
//! changes to other processes.
//!
//! The mtime is set into the future, by the time the next beat may take, estimated from the delays
//! of earlier beats. So a busy machine gets more time, and on an idle one the user's own work is
//! not mistaken for the call's.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};

const INTERVAL: Duration = Duration::from_secs(1);
/// Allowance if no beat has been late so far.
const MIN_ALLOWANCE: Duration = Duration::from_secs(2);
/// Limits the allowance: a process that was stopped for minutes does not mean that the machine is
/// that busy.
const MAX_ALLOWANCE: Duration = Duration::from_secs(15);

/// Beats until it is dropped or its process ends.
#[derive(Debug)]
pub(super) struct Heartbeat {
    _stop: Option<Sender<()>>,
}

impl Heartbeat {
    pub(super) fn start(project: &Path) -> Self {
        let Some(mut beats) = HeartbeatFile::begin(project) else {
            return Self { _stop: None };
        };
        let (stop, stopped) = mpsc::channel();
        let beat = move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                beats.beat();
            }
        };
        // Without a thread, the first beat is the last one, and a recovery undoes less.
        let started = std::thread::Builder::new()
            .name(String::from("pulse"))
            .spawn(beat)
            .is_ok();
        Self {
            _stop: started.then_some(stop),
        }
    }

    /// Returns the time after which no process was alive; `None` if unknown.
    pub(super) fn last_alive(project: &Path) -> Option<i64> {
        let meta = File::open(file_path(project))
            .and_then(|file| file.metadata())
            .ok()?;
        Some(
            meta.mtime()
                .saturating_mul(1_000_000_000)
                .saturating_add(meta.mtime_nsec()),
        )
    }
}

/// The heartbeat file as used by one process. Several processes may beat for one project; the
/// latest time counts.
#[derive(Debug)]
pub struct HeartbeatFile {
    file: File,
    /// When the next beat is due.
    due: Instant,
    /// The largest recent delay; decays by an eighth with each beat that is more punctual.
    delay: Duration,
}

impl HeartbeatFile {
    /// Writes the first beat of a call and resets what an earlier call left.
    fn begin(project: &Path) -> Option<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(file_path(project))
            .ok()?;
        let _ = file.set_modified(SystemTime::now());
        let mut beats = Self {
            file,
            due: Instant::now(),
            delay: Duration::ZERO,
        };
        beats.beat();
        Some(beats)
    }

    /// Joins an existing heartbeat. Returns `None` if the project has none, as in an overlay, where
    /// nothing has to be attributed.
    pub fn join(project: &Path) -> Option<Self> {
        let file = OpenOptions::new()
            .write(true)
            .open(file_path(project))
            .ok()?;
        Some(Self {
            file,
            due: Instant::now(),
            delay: Duration::ZERO,
        })
    }

    /// Beats if a beat is due.
    pub fn beat_if_due(&mut self) {
        if Instant::now() >= self.due {
            self.beat();
        }
    }

    pub(super) fn beat(&mut self) {
        let now = Instant::now();
        self.delay = (self.delay - self.delay / 8).max(now.saturating_duration_since(self.due));
        self.due = now + INTERVAL;
        let alive_until = SystemTime::now() + INTERVAL + allowance(self.delay);
        // A time that no beat can have set comes from another clock.
        let latest_possible = alive_until + MAX_ALLOWANCE;
        let is_later_and_valid =
            |known: &SystemTime| *known > alive_until && *known <= latest_possible;
        if !self
            .file
            .metadata()
            .and_then(|meta| meta.modified())
            .is_ok_and(|known| is_later_and_valid(&known))
        {
            let _ = self.file.set_modified(alive_until);
        }
    }
}

/// Returns how late the next beat may be, given earlier delays.
fn allowance(delay: Duration) -> Duration {
    (delay * 2).clamp(MIN_ALLOWANCE, MAX_ALLOWANCE)
}

fn file_path(project: &Path) -> PathBuf {
    project.join("pulse")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanoseconds(duration: Duration) -> i64 {
        i64::try_from(duration.as_nanos()).expect("a short time")
    }

    #[test]
    fn last_beat_is_readable_after_the_end() {
        let dir = tempfile::tempdir().expect("made");
        assert_eq!(Heartbeat::last_alive(dir.path()), None);
        assert!(
            HeartbeatFile::join(dir.path()).is_none(),
            "joining does not create a heartbeat"
        );
        let before = super::super::now();
        drop(Heartbeat::start(dir.path()));
        let last_alive = Heartbeat::last_alive(dir.path()).expect("it beat");
        let ahead = nanoseconds(INTERVAL + MIN_ALLOWANCE);
        assert!(last_alive >= before + ahead && last_alive <= super::super::now() + ahead);
    }

    #[test]
    fn late_beats_extend_the_allowance() {
        let dir = tempfile::tempdir().expect("made");
        let mut late = HeartbeatFile::begin(dir.path()).expect("begun");
        let mut calm = HeartbeatFile::join(dir.path()).expect("joined");
        late.due -= Duration::from_secs(6);
        let before = super::super::now();
        late.beat();
        let alive_until = Heartbeat::last_alive(dir.path()).expect("it beat");
        assert!(
            alive_until >= before + nanoseconds(Duration::from_secs(10)),
            "{}",
            alive_until - before
        );
        calm.beat();
        assert_eq!(Heartbeat::last_alive(dir.path()), Some(alive_until));
        // With punctual beats the allowance returns to the minimum.
        for _ in 0..20 {
            late.due = Instant::now();
            late.beat();
        }
        assert_eq!(allowance(late.delay), MIN_ALLOWANCE);
        // Setting the clock back by an hour does not leave a time one hour ahead.
        late.file
            .set_modified(SystemTime::now() + Duration::from_secs(3600))
            .expect("set");
        calm.beat();
        assert!(
            Heartbeat::last_alive(dir.path())
                < Some(super::super::now() + nanoseconds(MAX_ALLOWANCE))
        );
    }
}
