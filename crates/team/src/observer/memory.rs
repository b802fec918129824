//! What an observer remembers between wakes, on disk beside the bus.

use serde::{Deserialize, Serialize};

use super::super::bus::BusCursor;
use super::super::checks::health::BusDigest;
use super::super::place::{TeamPlace, below};
use super::super::report;
use super::super::sidecar::CheckpointSidecar;
use super::super::verdict::{QualityTrend, SupervisionVerdict};
use supervisor_workspace::{FolderError, FolderLock};

const LARGEST: u64 = 32 << 20;

/// Everything that outlives a wake.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObserverMemory {
    pub phase: LifePhase,
    pub team_name: String,
    pub requirement: String,
    pub role_spec: String,
    pub checkpoints: Vec<String>,
    /// Up to here the bus is known.
    pub cursor: BusCursor,
    pub digest: BusDigest,
    pub accumulator: Vec<AccumulatedCheckpoint>,
    pub errors: u32,
    pub last_error: String,
}

/// Where in its life an observer is. There is no other state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum LifePhase {
    #[default]
    Idle,
    Awake {
        task_id: String,
    },
    ShutDown,
}

/// One checkpoint that was made, as later ones see it.
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

/// Held as long as an observer of this session is in use.
pub(super) fn lock(place: &TeamPlace) -> Result<FolderLock, FolderError> {
    place
        .folder()
        .lock(&below(&place.bus_dir(), ".supervisor.lock"))
}

impl ObserverMemory {
    fn file(place: &TeamPlace) -> String {
        below(&place.bus_dir(), "supervisor.json")
    }

    /// `None` if there is none, or none that can be read: then everything is rebuilt.
    pub(super) fn read(place: &TeamPlace) -> Result<Option<Self>, FolderError> {
        let bytes = place.folder().read(&Self::file(place), LARGEST)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    pub(super) fn write(&self, place: &TeamPlace) -> Result<(), FolderError> {
        let json = serde_json::to_vec(self).expect("plain data serialises");
        place.folder().write(&Self::file(place), &json)
    }

    /// The accumulator from the sidecars; where one is missing, from the report that people read.
    pub(super) fn rebuild(&mut self, place: &TeamPlace) -> Result<(), FolderError> {
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

    /// The score of the checkpoint made last, other than this one.
    pub(super) fn previous_score(&self, task: &str) -> Option<f64> {
        self.accumulator
            .iter()
            .rev()
            .find(|known| known.task != task)
            .map(|known| known.score)
    }
}

impl AccumulatedCheckpoint {
    pub(super) fn of(sidecar: &CheckpointSidecar, place: &TeamPlace) -> Self {
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

    /// From `## Verdict: WARN (score: 0.75)`.
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
