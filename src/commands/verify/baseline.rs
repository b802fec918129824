//! Stores the test results at the start of a session, to compare later runs with. Tests that failed
//! before are not held against a change, and an unchanged project is not tested again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use supervisor_text::words;
use supervisor_verify::{Outcome, TestRun};
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{SnapshotLimits, Workspace};

const DIR_NAME: &str = "baselines";
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Maximum number of newly failing tests listed.
const MAX_LISTED: usize = 10;

/// One baseline, of one project in one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedBaseline {
    /// Digest of the names, sizes and times of the project's files after the run.
    pub manifest: String,
    /// Whether the tests ran at all.
    ran: bool,
    failing: Vec<String>,
}

/// Reads and writes the baseline of one project in one session.
pub(crate) struct BaselineStore {
    file: PathBuf,
    project: PathBuf,
    state: StateDir,
}

/// Difference between a later run and the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BaselineComparison {
    NothingNew,
    /// One line per test, with the first line of its message.
    NewlyRed(Vec<String>),
    /// The run says nothing about the code.
    Unknown(String),
}

impl BaselineStore {
    pub(crate) fn of(project: &Path, session: &str) -> anyhow::Result<Self> {
        let project = project.canonicalize()?;
        let state = StateDir::locate()?;
        let folder = state.sub(DIR_NAME)?;
        prune(&folder);
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(session.as_bytes())
            .update(&[0])
            .update(project.as_os_str().as_encoded_bytes());
        let name = hasher.finalize().to_hex();
        Ok(Self {
            file: folder.join(format!("{}.json", &name[..32])),
            project,
            state,
        })
    }

    /// Another file of this project in this session.
    pub(crate) fn sibling(&self, extension: &str) -> PathBuf {
        self.file.with_extension(extension)
    }

    /// Digest of the project's files now.
    pub(crate) fn manifest(&self) -> anyhow::Result<String> {
        Ok(
            Workspace::open_read_only(&self.project, SnapshotLimits::default(), &self.state)?
                .metadata_snapshot()?
                .digest(),
        )
    }

    /// Loads the baseline; `None` if there is none or it cannot be read.
    pub(crate) fn load(&self) -> Option<RecordedBaseline> {
        serde_json::from_slice(&fs::read(&self.file).ok()?).ok()
    }

    pub(crate) fn save(&self, run: &TestRun) -> anyhow::Result<()> {
        let baseline = RecordedBaseline {
            manifest: self.manifest()?,
            ran: run.outcome().is_conclusive(),
            failing: run.failed().map(|(name, _)| name.to_string()).collect(),
        };
        write(&self.file, &serde_json::to_vec(&baseline)?)?;
        Ok(())
    }
}

impl RecordedBaseline {
    pub(crate) fn compare(&self, run: &TestRun) -> BaselineComparison {
        let is_new = |name: &str| !self.failing.iter().any(|known| known == name);
        let red: Vec<String> = run
            .failed()
            .filter(|(name, _)| is_new(&name.to_string()))
            .map(|(name, message)| {
                let message = message
                    .lines()
                    .map(str::trim)
                    .find(|line| !line.is_empty())
                    .unwrap_or_default();
                let message = words::cut_end(message, 160).into_owned();
                if message.is_empty() {
                    format!("`{name}`")
                } else {
                    format!("`{name}`: {message}")
                }
            })
            .collect();
        match run.outcome() {
            _ if !red.is_empty() => BaselineComparison::NewlyRed(red),
            Outcome::Passed => BaselineComparison::NothingNew,
            // The same tests failed before.
            Outcome::Failed if run.failed().next().is_some() => BaselineComparison::NothingNew,
            // Only the exit code is known: it passed before and fails now.
            Outcome::Failed if self.ran && self.failing.is_empty() => {
                BaselineComparison::NewlyRed(vec![run.sentence()])
            }
            Outcome::DidNotBuild { errors } if self.ran => {
                let errors = errors
                    .iter()
                    .take(3)
                    .map(|error| format!("does not build: {error}"));
                let errors: Vec<String> = errors.collect();
                BaselineComparison::NewlyRed(if errors.is_empty() {
                    vec![run.sentence()]
                } else {
                    errors
                })
            }
            _ => BaselineComparison::Unknown(run.sentence()),
        }
    }
}

impl BaselineComparison {
    /// Text for users and for an agent that has to continue.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::NothingNew => String::from("ok       no test is newly red\n"),
            Self::Unknown(why) => format!("unknown  {}\n", words::plain(why)),
            Self::NewlyRed(red) => {
                let mut text = format!(
                    "red      {} since the baseline\n",
                    words::count(red.len(), "failure")
                );
                for line in red.iter().take(MAX_LISTED) {
                    text += &format!("  {}\n", words::plain(line));
                }
                if red.len() > MAX_LISTED {
                    text += &format!("  and {} more\n", red.len() - MAX_LISTED);
                }
                text
            }
        }
    }
}

fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().ok_or_else(|| io::Error::other("no folder"))?;
    let mut temp_file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut temp_file, bytes)?;
    temp_file.persist(file)?;
    Ok(())
}

fn prune(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let modified = entry.metadata().and_then(|meta| meta.modified());
        if modified.is_ok_and(|at| {
            SystemTime::now()
                .duration_since(at)
                .is_ok_and(|age| age > MAX_AGE)
        }) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
