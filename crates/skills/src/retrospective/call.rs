//! The way into a retrospective: which calls there are to learn from, and what is private about them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::RetrospectiveParams;
use super::job::RetrospectiveSkill;
use super::material::{SessionMaterial, is_about_work, is_routine};
use crate::common::{BrainPlaces, filled, identify, private_names};
use crate::{App, Call};
use supervisor_engine as engine;
use supervisor_engine::Status;
use supervisor_engine::call::{CallArguments, CallRequest};
use supervisor_engine::result::CallResult;
use supervisor_engine::session::detail::{CallChoice, LoggedCall};
use supervisor_engine::session::{Filter, InvalidSessionId, SessionId, SessionLog, Stats};
use supervisor_engine::skill::{DryRunPlan, Preparation, PreparedCall, RefusedCall};
use supervisor_text::words;

const RETROSPECTIVE: &str = "retrospective";

/// Answers one call; whatever goes wrong is in the answer.
pub(super) async fn run(app: &App, asked: &RetrospectiveParams, call: &Call) -> CallResult {
    let arguments = CallArguments {
        model: filled(asked.model.as_deref()),
        session_id: filled(Some(&asked.session_id)),
        timeout_s: asked.timeout_s,
        budget_usd: asked.budget_usd,
        dry_run: asked.dry_run,
        input: serde_json::to_value(asked).expect("plain data serialises"),
        ..CallArguments::default()
    };
    let request = CallRequest::without_project("retrospective", "retrospective", arguments)
        .requiring(&[("session_id", &asked.session_id)]);
    engine::call::run::<RetrospectiveSkill>(app, request, asked, &call.progress, &call.stop).await
}

pub(super) async fn prepare(
    asked: &RetrospectiveParams,
    call: &mut Preparation<'_>,
) -> Result<PreparedCall<RetrospectiveSkill>, RefusedCall> {
    let discipline = call.discipline(RETROSPECTIVE)?;
    let id: SessionId = asked
        .session_id
        .trim()
        .parse()
        .map_err(|e: InvalidSessionId| RefusedCall::error(e))?;
    let log = SessionLog::to_read(&call.surroundings.state);
    let calls: Vec<LoggedCall> = log
        .calls(&id, &CallChoice::All)
        .map_err(RefusedCall::error)?
        .into_iter()
        .filter(is_about_work)
        .collect();
    if calls.is_empty() {
        return Err(nothing(
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
    )
    .map_err(RefusedCall::error)?;
    let (routine, telling): (Vec<LoggedCall>, Vec<LoggedCall>) =
        calls.into_iter().partition(is_routine);
    let all: Vec<&LoggedCall> = routine.iter().chain(&telling).collect();
    let material = SessionMaterial::new(&stats, &all, telling.clone(), routine.len());
    if telling.is_empty() {
        let message = format!(
            "nothing to learn: {} passed at the first attempt",
            if routine.len() == 1 {
                "the only call".to_owned()
            } else {
                format!("all {} calls", routine.len())
            }
        );
        return Err(nothing(message, &material.stats));
    }
    let places =
        BrainPlaces::of(call.routing(), &call.surroundings.state).map_err(RefusedCall::error)?;
    // Most sessions are about one project; the notes are about the one that was worked on most.
    let root = material.main_project();
    let project = match root.as_deref().map(Path::new).filter(|root| root.is_dir()) {
        Some(root) => Some(identify(&call.surroundings.launcher, root, call.stop).await),
        None => None,
    };
    let mut names = private_names(all.iter().copied(), &call.surroundings.env);
    if let Some(remote) = project
        .as_ref()
        .and_then(|project| project.remote.as_deref())
    {
        names.add_remote(remote);
    }
    let entries: BTreeSet<String> = material.telling.iter().map(LoggedCall::citation).collect();
    let message = format!(
        "dry run: no model was asked; {} of {} would be shown",
        words::count(material.telling.len(), "call"),
        all.len()
    );
    let plan = DryRunPlan {
        message,
        details: json!({"stats": material.stats, "shown": entries}),
    };
    let task = format!(
        "Say what is worth knowing from session `{id}`: {} of which {} did not pass at the first attempt.",
        words::count(all.len(), "call"),
        material.telling.len()
    );
    let skill = RetrospectiveSkill {
        material,
        names,
        entries,
        places,
        project,
        session: id.to_string(),
        write: asked.write,
        redactor: Arc::clone(&call.surroundings.means.redactor),
    };
    Ok(PreparedCall {
        skill,
        discipline,
        task,
        finding: None,
        plan,
    })
}

/// A good answer for which no model need be asked.
fn nothing(message: String, stats: &serde_json::Value) -> RefusedCall {
    let details = json!({"stats": stats, "learnings": [], "written": []});
    RefusedCall {
        status: Status::Pass,
        message,
        runner_output: String::new(),
        details,
    }
}
