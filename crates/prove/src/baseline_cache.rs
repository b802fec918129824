//! Runs of the suite on a base commit, kept on disk: the base rarely changes between two proofs. A kept run saves time
//! and never decides alone that something broke.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use supervisor_verify::{OutcomeKey, Suite, TestRun};
use supervisor_workspace::state::StateDir;

const DIR_NAME: &str = "proof-baselines";
/// Packages outside git may have changed after this time.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
const MAX_BYTES: u64 = 64 * 1024 * 1024;

pub(crate) struct BaselineCache {
    file: PathBuf,
}

impl BaselineCache {
    /// `tree` is git's id of the base tree. `None` if the state directory cannot be used.
    pub(crate) fn open(
        state: &StateDir,
        tree: &str,
        suite: &Suite,
        env: &BTreeMap<OsString, OsString>,
    ) -> Option<Self> {
        let folder = state.sub(DIR_NAME).ok()?;
        remove_old(&folder);
        let manifest = format!("{tree} {}", env!("CARGO_PKG_VERSION"));
        let key = OutcomeKey::new(manifest.as_bytes(), suite, env);
        Some(Self {
            file: folder.join(format!("{}.json", key.to_hex())),
        })
    }

    pub(crate) fn load(&self) -> Option<TestRun> {
        let meta = self.file.metadata().ok()?;
        if age(&meta)? > MAX_AGE || meta.len() > MAX_BYTES {
            return None;
        }
        serde_json::from_slice(&std::fs::read(&self.file).ok()?).ok()
    }

    /// Keeps a run that says something about the code.
    pub(crate) fn save(&self, run: &TestRun) {
        if !run.outcome().is_conclusive() {
            return;
        }
        let partial = self
            .file
            .with_extension(format!("{}.tmp", std::process::id()));
        let written = serde_json::to_vec(run)
            .map_err(std::io::Error::from)
            .and_then(|bytes| std::fs::write(&partial, bytes))
            .and_then(|()| std::fs::rename(&partial, &self.file));
        if written.is_err() {
            let _ = std::fs::remove_file(&partial);
        }
    }
}

fn age(meta: &std::fs::Metadata) -> Option<Duration> {
    SystemTime::now().duration_since(meta.modified().ok()?).ok()
}

fn remove_old(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_old = entry
            .metadata()
            .ok()
            .and_then(|meta| age(&meta))
            .is_some_and(|age| age > MAX_AGE);
        if is_old {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
