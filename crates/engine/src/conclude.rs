//! What came of a walk, in the one shape of every result: the work accepted or let go, and a sentence about it.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, Cause};
use super::call::CallHeader;
use super::decide::WalkEnd;
use super::event::Teller;
use super::exchange::shorten_feedback;
use super::keeping::{self, UndoNote};
use super::result::{CallResult, Gate, More, Status};
use super::site::{Site, SiteError};
use super::skill::{RefusedCall, ServerFinding};
use super::walk::{WalkEnding, WalkReport};
use super::work::{KeepPolicy, Verification};
use supervisor_models::Edits;
use supervisor_settings::Route;
use supervisor_text::redact::Redactor;
use supervisor_text::words;
use supervisor_verify::Flags;
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{Scope, UndoRecord};

/// What the end of a call is told with.
pub(super) struct CallEnd<'a> {
    /// Where it is written down how to take an accepted change back.
    pub(super) undo: Option<&'a Mutex<Option<UndoRecord>>>,
    pub(super) state: &'a StateDir,
    pub(super) teller: &'a Teller<'a>,
    pub(super) stop: &'a CancellationToken,
}

/// Accepts or lets go, and says what came of it.
pub(super) async fn conclude(
    route: &Route,
    header: &CallHeader,
    mut site: Site,
    report: WalkReport,
    finding: Option<ServerFinding>,
    end: CallEnd<'_>,
) -> CallResult {
    let CallEnd {
        undo,
        state,
        teller,
        stop,
    } = end;
    let WalkReport {
        ending,
        attempts,
        best,
        mut met,
    } = report;
    let mut result = refuse(header, RefusedCall::error(""));
    result.more.sandbox = site.sandbox();
    let keep =
        matches!(&ending, WalkEnding::Accepted { work, .. } if work.keeps == KeepPolicy::Changes);
    if !keep && let Ok(drift) = site.drift().await {
        met.others.extend(drift.paths().map(Path::to_owned));
    }
    let mut moved = None;
    let closed = match &ending {
        _ if keep => keeping::keep(site, UndoNote { state, header }, teller, stop)
            .await
            .map(|kept| {
                if let Some(undo) = undo {
                    *undo.lock().unwrap_or_else(PoisonError::into_inner) = kept.undo;
                }
                met.others.extend(kept.meanwhile);
                moved = kept.moved;
            }),
        // The answer is in words, or a no: what the worker did to get there goes.
        WalkEnding::Accepted {
            edits: Edits::InPlace,
            ..
        } => site.leave(Scope::Everything).await.map(drop),
        // Each refused attempt was undone in its own scope already; what differs since was changed by another process.
        _ => site.leave(Scope::Applied).await.map(drop),
    };
    result.more.meanwhile = met
        .others
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    result.more.undone = met
        .undone
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let lost = met.lost.iter();
    result.more.not_given_back = lost
        .map(|(path, what)| format!("{}: {what}", path.display()))
        .collect();
    // Beside an answer that holds, the refused ones before it are only in the log.
    if !keep || closed.is_err() || !met.undone.is_empty() {
        result.more.kept_in = met
            .kept_in
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
                // Only `verify` could have made it.
                Verification::Proven(proof) => (true, proof.sentence()),
                Verification::Unproven { why } => (false, why),
            };
            result.verified = pass;
            result.more.gates.push(Gate {
                id: "proof".into(),
                pass,
                detail,
            });
            if keep {
                (result.more.diff, result.more.files_changed) = moved.unwrap_or((diff, files));
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
            result.message = exhausted(end, &attempts, route);
            if let Some(best) = best {
                result.more.diff = best.diff;
                result.more.details = json!({"best_candidate": {"model": best.model, "note": "refused; not applied"}});
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
                result.more.details = finding.details;
            }
        }
        WalkEnding::Cancelled => {
            result.message = String::from("the call was cancelled; the project is as it was")
        }
        WalkEnding::Broken(error) => {
            result.message = format!("the project could not be brought back: {error}")
        }
    }
    if let Err(error) = closed {
        result.status = Status::Error;
        result.verified = false;
        result.message = match error {
            // Nothing was written, and the sentence says what was met and what helps.
            SiteError::Commit(error) => error.to_string(),
            error @ SiteError::Moved { .. } => error.to_string(),
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

/// Flags stand in plain sight: those that no verifier dismissed in the first line of the message, all of them as data.
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

/// `all tiers exhausted after 2 attempts: small → rejected: …; large → infra: …`
fn exhausted(end: WalkEnd, attempts: &[Attempt], route: &Route) -> String {
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
        // A caller who pinned one knows that others exist.
        _ if route.pinned => message,
        _ => message + "; call again with `model` to pin one",
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A result without an answer.
pub(super) fn refuse(header: &CallHeader, refused: RefusedCall) -> CallResult {
    CallResult {
        status: refused.status,
        message: refused.message,
        phase: header.phase.clone(),
        skill: header.skill.clone(),
        file_path: String::new(),
        runner_output: refused.runner_output,
        verified: false,
        model_used: String::new(),
        more: More {
            details: refused.details,
            session_id: header.session_id.clone(),
            ..More::default()
        },
    }
}

/// Takes secrets out, and escapes from what came from outside.
pub(super) fn tidy(redactor: &Redactor, result: &mut CallResult) {
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
