//! The file of one live call. The caller chooses the thread.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{FOLDER, LiveEvent, MAX_FILE_BYTES};
use crate::services::LiveHeader;
use supervisor_workspace::state::StateDir;

/// Chooses the path of a call's file: its name is unique and short enough to type.
pub(super) fn choose_path(state: &StateDir) -> io::Result<PathBuf> {
    let name = getrandom::u32().map_err(io::Error::other)?;
    Ok(state.path().join(FOLDER).join(format!("{name:08x}.jsonl")))
}

pub(super) fn is_stop_requested(path: &Path) -> bool {
    path.with_extension("stop").exists()
}

/// Removed on drop.
pub(super) struct LiveFile {
    path: PathBuf,
    file: File,
    written: u64,
}

impl LiveFile {
    /// Creates the file. Also removes files left by killed servers.
    pub(super) fn create(state: &StateDir, path: PathBuf, header: &LiveHeader) -> io::Result<Self> {
        sweep(&state.sub(FOLDER).map_err(io::Error::other)?);
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let mut live = Self {
            path,
            file,
            written: 0,
        };
        // Locked until this process ends, however it ends.
        live.file.try_lock().map_err(io::Error::other)?;
        live.write(std::slice::from_ref(header))?;
        Ok(live)
    }

    pub(super) fn append(&mut self, events: &[LiveEvent]) -> io::Result<()> {
        self.write(events)
    }

    /// Writes one line each, all in one write, up to the size limit.
    fn write(&mut self, lines: &[impl Serialize]) -> io::Result<()> {
        let mut text = Vec::new();
        for line in lines {
            if self.written + text.len() as u64 > MAX_FILE_BYTES {
                break;
            }
            serde_json::to_writer(&mut text, line).map_err(io::Error::other)?;
            text.push(b'\n');
        }
        self.written += text.len() as u64;
        self.file.write_all(&text)
    }
}

impl Drop for LiveFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.path.with_extension("stop"));
    }
}

fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_stale = match path.extension().and_then(|extension| extension.to_str()) {
            Some("jsonl") => super::open(&path).is_ok_and(|file| file.try_lock().is_ok()),
            Some("stop") => !path.with_extension("jsonl").exists(),
            _ => false,
        };
        if is_stale {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::live::LiveKind;

    #[test]
    fn live_file_size_is_bounded() {
        let dir = tempfile::tempdir().expect("temp dir");
        let state = StateDir::at(dir.path().join("s")).expect("absolute");
        let path = choose_path(&state).expect("chosen");
        let header: LiveHeader =
            serde_json::from_str(r#"{"session_id": "s", "skill": "debug", "began": ""}"#)
                .expect("a header");
        let mut live = LiveFile::create(&state, path.clone(), &header).expect("made");
        let event: LiveEvent =
            serde_json::from_str(r#"{"at_ms": 1, "kind": "doing"}"#).expect("an event");
        assert_eq!(event.kind, LiveKind::Doing);
        let event = LiveEvent {
            text: "x".repeat(400),
            ..event
        };
        for _ in 0..10 {
            live.append(&vec![event.clone(); 1_000]).expect("written");
        }
        let size = fs::metadata(&path).expect("there").len();
        assert!(
            (MAX_FILE_BYTES..=MAX_FILE_BYTES + 1_000).contains(&size),
            "{size}"
        );
        fs::remove_dir_all(state.path()).expect("the directory vanishes");
        live.append(&[event]).expect("nothing is wrong");
        assert!(!is_stop_requested(&path));
    }
}
