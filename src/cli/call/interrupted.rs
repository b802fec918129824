//! What is said of a call that was interrupted: what its log entry says, since a cancelled call sends no reply.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use crate::engine::Entry;
use crate::engine::result::Status;
use crate::session::{SessionId, SessionLog};
use crate::state::StateDir;
use crate::words;

/// A call that may be interrupted, as far as one needs to know to find its entry.
#[derive(Debug)]
pub(super) struct Interrupted {
    tool: String,
    session: Option<String>,
    project: Option<PathBuf>,
    began: Timestamp,
}

impl Interrupted {
    /// To be asked for before the call begins.
    pub(super) fn possible(tool: &str, arguments: &Value) -> Self {
        let text = |name: &str| arguments[name].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let project = text("project_root").map(|root| Path::new(&root).canonicalize().unwrap_or(root.into()));
        Self { tool: tool.to_owned(), session: text("session_id"), project, began: Timestamp::now() }
    }

    /// The call has ended, and what it touched is as the entry says.
    pub(super) fn came_to(&self) -> String {
        match self.entry() {
            Some((entry, log)) => {
                let mut words = match entry.final_status {
                    Status::Error => format!("interrupted: {}\n", words::plain(&entry.message)),
                    // The interrupt came when everything was decided; what was accepted stays.
                    Status::Pass | Status::Fail => {
                        let word = if entry.final_status == Status::Pass { "pass" } else { "fail" };
                        format!("interrupted too late, the call had ended: {word}: {}\n", words::plain(&entry.message))
                    }
                };
                let _ = writeln!(words, "log       {}", words::plain(&log.to_string_lossy()));
                words
            }
            None => String::from("interrupted: the call was cancelled; it left no entry in the log\n"),
        }
    }

    /// Nobody waited for its end.
    pub(super) fn twice(&self) -> String {
        String::from(
            "interrupted twice: not waiting any longer; what guards the project brings it back\n\
             hint: `supervisor recover` says whether it has\n",
        )
    }

    fn entry(&self) -> Option<(Entry, PathBuf)> {
        let log = SessionLog::open(&StateDir::locate().ok()?).ok()?;
        let sessions: Vec<SessionId> = match &self.session {
            Some(name) => vec![name.parse().ok()?],
            // A name that was made for this call has its time in front.
            None => {
                let since = self.began.strftime("%Y%m%dT%H%M%S.%3fZ").to_string();
                log.sessions().ok()?.into_iter().filter(|id| id.as_str() >= since.as_str()).collect()
            }
        };
        sessions.iter().find_map(|id| {
            let records = log.read(id).ok()?.records;
            let entry = records.into_iter().map(|record| record.entry).rfind(|entry| self.is(entry))?;
            Some((entry, log.path(id)))
        })
    }

    fn is(&self, entry: &Entry) -> bool {
        entry.skill == self.tool
            && self.project.as_ref().is_none_or(|project| Path::new(&entry.project_root) == project)
            && entry.timestamp.parse::<Timestamp>().is_ok_and(|written| written >= self.began)
    }
}
