//! When was the server last alive? A file's time says so, set once a second while a project is armed. After a crash of
//! all processes, whatever was changed later than that is not the dead call's doing.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, SystemTime};

const BEAT: Duration = Duration::from_secs(1);
/// A beat may come late on a busy machine.
const SLACK: i64 = 3_000_000_000;

/// Beats until it is dropped, or its process ends.
#[derive(Debug)]
pub(super) struct Pulse {
    _stop: Option<Sender<()>>,
}

impl Pulse {
    pub(super) fn start(project: &Path) -> Self {
        let path = at(project);
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
        let Ok(file) = opened else { return Self { _stop: None } };
        let _ = file.set_modified(SystemTime::now());
        let (stop, stopped) = mpsc::channel();
        let beat = move || {
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                let _ = file.set_modified(SystemTime::now());
            }
        };
        // Without a thread to be had the last beat is the first, and a recovery undoes less.
        let beating = std::thread::Builder::new().name(String::from("pulse")).spawn(beat).is_ok();
        Self { _stop: beating.then_some(stop) }
    }

    /// After this moment no process was alive; `None` if nothing is known.
    pub(super) fn ended(project: &Path) -> Option<i64> {
        let meta = File::open(at(project)).and_then(|file| file.metadata()).ok()?;
        Some(meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec()).saturating_add(SLACK))
    }
}

fn at(project: &Path) -> PathBuf {
    project.join("pulse")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_beat_is_known_after_the_end() {
        let dir = tempfile::tempdir().expect("made");
        assert_eq!(Pulse::ended(dir.path()), None);
        let before = super::super::now();
        drop(Pulse::start(dir.path()));
        let ended = Pulse::ended(dir.path()).expect("it beat");
        assert!(ended >= before && ended <= super::super::now() + SLACK);
    }
}
