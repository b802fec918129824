//! Until when may a process of a call have been at work? A file's time says so. The server sets it while a project is armed,
//! and so does the parent of every program as long as the program's tree lives: a program may work on while the server
//! is held up. After a crash of all of them, whatever was changed later than that is not the dead call's doing.
//!
//! The time is a promise: it is set ahead by as long as the next beat may take, judged by how late the beats before it
//! came. A busy machine is thereby given more time, and a calm one none that could hide the work of the user.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};

const BEAT: Duration = Duration::from_secs(1);
/// How late a beat may come where none has been late so far.
const LEAST_ALLOWANCE: Duration = Duration::from_secs(2);
/// A process that was stopped for minutes has not seen a machine that is busy for minutes.
const MOST_ALLOWANCE: Duration = Duration::from_secs(15);

/// Beats until it is dropped, or its process ends.
#[derive(Debug)]
pub(super) struct Pulse {
    _stop: Option<Sender<()>>,
}

impl Pulse {
    pub(super) fn start(project: &Path) -> Self {
        let Some(mut beats) = PulseBeats::begin(project) else {
            return Self { _stop: None };
        };
        let (stop, stopped) = mpsc::channel();
        let beat = move || {
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                beats.beat();
            }
        };
        // Without a thread to be had the last beat is the first, and a recovery undoes less.
        let beating = std::thread::Builder::new()
            .name(String::from("pulse"))
            .spawn(beat)
            .is_ok();
        Self {
            _stop: beating.then_some(stop),
        }
    }

    /// After this moment no process was alive; `None` if nothing is known.
    pub(super) fn ended(project: &Path) -> Option<i64> {
        let meta = File::open(at(project))
            .and_then(|file| file.metadata())
            .ok()?;
        Some(
            meta.mtime()
                .saturating_mul(1_000_000_000)
                .saturating_add(meta.mtime_nsec()),
        )
    }
}

/// The beats of one process. Several beat for one project; the furthest promise holds.
#[derive(Debug)]
pub struct PulseBeats {
    file: File,
    /// When the next beat is to come.
    due: Instant,
    /// How late the last ones came: the worst of them, less by an eighth with each beat that was better.
    late: Duration,
}

impl PulseBeats {
    /// The first beat of a call, which also ends whatever an earlier one had promised.
    fn begin(project: &Path) -> Option<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(at(project))
            .ok()?;
        let _ = file.set_modified(SystemTime::now());
        let mut beats = Self {
            file,
            due: Instant::now(),
            late: Duration::ZERO,
        };
        beats.beat();
        Some(beats)
    }

    /// Beats of a further process, if the project has a pulse: in a private view nothing has to be told apart.
    pub fn join(project: &Path) -> Option<Self> {
        let file = OpenOptions::new().write(true).open(at(project)).ok()?;
        Some(Self {
            file,
            due: Instant::now(),
            late: Duration::ZERO,
        })
    }

    /// Beats if it is time to.
    pub fn beat_if_due(&mut self) {
        if Instant::now() >= self.due {
            self.beat();
        }
    }

    pub(super) fn beat(&mut self) {
        let now = Instant::now();
        self.late = (self.late - self.late / 8).max(now.saturating_duration_since(self.due));
        self.due = now + BEAT;
        let promised = SystemTime::now() + BEAT + allowance(self.late);
        // A promise that no beat can have made is of another clock.
        let furthest = promised + MOST_ALLOWANCE;
        let holds = |known: &SystemTime| *known > promised && *known <= furthest;
        if !self
            .file
            .metadata()
            .and_then(|meta| meta.modified())
            .is_ok_and(|known| holds(&known))
        {
            let _ = self.file.set_modified(promised);
        }
    }
}

/// How late the next beat may come after beats that were so late.
fn allowance(late: Duration) -> Duration {
    (late * 2).clamp(LEAST_ALLOWANCE, MOST_ALLOWANCE)
}

fn at(project: &Path) -> PathBuf {
    project.join("pulse")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanoseconds(duration: Duration) -> i64 {
        i64::try_from(duration.as_nanos()).expect("a short time")
    }

    #[test]
    fn the_last_promise_is_known_after_the_end() {
        let dir = tempfile::tempdir().expect("made");
        assert_eq!(Pulse::ended(dir.path()), None);
        assert!(
            PulseBeats::join(dir.path()).is_none(),
            "a project without a pulse gets none by a program"
        );
        let before = super::super::now();
        drop(Pulse::start(dir.path()));
        let ended = Pulse::ended(dir.path()).expect("it beat");
        let ahead = nanoseconds(BEAT + LEAST_ALLOWANCE);
        assert!(ended >= before + ahead && ended <= super::super::now() + ahead);
    }

    #[test]
    fn beats_that_came_late_are_given_more_time_and_a_further_promise_of_another_process_holds() {
        let dir = tempfile::tempdir().expect("made");
        let mut late = PulseBeats::begin(dir.path()).expect("begun");
        let mut calm = PulseBeats::join(dir.path()).expect("joined");
        late.due -= Duration::from_secs(6);
        let before = super::super::now();
        late.beat();
        let promised = Pulse::ended(dir.path()).expect("it beat");
        assert!(
            promised >= before + nanoseconds(Duration::from_secs(10)),
            "{}",
            promised - before
        );
        calm.beat();
        assert_eq!(Pulse::ended(dir.path()), Some(promised));
        // With every beat in time the allowance becomes the least one again.
        for _ in 0..20 {
            late.due = Instant::now();
            late.beat();
        }
        assert_eq!(allowance(late.late), LEAST_ALLOWANCE);
        // A clock that was set back an hour does not leave a promise of an hour.
        late.file
            .set_modified(SystemTime::now() + Duration::from_secs(3600))
            .expect("set");
        calm.beat();
        assert!(Pulse::ended(dir.path()) < Some(super::super::now() + nanoseconds(MOST_ALLOWANCE)));
    }
}
