//! How a job ended whose server died. The record of the job does not know; the log and the project's journal do: a call
//! that was accepted is in the project, whether or not its server lived to say so.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{JobRecord, JobState};
use crate::session::open::is_open;
use crate::session::{SessionId, SessionLog, recover_open_calls};
use crate::{Cause, Entry, Status};
use supervisor_text::words;
use supervisor_workspace::state::StateDir;

/// Another process may be writing the missing entry at this moment, which takes milliseconds.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// The end of a job that no process works on any more.
pub(super) fn settle(state: &StateDir, job: JobRecord) -> JobRecord {
    let entries = entries_of(state, &job);
    let changed = Timestamp::now().to_string();
    match entries.as_slice() {
        // A whole call, which ended before its server did.
        [entry] if entry.cycle_id.is_empty() && entry.cause != Some(Cause::Crashed) => JobRecord {
            state: JobState::Completed,
            message: entry.message.clone(),
            result: answer(entry),
            changed,
            ..job
        },
        entries => {
            let (cause, message) = (String::from("crashed"), crashed(entries));
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

/// What the log has of the job: its call, or every phase of its cycle, the oldest first.
fn entries_of(state: &StateDir, job: &JobRecord) -> Vec<Entry> {
    let Ok(session) = job.session_id.parse::<SessionId>() else {
        return Vec::new();
    };
    let log = SessionLog::to_read(state);
    for look in 0..LOOKS {
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
        if look > 0 && !is_open(state, &job.call) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    Vec::new()
}

/// What is left of the answer, in the shape of a reply.
fn answer(entry: &Entry) -> Value {
    let last = entry.attempts.iter().max_by_key(|attempt| attempt.attempt);
    let is_error = entry.final_status == Status::Error;
    let verified =
        last.is_some_and(|attempt| attempt.verified) && entry.final_status == Status::Pass;
    let runner_output = last
        .map(|attempt| words::cut_middle(&attempt.runner_output, 1_500))
        .unwrap_or_default();
    let whole = json!({
        "status": entry.final_status, "message": entry.message, "phase": entry.phase, "skill": entry.skill,
        "file_path": entry.file_path, "runner_output": runner_output, "verified": verified,
        "model_used": entry.model_used, "session_id": entry.session_id,
        "details": {"from_the_log": "the server died before it answered; `supervisor log` has the whole call"},
    });
    json!({"content": [{"type": "text", "text": whole.to_string()}], "structuredContent": whole, "isError": is_error})
}

fn crashed(entries: &[Entry]) -> String {
    let stays: Vec<String> = entries
        .iter()
        .filter(|entry| entry.final_status == Status::Pass)
        .map(|entry| {
            if entry.phase.is_empty() {
                entry.skill.clone()
            } else {
                entry.phase.clone()
            }
        })
        .collect();
    if stays.is_empty() {
        return String::from("the server died during this call; nothing of it is in the project");
    }
    let stays = words::list(stays.iter().map(String::as_str), 10);
    format!("the server died during this call; accepted before that, and in the project: {stays}")
}
