//! The observer's state between wakes, stored beside the bus.

use serde::{Deserialize, Serialize};

use super::super::bus::BusCursor;
use super::super::checks::health::BusDigest;
use super::super::report;
use super::super::sidecar::CheckpointSidecar;
use super::super::team_dirs::{TeamDirs, join_path};
use super::super::verdict::{QualityTrend, SupervisionVerdict};
use supervisor_workspace::{FolderError, FolderLock};

const MAX_STATE_BYTES: u64 = 32 << 20;

/// Everything that outlives a wake.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObserverState {
    pub phase: ObserverPhase,
    pub team_name: String,
    pub requirement: String,
    pub role_spec: String,
    pub checkpoints: Vec<String>,
    /// Position up to which the bus has been read.
    pub cursor: BusCursor,
    pub digest: BusDigest,
    pub accumulator: Vec<AccumulatedCheckpoint>,
    pub errors: u32,
    pub last_error: String,
}

/// The observer's life cycle. There is no other state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum ObserverPhase {
    #[default]
    Idle,
    Awake {
        task_id: String,
    },
    ShutDown,
}

/// A finished checkpoint, as later ones see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccumulatedCheckpoint {
    pub task: String,
    pub artifact: String,
    pub verdict: SupervisionVerdict,
    pub score: f64,
    pub key_findings: Vec<String>,
    pub artifacts_read: Vec<String>,
    pub quality_trend: QualityTrend,
}

/// Locks the session for one observer.
pub(super) fn lock(place: &TeamDirs) -> Result<FolderLock, FolderError> {
    place
        .folder()
        .lock(&join_path(&place.bus_dir(), ".supervisor.lock"))
}

impl ObserverState {
    fn file(place: &TeamDirs) -> String {
        join_path(&place.bus_dir(), "supervisor.json")
    }

    /// `None` if the file is missing or unreadable: then everything is rebuilt.
    pub(super) fn read(place: &TeamDirs) -> Result<Option<Self>, FolderError> {
        let bytes = place.folder().read(&Self::file(place), MAX_STATE_BYTES)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    pub(super) fn write(&self, place: &TeamDirs) -> Result<(), FolderError> {
        let json = serde_json::to_vec(self).expect("plain data serialises");
        place.folder().write(&Self::file(place), &json)
    }

    /// Rebuilds the accumulator from the sidecars, or from the Markdown report if a sidecar is
    /// missing.
    pub(super) fn rebuild(&mut self, place: &TeamDirs) -> Result<(), FolderError> {
        self.accumulator = CheckpointSidecar::read_all(place)?
            .iter()
            .map(|s| AccumulatedCheckpoint::of(s, place))
            .collect();
        for name in place.folder().list(place.outputs_dir())? {
            let Some(task) = name
                .strip_suffix("-report.md")
                .filter(|t| t.starts_with("CHECKPOINT-"))
            else {
                continue;
            };
            if self.accumulator.iter().any(|known| known.task == task) {
                continue;
            }
            let file = place.output(&name);
            let text = place.folder().read(&file, 4 << 20)?.unwrap_or_default();
            self.accumulator.extend(AccumulatedCheckpoint::of_report(
                task,
                &file,
                &String::from_utf8_lossy(&text),
            ));
        }
        self.accumulator.sort_by(|a, b| a.task.cmp(&b.task));
        Ok(())
    }

    pub(super) fn accumulate(&mut self, checkpoint: AccumulatedCheckpoint) {
        self.accumulator
            .retain(|known| known.task != checkpoint.task);
        self.accumulator.push(checkpoint);
    }

    /// The score of the last checkpoint other than this one.
    pub(super) fn previous_score(&self, task: &str) -> Option<f64> {
        self.accumulator
            .iter()
            .rev()
            .find(|known| known.task != task)
            .map(|known| known.score)
    }
}

impl AccumulatedCheckpoint {
    pub(super) fn of(sidecar: &CheckpointSidecar, place: &TeamDirs) -> Self {
        Self {
            task: sidecar.task_id.clone(),
            artifact: report::report_file(place, &sidecar.task_id),
            verdict: sidecar.scored.verdict,
            score: sidecar.scored.score,
            key_findings: sidecar.key_findings(),
            artifacts_read: sidecar.inputs.keys().cloned().collect(),
            quality_trend: sidecar.trend,
        }
    }

    /// Parses `## Verdict: WARN (score: 0.75)`.
    fn of_report(task: &str, file: &str, text: &str) -> Option<Self> {
        let line = text
            .lines()
            .find_map(|line| line.trim_start_matches(['#', ' ']).strip_prefix("Verdict:"))?;
        let verdict = match line.split_whitespace().next()?.to_lowercase().as_str() {
            "pass" => SupervisionVerdict::Pass,
            "warn" => SupervisionVerdict::Warn,
            "block" => SupervisionVerdict::Block,
            _ => return None,
        };
        let score = line
            .split("score:")
            .nth(1)?
            .trim()
            .trim_end_matches(')')
            .parse()
            .ok()?;
        Some(Self {
            task: task.to_owned(),
            artifact: file.to_owned(),
            verdict,
            score,
            key_findings: Vec::new(),
            artifacts_read: Vec::new(),
            quality_trend: QualityTrend::Stable,
        })
    }
}
