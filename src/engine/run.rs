//! One call from its request to its one result and one log entry, whatever happens on the way.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, Cause};
use super::entry::{Entry, VERSION};
use super::event::{Listener, Teller};
use super::job::{Found, Job, Keeps, Shown};
use super::means::Means;
use super::result::{CallResult, Gate, More, Status};
use super::site::{Site, blocking};
use super::top_tier;
use super::walk::{Ending, Walk, Walked};
use crate::backend::Edits;
use crate::routing::Route;
use crate::words;
use crate::workspace::Scope;

/// What a call is, for the log and the result.
#[derive(Debug, Clone)]
pub struct Request {
    pub skill: String,
    pub phase: String,
    pub session_id: String,
    /// Absolute; empty where no project is involved.
    pub project_root: String,
    /// The arguments as they came.
    pub input: Value,
}

/// A call that ended before any model was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Early {
    pub status: Status,
    pub message: String,
    pub runner_output: String,
    pub details: Value,
}

impl Early {
    #[expect(clippy::needless_pass_by_value, reason = "callers hand over errors and texts alike")]
    pub fn error(message: impl ToString) -> Self {
        Self { status: Status::Error, message: message.to_string(), runner_output: String::new(), details: Value::Null }
    }
}

/// Runs a call. `prepare` locks, arms and looks at the project before any model is asked; its refusal is logged as well.
pub async fn run<P>(
    means: &Means,
    route: &Route,
    request: &Request,
    listener: &dyn Listener,
    stop: &CancellationToken,
    prepare: P,
) -> CallResult
where
    P: AsyncFnOnce(&Teller<'_>) -> Result<(Site, Box<dyn Job>), Early>,
{
    let began = Instant::now();
    let teller = Teller::new(&request.skill, listener).redacting(Arc::clone(&means.redactor));
    if let Err(why) = means.recorder.ready(&request.session_id) {
        // A call that cannot be written down is not begun.
        return early(request, Early::error(why));
    }
    let mut result = match prepare(&teller).await {
        Err(refused) => early(request, refused),
        Ok((mut site, job)) => {
            let budget = means.budgets.call(&request.session_id, route.budget);
            let walk = Walk { means, job: &*job, route, budget: &budget, teller: &teller, stop };
            let walked = walk.run(&mut site).await;
            conclude(route, request, site, walked, job.found()).await
        }
    };
    result.more.session_id = request.session_id.clone();
    result.more.duration_ms = Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
    tidy(means, &mut result);
    let (recorder, entry) = (Arc::clone(&means.recorder), entry(request, route, &result));
    // The disk may be slow, and other calls must not wait for it.
    let recorded = blocking(move || recorder.record(&entry)).await;
    if let Err(why) = recorded {
        let _ = write!(result.message, " (not in the session log: {why})");
    }
    result
}

/// Accepts or lets go, and says what came of it.
async fn conclude(route: &Route, request: &Request, site: Site, walked: Walked, found: Option<Found>) -> CallResult {
    let Walked { ending, attempts, best } = walked;
    let mut result = early(request, Early::error(""));
    let keep = matches!(&ending, Ending::Accepted { held, .. } if held.keeps == Keeps::Changes);
    let closed = match &ending {
        _ if keep => site.accept().await,
        // The answer is in words, or a no: what the worker did to get there goes.
        Ending::Accepted { edits: Edits::InPlace, .. } => site.leave(Scope::Everything).await.map(drop),
        // Each refused attempt was undone in its own scope already; what differs since is somebody else's.
        _ => site.leave(Scope::Applied).await.map(drop),
    };
    match ending {
        Ending::Accepted { held, model, diff, files, .. } => {
            result.status = held.status;
            result.message = held.message;
            result.file_path = held.file_path;
            result.runner_output = held.runner_output;
            result.model_used = model;
            result.more.gates = held.gates;
            let (pass, detail) = match held.shown {
                // Only `verify` could have made it.
                Shown::Proven(proof) => (true, proof.sentence()),
                Shown::Unproven { why } => (false, why),
            };
            result.verified = pass;
            result.more.gates.push(Gate { id: "proof".into(), pass, detail });
            if keep {
                (result.more.diff, result.more.files_changed) = (diff, files);
            }
            (result.more.details, result.more.next) = (held.details, held.next);
        }
        Ending::Refused { failed, model } => {
            result.status = Status::Fail;
            result.message = failed.feedback.clone();
            result.runner_output = failed.runner_output.clone();
            result.model_used = model;
            result.more.gates = failed.gates.clone();
        }
        Ending::Exhausted => {
            result.message = exhausted(&attempts, route.pinned);
            if let Some(best) = best {
                result.more.diff = best.diff;
                result.more.details = json!({"best_candidate": {"model": best.model, "note": "refused; not applied"}});
            }
            if let Some(last) = attempts.last() {
                result.runner_output = last.runner_output.clone();
            }
            if let Some(found) = found {
                let _ = write!(result.message, ". The server itself found: {}", found.sentence);
                result.more.details = found.details;
            }
        }
        Ending::Cancelled => result.message = String::from("the call was cancelled; the project is as it was"),
        Ending::Broken(error) => result.message = format!("the project could not be brought back: {error}"),
    }
    if let Err(error) = closed {
        result.status = Status::Error;
        result.verified = false;
        result.message = format!("the project could not be closed: {error}; `supervisor recover` tries again");
    }
    let costs: Vec<f64> = attempts.iter().filter_map(|a| a.cost_usd).collect();
    result.more.cost_usd = (!costs.is_empty()).then(|| costs.iter().sum());
    result.more.attempts = attempts;
    result
}

/// `all tiers exhausted after 2 attempts: small → rejected: …; large → infra: …`
fn exhausted(attempts: &[Attempt], pinned: bool) -> String {
    let mut message = format!("all tiers exhausted after {}", words::count(attempts.len(), "attempt"));
    for (n, attempt) in attempts.iter().enumerate() {
        let cause = attempt.cause.map_or("error", Cause::word);
        let join = if n == 0 { ": " } else { "; " };
        let _ = write!(message, "{join}{} → {cause}: {}", attempt.model, words::cut_end(&attempt.feedback, 400));
    }
    if attempts.iter().all(|attempt| matches!(attempt.cause, Some(Cause::Infra | Cause::Setup | Cause::Skipped))) {
        return message + ". No tier gave an answer; `supervisor doctor` says what can be reached";
    }
    // Whoever pinned one knows that others exist.
    if pinned { message } else { message + ". Call again with `model` to pin one" }
}

fn early(request: &Request, early: Early) -> CallResult {
    CallResult {
        status: early.status,
        message: early.message,
        phase: request.phase.clone(),
        skill: request.skill.clone(),
        file_path: String::new(),
        runner_output: early.runner_output,
        verified: false,
        model_used: String::new(),
        more: More { details: early.details, session_id: request.session_id.clone(), ..More::default() },
    }
}

/// Takes secrets out, and escapes from what came from outside.
fn tidy(means: &Means, result: &mut CallResult) {
    let clean = |text: &mut String| *text = words::plain(&means.redactor.redact(text)).into_owned();
    clean(&mut result.message);
    clean(&mut result.runner_output);
    clean(&mut result.more.diff);
    clean(&mut result.file_path);
    result.more.files_changed.iter_mut().for_each(clean);
    means.redactor.redact_json(&mut result.more.details);
    means.redactor.redact_json(&mut result.more.next);
    for gate in &mut result.more.gates {
        clean(&mut gate.detail);
    }
}

fn entry(request: &Request, route: &Route, result: &CallResult) -> Entry {
    Entry {
        v: VERSION,
        session_id: request.session_id.clone(),
        timestamp: jiff::Timestamp::now().to_string(),
        skill: request.skill.clone(),
        phase: request.phase.clone(),
        final_status: result.status,
        project_root: request.project_root.clone(),
        file_path: result.file_path.clone(),
        model_used: result.model_used.clone(),
        message: result.message.clone(),
        input: request.input.clone(),
        attempts: result.more.attempts.clone(),
        duration_ms: result.more.duration_ms.unwrap_or_default(),
        top_tier: Some(top_tier::of(route, &result.more.attempts)),
    }
}
