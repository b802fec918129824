//! Turns a finished walk into a result: keeps or undoes the work and composes the message.

use std::fmt::Write as _;
use std::path::Path;

use parking_lot::Mutex;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, Cause};
use super::call::CallHeader;
use super::decide::WalkEnd;
use super::event::EventReporter;
use super::exchange::shorten_feedback;
use super::project_access::{Site, SiteError};
use super::result::{CallResult, Gate, Status};
use super::skill::{RefusedCall, ServerFinding};
use super::walk::{WalkEnding, WalkReport};
use super::work::{KeepPolicy, Verification};
use super::write_work::{self, UndoTarget};
use supervisor_models::Edits;
use supervisor_settings::Route;
use supervisor_text::redact::Redactor;
use supervisor_text::words;
use supervisor_verify::Flags;
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{Scope, UndoRecord};

/// Context for concluding a call.
pub(super) struct ConcludeContext<'a> {
    /// Receives the record for undoing an accepted change.
    pub(super) undo: Option<&'a Mutex<Option<UndoRecord>>>,
    pub(super) state: &'a StateDir,
    pub(super) reporter: &'a EventReporter<'a>,
    pub(super) stop: &'a CancellationToken,
}

/// Keeps or undoes the work and builds the result.
pub(super) async fn conclude(
    route: &Route,
    header: &CallHeader,
    mut site: Site,
    report: WalkReport,
    finding: Option<ServerFinding>,
    end: ConcludeContext<'_>,
) -> CallResult {
    let ConcludeContext {
        undo,
        state,
        reporter,
        stop,
    } = end;
    let WalkReport {
        ending,
        attempts,
        best,
        mut side_effects,
    } = report;
    let mut result = refused_result(header, RefusedCall::error(""));
    result.more.sandbox = site.sandbox();
    let keeps_changes =
        matches!(&ending, WalkEnding::Accepted { work, .. } if work.keeps == KeepPolicy::Changes);
    if !keeps_changes && let Ok(drift) = site.drift().await {
        side_effects
            .external_changes
            .extend(drift.paths().map(Path::to_owned));
    }
    let mut rebased = None;
    let closed = match &ending {
        _ if keeps_changes => {
            write_work::write_work(site, UndoTarget { state, header }, reporter, stop)
                .await
                .map(|kept| {
                    if let Some(undo) = undo {
                        *undo.lock() = kept.undo;
                    }
                    side_effects.external_changes.extend(kept.external_changes);
                    rebased = kept.rebased;
                })
        }
        // The answer is text or a refusal: undo what the worker did to get there.
        WalkEnding::Accepted {
            edits: Edits::InPlace,
            ..
        } => site.discard(Scope::Everything).await.map(drop),
        // Refused attempts were already undone in their own scope. Remaining differences were made
        // by another process.
        _ => site.discard(Scope::Applied).await.map(drop),
    };
    result.more.meanwhile = side_effects
        .external_changes
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    result.more.undone = side_effects
        .undone_external_changes
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let unrestored = side_effects.unrestored_metadata.iter();
    result.more.not_given_back = unrestored
        .map(|(path, what)| format!("{}: {what}", path.display()))
        .collect();
    // If an answer was accepted, the refused attempts before it appear only in the log.
    if !keeps_changes || closed.is_err() || !side_effects.undone_external_changes.is_empty() {
        result.more.kept_in = side_effects
            .rejected_files
            .iter()
            .map(|path| path.display().to_string())
            .collect();
    }
    match ending {
        WalkEnding::Accepted {
            work,
            model,
            diff,
            files,
            ..
        } => {
            result.status = work.status;
            result.message = work.message;
            result.file_path = work.file_path;
            result.runner_output = work.runner_output;
            result.model_used = model;
            result.more.gates = work.gates;
            let (pass, detail) = match work.verification {
                // Only `verify` can create a proof.
                Verification::Proven(proof) => (true, proof.sentence()),
                Verification::Unproven { why } => (false, why),
            };
            result.verified = pass;
            result.more.gates.push(Gate {
                id: "proof".into(),
                pass,
                detail,
            });
            if keeps_changes {
                (result.more.diff, result.more.files_changed) = rebased.unwrap_or((diff, files));
            }
            (result.more.details, result.more.next) = (work.details, work.next);
            show_flags(&mut result, &work.flags);
        }
        WalkEnding::Refused { work, model } => {
            result.status = Status::Fail;
            result.message = work.feedback;
            result.runner_output = work.runner_output;
            result.model_used = model;
            result.more.gates = work.gates;
        }
        WalkEnding::Exhausted(end) => {
            result.message = exhausted_message(end, &attempts, route);
            if let Some(best) = best {
                result.more.diff = best.diff;
                let mut candidate = json!({"model": best.model, "note": "refused; not applied"});
                if let Some(answer) = best.answer {
                    candidate["answer"] = *answer;
                }
                result.more.details = json!({"best_candidate": candidate});
            }
            if let Some(last) = attempts.last() {
                result.runner_output = last.runner_output.clone();
            }
            if let Some(finding) = finding {
                let _ = write!(
                    result.message,
                    "; the server itself found: {}",
                    finding.sentence
                );
                let best = result.more.details["best_candidate"].take();
                result.more.details = finding.details;
                if !best.is_null() {
                    result.more.details["best_candidate"] = best;
                }
            }
        }
        WalkEnding::Cancelled => {
            result.message = String::from("the call was cancelled; the project is as it was");
        }
        WalkEnding::RestoreFailed(error) => {
            result.message = format!("the project could not be brought back: {error}");
        }
    }
    if let Err(error) = closed {
        result.status = Status::Error;
        result.verified = false;
        result.message = match error {
            // Nothing was written, and the message names the conflict and the remedy.
            SiteError::Commit(error) => error.to_string(),
            error @ SiteError::RecheckFailed { .. } => error.to_string(),
            error => format!(
                "the project could not be closed: {error}; `supervisor recover` tries again"
            ),
        };
        (result.more.files_changed, result.file_path) = (Vec::new(), String::new());
    }
    let costs: Vec<f64> = attempts.iter().filter_map(|a| a.cost_usd).collect();
    result.more.cost_usd = (!costs.is_empty()).then(|| costs.iter().sum());
    result.more.attempts = attempts;
    result
}

/// Adds flags to the result: those that no verifier dismissed in the first line of the message, all
/// of them as data.
fn show_flags(result: &mut CallResult, flags: &Flags) {
    if flags.is_empty() {
        return;
    }
    if let Some(headline) = flags.headline() {
        let end = result.message.find('\n').unwrap_or(result.message.len());
        result.message.insert_str(end, &format!("; {headline}"));
    }
    if result.more.details.is_null() {
        result.more.details = json!({});
    }
    result.more.details["flags"] = json!(flags);
}

/// `all tiers exhausted_message after 2 attempts: small → rejected: …; large → infra: …`
fn exhausted_message(end: WalkEnd, attempts: &[Attempt], route: &Route) -> String {
    let tried = words::count(attempts.len(), "attempt");
    let mut message = match end {
        WalkEnd::MaxAttempts => {
            let later = route
                .chain
                .tiers()
                .filter(|tier| attempts.iter().all(|a| a.model != tier.name.0));
            let later = words::list(later.map(|tier| tier.name.0.as_str()), 10);
            format!(
                "`max_attempts` = {} was reached before {later} was asked",
                route.max_attempts
            )
        }
        WalkEnd::Budget => format!("the budget ended the call after {tried}"),
        WalkEnd::AllTiers | WalkEnd::Accepted | WalkEnd::Refused | WalkEnd::Cancelled => {
            format!("all tiers exhausted after {tried}")
        }
    };
    for (n, attempt) in attempts.iter().enumerate() {
        let cause = attempt.cause.map_or("error", Cause::word);
        let join = if n == 0 { ": " } else { "; " };
        let _ = write!(
            message,
            "{join}{} → {cause}: {}",
            attempt.model,
            shorten_feedback(first_line(&attempt.feedback), 240)
        );
    }
    if attempts.iter().all(|attempt| {
        matches!(
            attempt.cause,
            Some(Cause::Infra | Cause::Setup | Cause::Skipped)
        )
    }) {
        return message
            + "; no tier gave an answer, and `supervisor doctor` says what can be reached";
    }
    match end {
        WalkEnd::MaxAttempts => message + "; call again with a higher `max_attempts`",
        // A caller who pinned a model knows that there are others.
        _ if route.pinned => message,
        _ => message + "; call again with `model` to pin one",
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A result without an answer.
pub(super) fn refused_result(header: &CallHeader, refused: RefusedCall) -> CallResult {
    let RefusedCall {
        status,
        message,
        runner_output,
        details,
    } = refused;
    let mut result = CallResult::new(&header.skill, &header.phase, status, message, details);
    result.runner_output = runner_output;
    result.more.session_id.clone_from(&header.session_id);
    result
}

/// Redacts secrets and removes escape sequences from outside text.
pub(super) fn redact_result(redactor: &Redactor, result: &mut CallResult) {
    let clean = |text: &mut String| *text = words::plain(&redactor.redact(text)).into_owned();
    clean(&mut result.message);
    clean(&mut result.runner_output);
    clean(&mut result.more.diff);
    clean(&mut result.file_path);
    result.more.files_changed.iter_mut().for_each(clean);
    redactor.redact_json(&mut result.more.details);
    redactor.redact_json(&mut result.more.next);
    for gate in &mut result.more.gates {
        clean(&mut gate.detail);
    }
}
