//! A checkpoint's report as data: its inputs, findings and verdict. Recovery reads this file; the
//! Markdown is for people.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::report_format::ReportFormat;
use super::request::CheckpointId;
use super::team_dirs::TeamDirs;
use super::verdict::{CheckFinding, QualityTrend, ScoredVerdict, SupervisionVerdict};
use supervisor_workspace::FolderError;

const MAX_FILE_BYTES: u64 = 16 << 20;
const VERSION: u32 = 1;

/// One checkpoint, complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointSidecar {
    pub v: u32,
    pub tool_version: String,
    pub task_id: String,
    pub name: String,
    /// Starts at 1 and increases when the inputs have changed.
    pub revision: u32,
    pub at: String,
    pub scope: Vec<String>,
    pub progress: String,
    /// Content hash of every artifact, by path.
    pub inputs: BTreeMap<String, String>,
    /// Hash of artifacts, states and bus together.
    pub inputs_hash: String,
    pub checks: Vec<CheckFinding>,
    #[serde(flatten)]
    pub scored: ScoredVerdict,
    pub trend: QualityTrend,
    /// The form that the role spec gives to the report.
    #[serde(default, skip_serializing_if = "ReportFormat::is_built_in")]
    pub format: ReportFormat,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "override")]
    pub overridden: Option<VerdictOverride>,
}

/// Who let a pipeline continue despite a verdict, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictOverride {
    pub by: String,
    pub reason: String,
    pub at: String,
}

impl CheckpointSidecar {
    pub fn version() -> u32 {
        VERSION
    }

    pub fn file(place: &TeamDirs, task: &str) -> String {
        place.output(&format!("{task}-report.json"))
    }

    /// `None` if the file is missing or unreadable.
    pub fn read(place: &TeamDirs, task: &CheckpointId) -> Result<Option<Self>, FolderError> {
        Self::read_file(place, &Self::file(place, task.as_str()))
    }

    fn read_file(place: &TeamDirs, file: &str) -> Result<Option<Self>, FolderError> {
        let bytes = place.folder().read(file, MAX_FILE_BYTES)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// All sidecars, sorted by name.
    pub fn read_all(place: &TeamDirs) -> Result<Vec<Self>, FolderError> {
        let mut all = Vec::new();
        for name in place.folder().list(place.outputs_dir())? {
            let task = name.strip_suffix("-report.json").map(CheckpointId::new);
            if let Some(Ok(task)) = task
                && let Some(sidecar) = Self::read(place, &task)?
            {
                all.push(sidecar);
            }
        }
        Ok(all)
    }

    pub fn write(&self, place: &TeamDirs) -> Result<(), FolderError> {
        let json = serde_json::to_string_pretty(self).expect("plain data serialises");
        place.folder().write(
            &Self::file(place, &self.task_id),
            format!("{json}\n").as_bytes(),
        )
    }

    /// Up to five lines of less than 100 characters, most severe first.
    pub fn key_findings(&self) -> Vec<String> {
        use super::verdict::CheckOutcome::{Fail, Pass, Warn};
        let mut checks: Vec<&CheckFinding> = self
            .checks
            .iter()
            .filter(|c| matches!(c.outcome, Fail | Warn))
            .collect();
        checks.sort_by_key(|c| (!(c.critical && c.outcome == Fail), c.outcome != Fail));
        let line = |c: &&CheckFinding| {
            supervisor_text::words::cut_end(&format!("{}: {}", c.title, c.details), 96)
                .replace('\n', " ")
        };
        let mut findings: Vec<String> = checks.iter().take(5).map(line).collect();
        if findings.is_empty() {
            let passed = self.checks.iter().filter(|c| c.outcome == Pass);
            findings.extend(passed.take(5).map(|check| line(&check)));
        }
        findings
    }

    pub fn decision(&self) -> String {
        match (&self.overridden, self.scored.verdict) {
            (Some(o), _) => format!("Proceed: overridden by {}: {}", o.by, o.reason),
            (None, SupervisionVerdict::Pass) => String::from("Proceed"),
            (None, SupervisionVerdict::Warn) => String::from("Proceed with the recorded risks"),
            (None, SupervisionVerdict::Block) => {
                format!(
                    "Block: {}",
                    self.key_findings().first().cloned().unwrap_or_default()
                )
            }
        }
    }
}
