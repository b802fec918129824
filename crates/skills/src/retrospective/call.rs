//! Prepares a retrospective: selects the calls to learn from and collects their private names.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::RetrospectiveParams;
use super::job::RetrospectiveSkill;
use super::material::{SessionMaterial, is_about_work, is_routine};
use crate::common::{BrainPaths, filled, identify, private_names};
use crate::{App, Call};
use supervisor_engine as engine;
use supervisor_engine::Status;
use supervisor_engine::call::{CallArguments, CallRequest};
use supervisor_engine::result::CallResult;
use supervisor_engine::session::detail::{CallChoice, LoggedCall};
use supervisor_engine::session::{
    Filter, InvalidSessionId, LogError, SessionId, SessionLog, Stats,
};
use supervisor_engine::skill::{DryRunPlan, Preparation, PreparedCall, RefusedCall};
use supervisor_text::words;

const RETROSPECTIVE: &str = "retrospective";

/// Runs one call. Failures are reported in the result.
pub(super) async fn run(app: &App, params: &RetrospectiveParams, call: &Call) -> CallResult {
    let arguments = CallArguments {
        model: filled(params.model.as_deref()),
        session_id: filled(Some(&params.session_id)),
        timeout_s: params.timeout_s,
        budget_usd: params.budget_usd,
        dry_run: params.dry_run,
        input: crate::common::input(params),
        ..CallArguments::default()
    };
    let request = CallRequest::without_project("retrospective", "retrospective", arguments)
        .requiring(&[("session_id", &params.session_id)]);
    engine::call::run::<RetrospectiveSkill>(app, request, params, &call.progress, &call.stop).await
}

pub(super) async fn prepare(
    params: &RetrospectiveParams,
    call: &mut Preparation<'_>,
) -> Result<PreparedCall<RetrospectiveSkill>, RefusedCall> {
    let discipline = call.discipline(RETROSPECTIVE)?;
    let id: SessionId = params
        .session_id
        .trim()
        .parse()
        .map_err(|e: InvalidSessionId| RefusedCall::error(e))?;
    let log = SessionLog::to_read(&call.environment.state);
    let logged = log.calls(&id, &CallChoice::All)?;
    // This call is logged in the session that it is about, and so were those before it.
    if logged.iter().all(|call| call.entry().tool == RETROSPECTIVE) {
        return Err(no_session(&id, &log)?);
    }
    let calls: Vec<LoggedCall> = logged.into_iter().filter(is_about_work).collect();
    if calls.is_empty() {
        return Err(nothing_to_learn(
            format!("nothing to learn: session `{id}` has no calls"),
            &json!({"calls": 0}),
        ));
    }
    let stats = Stats::gather(
        &log,
        &Filter {
            session: Some(id.clone()),
            ..Filter::default()
        },
    )?;
    let (routine, notable): (Vec<LoggedCall>, Vec<LoggedCall>) =
        calls.into_iter().partition(is_routine);
    let all: Vec<&LoggedCall> = routine.iter().chain(&notable).collect();
    let material = SessionMaterial::new(&stats, &all, notable.clone(), routine.len());
    if notable.is_empty() {
        let message = format!(
            "nothing to learn: {} passed at the first attempt",
            if routine.len() == 1 {
                "the only call".to_owned()
            } else {
                format!("all {} calls", routine.len())
            }
        );
        return Err(nothing_to_learn(message, &material.stats));
    }
    let places =
        BrainPaths::of(call.routing(), &call.environment.state).map_err(RefusedCall::error)?;
    // Most sessions are about one project; the notes are filed under the most frequent one.
    let root = material.main_project();
    let project = match root.as_deref().map(Path::new).filter(|root| root.is_dir()) {
        Some(root) => Some(identify(&call.environment.launcher, root, call.stop).await),
        None => None,
    };
    let mut names = private_names(all.iter().copied(), &call.environment.env);
    if let Some(remote) = project
        .as_ref()
        .and_then(|project| project.remote.as_deref())
    {
        names.add_remote(remote);
    }
    let entries: BTreeSet<String> = material.notable.iter().map(LoggedCall::citation).collect();
    let message = format!(
        "dry run: no model was asked; {} of {} would be shown",
        words::count(material.notable.len(), "call"),
        all.len()
    );
    let plan = DryRunPlan {
        message,
        details: json!({"stats": material.stats, "shown": entries}),
    };
    let task = format!(
        "Say what is worth knowing from session `{id}`: {} of which {} did not pass at the first attempt.",
        words::count(all.len(), "call"),
        material.notable.len()
    );
    let skill = RetrospectiveSkill {
        material,
        names,
        entries,
        places,
        project,
        session: id.to_string(),
        write: params.write,
        redactor: Arc::clone(&call.environment.services.redactor),
    };
    Ok(PreparedCall {
        skill,
        discipline,
        task,
        finding: None,
        plan,
    })
}

/// There is no such session.
fn no_session(id: &SessionId, log: &SessionLog) -> Result<RefusedCall, LogError> {
    let sessions = log.sessions()?;
    let others = sessions.iter().filter(|other| *other != id);
    let hint = match words::did_you_mean(id.as_str(), others.map(SessionId::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => String::from("`session_log` with operation list shows them all"),
    };
    let message = format!("there is no session `{id}` in the log; {hint}");
    Ok(RefusedCall {
        status: Status::Error,
        message,
        runner_output: String::new(),
        details: serde_json::Value::Null,
    })
}

/// A successful result without learnings. No model is asked.
fn nothing_to_learn(message: String, stats: &serde_json::Value) -> RefusedCall {
    let details = json!({"stats": stats, "learnings": [], "written": []});
    RefusedCall {
        status: Status::Pass,
        message,
        runner_output: String::new(),
        details,
    }
}
