//! Turns a finished walk into a result: keeps or undoes the work and composes the message.

use std::fmt::Write as _;
use std::path::Path;

use parking_lot::Mutex;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, Cause};
use super::call::CallHeader;
use super::decide::WalkEnd;
use super::event::EventReporter;
use super::exchange::shorten_feedback;
use super::project_access::{Site, SiteError};
use super::result::{CANCELLED, CallResult, Gate, Status};
use super::skill::{RefusedCall, ServerFinding};
use super::tier_attempt::NOT_UNDONE;
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

/// What the caller gets if no model helped.
pub(super) struct Unaided {
    /// What the server itself found.
    pub(super) finding: Option<ServerFinding>,
    /// See [`super::skill::Skill::by_hand`].
    pub(super) by_hand: Value,
}

/// Keeps or undoes the work and builds the result.
pub(super) async fn conclude(
    route: &Route,
    header: &CallHeader,
    mut site: Site,
    report: WalkReport,
    unaided: Unaided,
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
            let found = unaided.finding.as_ref();
            result.message = exhausted_message(end, &attempts, route, found);
            if !unaided.by_hand.is_null() {
                result.message += " Or change the code yourself, then call `prove`.";
                result.more.next = unaided.by_hand;
            }
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
            if let Some(finding) = unaided.finding {
                let best = result.more.details["best_candidate"].take();
                result.more.details = finding.details;
                if !best.is_null() {
                    result.more.details["best_candidate"] = best;
                }
            }
        }
        WalkEnding::Cancelled => {
            result.message = String::from(CANCELLED);
        }
        WalkEnding::RestoreFailed(error) => {
            result.message = format!(
                "Your files could not be restored: {error}. Run `supervisor recover`, which tries again."
            );
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
                "The project could not be closed: {error}. Run `supervisor recover`, which tries again."
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

/// The longest reason of one attempt in a message. Remedies are never cut.
const MAX_REASON_BYTES: usize = 240;

/// What happened, what became of the files, why each tier failed, and what to do.
fn exhausted_message(
    end: WalkEnd,
    attempts: &[Attempt],
    route: &Route,
    found: Option<&ServerFinding>,
) -> String {
    let is_unanswered = attempts.iter().all(|attempt| {
        matches!(
            attempt.cause,
            Some(Cause::Infra | Cause::Setup | Cause::Skipped | Cause::Quota)
        )
    });
    let mut message = String::from(match end {
        WalkEnd::Budget => "The budget of this call is used up",
        _ if !is_unanswered => "No answer passed the checks",
        _ => "No model gave an answer",
    });
    let is_undone = attempts
        .iter()
        .all(|attempt| !attempt.feedback.contains(NOT_UNDONE));
    message += match is_undone {
        true => ", so nothing was changed.",
        false => ", and not every change could be undone.",
    };
    let mut told: Vec<String> = Vec::new();
    for attempt in attempts {
        let reason = shorten_feedback(attempt.reason(), MAX_REASON_BYTES);
        let reason = reason.trim_end_matches('.');
        // The reason of a failed question names its endpoint or model.
        let mut line = match attempt.cause {
            Some(Cause::Infra | Cause::Setup | Cause::Skipped | Cause::Quota) => reason.to_owned(),
            cause => {
                let cause = cause.map_or("error", Cause::word);
                format!("`{}` ({cause}): {reason}", attempt.model)
            }
        };
        if !attempt.hint.is_empty() {
            let _ = write!(line, " ({})", attempt.hint);
        }
        if !told.contains(&line) {
            let _ = write!(message, " {line}.");
            told.push(line);
        }
    }
    if let Some(found) = found {
        let _ = write!(message, " The server itself found: {}.", found.sentence);
    }
    message + " " + &exhausted_remedy(end, is_unanswered, attempts, route)
}

/// What to do after an exhausted chain.
fn exhausted_remedy(
    end: WalkEnd,
    is_unanswered: bool,
    attempts: &[Attempt],
    route: &Route,
) -> String {
    match end {
        WalkEnd::MaxAttempts => {
            let later = route
                .chain
                .tiers()
                .filter(|tier| attempts.iter().all(|a| a.model != tier.name.0));
            let later = words::list(later.map(|tier| tier.name.0.as_str()), 10);
            format!(
                "`max_attempts` is {}, so {later} was not asked: raise it.",
                route.max_attempts
            )
        }
        WalkEnd::Budget => String::from("To go on, call again with a larger `budget_usd`."),
        _ if is_unanswered => String::from(
            "Run `supervisor init` to set up models, or `supervisor doctor` to see what is wrong.",
        ),
        _ if route.pinned => {
            String::from("Try a narrower task, or leave `model` out to use the whole chain.")
        }
        _ => String::from(
            "Try a narrower task, or add a stronger model to the chain (`supervisor init`).",
        ),
    }
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
