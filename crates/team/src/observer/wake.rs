//! One wake: claim, load what is new, check, write sidecar and report, publish, log the risks, save
//! the state. Each step is idempotent: after a crash the next wake only does what is left.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::artifact_hashes::ArtifactHashes;
use super::super::bus::{TeamBus, TeamMeta};
use super::super::check::{CheckContext, FileCheckResults};
use super::super::definition::CheckpointDefinition;
use super::super::document::{DocumentStore, SessionDocuments};
use super::super::message::{MessageDraft, now};
use super::super::report::{self, TAG};
use super::super::report_format::ReportFormat;
use super::super::request::CheckpointRequest;
use super::super::role_spec::RoleSpec;
use super::super::scope::CheckpointScope;
use super::super::sidecar::CheckpointSidecar;
use super::super::team_dirs::TeamDirs;
use super::super::verdict::{CheckFinding, QualityTrend, ScoredVerdict};
use super::state::{AccumulatedCheckpoint, ObserverPhase};
use super::{IdleObserver, ObserverError};
use supervisor_text::words;
use supervisor_workspace::{FolderError, end_at};

/// Working on one checkpoint.
#[derive(Debug)]
pub struct AwakeObserver {
    observer: IdleObserver,
    request: CheckpointRequest,
    definition: CheckpointDefinition,
    documents: SessionDocuments,
    meta: TeamMeta,
    hashes: ArtifactHashes,
    inputs_hash: String,
    scope: CheckpointScope,
    format: ReportFormat,
    pub counts: LoadCounts,
}

/// Evidence that only new data was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LoadCounts {
    pub new_messages: usize,
    pub bus_bytes_read: u64,
    pub artifacts_read: usize,
    pub artifacts_known: usize,
    pub wisdom_files: usize,
}

/// The result of a checkpoint.
#[derive(Debug, Clone)]
pub struct CheckpointResult {
    pub sidecar: CheckpointSidecar,
    /// Relative to the project.
    pub report: String,
    pub message: String,
    /// True if the inputs were the same as before, so the verdict is reused.
    pub repeated: bool,
}

impl IdleObserver {
    /// Claims a checkpoint and loads what is new since the last one.
    pub fn wake(
        mut self,
        request: CheckpointRequest,
        spec: &RoleSpec,
        store: &mut DocumentStore,
    ) -> Result<AwakeObserver, (Box<Self>, ObserverError)> {
        let task_id = request.task_id.as_str().to_owned();
        let definitions = &spec.definitions;
        let Some(definition) = definitions.iter().find(|d| d.id == task_id).cloned() else {
            let known = words::one_of(definitions.iter().map(|d| d.id.as_str()));
            let role_spec = self.memory.role_spec.clone();
            return Err((
                Box::new(self),
                ObserverError::UnknownCheckpoint {
                    id: task_id,
                    role_spec,
                    known,
                },
            ));
        };
        self.memory.phase = ObserverPhase::Awake { task_id };
        if let Err(e) = self.memory.write(&self.place) {
            return Err((Box::new(self), e.into()));
        }
        end_at("WakeClaimed");
        match self.load(&request, &definition, store) {
            Err(error) => Err((Box::new(self), error)),
            Ok((documents, meta, scope, counts)) => {
                end_at("WakeLoaded");
                let hashes = ArtifactHashes::of(&documents);
                let inputs_hash = self.hash_inputs(&definition, &hashes, &meta, &scope);
                Ok(AwakeObserver {
                    observer: self,
                    request,
                    definition,
                    documents,
                    meta,
                    hashes,
                    inputs_hash,
                    scope,
                    format: spec.format.clone(),
                    counts,
                })
            }
        }
    }

    fn load(
        &mut self,
        request: &CheckpointRequest,
        definition: &CheckpointDefinition,
        store: &mut DocumentStore,
    ) -> Result<(SessionDocuments, TeamMeta, CheckpointScope, LoadCounts), ObserverError> {
        let reading = self.bus.since(&self.memory.cursor)?;
        self.memory.digest.add(&reading);
        self.memory.cursor = reading.cursor.clone();
        let (meta, meta_bytes) = self.bus.meta_and_cost()?;
        let mut documents = store.load(&self.place, &definition.sources)?;
        let scope = CheckpointScope::apply(
            &self.place,
            &request.scope,
            definition,
            &meta,
            &mut documents,
            store,
        )?;
        let counts = LoadCounts {
            new_messages: reading.messages.len(),
            bus_bytes_read: reading.bytes + meta_bytes,
            artifacts_read: documents.read,
            artifacts_known: documents.known,
            wisdom_files: documents.wisdom.len(),
        };
        Ok((documents, meta, scope, counts))
    }

    /// Hash of everything the verdict depends on, except our own messages.
    fn hash_inputs(
        &self,
        definition: &CheckpointDefinition,
        hashes: &ArtifactHashes,
        meta: &TeamMeta,
        scope: &CheckpointScope,
    ) -> String {
        let states: Vec<_> = meta
            .tasks()
            .into_iter()
            .filter(|(role, ..)| role != "supervisor")
            .collect();
        let checks: Vec<String> = definition
            .checks
            .iter()
            .map(|check| format!("{check:?}"))
            .collect();
        let inputs = json!([
            hashes.by_path,
            states,
            self.memory.digest,
            checks,
            scope.describe()
        ]);
        blake3::hash(inputs.to_string().as_bytes())
            .to_hex()
            .to_string()
    }
}

impl AwakeObserver {
    pub fn place(&self) -> &TeamDirs {
        &self.observer.place
    }

    /// The verdict of an earlier wake on the same inputs.
    pub fn known(&self) -> Result<Option<CheckpointSidecar>, ObserverError> {
        let sidecar = CheckpointSidecar::read(&self.observer.place, &self.request.task_id)?;
        Ok(sidecar.filter(|sidecar| sidecar.inputs_hash == self.inputs_hash))
    }

    /// Runs the checks that code can decide.
    pub fn check_files(&self) -> FileCheckResults {
        let context = CheckContext {
            definition: &self.definition,
            documents: &self.documents,
            meta: &self.meta,
            digest: &self.observer.memory.digest,
            now_s: jiff::Timestamp::now().as_second(),
        };
        let mut checked = context.run();
        checked.findings.extend(self.scope.finding().map(Some));
        end_at("WakeChecked");
        checked
    }

    /// Writes the verdict and returns to idle. With `None` the verdict of the earlier wake is kept.
    pub fn conclude(
        self,
        findings: Option<Vec<CheckFinding>>,
    ) -> Result<(IdleObserver, CheckpointResult), (Box<IdleObserver>, ObserverError)> {
        let Self {
            mut observer,
            request,
            definition,
            hashes,
            inputs_hash,
            scope,
            format,
            ..
        } = self;
        let place = observer.place.clone();
        let result = (|| {
            let earlier = CheckpointSidecar::read(&place, &request.task_id)?;
            let same = earlier
                .clone()
                .filter(|sidecar| sidecar.inputs_hash == inputs_hash);
            let repeated = same.is_some();
            let changed = hashes.changed(&place)?;
            if !changed.is_empty() {
                return Err(ObserverError::Changed(words::series(
                    changed.iter().map(|p| format!("`{p}`")),
                    10,
                )));
            }
            let sidecar = match same {
                Some(same) => same,
                None => {
                    let checks = findings.unwrap_or_default();
                    let scored = ScoredVerdict::of(&checks);
                    let previous = observer.memory.previous_score(request.task_id.as_str());
                    keep_revision(&place, earlier.as_ref())?;
                    let sidecar = CheckpointSidecar {
                        v: CheckpointSidecar::version(),
                        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
                        task_id: request.task_id.as_str().to_owned(),
                        name: definition.name.clone(),
                        revision: earlier.map_or(1, |earlier| earlier.revision + 1),
                        at: now(),
                        scope: scope.tasks,
                        progress: request.progress.clone(),
                        inputs: hashes.by_path.clone(),
                        inputs_hash,
                        trend: QualityTrend::between(previous, scored.score),
                        checks,
                        scored,
                        format,
                        overridden: None,
                    };
                    sidecar.write(&place)?;
                    sidecar
                }
            };
            end_at("WakeSidecarWritten");
            let report = report::report_file(&place, &sidecar.task_id);
            place
                .folder()
                .write(&report, report::render(&sidecar).as_bytes())?;
            end_at("WakeReportWritten");
            // Publish before the task counts as done.
            publish(&observer.bus, &place, &sidecar)?;
            end_at("WakePublished");
            log_risks(&place, &sidecar)?;
            end_at("WakeRisksLogged");
            observer
                .memory
                .accumulate(AccumulatedCheckpoint::of(&sidecar, &place));
            observer.memory.phase = ObserverPhase::Idle;
            observer.memory.write(&place)?;
            end_at("WakeAccumulated");
            let message = report::message_text(&sidecar, &report);
            Ok(CheckpointResult {
                sidecar,
                report,
                message,
                repeated,
            })
        })();
        match result {
            Ok(answer) => Ok((observer, answer)),
            Err(error) => Err((Box::new(observer), error)),
        }
    }

    /// Gives up without a verdict.
    pub fn abandon(self) -> IdleObserver {
        self.observer
    }
}

/// Keeps the report that is about to be replaced, under its revision number.
fn keep_revision(place: &TeamDirs, earlier: Option<&CheckpointSidecar>) -> Result<(), FolderError> {
    let Some(earlier) = earlier else {
        return Ok(());
    };
    let (task, revision) = (&earlier.task_id, earlier.revision);
    let kept = place.output(&format!("{task}-report.r{revision}.md"));
    place
        .folder()
        .write(&kept, report::render(earlier).as_bytes())?;
    let json = serde_json::to_string_pretty(earlier).expect("plain data serialises");
    place.folder().write(
        &place.output(&format!("{task}-report.r{revision}.json")),
        json.as_bytes(),
    )
}

/// Publishes the verdict on the bus, unless a killed wake has already done so. The state contains
/// our last message about the task, so the log need not be searched.
pub(super) fn publish(
    bus: &TeamBus,
    place: &TeamDirs,
    sidecar: &CheckpointSidecar,
) -> Result<(), ObserverError> {
    let state = state_of(place, sidecar);
    let known = bus.meta()?;
    let is_same = |published: &Map<String, Value>, key: &str| {
        published.get(key).unwrap_or(&Value::Null) == &state[key]
    };
    let is_published = known
        .task("supervisor", &sidecar.task_id)
        .is_some_and(|published| {
            ["inputs_hash", "revision", "override"]
                .iter()
                .all(|key| is_same(published, key))
        });
    if is_published {
        return Ok(());
    }
    bus.log_message(MessageDraft {
        from: String::from("supervisor"),
        kind: Some(String::from("state_update")),
        summary: Some(format!(
            "{TAG} {}: {}",
            sidecar.task_id,
            sidecar.scored.verdict.word()
        )),
        data: Some(state),
        ..MessageDraft::default()
    })?;
    Ok(())
}

fn state_of(place: &TeamDirs, sidecar: &CheckpointSidecar) -> Map<String, Value> {
    Map::from_iter([
        (String::from("status"), json!("task_complete")),
        (String::from("task_id"), json!(sidecar.task_id)),
        (
            String::from("ref"),
            json!(report::report_file(place, &sidecar.task_id)),
        ),
        (String::from("key_findings"), json!(sidecar.key_findings())),
        (String::from("decisions"), json!([sidecar.decision()])),
        (String::from("verification"), json!("self-validated")),
        (
            String::from("supervision_verdict"),
            json!(sidecar.scored.verdict),
        ),
        (
            String::from("supervision_score"),
            json!(sidecar.scored.score),
        ),
        (String::from("risks_logged"), json!(sidecar.scored.risks)),
        (
            String::from("blocks_detected"),
            json!(sidecar.scored.blocks),
        ),
        (String::from("inputs_hash"), json!(sidecar.inputs_hash)),
        (String::from("revision"), json!(sidecar.revision)),
        // Written even if null: states are merged, so an override of an earlier revision would
        // persist.
        (String::from("override"), json!(sidecar.overridden)),
    ])
}

fn log_risks(place: &TeamDirs, sidecar: &CheckpointSidecar) -> Result<(), FolderError> {
    let risks = report::risks(sidecar);
    if risks.is_empty() {
        return Ok(());
    }
    let line = |risk: &String| {
        format!(
            "- [supervisor] r{} {}\n",
            sidecar.revision,
            words::plain(risk)
        )
    };
    add_wisdom(
        place,
        "issues.md",
        &risks.iter().map(line).collect::<String>(),
    )
}

/// Appends the lines that are not there yet.
pub(super) fn add_wisdom(place: &TeamDirs, file: &str, lines: &str) -> Result<(), FolderError> {
    let path = place.wisdom(file);
    place.folder().make_dirs(&place.wisdom(""))?;
    let known = place.folder().read(&path, 64 << 20)?.unwrap_or_default();
    let known = String::from_utf8_lossy(&known);
    let new: String = lines
        .lines()
        .filter(|line| !known.lines().any(|k| k == *line))
        .map(|line| format!("{line}\n"))
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    let gap = if known.is_empty() || known.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    place
        .folder()
        .append(&path, format!("{gap}{new}").as_bytes())
}
