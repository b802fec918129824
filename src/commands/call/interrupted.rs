//! Messages about an interrupted call. A cancelled call sends no reply, so they are taken from its
//! log entry.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use supervisor_engine::Entry;
use supervisor_engine::result::Status;
use supervisor_engine::session::{SessionId, SessionLog};
use supervisor_text::words;

/// What identifies the log entry of a call that may be interrupted.
#[derive(Debug)]
pub(super) struct InterruptedCall {
    tool: String,
    session: Option<String>,
    project: Option<PathBuf>,
    started: Timestamp,
}

impl InterruptedCall {
    /// Must be created before the call starts, because entries are matched by time.
    pub(super) fn new(tool: &str, arguments: &Value) -> Self {
        let text = |name: &str| {
            arguments[name]
                .as_str()
                .filter(|text| !text.trim().is_empty())
                .map(str::to_owned)
        };
        let project =
            text("project_root").map(|root| Path::new(&root).canonicalize().unwrap_or(root.into()));
        Self {
            tool: tool.to_owned(),
            session: text("session_id"),
            project,
            started: Timestamp::now(),
        }
    }

    /// Message for a call that has ended; its log entry says what happened to the project.
    pub(super) fn cancelled_message(&self) -> String {
        let log = crate::commands::state_dir()
            .ok()
            .and_then(|state| SessionLog::open(&state).ok());
        match log.and_then(|log| self.find_entry(&log)) {
            Some((entry, path)) => {
                format!(
                    "{}\nlog       {}\n",
                    describe(&entry),
                    words::plain(&path.to_string_lossy())
                )
            }
            None => String::from("Cancelled. Your files are as they were.\n"),
        }
    }

    /// Message for a call whose end was not awaited.
    pub(super) fn second_interrupt_message(&self) -> String {
        String::from(
            "Stopped without waiting. Your files are being restored in the background.\n\
             hint: `supervisor recover` says when that is done\n",
        )
    }

    fn find_entry(&self, log: &SessionLog) -> Option<(Entry, PathBuf)> {
        let sessions: Vec<SessionId> = match &self.session {
            Some(name) => vec![name.parse().ok()?],
            // Generated session names start with their creation time.
            None => {
                let since = self.started.strftime("%Y%m%dT%H%M%S.%3fZ").to_string();
                log.sessions()
                    .ok()?
                    .into_iter()
                    .filter(|id| id.as_str() >= since.as_str())
                    .collect()
            }
        };
        sessions.iter().find_map(|id| {
            let records = log.read(id).ok()?.records;
            let entry = records
                .into_iter()
                .map(|record| record.entry)
                .rfind(|entry| self.matches(entry))?;
            Some((entry, log.path(id)))
        })
    }

    fn matches(&self, entry: &Entry) -> bool {
        entry.tool == self.tool
            && self
                .project
                .as_ref()
                .is_none_or(|project| Path::new(&entry.project_root) == project)
            && entry
                .timestamp
                .parse::<Timestamp>()
                .is_ok_and(|written| written >= self.started)
    }
}

fn describe(entry: &Entry) -> String {
    let message = words::plain(&entry.message);
    match entry.final_status {
        Status::Error => message.into_owned(),
        // The interrupt came after the decision; accepted work stays.
        Status::Pass => format!("Too late to cancel: the call has passed. {message}"),
        Status::Fail => format!("Too late to cancel: the call has failed. {message}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use supervisor_workspace::state::StateDir;

    use super::*;

    fn entry(session: &str, skill: &str, root: &str, status: Status) -> Entry {
        let timestamp = Timestamp::now().to_string();
        let fields = json!({
            "v": 1, "session_id": session, "timestamp": timestamp, "skill": skill, "phase": "green",
            "final_status": status, "project_root": root, "file_path": "", "model_used": "", "message": "said",
            "input": {}, "attempts": [], "duration_ms": 1,
        });
        serde_json::from_value(fields).expect("an entry")
    }

    #[test]
    fn log_entry_of_call_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let log =
            SessionLog::open(&StateDir::at(dir.path().into()).expect("absolute")).expect("opens");
        log.append(&entry("before", "tdd_green", "/p", Status::Pass))
            .expect("written");
        let name = SessionId::generate().expect("random bytes");
        log.append(&entry(name.as_str(), "tdd_green", "/p", Status::Pass))
            .expect("written");
        let call = InterruptedCall::new("tdd_green", &json!({"project_root": "/p"}));
        assert_eq!(call.find_entry(&log), None, "others came before");

        // Concurrent calls in another project or of another tool.
        for (skill, root) in [("tdd_green", "/q"), ("tdd_red", "/p"), ("tdd_green", "/p")] {
            let name = SessionId::generate().expect("random bytes");
            log.append(&entry(name.as_str(), skill, root, Status::Error))
                .expect("written");
        }
        let (found, path) = call.find_entry(&log).expect("there now");
        assert_eq!(
            (found.tool.as_str(), found.project_root.as_str()),
            ("tdd_green", "/p")
        );
        assert!(path.exists());

        let named = InterruptedCall::new(
            "tdd_green",
            &json!({"project_root": "/p", "session_id": "before"}),
        );
        assert_eq!(
            named.find_entry(&log),
            None,
            "an earlier call of the same session is another call"
        );
        log.append(&entry("before", "tdd_green", "/p", Status::Pass))
            .expect("written");
        let (found, _) = named.find_entry(&log).expect("there now");
        assert_eq!(
            describe(&found),
            "Too late to cancel: the call has passed. said"
        );
    }
}
