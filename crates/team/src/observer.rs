//! The resident observer of one session as a state machine: initialised once, idle, awake for one
//! checkpoint at a time, and finally shut down. Its state is on disk, so that a crash loses
//! nothing.
//!
//! ```text
//! init ─▶ IdleObserver ── wake ─▶ AwakeObserver ── conclude ─▶ IdleObserver ── shut_down ─▶ shutdown response
//! ```

mod state;
mod wake;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::bus::{BusError, TeamBus};
use super::definition::DefinitionError;
use super::message::{MessageDraft, now};
use super::report::{self, TAG};
use super::request::{CheckpointId, RequestError};
use super::role_spec::{RoleSpec, SpecRow};
use super::session_file::PipelineSession;
use super::sidecar::{CheckpointSidecar, VerdictOverride};
use super::team_dirs::{TeamDirs, TeamDirsError};
use supervisor_text::words;
use supervisor_workspace::{FolderError, FolderLock};

pub use state::{ObserverPhase, ObserverState};
pub use wake::{AwakeObserver, CheckpointResult, LoadCounts};

/// Number of errors after which the coordinator is alerted.
const ALERT_AT: u32 = 3;

/// How to start a session.
#[derive(Debug, Clone, Default)]
pub struct ObserverSetup {
    pub session_id: String,
    pub team_name: String,
    pub requirement: String,
    /// The checkpoints to run, and what each row of the role spec became.
    pub spec: RoleSpec,
    pub role_spec: String,
    pub recovery: bool,
}

/// Waiting for the coordinator.
#[derive(Debug)]
pub struct IdleObserver {
    place: TeamDirs,
    bus: TeamBus,
    memory: ObserverState,
    /// One observer per session, across all servers.
    _lock: FolderLock,
}

/// The state of the session at its start.
#[derive(Debug, Clone, Serialize)]
pub struct ObserverBaseline {
    /// In a few words.
    #[serde(skip)]
    pub ready: String,
    /// The message to the coordinator.
    pub message_text: String,
    pub pipeline_mode: Option<String>,
    pub stages: usize,
    pub supervised: bool,
    pub roles: Vec<String>,
    pub key_findings: usize,
    pub decisions: usize,
    pub wisdom_files: usize,
    pub messages: usize,
    pub damaged_lines: usize,
    pub checkpoints: Vec<String>,
    /// What each row of the role spec became.
    pub role_spec_rows: Vec<SpecRow>,
    pub restored: usize,
    /// Checkpoints that were being made when the observer died.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_progress: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ObserverError {
    #[error("this session has no supervisor yet; call `supervise` with operation init first")]
    NotInitialised,
    #[error(
        "the supervisor of this session was shut down; call `supervise` with operation init to begin again"
    )]
    ShutDown,
    #[error("the checkpoint `{id}` is not defined here; the role spec `{role_spec}` has {known}")]
    UnknownCheckpoint {
        id: String,
        role_spec: String,
        known: String,
    },
    #[error(
        "`{0}` has no report yet, so there is no verdict to override; run the checkpoint first"
    )]
    NothingToOverride(String),
    #[error("`{field}` is empty; an override says who decided and why")]
    EmptyOverride { field: &'static str },
    #[error(
        "changed while the checkpoint was made, so the verdict would speak of something else: {0}; run it again"
    )]
    Changed(String),
    #[error(
        "there is no role spec `{0}`; correct `role_spec`, or leave it out to use the built-in checkpoints"
    )]
    NoRoleSpec(String),
    #[error("the role spec `{0}` is not a Markdown or TOML file of at most 1 MiB")]
    BadRoleSpec(String),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Place(#[from] TeamDirsError),
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl IdleObserver {
    /// Starts the observer, or restarts it after a crash: then the accumulator is rebuilt from the
    /// files on disk.
    pub fn init(
        place: &TeamDirs,
        setup: ObserverSetup,
    ) -> Result<(Self, ObserverBaseline), ObserverError> {
        let (bus, _lock) = (TeamBus::new(place), state::lock(place)?);
        let session = PipelineSession::read(place)?;
        let meta = bus.sync_meta()?;
        let known = ObserverState::read(place)?;
        let died_awake = known.as_ref().and_then(|known| match &known.phase {
            ObserverPhase::Awake { task_id } => Some(task_id.clone()),
            ObserverPhase::Idle | ObserverPhase::ShutDown => None,
        });
        // A recovered session keeps its position on the bus; only a new one reads it from the
        // beginning.
        let mut memory = known.filter(|_| setup.recovery).unwrap_or_default();
        memory.phase = ObserverPhase::Idle;
        memory.team_name.clone_from(&setup.team_name);
        memory.requirement.clone_from(&setup.requirement);
        memory.role_spec.clone_from(&setup.role_spec);
        memory.checkpoints = setup
            .spec
            .definitions
            .iter()
            .map(|d| d.id.clone())
            .collect();
        memory.rebuild(place)?;
        let restored = memory.accumulator.len();
        // The state of another role may be older than our report; our own is the newest.
        let is_reported =
            |task: &String| memory.accumulator.iter().any(|known| known.task == *task);
        let mut in_progress: Vec<String> = meta
            .tasks()
            .into_iter()
            .filter(|(_, task, _)| task.starts_with("CHECKPOINT-"))
            .filter(|(.., state)| state.get("status").is_some_and(|s| s == "in_progress"))
            .filter(|(role, task, _)| role == "supervisor" || !is_reported(task))
            .map(|(_, task, _)| task)
            .chain(died_awake)
            .collect();
        in_progress.sort();
        in_progress.dedup();
        let ready = match setup.recovery {
            true => format!(
                "{TAG} Recovered {}, awaiting checkpoints",
                words::count(restored, "report")
            ),
            false => format!("{TAG} Ready, awaiting checkpoints"),
        };
        let message_text = message(&setup, restored, &in_progress);
        bus.log_message(MessageDraft {
            from: String::from("supervisor"),
            summary: Some(ready.clone()),
            data: Some(Map::from_iter([(
                String::from("message"),
                json!(message_text),
            )])),
            ..MessageDraft::default()
        })?;
        let reading = bus.since(&memory.cursor)?;
        memory.digest.log = format!("{}/messages.jsonl", place.bus_dir());
        memory.digest.add(&reading);
        memory.cursor = reading.cursor;
        memory.write(place)?;
        let wisdom = place.folder().list(&place.wisdom(""))?;
        let states = meta.tasks();
        let count = |key: &str| -> usize {
            states
                .iter()
                .filter_map(|(_, _, state)| state.get(key)?.as_array().map(Vec::len))
                .sum()
        };
        let baseline = ObserverBaseline {
            ready,
            message_text,
            pipeline_mode: session.mode,
            stages: session.stages.len(),
            supervised: session.supervised,
            roles: meta.roles().keys().cloned().collect(),
            key_findings: count("key_findings"),
            decisions: count("decisions"),
            wisdom_files: wisdom.iter().filter(|name| name.ends_with(".md")).count(),
            messages: memory.digest.messages,
            damaged_lines: memory.digest.damaged,
            checkpoints: memory.checkpoints.clone(),
            role_spec_rows: setup.spec.rows,
            restored,
            in_progress,
        };
        Ok((
            Self {
                place: place.clone(),
                bus,
                memory,
                _lock,
            },
            baseline,
        ))
    }

    /// Continues a session that was started before, perhaps by another server.
    pub fn resume(place: &TeamDirs) -> Result<Self, ObserverError> {
        let _lock = state::lock(place)?;
        let mut memory = ObserverState::read(place)?.ok_or(ObserverError::NotInitialised)?;
        match memory.phase {
            ObserverPhase::ShutDown => return Err(ObserverError::ShutDown),
            // We hold the lock, so an observer recorded as awake is dead.
            ObserverPhase::Awake { .. } | ObserverPhase::Idle => memory.phase = ObserverPhase::Idle,
        }
        Ok(Self {
            place: place.clone(),
            bus: TeamBus::new(place),
            memory,
            _lock,
        })
    }

    pub fn memory(&self) -> &ObserverState {
        &self.memory
    }

    pub fn place(&self) -> &TeamDirs {
        &self.place
    }

    /// Records a failed wake. From the third error on the coordinator is alerted; the observer
    /// continues.
    pub fn record_error(&mut self, why: &str) -> Result<Option<String>, ObserverError> {
        self.memory.errors += 1;
        self.memory.last_error = words::cut_end(why, 300).into_owned();
        self.memory.phase = ObserverPhase::Idle;
        self.memory.write(&self.place)?;
        if self.memory.errors < ALERT_AT {
            return Ok(None);
        }
        let alert = format!(
            "{TAG} {} so far, the last: {}",
            words::count(self.memory.errors as usize, "error"),
            words::plain(&self.memory.last_error)
        );
        self.bus.log_message(MessageDraft {
            from: String::from("supervisor"),
            kind: Some(String::from("error")),
            summary: Some(alert.clone()),
            data: Some(Map::from_iter([(
                String::from("errors"),
                json!(self.memory.errors),
            )])),
            ..MessageDraft::default()
        })?;
        Ok(Some(alert))
    }

    /// Records that the pipeline continues despite a verdict: in sidecar, report, state and bus.
    pub fn override_verdict(
        &mut self,
        task: &CheckpointId,
        by: &str,
        reason: &str,
    ) -> Result<CheckpointSidecar, ObserverError> {
        for (field, value) in [("by", by), ("reason", reason)] {
            if value.trim().is_empty() {
                return Err(ObserverError::EmptyOverride { field });
            }
        }
        let mut sidecar = CheckpointSidecar::read(&self.place, task)?
            .ok_or_else(|| ObserverError::NothingToOverride(task.as_str().to_owned()))?;
        let is_same = |o: &VerdictOverride| o.by == by && o.reason == reason;
        if !sidecar.overridden.as_ref().is_some_and(is_same) {
            sidecar.overridden = Some(VerdictOverride {
                by: by.to_owned(),
                reason: reason.to_owned(),
                at: now(),
            });
        }
        sidecar.write(&self.place)?;
        let file = report::report_file(&self.place, task.as_str());
        self.place
            .folder()
            .write(&file, report::render(&sidecar).as_bytes())?;
        wake::publish(&self.bus, &self.place, &sidecar)?;
        let line = format!(
            "- {} overridden by {}: {}\n",
            task.as_str(),
            one_line(by),
            one_line(reason)
        );
        wake::add_wisdom(&self.place, "decisions.md", &line)?;
        Ok(sidecar)
    }

    /// Shuts the observer down.
    pub fn shut_down(mut self, request_id: &str) -> Result<Value, ObserverError> {
        self.memory.phase = ObserverPhase::ShutDown;
        self.memory.write(&self.place)?;
        Ok(json!({"type": "shutdown_response", "request_id": request_id, "approve": true}))
    }
}

/// The first message to the coordinator.
fn message(setup: &ObserverSetup, restored: usize, in_progress: &[String]) -> String {
    let session = words::plain(&setup.session_id);
    if !setup.recovery {
        return format!(
            "{TAG} Resident supervisor ready. Baseline loaded for session {session}. Awaiting checkpoint assignments."
        );
    }
    let mut text = format!(
        "{TAG} Recovered in session {session} with {}. Awaiting checkpoint assignments.",
        words::count(restored, "report")
    );
    if !in_progress.is_empty() {
        text += &format!(
            " In progress when the supervisor ended: {}; send the request again.",
            in_progress.join(", ")
        );
    }
    text
}

fn one_line(text: &str) -> String {
    words::plain(text)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
