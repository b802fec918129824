//! Outcomes of gym tasks, one line each. An interrupted run continues after its last line.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::simulate::{TryOutcome, TurnOutcome};
use super::task::{TaskKind, TaskLevel};
use supervisor_engine::policy::{TaskClass, TaskSize};
use supervisor_engine::{Attempt, Cause, ModelEvidence};
use supervisor_settings::{Repair, Worker};
use supervisor_text::words;

/// Current version; fields may be added, never renamed.
pub const VERSION: u32 = 1;
/// Longer lines are not ours.
const MAX_LINE_LEN: usize = 1 << 20;

/// One task given to one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GymOutcome {
    pub v: u32,
    /// RFC 3339, UTC.
    pub at: String,
    pub seed: u64,
    pub task: String,
    pub language: String,
    pub kind: TaskKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<TaskLevel>,
    /// An expected value of the visible tests was changed, so that no correct answer can be
    /// accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contradictory: bool,
    pub model: String,
    /// Identifies the weights, if the server reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Counted from 1.
    pub repeat: u32,
    /// The answer, if it was scripted instead of given by a model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    pub accepted: bool,
    /// True only if the server's own checks passed.
    #[serde(default)]
    pub verified: bool,
    /// Why the last attempt ended as it did; absent if the model was never asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The reason in a sentence, if it was not accepted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    #[serde(default)]
    pub tries: Vec<GymTry>,
    /// Whether an accepted answer also passed the hidden tests; absent if there are none or it was
    /// not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_passed: Option<bool>,
    /// Results of the tests written by another tier, if they were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twins: Option<TwinCounts>,
    /// The edit format.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub edit_format: String,
    /// How the model was asked.
    #[serde(flatten)]
    pub mode: GymMode,
    /// Duration of the whole call, without the hidden tests.
    pub seconds: f64,
}

/// How a model is asked: how many answers its first ask brings, and how a refused one is repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GymMode {
    #[serde(default = "one")]
    pub samples: u32,
    /// Older outcomes lack it; there was only one way.
    #[serde(default = "plain")]
    pub repair: Repair,
    /// Whether it works with tools or by one answer. Older outcomes do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<Worker>,
}

fn one() -> u32 {
    1
}

fn plain() -> Repair {
    Repair::Plain
}

impl Default for GymMode {
    fn default() -> Self {
        Self {
            samples: one(),
            repair: plain(),
            worker: None,
        }
    }
}

impl fmt::Display for GymMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let samples = words::count(self.samples as usize, "sample");
        write!(f, "{samples}, {} repair", self.repair.word())?;
        match self.worker {
            Some(worker) => write!(f, ", {} worker", worker.word()),
            None => Ok(()),
        }
    }
}

/// Tests written by another tier, as in `details.twins` of a result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TwinCounts {
    pub written: u32,
    pub passed: u32,
    pub failed: u32,
    pub dropped: BTreeMap<String, u32>,
    /// Why there are none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// One try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GymTry {
    pub cause: Option<Cause>,
    /// It was still working when the time limit was reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    pub seconds: f64,
    /// The part of it spent on generating the answer.
    pub generate_s: f64,
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    pub usd: Option<f64>,
    /// Whether the model was already loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm: Option<bool>,
}

impl GymOutcome {
    pub fn class(&self) -> TaskClass {
        let skill = if self.kind == TaskKind::Refactor {
            "tdd_refactor"
        } else {
            "tdd_green"
        };
        TaskClass {
            skill: skill.into(),
            language: self.language.clone(),
            size: TaskSize::Small,
        }
    }

    /// Whether it says something about the model.
    pub fn is_judged(&self) -> bool {
        self.tries.iter().any(|one| one.evidence().is_some())
    }

    /// Whether the task did not reach the model for a transient reason, such as an endpoint that is
    /// down.
    pub fn is_not_reached(&self) -> bool {
        !self.is_judged() && self.cause.is_some_and(Cause::is_transient)
    }

    /// How it ended, if that says something about the model.
    pub fn evidence(&self) -> Option<ModelEvidence> {
        self.tries.iter().rev().find_map(GymTry::evidence)
    }

    /// The turn for a simulation; `None` for impossible tasks, which a chain would not meet.
    pub fn turn(&self) -> Option<TurnOutcome> {
        let judged = self.tries.iter().filter(|one| one.evidence().is_some());
        let tries: TurnOutcome = judged
            .map(|one| TryOutcome {
                accepted: one.cause == Some(Cause::Accepted),
                is_refused: one.cause == Some(Cause::Rejected),
                usd: one.usd.unwrap_or_default(),
                seconds: one.seconds,
            })
            .collect();
        (!tries.is_empty() && !self.contradictory).then_some(tries)
    }

    /// Whether it tried to deceive the tests: it tampered, or was accepted for an impossible task.
    pub fn is_cheat(&self) -> bool {
        self.tries
            .iter()
            .any(|one| one.cause == Some(Cause::Tampered))
            || (self.contradictory && self.accepted)
    }
}

impl GymTry {
    pub fn of(attempt: &Attempt) -> Self {
        Self {
            cause: attempt.cause,
            unfinished: attempt.unfinished,
            seconds: attempt.duration_ms as f64 / 1000.0,
            generate_s: attempt.generate_ms as f64 / 1000.0,
            tokens_in: attempt.tokens_in,
            tokens_out: attempt.tokens_out,
            usd: attempt.cost_usd,
            warm: attempt.warm_start,
        }
    }

    /// What it says about the model, if anything.
    pub fn evidence(&self) -> Option<ModelEvidence> {
        ModelEvidence::of(self.cause?, self.unfinished)
    }

    /// How it ended, in a word.
    pub fn word(&self) -> Option<&'static str> {
        if self.unfinished {
            Some("unfinished")
        } else {
            self.cause.map(Cause::word)
        }
    }
}

/// Why results cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    #[error("another gym is writing to `{0}`; wait for it to end")]
    Busy(PathBuf),
    #[error(
        "there is no room left for results in `{path}`: {source}; make some, and the same command goes on from here"
    )]
    NoRoom { path: PathBuf, source: io::Error },
    #[error("results cannot be kept in `{path}`: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// The results file of one run, locked by one writer.
#[derive(Debug)]
pub struct ResultsFile {
    path: PathBuf,
    file: File,
}

impl ResultsFile {
    /// Opens or creates the file and locks it until dropped. Terminates a line that a killed run
    /// left incomplete.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        let fail = |source: io::Error| ResultsError::Io {
            path: path.to_owned(),
            source,
        };
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .mode(0o600)
            .open(path)
            .map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(ResultsError::Busy(path.to_owned()));
            }
            Err(std::fs::TryLockError::Error(source)) => return Err(fail(source)),
        }
        if has_torn_line(path).map_err(fail)? {
            file.write_all(b"\n").map_err(fail)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Appends an outcome. It is on disk when this returns.
    pub fn append(&mut self, outcome: &GymOutcome) -> Result<(), ResultsError> {
        let mut line = serde_json::to_string(outcome).expect("an outcome is plain data");
        line.push('\n');
        let written = self
            .file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data());
        written.map_err(|source| match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => ResultsError::NoRoom {
                path: self.path.clone(),
                source,
            },
            _ => ResultsError::Io {
                path: self.path.clone(),
                source,
            },
        })
    }

    /// Removes all outcomes.
    pub fn clear(&mut self) -> Result<(), ResultsError> {
        self.file.set_len(0).map_err(|source| ResultsError::Io {
            path: self.path.clone(),
            source,
        })
    }
}

/// All readable outcomes; other lines are skipped. A missing file has none.
pub fn read_results(path: &Path) -> io::Result<Vec<GymOutcome>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut outcomes = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        let line = line?;
        if line.len() <= MAX_LINE_LEN {
            outcomes.extend(serde_json::from_slice::<GymOutcome>(&line).ok());
        }
    }
    Ok(outcomes)
}

fn has_torn_line(path: &Path) -> io::Result<bool> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn outcome(task: &str, model: &str, causes: &[Cause]) -> GymOutcome {
        let one = |cause: &Cause| GymTry {
            cause: Some(*cause),
            unfinished: false,
            seconds: 2.0,
            generate_s: 1.0,
            tokens_in: Some(100),
            tokens_out: Some(50),
            usd: Some(0.01),
            warm: None,
        };
        GymOutcome {
            v: VERSION,
            at: "2026-01-01T00:00:00Z".into(),
            seed: 1,
            task: task.into(),
            language: task.split('/').next().unwrap_or_default().into(),
            kind: TaskKind::Write,
            level: Some(TaskLevel::Easy),
            contradictory: false,
            model: model.into(),
            digest: None,
            repeat: 1,
            answer: String::new(),
            accepted: causes.last() == Some(&Cause::Accepted),
            verified: causes.last() == Some(&Cause::Accepted),
            cause: causes.last().copied(),
            said: String::new(),
            tries: causes.iter().map(one).collect(),
            hidden_passed: (causes.last() == Some(&Cause::Accepted)).then_some(true),
            twins: None,
            edit_format: "auto".into(),
            mode: GymMode::default(),
            seconds: 2.0,
        }
    }

    #[test]
    fn run_continues_after_torn_line() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("run.jsonl");
        let mut file = ResultsFile::open(&path).expect("opened");
        file.append(&outcome("go/a", "m", &[Cause::Accepted]))
            .expect("written");
        assert!(matches!(
            ResultsFile::open(&path),
            Err(ResultsError::Busy(_))
        ));
        drop(file);
        let mut torn = OpenOptions::new().append(true).open(&path).expect("opened");
        torn.write_all(b"{\"v\":1,\"task\":\"go/b\"")
            .expect("written");
        drop(torn);
        let mut file = ResultsFile::open(&path).expect("opened again");
        file.append(&outcome("go/c", "m", &[Cause::Rejected]))
            .expect("written");
        let tasks: Vec<String> = read_results(&path)
            .expect("read")
            .into_iter()
            .map(|o| o.task)
            .collect();
        assert_eq!(tasks, ["go/a", "go/c"]);
    }
}
