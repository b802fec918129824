//! Handles one `supervise` call: parses the arguments, runs the observer and builds the result.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use parking_lot::Mutex;

use serde_json::{Value, json};

use super::commands::CommandTrust;
use super::external_checks::{ExternalCheckRunner, QuestionPolicy};
use super::{SuperviseOperation, SuperviseParams};
use crate::{App, Call};
use supervisor_engine::result::{CallResult, Gate, Status};
use supervisor_team::definition::CheckpointDefinition;
use supervisor_team::document::DocumentStore;
use supervisor_team::observer::{
    AwakeObserver, CheckpointResult, IdleObserver, LoadCounts, ObserverError, ObserverSetup,
};
use supervisor_team::report::{TAG, with_tag};
use supervisor_team::request::{CheckpointId, CheckpointRequest, RequestError, WakeRequest};
use supervisor_team::role_spec::RoleSpec;
use supervisor_team::team_dirs::{TeamDirs, TeamId};
use supervisor_team::verdict::{CheckFinding, SupervisionVerdict};
use supervisor_text::words;

const MAX_ROLE_SPEC_BYTES: u64 = 1 << 20;

/// Documents already read by this server process. Kept until the process exits.
static DOCUMENT_STORE: LazyLock<Mutex<DocumentStore>> = LazyLock::new(Mutex::default);

/// The parsed request.
enum SuperviseRequest {
    Init,
    Checkpoint(CheckpointRequest),
    Status,
    Override {
        task: CheckpointId,
        by: String,
        reason: String,
    },
    Shutdown {
        request_id: String,
    },
}

pub(super) async fn answer(app: &App, params: SuperviseParams, call: &Call) -> CallResult {
    match serve(app, &params, call).await {
        Ok(result) => result,
        Err(error) => {
            let message = with_tag(&error.to_string());
            call_result(Status::Error, message, Value::Null)
        }
    }
}

async fn serve(
    app: &App,
    params: &SuperviseParams,
    call: &Call,
) -> Result<CallResult, ObserverError> {
    let root = Path::new(&params.project_root);
    let id = TeamId::new("session_id", &params.session_id)?;
    let dir = params.run_dir.as_deref().or(params.session.as_deref());
    let place = TeamDirs::existing(root, &id, dir)?;
    let request = match parse_request(params) {
        Ok(request) => request,
        // An unparsable `wake` text counts as an observer error; the observer stays idle.
        Err(error) if params.wake.is_some() => return reject_wake(&place, &error),
        Err(error) => return Err(error.into()),
    };
    match request {
        SuperviseRequest::Init => init(app, &place, params),
        SuperviseRequest::Checkpoint(request) => checkpoint(app, &place, request, call).await,
        SuperviseRequest::Status => status(&place),
        SuperviseRequest::Override { task, by, reason } => {
            override_verdict(&place, &task, &by, &reason)
        }
        SuperviseRequest::Shutdown { request_id } => {
            let response = IdleObserver::resume(&place)?.shut_down(&request_id)?;
            Ok(call_result(
                Status::Pass,
                format!("{TAG} shut down"),
                json!({"shutdown_response": response}),
            ))
        }
    }
}

fn parse_request(params: &SuperviseParams) -> Result<SuperviseRequest, RequestError> {
    if let Some(text) = &params.wake {
        return Ok(match WakeRequest::parse(text)? {
            WakeRequest::Checkpoint(request) => SuperviseRequest::Checkpoint(request),
            WakeRequest::Shutdown { request_id } => SuperviseRequest::Shutdown { request_id },
        });
    }
    let task = || CheckpointId::new(params.task_id.as_deref().unwrap_or_default());
    Ok(match params.operation {
        Some(SuperviseOperation::Init) => SuperviseRequest::Init,
        Some(SuperviseOperation::Checkpoint) => SuperviseRequest::Checkpoint(CheckpointRequest {
            task_id: task()?,
            scope: params.scope.clone(),
            progress: params.pipeline_progress.clone().unwrap_or_default(),
        }),
        Some(SuperviseOperation::Status) => SuperviseRequest::Status,
        Some(SuperviseOperation::Override) => SuperviseRequest::Override {
            task: task()?,
            by: params.by.clone().unwrap_or_default(),
            reason: params.reason.clone().unwrap_or_default(),
        },
        Some(SuperviseOperation::Shutdown) => SuperviseRequest::Shutdown {
            request_id: params.request_id.clone().unwrap_or_default(),
        },
        // The prompt of the first version names no operation.
        None if params.role.as_deref() == Some("supervisor") => SuperviseRequest::Init,
        None => return Err(RequestError::Unknown),
    })
}

fn init(
    app: &App,
    place: &TeamDirs,
    params: &SuperviseParams,
) -> Result<CallResult, ObserverError> {
    let role_spec = params.role_spec.clone().unwrap_or_default();
    let setup = ObserverSetup {
        session_id: params.session_id.clone(),
        team_name: params.team_name.clone().unwrap_or_default(),
        requirement: params.requirement.clone().unwrap_or_default(),
        spec: read_role_spec(app, place, &role_spec)?,
        role_spec: if role_spec.is_empty() {
            String::from("built in")
        } else {
            role_spec
        },
        recovery: params.recovery,
    };
    let (_observer, baseline) = IdleObserver::init(place, setup)?;
    let mut message = baseline.ready.clone();
    if !baseline.supervised {
        message += " (the session file says `supervision: false`; checkpoints are made only if you ask for them)";
    }
    Ok(call_result(Status::Pass, message, json!(baseline)))
}

/// Reads a role spec. The commands in it are not run, wherever the file is.
fn read_role_spec(app: &App, place: &TeamDirs, role_spec: &str) -> Result<RoleSpec, ObserverError> {
    if role_spec.is_empty() || role_spec == "built in" {
        return Ok(RoleSpec::built_in());
    }
    let home = app.env().get("HOME");
    let path = match role_spec.strip_prefix("~/").zip(home) {
        Some((rest, home)) => PathBuf::from(home).join(rest),
        None => PathBuf::from(role_spec),
    };
    let root = place.folder().path();
    let bytes = match path.strip_prefix(root) {
        Err(_) if path.is_absolute() => read_outside(&path)?,
        inside => {
            let relative = inside.map_or(role_spec, |path| path.to_str().unwrap_or(role_spec));
            place.folder().read(relative, MAX_ROLE_SPEC_BYTES)?
        }
    };
    let bytes = bytes.ok_or_else(|| ObserverError::NoRoleSpec(role_spec.to_owned()))?;
    let text = String::from_utf8_lossy(&bytes);
    if role_spec.ends_with(".toml") {
        let definition = CheckpointDefinition::parse(role_spec, &text)?;
        return Ok(RoleSpec::defined(vec![definition], "defined as TOML"));
    }
    Ok(RoleSpec::parse(role_spec, &text)?)
}

/// A role spec that the user keeps elsewhere, such as that of a plugin.
fn read_outside(path: &Path) -> Result<Option<Vec<u8>>, ObserverError> {
    let bad = || ObserverError::BadRoleSpec(path.display().to_string());
    let is_spec = path
        .extension()
        .is_some_and(|extension| extension == "md" || extension == "toml");
    match std::fs::metadata(path) {
        Err(_) => Ok(None),
        Ok(meta) if is_spec && meta.is_file() && meta.len() <= MAX_ROLE_SPEC_BYTES => {
            std::fs::read(path).map(Some).map_err(|_| bad())
        }
        Ok(_) => Err(bad()),
    }
}

async fn checkpoint(
    app: &App,
    place: &TeamDirs,
    request: CheckpointRequest,
    call: &Call,
) -> Result<CallResult, ObserverError> {
    let observer = IdleObserver::resume(place)?;
    let spec = read_role_spec(app, place, &observer.memory().role_spec)?;
    call.progress.say(&format!(
        "supervise · {} · reading what is new",
        request.task_id.as_str()
    ));
    let awake = {
        let mut store = DOCUMENT_STORE.lock();
        observer.wake(request, &spec, &mut store)
    };
    let awake = match awake {
        Ok(awake) => awake,
        Err((observer, error)) => return record_failure(*observer, &error),
    };
    let counts = awake.counts;
    let findings = match awake.known() {
        Ok(Some(_)) => None,
        Ok(None) => Some(decide(app, &awake, call).await),
        Err(error) => return record_failure(awake.abandon(), &error),
    };
    match awake.conclude(findings) {
        Ok((observer, answer)) => Ok(verdict_result(&observer, &answer, counts)),
        Err((observer, error)) => record_failure(*observer, &error),
    }
}

/// Decides file checks in code, then runs commands and asks models.
async fn decide(app: &App, awake: &AwakeObserver, call: &Call) -> Vec<CheckFinding> {
    let bench = ExternalCheckRunner {
        app,
        root: awake.place().folder().path(),
        trust: CommandTrust::InProject,
        questions: QuestionPolicy::Ask,
        listener: &call.progress,
        stop: &call.stop,
    };
    bench.decide(awake.check_files()).await
}

fn verdict_result(
    observer: &IdleObserver,
    answer: &CheckpointResult,
    counts: LoadCounts,
) -> CallResult {
    let sidecar = &answer.sidecar;
    let status = match (sidecar.scored.verdict, &sidecar.overridden) {
        (SupervisionVerdict::Block, None) => Status::Fail,
        _ => Status::Pass,
    };
    let report = observer
        .place()
        .absolute(&answer.report)
        .display()
        .to_string();
    let findings: Vec<Value> = sidecar
        .checks
        .iter()
        .map(|c| json!({"id": c.id, "result": c.outcome, "details": c.details}))
        .collect();
    let evidence: Vec<String> = sidecar
        .checks
        .iter()
        .flat_map(|c| {
            c.evidence.iter().map(move |e| {
                format!(
                    "{}: {}:{} {}",
                    c.id,
                    e.file,
                    e.line,
                    words::cut_end(&e.text, 80)
                )
            })
        })
        .take(10)
        .collect();
    let details = json!({
        "verdict": sidecar.scored.verdict,
        "score": sidecar.scored.score,
        "blocks_detected": sidecar.scored.blocks,
        "risks_logged": sidecar.scored.risks,
        "trend": sidecar.trend,
        "revision": sidecar.revision,
        "repeated": answer.repeated,
        "checks": findings,
        "evidence": evidence,
        "loaded": counts,
        "message_text": answer.message,
        "override": sidecar.overridden,
    });
    let gate = Gate {
        id: String::from("isolation"),
        pass: true,
        detail: format!(
            "{} with the same contents before and after",
            words::count(sidecar.inputs.len(), "artifact")
        ),
    };
    let mut result = call_result(
        status,
        format!(
            "{TAG} {}: {} (score: {:.2})",
            sidecar.task_id,
            sidecar.scored.verdict.word(),
            sidecar.scored.score
        ),
        details,
    );
    result.file_path = report;
    result.verified = true;
    result.more.gates = vec![gate];
    result
}

fn record_failure(
    mut observer: IdleObserver,
    error: &ObserverError,
) -> Result<CallResult, ObserverError> {
    let alert = observer.record_error(&error.to_string())?;
    let details = json!({"errors": observer.memory().errors, "alert": alert});
    let message = with_tag(
        &[
            Some(error.to_string()),
            alert.map(|a| a.trim_start_matches(TAG).trim().to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("\n"),
    );
    Ok(call_result(Status::Error, message, details))
}

fn reject_wake(place: &TeamDirs, error: &RequestError) -> Result<CallResult, ObserverError> {
    let observer = IdleObserver::resume(place)?;
    record_failure(observer, &ObserverError::Request(error.clone()))
}

fn status(place: &TeamDirs) -> Result<CallResult, ObserverError> {
    let observer = IdleObserver::resume(place)?;
    let memory = observer.memory();
    let details = json!({
        "phase": memory.phase,
        "accumulator": memory.accumulator,
        "errors": memory.errors,
        "last_error": memory.last_error,
        "messages": memory.digest.messages,
        "damaged_lines": memory.digest.damaged,
        "role_spec": memory.role_spec,
        "checkpoints": memory.checkpoints,
    });
    let message = format!(
        "{TAG} idle, {} made, {}",
        words::count(memory.accumulator.len(), "checkpoint"),
        words::count(memory.errors as usize, "error")
    );
    Ok(call_result(Status::Pass, message, details))
}

fn override_verdict(
    place: &TeamDirs,
    task: &CheckpointId,
    by: &str,
    reason: &str,
) -> Result<CallResult, ObserverError> {
    let mut observer = IdleObserver::resume(place)?;
    let sidecar = observer.override_verdict(task, by, reason)?;
    let message = format!(
        "{TAG} {} ({}) overridden by {}",
        sidecar.task_id,
        sidecar.scored.verdict.word(),
        words::plain(by)
    );
    Ok(call_result(
        Status::Pass,
        message,
        json!({"verdict": sidecar.scored.verdict, "override": sidecar.overridden}),
    ))
}

fn call_result(status: Status, message: String, details: Value) -> CallResult {
    CallResult::new("supervise", "checkpoint", status, message, details)
}
