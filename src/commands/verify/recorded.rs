//! What the tests showed at the start of a session, kept so that a later run can be compared with it: which tests were
//! red already is not held against the change, and a project that has not changed need not be tested again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use supervisor_text::words;
use supervisor_verify::{Outcome, TestRun};
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{Caps, Workspace};

const FOLDER: &str = "baselines";
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Newly red tests named one by one.
const SHOWN: usize = 10;

/// One baseline, of one project in one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedBaseline {
    /// Over names, sizes and times of the project's files, after the run.
    pub manifest: String,
    /// Did the tests run at all?
    ran: bool,
    failing: Vec<String>,
}

/// Where the baseline of a project in a session is kept.
pub struct BaselinePlace {
    file: PathBuf,
    project: PathBuf,
    state: StateDir,
}

/// How a later run compares with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaselineComparison {
    NothingNew,
    /// One line each, with the first line of what the test said.
    NewlyRed(Vec<String>),
    /// The run told nothing about the code.
    Unknown(String),
}

impl BaselinePlace {
    pub fn of(project: &Path, session: &str) -> anyhow::Result<Self> {
        let project = project.canonicalize()?;
        let state = StateDir::locate()?;
        let folder = state.sub(FOLDER)?;
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

    /// How the project's files look now.
    pub fn manifest(&self) -> anyhow::Result<String> {
        Ok(
            Workspace::open_to_read(&self.project, Caps::default(), &self.state)?
                .glance()?
                .digest(),
        )
    }

    /// What was kept; `None` if nothing was, or nothing that can be read.
    pub fn load(&self) -> Option<RecordedBaseline> {
        serde_json::from_slice(&fs::read(&self.file).ok()?).ok()
    }

    pub fn keep(&self, run: &TestRun) -> anyhow::Result<()> {
        let baseline = RecordedBaseline {
            manifest: self.manifest()?,
            ran: run.outcome().speaks_about_the_code(),
            failing: run.failed().map(|(name, _)| name.to_string()).collect(),
        };
        write(&self.file, &serde_json::to_vec(&baseline)?)?;
        Ok(())
    }
}

impl RecordedBaseline {
    pub fn compare(&self, run: &TestRun) -> BaselineComparison {
        let is_new = |name: &str| !self.failing.iter().any(|known| known == name);
        let red: Vec<String> = run
            .failed()
            .filter(|(name, _)| is_new(&name.to_string()))
            .map(|(name, said)| {
                let said = said
                    .lines()
                    .map(str::trim)
                    .find(|line| !line.is_empty())
                    .unwrap_or_default();
                let said = words::cut_end(said, 160).into_owned();
                if said.is_empty() {
                    format!("`{name}`")
                } else {
                    format!("`{name}`: {said}")
                }
            })
            .collect();
        match run.outcome() {
            _ if !red.is_empty() => BaselineComparison::NewlyRed(red),
            Outcome::Passed => BaselineComparison::NothingNew,
            // Red before, and by the same tests.
            Outcome::Failed if run.failed().next().is_some() => BaselineComparison::NothingNew,
            // By its exit code alone: it passed before and fails now.
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
    /// For people, and for an agent that must go on.
    pub fn text(&self) -> String {
        match self {
            Self::NothingNew => String::from("ok       no test is newly red\n"),
            Self::Unknown(why) => format!("unknown  {}\n", words::plain(why)),
            Self::NewlyRed(red) => {
                let mut text = format!(
                    "red      {} since the baseline\n",
                    words::count(red.len(), "failure")
                );
                for line in red.iter().take(SHOWN) {
                    text += &format!("  {}\n", words::plain(line));
                }
                if red.len() > SHOWN {
                    text += &format!("  and {} more\n", red.len() - SHOWN);
                }
                text
            }
        }
    }
}

fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().ok_or_else(|| io::Error::other("no folder"))?;
    let mut whole = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut whole, bytes)?;
    whole.persist(file)?;
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
                .is_ok_and(|age| age > KEPT_FOR)
        }) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
