//! Messages about an interrupted call. A cancelled call sends no reply, so they are taken from its
//! log entry.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use supervisor_engine::Entry;
use supervisor_engine::result::{CANCELLED, Status};
use supervisor_engine::session::{SessionId, SessionLog};
use supervisor_text::words;
use supervisor_workspace::{StoredUndo, UndoStore};

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

    /// Message for a call that has ended; its log entries say what happened to the project.
    pub(super) fn cancelled_message(&self) -> String {
        let found = crate::commands::state_dir().ok().and_then(|state| {
            let (entries, path) = self.find_entries(&SessionLog::open(&state).ok()?)?;
            Some((describe(&entries, &UndoStore::of(&state).list()), path))
        });
        match found {
            Some((message, path)) => {
                format!(
                    "{message}\nlog       {}\n",
                    words::plain(&path.to_string_lossy())
                )
            }
            None => format!("{CANCELLED}\n"),
        }
    }

    /// Message for a call whose end was not awaited.
    pub(super) fn second_interrupt_message(&self) -> String {
        String::from(
            "Stopped without waiting. Your files are being restored in the background.\n\
             hint: `supervisor recover` says when that is done\n",
        )
    }

    /// The entries of the call, oldest first; several if it is a `tdd` call, one for each phase.
    fn find_entries(&self, log: &SessionLog) -> Option<(Vec<Entry>, PathBuf)> {
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
            let mut entries: Vec<Entry> = records
                .into_iter()
                .map(|record| record.entry)
                .filter(|entry| self.matches(entry))
                .collect();
            let last = entries.pop()?;
            entries.retain(|entry| !last.cycle_id.is_empty() && entry.cycle_id == last.cycle_id);
            entries.push(last);
            Some((entries, log.path(id)))
        })
    }

    fn matches(&self, entry: &Entry) -> bool {
        let is_ours = match self.tool.as_str() {
            "tdd" => !entry.cycle_id.is_empty(),
            tool => entry.tool == tool,
        };
        is_ours
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

/// What became of a call with these entries; `undoable` are the changes that can be undone.
fn describe(entries: &[Entry], undoable: &[StoredUndo]) -> String {
    let Some((last, earlier)) = entries.split_last() else {
        return String::from(CANCELLED);
    };
    let message = words::plain(&last.message);
    match last.final_status {
        // The interrupt came after the decision; accepted work stays.
        Status::Pass => return format!("Too late to cancel: the call has passed. {message}"),
        Status::Fail if earlier.is_empty() => {
            return format!("Too late to cancel: the call has failed. {message}");
        }
        Status::Fail => {}
        Status::Error if earlier.is_empty() => return message.into_owned(),
        Status::Error => {}
    }
    // A criterion is kept once it is green. A red test is removed, unless it was edited meanwhile.
    let passed = |tool: &str| {
        earlier
            .iter()
            .rposition(|entry| entry.tool == tool && entry.final_status == Status::Pass)
    };
    let green = earlier
        .iter()
        .filter(|entry| entry.tool == "tdd_green" && entry.final_status == Status::Pass);
    let mut kept: Vec<String> = Vec::new();
    match green.count() {
        0 => {}
        1 => kept.push(String::from("1 finished criterion")),
        n => kept.push(format!("{n} finished criteria")),
    }
    let left = passed("tdd_red").filter(|red| passed("tdd_green") < Some(*red));
    kept.extend(
        left.map(|red| &earlier[red])
            .filter(|red| undoable.iter().any(|undo| undo.call == red.call))
            .map(|red| format!("the red test `{}`", words::plain(&red.file_path))),
    );
    if kept.is_empty() {
        return String::from(CANCELLED);
    }
    format!(
        "Cancelled. Kept: {}. All other files are as they were.\n\
         hint: `supervisor undo` reverts what was kept",
        kept.join(" and ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use supervisor_workspace::UndoRecord;
    use supervisor_workspace::state::StateDir;

    use super::*;

    fn entry(session: &str, skill: &str, root: &str, status: Status) -> Entry {
        let timestamp = Timestamp::now().to_string();
        let fields = json!({
            "v": 2, "session_id": session, "timestamp": timestamp, "skill": "tdd", "tool": skill, "phase": "green",
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
        assert_eq!(call.find_entries(&log), None, "others came before");

        // Concurrent calls in another project or of another tool.
        for (skill, root) in [("tdd_green", "/q"), ("tdd_red", "/p"), ("tdd_green", "/p")] {
            let name = SessionId::generate().expect("random bytes");
            log.append(&entry(name.as_str(), skill, root, Status::Error))
                .expect("written");
        }
        let (found, path) = call.find_entries(&log).expect("there now");
        let found: Vec<_> = found
            .iter()
            .map(|entry| (entry.tool.as_str(), entry.project_root.as_str()))
            .collect();
        assert_eq!(found, [("tdd_green", "/p")]);
        assert!(path.exists());

        let named = InterruptedCall::new(
            "tdd_green",
            &json!({"project_root": "/p", "session_id": "before"}),
        );
        assert_eq!(
            named.find_entries(&log),
            None,
            "an earlier call of the same session is another call"
        );
        log.append(&entry("before", "tdd_green", "/p", Status::Pass))
            .expect("written");
        let (found, _) = named.find_entries(&log).expect("there now");
        assert_eq!(
            describe(&found, &[]),
            "Too late to cancel: the call has passed. said"
        );
    }

    #[test]
    fn message_says_which_criteria_are_kept() {
        let phase = |tool: &str, status| entry("s", tool, "/p", status);
        let (red, green) = (
            phase("tdd_red", Status::Pass),
            phase("tdd_green", Status::Pass),
        );
        let cancelled = Entry {
            message: String::from(CANCELLED),
            ..phase("tdd_red", Status::Error)
        };
        let said = |entries: &[&Entry]| {
            describe(&entries.iter().copied().cloned().collect::<Vec<_>>(), &[])
        };
        assert_eq!(said(&[&cancelled]), CANCELLED);
        assert_eq!(
            said(&[&red, &cancelled]),
            CANCELLED,
            "the red test was removed"
        );
        let one = said(&[&red, &green, &cancelled]);
        assert!(
            one.starts_with("Cancelled. Kept: 1 finished criterion."),
            "{one}"
        );
        let two = said(&[&red, &green, &red, &green, &red, &cancelled]);
        assert!(
            two.starts_with("Cancelled. Kept: 2 finished criteria."),
            "{two}"
        );
        let record = StoredUndo {
            call: String::from("c0"),
            cycle: String::new(),
            commit: String::new(),
            skill: String::new(),
            accepted: String::new(),
            root: PathBuf::new(),
            record: UndoRecord::default(),
        };
        let stays = Entry {
            call: String::from("c0"),
            file_path: String::from("tests/a.rs"),
            ..red
        };
        assert!(
            describe(&[stays, cancelled], &[record])
                .starts_with("Cancelled. Kept: the red test `tests/a.rs`.")
        );
    }
}
