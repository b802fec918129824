//! Runs the two trainer calls and merges their results.

use serde_json::{Value, json};

use super::TrainerParams;
use super::candidates::{GatheredCandidates, TrainingScope};
use super::files::TrainingFolder;
use super::reader::{ReaderSkill, refusals, scores_of};
use super::writer::{SelectedCandidates, WriterSkill};
use crate::common::{data_dir, filled};
use crate::{App, Call};
use supervisor_engine as engine;
use supervisor_engine::call::{CallArguments, CallRequest};
use supervisor_engine::result::{CallResult, More, Status};
use supervisor_engine::session::since::Since;
use supervisor_engine::session::{InvalidSessionId, SessionLog};
use supervisor_text::words;

const DEFAULT_MIN_SCORE: u8 = 3;

/// Runs one call. Failures are reported in the result.
pub(super) async fn run(app: &App, params: &TrainerParams, call: &Call) -> CallResult {
    let (gathered, folder) = match gather(app, params).await {
        Ok(gathered) => gathered,
        Err(why) => return error_result(&why),
    };
    let read = CallRequest::without_project(
        "trainer",
        "trainer-read",
        arguments(params, params.session_id.as_deref()),
    );
    let reader =
        engine::call::run::<ReaderSkill>(app, read, &gathered, &call.progress, &call.stop).await;
    if reader.status != Status::Pass || params.dry_run || gathered.candidates.is_empty() {
        return reader;
    }
    let scores = scores_of(&reader.more.details);
    let min_score = params.min_score.unwrap_or(DEFAULT_MIN_SCORE);
    let base_details = json!({
        "candidates": gathered.candidates.len(), "kept": 0, "min_score": min_score, "scores": scores,
        "skipped": gathered.skipped, "rejected": refusals(&gathered), "files": [],
    });
    let GatheredCandidates {
        mut candidates,
        names,
        ..
    } = gathered;
    candidates.retain(|one| scores.get(&one.id).is_some_and(|score| *score >= min_score));
    if candidates.is_empty() {
        let message = format!("no candidate scored {min_score} or more, so nothing was written");
        // The reader's stored result would contradict this message.
        let more = More {
            details: base_details,
            full_result: String::new(),
            ..reader.more
        };
        return CallResult {
            message,
            verified: false,
            more,
            ..reader
        };
    }
    let kept = SelectedCandidates {
        candidates,
        scores,
        names,
        folder,
        base_details,
    };
    // Both calls belong to one session, even if the caller named none.
    let write = CallRequest::without_project(
        "trainer",
        "trainer-write",
        arguments(params, Some(&reader.more.session_id)),
    );
    let mut writer =
        engine::call::run::<WriterSkill>(app, write, &kept, &call.progress, &call.stop).await;
    if let Some(read) = reader.more.cost_usd {
        writer.more.cost_usd = Some(read + writer.more.cost_usd.unwrap_or_default());
    }
    writer.more.duration_ms = reader
        .more
        .duration_ms
        .zip(writer.more.duration_ms)
        .map(|(a, b)| a + b);
    writer.more.attempts.splice(0..0, reader.more.attempts);
    writer
}

async fn gather(
    app: &App,
    params: &TrainerParams,
) -> Result<(GatheredCandidates, TrainingFolder), String> {
    let scope = scope(params)?;
    if params
        .min_score
        .is_some_and(|score| !(1..=5).contains(&score))
    {
        return Err(String::from("`min_score` is a whole number from 1 to 5"));
    }
    let settings = app.settings().map_err(|e| e.to_string())?;
    let state = app.state().map_err(|e| e.to_string())?;
    let folder = TrainingFolder::below(&data_dir()?);
    let (env, redactor) = (app.env().clone(), app.redactor(&settings.routing));
    let read = tokio::task::spawn_blocking(move || {
        let gathered = GatheredCandidates::from_log(
            &SessionLog::to_read(&state),
            &scope,
            &folder.digests(),
            &env,
            &redactor,
        )?;
        Ok((gathered, folder))
    });
    read.await
        .map_err(|panic| format!("the log could not be read: {panic}"))?
}

fn scope(params: &TrainerParams) -> Result<TrainingScope, String> {
    let time = |name: &str, text: Option<&str>| {
        let parse = |text: String| {
            text.parse::<Since>()
                .map(Since::time)
                .map_err(|e| format!("`{name}` is {text:?}; {e}"))
        };
        filled(text).map(parse).transpose()
    };
    let session = filled(params.session_id.as_deref())
        .map(|id| id.parse())
        .transpose();
    let session = session.map_err(|e: InvalidSessionId| e.to_string())?;
    let scope = TrainingScope {
        session,
        since: time("since", params.since.as_deref())?,
        until: time("until", params.until.as_deref())?,
    };
    if scope.session.is_none() && scope.since.is_none() && scope.until.is_none() {
        return Err(String::from(
            "say which calls: `session_id`, or `since` and `until`, such as `since: \"7d\"`",
        ));
    }
    Ok(scope)
}

fn arguments(params: &TrainerParams, session: Option<&str>) -> CallArguments {
    CallArguments {
        model: filled(params.model.as_deref()),
        session_id: filled(session),
        timeout_s: params.timeout_s,
        budget_usd: params.budget_usd,
        dry_run: params.dry_run,
        input: crate::common::input(params),
        ..CallArguments::default()
    }
}

fn error_result(message: &str) -> CallResult {
    CallResult::new(
        "trainer",
        "trainer-read",
        Status::Error,
        words::plain(message),
        Value::Null,
    )
}
