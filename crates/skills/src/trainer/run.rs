//! The two calls of the trainer, and what they come to together.

use serde_json::json;

use super::TrainerParams;
use super::candidates::{GatheredCandidates, TrainingScope};
use super::files::TrainingFolder;
use super::reader::{ReaderSkill, refusals, scores_of};
use super::writer::{KeptCandidates, WriterSkill};
use crate::common::{data_dir, filled};
use crate::{App, Call};
use supervisor_engine as engine;
use supervisor_engine::call::{CallArguments, CallRequest};
use supervisor_engine::result::{CallResult, More, Status};
use supervisor_engine::session::since::Since;
use supervisor_engine::session::{InvalidSessionId, SessionLog};
use supervisor_text::words;

const SCORE: u8 = 3;

/// Answers one call; whatever goes wrong is in the answer.
pub(super) async fn run(app: &App, asked: &TrainerParams, call: &Call) -> CallResult {
    let (gathered, folder) = match gather(app, asked).await {
        Ok(gathered) => gathered,
        Err(why) => return refused(&why),
    };
    let read = CallRequest::without_project(
        "trainer",
        "trainer-read",
        arguments(asked, asked.session_id.as_deref()),
    );
    let reader =
        engine::call::run::<ReaderSkill>(app, read, &gathered, &call.progress, &call.stop).await;
    if reader.status != Status::Pass || asked.dry_run || gathered.candidates.is_empty() {
        return reader;
    }
    let scores = scores_of(&reader.more.details);
    let least = asked.min_score.unwrap_or(SCORE);
    let told = json!({
        "candidates": gathered.candidates.len(), "kept": 0, "min_score": least, "scores": scores,
        "skipped": gathered.skipped, "rejected": refusals(&gathered), "files": [],
    });
    let GatheredCandidates {
        mut candidates,
        names,
        ..
    } = gathered;
    candidates.retain(|one| scores.get(&one.id).is_some_and(|score| *score >= least));
    if candidates.is_empty() {
        let message = format!("no candidate scored {least} or more, so nothing was written");
        // What was kept of the reader's result says something else.
        let more = More {
            details: told,
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
    let kept = KeptCandidates {
        candidates,
        scores,
        names,
        folder,
        told,
    };
    // Both are calls of one session, also where none was named.
    let write = CallRequest::without_project(
        "trainer",
        "trainer-write",
        arguments(asked, Some(&reader.more.session_id)),
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
    asked: &TrainerParams,
) -> Result<(GatheredCandidates, TrainingFolder), String> {
    let scope = scope(asked)?;
    if asked
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

fn scope(asked: &TrainerParams) -> Result<TrainingScope, String> {
    let time = |name: &str, text: Option<&str>| {
        let parse = |text: String| {
            text.parse::<Since>()
                .map(Since::time)
                .map_err(|e| format!("`{name}` is {text:?}; {e}"))
        };
        filled(text).map(parse).transpose()
    };
    let session = filled(asked.session_id.as_deref())
        .map(|id| id.parse())
        .transpose();
    let session = session.map_err(|e: InvalidSessionId| e.to_string())?;
    let scope = TrainingScope {
        session,
        since: time("since", asked.since.as_deref())?,
        until: time("until", asked.until.as_deref())?,
    };
    if scope.session.is_none() && scope.since.is_none() && scope.until.is_none() {
        return Err(String::from(
            "say which calls: `session_id`, or `since` and `until`, such as `since: \"7d\"`",
        ));
    }
    Ok(scope)
}

fn arguments(asked: &TrainerParams, session: Option<&str>) -> CallArguments {
    CallArguments {
        model: filled(asked.model.as_deref()),
        session_id: filled(session),
        timeout_s: asked.timeout_s,
        budget_usd: asked.budget_usd,
        dry_run: asked.dry_run,
        input: serde_json::to_value(asked).expect("plain data serialises"),
        ..CallArguments::default()
    }
}

fn refused(message: &str) -> CallResult {
    CallResult {
        status: Status::Error,
        message: words::plain(message).into_owned(),
        phase: String::from("trainer-read"),
        skill: String::from("trainer"),
        file_path: String::new(),
        runner_output: String::new(),
        verified: false,
        model_used: String::new(),
        more: More::default(),
    }
}
