//! What is known about a task, for its brief: the best notes, never stale ones, and on request what the session has
//! tried. Read by the server; to the model it is data.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::places::{BrainPlaces, with_index};
use super::project::identify;
use supervisor_engine::means::{RecallRequest, RecalledText, Recollection};
use supervisor_engine::session::{SessionId, SessionLog};
use supervisor_memory::aliases::known_names;
use supervisor_memory::staleness::staleness_of;
use supervisor_memory::{NoteFolder, NoteQuery, ProjectIdentity};
use supervisor_process::Launcher;
use supervisor_settings::{Recall, Routing};
use supervisor_text::words;
use supervisor_workspace::state::StateDir;

/// Notes and calls that a brief may carry, and bytes of each.
const NOTES: usize = 5;
const CALLS: usize = 6;
const EACH: usize = 400;

/// The notes of this user.
pub struct BrainRecollection {
    pub launcher: Launcher,
    pub routing: Routing,
    pub state: StateDir,
}

impl Recollection for BrainRecollection {
    fn recall<'a>(&'a self, request: RecallRequest<'a>) -> RecalledText<'a> {
        Box::pin(async move {
            let root = PathBuf::from(request.project_root);
            let never = CancellationToken::new();
            let identity = identify(&self.launcher, &root, &never).await;
            let (routing, state) = (self.routing.clone(), self.state.clone());
            let (task, session) = (request.task.to_owned(), request.session.to_owned());
            let wants_session = request.recall == Recall::NotesAndSession;
            let read = tokio::task::spawn_blocking(move || {
                let notes = notes(&routing, &state, &root, &identity, &task);
                let mut text = notes.unwrap_or_else(|why| {
                    tracing::warn!("nothing is recalled: {why}");
                    String::new()
                });
                if wants_session {
                    text += &calls(&state, &session);
                }
                text
            });
            read.await.unwrap_or_default()
        })
    }
}

fn notes(
    routing: &Routing,
    state: &StateDir,
    root: &Path,
    project: &ProjectIdentity,
    task: &str,
) -> Result<String, String> {
    let places = BrainPlaces::of(routing, state)?;
    if !places.notes.is_dir() {
        return Ok(String::new());
    }
    let folder = NoteFolder::open(&places.notes).map_err(|e| e.to_string())?;
    let projects = known_names(&folder, project).map_err(|e| e.to_string())?;
    let query = NoteQuery {
        words: task.to_owned(),
        projects,
        limit: 4 * NOTES,
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
    // What has changed since, and what cannot be read whole, would mislead.
    let sound = hits
        .iter()
        .filter(|hit| hit.note.warning.is_none() && staleness_of(&hit.note, root).is_none());
    for hit in sound.take(NOTES) {
        let body = hit
            .note
            .body
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let proof = if hit.note.is_proven() {
            ""
        } else {
            ", unproven"
        };
        let _ = writeln!(
            text,
            "- {} ({}{proof}): {}",
            hit.title,
            hit.note.kind.word(),
            words::cut_end(&body, EACH)
        );
    }
    Ok(text)
}

/// What this session has tried, newest last.
fn calls(state: &StateDir, session: &str) -> String {
    let Ok(id) = session.parse::<SessionId>() else {
        return String::new();
    };
    let Ok(history) = SessionLog::to_read(state).read(&id) else {
        return String::new();
    };
    let skipped = history.records.len().saturating_sub(CALLS);
    let mut text = String::new();
    for record in history.records.iter().skip(skipped) {
        let entry = &record.entry;
        let message = entry.message.lines().next().unwrap_or_default();
        let _ = write!(
            text,
            "- earlier in this session, {} → {}: {}",
            entry.skill,
            record.outcome.word(),
            words::cut_end(message, EACH / 2)
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
                words::cut_end(why, EACH / 2)
            );
        }
        text.push('\n');
    }
    text
}
