//! Reads the text of a resource from our own files, or from a project named in the URI. Contents
//! are limited in size and redacted, like the log, with the keys that the settings name now.

use std::path::Path;

use serde_json::{Value, json};

use super::address::ResourceAddress;
use super::{CommandPages, JSON, MARKDOWN, PLAIN, ResourceError};
use supervisor_engine::session::detail::{CallChoice, LoggedCall};
use supervisor_engine::session::{Filter, SessionId, SessionLog, Stats};
use supervisor_memory::NoteFolder;
use supervisor_settings::LoadedRouting;
use supervisor_skills::App;
use supervisor_team::report;
use supervisor_team::request::CheckpointId;
use supervisor_team::sidecar::CheckpointSidecar;
use supervisor_team::team_dirs::{TeamDirs, TeamId};
use supervisor_text::redact::Redactor;
use supervisor_text::words;
use supervisor_workspace::state::StateDir;

/// Maximum bytes of a resource; clients show no more.
pub(super) const MAX_BYTES: usize = 100_000;
/// Maximum number of sessions in the list.
const MAX_SESSIONS: usize = 500;

/// Reads resources.
pub(super) struct ResourceReader {
    state: StateDir,
    settings: LoadedRouting,
    redactor: Redactor,
    pages: Option<CommandPages>,
}

type Contents = Result<(&'static str, String), ResourceError>;

fn unreadable(error: impl std::fmt::Display) -> ResourceError {
    ResourceError::Unreadable(error.to_string())
}

impl ResourceReader {
    pub(super) fn of(app: &App, pages: Option<CommandPages>) -> Result<Self, ResourceError> {
        let settings = app.settings().map_err(unreadable)?;
        Ok(Self {
            state: app.state().map_err(unreadable)?,
            redactor: app.redactor(&settings.routing),
            settings,
            pages,
        })
    }

    pub(super) fn read(&self, address: &ResourceAddress) -> Contents {
        match address {
            ResourceAddress::Routing(skill) => self.routing(skill.as_deref()),
            ResourceAddress::Report => {
                let report =
                    (self.pages()?.report)(&self.state).map_err(ResourceError::Unreadable)?;
                Ok((PLAIN, self.text(&report)))
            }
            ResourceAddress::Statistics => {
                let stats = Stats::gather(&self.log(), &Filter::default()).map_err(unreadable)?;
                self.json(json!(stats))
            }
            ResourceAddress::Sessions => self.sessions(),
            ResourceAddress::Session(id) => self.session(id),
            ResourceAddress::Call(id, choice) => self.call(id, choice),
            ResourceAddress::Note(name) => self.note(name),
            ResourceAddress::Checkpoint {
                project_root,
                team,
                checkpoint,
            } => self.checkpoint(project_root, team, checkpoint),
        }
    }

    pub(super) fn log(&self) -> SessionLog {
        SessionLog::to_read(&self.state)
    }

    fn pages(&self) -> Result<CommandPages, ResourceError> {
        self.pages
            .ok_or_else(|| ResourceError::Missing("this server prints no pages".into()))
    }

    fn text(&self, text: &str) -> String {
        words::cut_middle(&words::plain(&self.redactor.redact(text)), MAX_BYTES).into_owned()
    }

    fn json(&self, mut value: Value) -> Contents {
        self.redactor.redact_json(&mut value);
        Ok((JSON, fit_json(value)))
    }

    fn routing(&self, skill: Option<&str>) -> Contents {
        let known = || supervisor_settings::Routing::known_skills();
        if let Some(skill) = skill.filter(|skill| !known().any(|known| known == *skill)) {
            let why = format!("known skills are {}", words::one_of(known()));
            return Err(ResourceError::name(skill, why));
        }
        let routing = (self.pages()?.routing)(&self.settings, &self.state, skill);
        self.json(routing.map_err(ResourceError::Unreadable)?)
    }

    fn sessions(&self) -> Contents {
        let log = self.log();
        let written = |id: &SessionId| {
            std::fs::metadata(log.path(id))
                .and_then(|meta| meta.modified())
                .ok()
        };
        let sessions = log.sessions().map_err(unreadable)?;
        let total = sessions.len();
        let mut sessions: Vec<_> = sessions.into_iter().map(|id| (written(&id), id)).collect();
        sessions.sort_by(|a, b| b.cmp(a));
        let shown = sessions
            .iter()
            .take(MAX_SESSIONS)
            .map(|(_, id)| json!({"session_id": id, "uri": format!("supervisor://sessions/{id}")}));
        self.json(json!({"total": total, "sessions": shown.collect::<Vec<_>>()}))
    }

    /// The calls of an existing session.
    fn calls(&self, id: &SessionId, choice: &CallChoice) -> Result<Vec<LoggedCall>, ResourceError> {
        let log = self.log();
        if !log.path(id).is_file() {
            let known = log.sessions().unwrap_or_default();
            let near = words::did_you_mean(id.as_str(), known.iter().map(SessionId::as_str));
            let hint = near.map_or_else(
                || "`supervisor://sessions` lists them".into(),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(ResourceError::Missing(format!(
                "session `{id}` has no log; {hint}"
            )));
        }
        log.calls(id, choice).map_err(unreadable)
    }

    fn session(&self, id: &SessionId) -> Contents {
        let calls = self.calls(id, &CallChoice::All)?;
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for call in calls.iter().rev() {
            let entry = describe(call);
            bytes += entry.to_string().len();
            if bytes > MAX_BYTES / 2 && !entries.is_empty() {
                break;
            }
            entries.push(entry);
        }
        entries.reverse();
        self.json(json!({"session_id": id, "total": calls.len(), "showing": entries.len(), "entries": entries}))
    }

    fn call(&self, id: &SessionId, choice: &CallChoice) -> Contents {
        let calls = self.calls(id, choice)?;
        let [call] = calls.as_slice() else {
            let all = self.calls(id, &CallChoice::All)?.len();
            let how_many = if calls.is_empty() {
                "no call".into()
            } else {
                words::count(calls.len(), "call")
            };
            let calls = words::count(all, "call");
            return Err(ResourceError::Missing(format!(
                "that names {how_many} of session `{id}`, which has {calls}, numbered from 1"
            )));
        };
        let log = self.log();
        let mut value = describe(call);
        for (n, attempt) in call.entry().attempts.iter().enumerate() {
            let answers: Vec<_> = log
                .exchanges(attempt)
                .into_iter()
                .map(|kept| kept.answer)
                .collect();
            value["attempts"][n]["answers"] = json!(answers);
            value["attempts"][n]["diff_text"] = json!(log.kept_diff(attempt));
        }
        self.json(value)
    }

    /// The notes folder; `None` if nothing was ever written, or if a service keeps the notes.
    pub(super) fn notes(&self) -> Result<Option<NoteFolder>, ResourceError> {
        if self.settings.routing.ingest_url.is_some() {
            return Ok(None);
        }
        let path = supervisor_skills::notes_folder(&self.settings.routing).map_err(unreadable)?;
        // Opening would create it.
        if path.is_dir() {
            NoteFolder::open(&path).map(Some).map_err(unreadable)
        } else {
            Ok(None)
        }
    }

    fn note(&self, name: &str) -> Contents {
        let missing = || {
            ResourceError::Missing(format!(
                "there is no note `{}`; `brain_query` finds them",
                super::displayable(name)
            ))
        };
        let notes = self.notes()?.ok_or_else(missing)?;
        let is_note = Path::new(name)
            .extension()
            .is_some_and(|ending| ending == "md");
        let text = if is_note {
            notes.read(name).map_err(unreadable)?
        } else {
            None
        };
        Ok((MARKDOWN, self.text(&text.ok_or_else(missing)?)))
    }

    fn checkpoint(&self, root: &Path, team: &TeamId, checkpoint: &CheckpointId) -> Contents {
        let place = TeamDirs::existing(root, team, None)
            .map_err(|error| ResourceError::Missing(error.to_string()))?;
        let sidecar = CheckpointSidecar::read(&place, checkpoint).map_err(unreadable)?;
        let sidecar = sidecar.ok_or_else(|| {
            let message = format!(
                "team `{}` has no report of {}",
                team.as_str(),
                checkpoint.as_str()
            );
            ResourceError::Missing(format!(
                "{message}; `supervise` with operation checkpoint makes it"
            ))
        })?;
        Ok((MARKDOWN, self.text(&report::render(&sidecar))))
    }
}

fn describe(call: &LoggedCall) -> Value {
    let mut value = json!(call.entry());
    value["index"] = json!(call.index);
    value["final_status"] = json!(call.record.outcome.word());
    value
}

/// JSON of at most [`MAX_BYTES`] bytes: texts are cut shorter and shorter until it fits.
fn fit_json(mut value: Value) -> String {
    for max_len in [20_000, 4_000, 800, 160, 32] {
        let text = value.to_string();
        if text.len() <= MAX_BYTES {
            return text;
        }
        cut_texts(&mut value, max_len);
    }
    let text = value.to_string();
    if text.len() <= MAX_BYTES {
        text
    } else {
        json!({"cut": words::cut_end(&text, MAX_BYTES / 3)}).to_string()
    }
}

fn cut_texts(value: &mut Value, max_len: usize) {
    match value {
        Value::String(text) if text.len() > max_len => {
            *text = words::cut_middle(text, max_len).into_owned();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut_texts(item, max_len)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| cut_texts(field, max_len)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_json_is_cut_and_stays_valid() {
        for value in [
            json!({"a": "x".repeat(1_000_000), "b": 1}),
            json!(vec!["é\"\u{1b}".repeat(1_000); 200]),
            json!(vec![1; 1_000_000]),
        ] {
            let text = fit_json(value);
            assert!(text.len() <= MAX_BYTES, "{}", text.len());
            serde_json::from_str::<Value>(&text).expect("still JSON");
        }
    }
}
