//! Determines how a job ended whose server died. The job record cannot know; the log and the
//! project's journal do: an accepted change is in the project, whether or not its server could
//! report it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{JobRecord, JobState};
use crate::session::open_calls::is_open;
use crate::session::{SessionId, SessionLog, recover_open_calls};
use crate::{Cause, Entry, Status};
use supervisor_text::words;
use supervisor_workspace::state::StateDir;

/// How often and how long to wait for another process that may be writing the missing entry right
/// now; this takes milliseconds.
const MAX_CHECKS: u32 = 20;
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Returns the final record of a job that no process works on any more.
pub(super) fn final_record(state: &StateDir, job: JobRecord) -> JobRecord {
    let entries = entries_of(state, &job);
    let changed = Timestamp::now().to_string();
    match entries.as_slice() {
        // A complete call that ended before its server did.
        [entry] if entry.cycle_id.is_empty() && entry.cause != Some(Cause::Crashed) => JobRecord {
            state: JobState::Completed,
            message: entry.message.clone(),
            result: reply(entry),
            changed,
            ..job
        },
        entries => {
            let (cause, message) = (String::from("crashed"), crash_message(entries));
            JobRecord {
                state: JobState::Failed,
                cause,
                message,
                changed,
                ..job
            }
        }
    }
}

/// The log entries of the job: its call, or every phase of its cycle, oldest first.
fn entries_of(state: &StateDir, job: &JobRecord) -> Vec<Entry> {
    let Ok(session) = job.session_id.parse::<SessionId>() else {
        return Vec::new();
    };
    let log = SessionLog::to_read(state);
    for check in 0..MAX_CHECKS {
        recover_open_calls(&log);
        let all: Vec<Entry> = log
            .reader(&session)
            .into_iter()
            .flatten()
            .map(|record| record.entry)
            .filter(|e| !e.call.is_empty())
            .collect();
        if let Some(first) = all.iter().find(|entry| entry.call == job.call) {
            let cycle = first.cycle_id.clone();
            let is_ours =
                |e: &Entry| e.call == job.call || (!cycle.is_empty() && e.cycle_id == cycle);
            return all.into_iter().filter(is_ours).collect();
        }
        if check > 0 && !is_open(state, &job.call) {
            break;
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
    Vec::new()
}

/// A reply built from what the log has.
fn reply(entry: &Entry) -> Value {
    let last = entry.attempts.iter().max_by_key(|attempt| attempt.attempt);
    let is_error = entry.final_status == Status::Error;
    let verified =
        last.is_some_and(|attempt| attempt.verified) && entry.final_status == Status::Pass;
    let runner_output = last
        .map(|attempt| words::cut_middle(&attempt.runner_output, 1_500))
        .unwrap_or_default();
    let whole = json!({
        "status": entry.final_status, "message": entry.message, "phase": entry.phase, "skill": entry.skill, "tool": entry.tool,
        "file_path": entry.file_path, "runner_output": runner_output, "verified": verified,
        "model_used": entry.model_used, "session_id": entry.session_id,
        "details": {"from_the_log": "the server died before it answered; `supervisor log` has the whole call"},
    });
    json!({"content": [{"type": "text", "text": whole.to_string()}], "structuredContent": whole, "isError": is_error})
}

fn crash_message(entries: &[Entry]) -> String {
    let accepted: Vec<String> = entries
        .iter()
        .filter(|entry| entry.final_status == Status::Pass)
        .map(|entry| {
            if entry.phase.is_empty() {
                entry.tool.clone()
            } else {
                entry.phase.clone()
            }
        })
        .collect();
    if accepted.is_empty() {
        return String::from("the server died during this call; nothing of it is in the project");
    }
    let accepted = words::list(accepted.iter().map(String::as_str), 10);
    format!(
        "the server died during this call; accepted before that, and in the project: {accepted}"
    )
}
