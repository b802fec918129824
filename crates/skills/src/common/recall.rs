//! Recalls context for a task: the best notes that are not stale and, on request, earlier calls of
//! the session. Prompts treat the recalled text as data.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::brain_paths::{BrainPaths, with_index};
use super::project::identify;
use supervisor_engine::services::{NoteSource, RecallFuture, RecallRequest};
use supervisor_engine::session::{SessionId, SessionLog};
use supervisor_memory::aliases::known_names;
use supervisor_memory::staleness::staleness_of;
use supervisor_memory::{NoteFolder, NoteQuery, ProjectIdentity};
use supervisor_process::Launcher;
use supervisor_settings::{Recall, Routing};
use supervisor_text::words;
use supervisor_workspace::state::StateDir;

/// Limits for one brief: notes, calls, and bytes of each.
const MAX_NOTES: usize = 5;
const MAX_CALLS: usize = 6;
const MAX_ENTRY_BYTES: usize = 400;

/// Recalls the user's own notes.
pub struct BrainRecollection {
    pub launcher: Launcher,
    pub routing: Routing,
    pub state: StateDir,
}

impl NoteSource for BrainRecollection {
    fn recall<'a>(&'a self, request: RecallRequest<'a>) -> RecallFuture<'a> {
        Box::pin(async move {
            let root = PathBuf::from(request.project_root);
            let never = CancellationToken::new();
            let identity = identify(&self.launcher, &root, &never).await;
            let (routing, state) = (self.routing.clone(), self.state.clone());
            let (task, session) = (request.task.to_owned(), request.session.to_owned());
            let wants_session = request.recall == Recall::NotesAndSession;
            let read = tokio::task::spawn_blocking(move || {
                let notes = recall_notes(&routing, &state, &root, &identity, &task);
                let mut text = notes.unwrap_or_else(|why| {
                    tracing::warn!("nothing is recalled: {why}");
                    String::new()
                });
                if wants_session {
                    text += &recall_calls(&state, &session);
                }
                text
            });
            read.await.unwrap_or_default()
        })
    }
}

fn recall_notes(
    routing: &Routing,
    state: &StateDir,
    root: &Path,
    project: &ProjectIdentity,
    task: &str,
) -> Result<String, String> {
    let places = BrainPaths::of(routing, state)?;
    if !places.notes.is_dir() {
        return Ok(String::new());
    }
    let folder = NoteFolder::open(&places.notes).map_err(|e| e.to_string())?;
    let projects = known_names(&folder, project).map_err(|e| e.to_string())?;
    let query = NoteQuery {
        words: task.to_owned(),
        projects,
        limit: 4 * MAX_NOTES,
        ..NoteQuery::default()
    };
    let now = jiff::Timestamp::now();
    let hits = with_index(&places, &folder, &mut |_, _| {}, |index| {
        index.query(&folder, &query, now)
    });
    let hits = match hits {
        Ok(hits) => hits,
        Err(supervisor_memory::index::IndexError::NoWords) => return Ok(String::new()),
        Err(error) => return Err(error.to_string()),
    };
    let mut text = String::new();
    // Skip notes that are stale or only partly readable: they would mislead.
    let sound = hits
        .iter()
        .filter(|hit| hit.note.warning.is_none() && staleness_of(&hit.note, root).is_none());
    for hit in sound.take(MAX_NOTES) {
        let body = words::one_line(&hit.note.body);
        let proof = if hit.note.has_evidence() {
            ""
        } else {
            ", unproven"
        };
        let _ = writeln!(
            text,
            "- {} ({}{proof}): {}",
            hit.title,
            hit.note.kind.word(),
            words::cut_end(&body, MAX_ENTRY_BYTES)
        );
    }
    Ok(text)
}

/// Earlier calls of this session, newest last.
fn recall_calls(state: &StateDir, session: &str) -> String {
    let Ok(id) = session.parse::<SessionId>() else {
        return String::new();
    };
    let Ok(history) = SessionLog::to_read(state).read(&id) else {
        return String::new();
    };
    let skipped = history.records.len().saturating_sub(MAX_CALLS);
    let mut text = String::new();
    for record in history.records.iter().skip(skipped) {
        let entry = &record.entry;
        let message = entry.message.lines().next().unwrap_or_default();
        let _ = write!(
            text,
            "- earlier in this session, {} → {}: {}",
            entry.tool,
            record.outcome.word(),
            words::cut_end(message, MAX_ENTRY_BYTES / 2)
        );
        for attempt in entry
            .attempts
            .iter()
            .filter(|attempt| !attempt.feedback.is_empty())
        {
            let why = attempt.feedback.lines().next().unwrap_or_default();
            let _ = write!(
                text,
                "; {} was refused: {}",
                attempt.model,
                words::cut_end(why, MAX_ENTRY_BYTES / 2)
            );
        }
        text.push('\n');
    }
    text
}
