//! `brain_write` and `brain_query`: notes that outlive a session, with the project they are about
//! and their evidence. They ask no model. Notes are files of the user; a project cannot choose
//! their location.

mod remote;

use std::path::{Path, PathBuf};

use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::common::{BrainPaths, identify, with_index};
use crate::{App, Call, Parameters};
use crate::{Reply, Tools};
use supervisor_engine::result::{CallResult, Status};
use supervisor_memory::aliases::known_names;
use supervisor_memory::staleness::{hash_files, staleness_of};
use supervisor_memory::{
    Note, NoteDraft, NoteEvidence, NoteFolder, NoteHit, NoteKind, NoteQuery, ProjectIdentity,
};
use supervisor_text::words;

/// Max bytes of a query result, unless the caller sets `limit`.
const MAX_ANSWER_BYTES: usize = 2_000;
const DEFAULT_LIMIT: usize = 5;
const MAX_LIMIT: usize = 50;

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrainWriteParams {
    /// In Markdown.
    #[serde(default)]
    pub content: String,
    /// Absolute path of the project.
    #[serde(default)]
    pub project_root: Option<String>,
    /// Heading of the note
    #[serde(default)]
    pub title: Option<String>,
    /// Path among the notes; default: from the title.
    #[serde(default)]
    pub filename: Option<String>,
    #[serde(default)]
    pub kind: NoteKind,
    /// Words to find it by
    #[serde(default)]
    pub tags: Vec<String>,
    /// What proves it: `entries` of session logs and `files` of the project (lists), a `commit`.
    #[serde(default)]
    pub evidence: Map<String, Value>,
    /// Session it comes from
    #[serde(default)]
    pub session_id: Option<String>,
    /// Replace it, or write in spite of a similar one.
    #[serde(default)]
    pub overwrite: bool,
    /// Trash `filename`.
    #[serde(default)]
    pub delete: bool,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrainQueryParams {
    /// Words to look for.
    pub query: String,
    /// Absolute path of the project whose notes are wanted.
    #[serde(default)]
    pub project_root: Option<String>,
    /// `all`: notes of every project.
    #[serde(default)]
    pub project: Option<String>,
    /// 1 to 50, default 5.
    #[serde(default)]
    pub limit: Option<usize>,
    #[serde(default)]
    pub kind: Option<NoteKind>,
    /// All of these
    #[serde(default)]
    pub tags: Vec<String>,
    /// Show why each hit stands where it stands.
    #[serde(default)]
    pub explain: bool,
}

impl BrainQueryParams {
    fn limit(&self) -> Result<usize, String> {
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        if (1..=MAX_LIMIT).contains(&limit) {
            return Ok(limit);
        }
        Err(format!(
            "`limit` is {limit}; 1 to {MAX_LIMIT} hits can be shown"
        ))
    }

    /// Drops the last hits of a long answer: the caller pays for its bytes in every later turn.
    fn shorten(&self, hits: &mut Vec<Value>) {
        while self.limit.is_none()
            && hits.len() > 1
            && json!(hits).to_string().len() > MAX_ANSWER_BYTES - 400
        {
            hits.pop();
        }
    }
}

#[tool_router(router = brain_tools, vis = "pub")]
impl Tools {
    /// Remember something for later sessions, with what proves it.
    #[tool(annotations(
        title = "Write a note",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    async fn brain_write(
        &self,
        Parameters(params): Parameters<BrainWriteParams>,
        call: Call,
    ) -> Reply {
        let opened = self
            .app()
            .open_brain(params.project_root.as_deref(), &call)
            .await;
        let redactor = self
            .app()
            .settings()
            .map(|s| self.app().redactor(&s.routing))
            .unwrap_or_default();
        let texts = [
            Some(&params.content),
            params.title.as_ref(),
            params.filename.as_ref(),
        ];
        let secret = texts
            .into_iter()
            .flatten()
            .chain(&params.tags)
            .find_map(|text| redactor.describe_secret(text));
        match self.app().notes_service(params.project_root.as_deref()) {
            Ok(Some(base)) if secret.is_none() => {
                let written = remote::write(&base, &params).await;
                return Reply(into_result("brain_write", Ok(written)));
            }
            Ok(_) => {}
            Err(why) => return Reply(into_result("brain_write", Ok(Err(why)))),
        }
        let done = tokio::task::spawn_blocking(move || {
            let opened = opened?;
            if let Some(secret) = secret {
                return Err(format!(
                    "the note holds {secret}; take it out: notes are plain files"
                ));
            }
            write(&opened, &params)
        });
        Reply(into_result("brain_write", done.await))
    }

    /// Look up notes of earlier sessions about this project: facts, decisions, failures and what proves them.
    #[tool(annotations(
        title = "Look up notes",
        read_only_hint = true,
        destructive_hint = false,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    async fn brain_query(
        &self,
        Parameters(params): Parameters<BrainQueryParams>,
        call: Call,
    ) -> Reply {
        match self.app().notes_service(params.project_root.as_deref()) {
            Ok(Some(base)) => {
                let found = remote::query(&base, &params).await;
                return Reply(into_result("brain_query", Ok(found)));
            }
            Ok(None) => {}
            Err(why) => return Reply(into_result("brain_query", Ok(Err(why)))),
        }
        let opened = self
            .app()
            .open_brain(params.project_root.as_deref(), &call)
            .await;
        let progress = call.progress.clone();
        let done = tokio::task::spawn_blocking(move || {
            let mut on_progress = |n: usize, of: usize| {
                progress.say(&format!("brain_query · reading notes · {n} of {of}"));
            };
            query(&opened?, &params, &mut on_progress)
        });
        Reply(into_result("brain_query", done.await))
    }
}

/// The note locations and the project asked about.
struct OpenedBrain {
    places: BrainPaths,
    project: Option<(PathBuf, ProjectIdentity)>,
}

type Answer = (Status, String, String, Value);

impl App {
    /// The URL of the notes service, if the settings name one. An error if nothing about the
    /// project may leave this machine.
    fn notes_service(&self, project_root: Option<&str>) -> Result<Option<String>, String> {
        let Ok(settings) = self.settings() else {
            return Ok(None);
        };
        let routing = &settings.routing;
        let Some(url) = routing.ingest_url.as_deref() else {
            return Ok(None);
        };
        let root = project_root.and_then(|root| Path::new(root).canonicalize().ok());
        let project = root.as_deref().and_then(|root| routing.project(root));
        match project {
            Some((name, project))
                if project.stay_local == Some(true) && !routing.is_local_address(url) =>
            {
                Err(format!(
                    "nothing about `{name}` may leave this machine (`stay_local`), and notes are kept by a service at {url}; add its host to `local_hosts`, or remove `brain.ingest_url`"
                ))
            }
            _ => Ok(Some(url.to_owned())),
        }
    }

    async fn open_brain(
        &self,
        project_root: Option<&str>,
        call: &Call,
    ) -> Result<OpenedBrain, String> {
        let settings = self.settings().map_err(|e| e.to_string())?;
        let places = BrainPaths::of(&settings.routing, &self.state().map_err(|e| e.to_string())?)?;
        let project = match project_root.filter(|root| !root.is_empty()) {
            Some(root) => {
                let root = Path::new(root)
                    .canonicalize()
                    .map_err(|e| format!("`project_root` {root:?} cannot be used: {e}"))?;
                let identity = identify(self.launcher(), &root, &call.stop).await;
                Some((root, identity))
            }
            None => None,
        };
        Ok(OpenedBrain { places, project })
    }
}

fn write(brain: &OpenedBrain, params: &BrainWriteParams) -> Result<Answer, String> {
    let notes = NoteFolder::open(&brain.places.notes).map_err(|e| e.to_string())?;
    let filled = |text: &Option<String>| {
        text.clone()
            .map(|t| t.trim().to_owned())
            .filter(|t| !t.is_empty())
    };
    let filename = filled(&params.filename);
    if params.delete {
        let name = filename.ok_or("`delete` needs `filename`, a path that `brain_query` showed")?;
        let trash = notes.delete(&name).map_err(|e| e.to_string())?;
        let message = format!("moved `{name}` to the trash");
        return Ok((
            Status::Pass,
            message,
            String::new(),
            json!({"trash": trash.display().to_string()}),
        ));
    }
    if params.content.trim().is_empty() {
        return Err(String::from(
            "content is required: the argument `content` is empty",
        ));
    }
    let evidence: NoteEvidence = serde_json::from_value(Value::Object(params.evidence.clone())).map_err(|e| {
        format!("`evidence` does not fit: {e}; example: {{\"files\": [\"src/lib.rs\"], \"commit\": \"1a2b3c\"}}")
    })?;
    let now = jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let mut note = Note::parse(
        filename.as_deref().unwrap_or("note.md"),
        params.content.trim_start(),
    );
    note.warning = None;
    note.title = filled(&params.title).unwrap_or(note.title);
    note.kind = params.kind;
    note.tags.clone_from(&params.tags);
    note.session_id = filled(&params.session_id).unwrap_or_default();
    (note.created, note.updated) = (now.clone(), now);
    note.entries.clone_from(&evidence.entries);
    note.commit = filled(&evidence.commit);
    if let Some((root, identity)) = &brain.project {
        // Also records that both names mean the same project, if it has two.
        known_names(&notes, identity).map_err(|e| e.to_string())?;
        note.project = identity.to_string();
        note.files = hash_files(root, &evidence.files)?;
    } else if !evidence.files.is_empty() {
        return Err(String::from(
            "`evidence.files` needs `project_root`: the files are of that project",
        ));
    }
    let proven = note.has_evidence();
    if !params.overwrite
        && let Some(similar) = similar_note(brain, &notes, &note)
    {
        let message = format!(
            "not written: `{similar}` says nearly the same; edit that one, or pass `overwrite: true`"
        );
        return Ok((
            Status::Fail,
            message,
            String::new(),
            json!({"similar": similar}),
        ));
    }
    let written = notes
        .write(NoteDraft {
            note,
            filename,
            overwrite: params.overwrite,
        })
        .map_err(|e| e.to_string())?;
    let verb = if written.created { "wrote" } else { "replaced" };
    let mut message = format!("{verb} `{}`", written.name);
    if !proven {
        message += "; it names no evidence, so queries show it as unproven";
    }
    let details = json!({"path": written.name, "bytes": written.bytes, "created": written.created});
    Ok((
        Status::Pass,
        message,
        written.path.display().to_string(),
        details,
    ))
}

fn similar_note(brain: &OpenedBrain, notes: &NoteFolder, note: &Note) -> Option<String> {
    with_index(&brain.places, notes, &mut |_, _| {}, |index| {
        index.find_similar(notes, note, "")
    })
    .ok()?
}

fn query(
    brain: &OpenedBrain,
    params: &BrainQueryParams,
    on_progress: &mut dyn FnMut(usize, usize),
) -> Result<Answer, String> {
    let limit = params.limit()?;
    let notes = NoteFolder::open(&brain.places.notes).map_err(|e| e.to_string())?;
    let everywhere = match params.project.as_deref() {
        Some("all") => true,
        None | Some("" | "this") => brain.project.is_none(),
        Some(other) => {
            return Err(format!(
                "`project` is {other:?}; leave it out for this project, or write `all`"
            ));
        }
    };
    let names = match &brain.project {
        Some((_, identity)) => known_names(&notes, identity).map_err(|e| e.to_string())?,
        None => Vec::new(),
    };
    let note_query = NoteQuery {
        words: params.query.clone(),
        kind: params.kind,
        tags: params.tags.clone(),
        projects: if everywhere {
            Vec::new()
        } else {
            names.clone()
        },
        limit,
    };
    let now = jiff::Timestamp::now();
    let hits = with_index(&brain.places, &notes, on_progress, |index| {
        index.query(&notes, &note_query, now)
    })
    .map_err(|e| e.to_string())?;
    let mut shown: Vec<Value> = hits
        .iter()
        .map(|hit| hit_json(hit, brain, &names, params.explain))
        .collect();
    let found = shown.len();
    params.shorten(&mut shown);
    let message = match (found, shown.len()) {
        (0, _) => String::from("no note has these words"),
        (found, n) if n < found => format!(
            "{} found, {n} shown; raise `limit` for more",
            words::count(found, "note")
        ),
        (found, _) => format!("{} found", words::count(found, "note")),
    };
    Ok((Status::Pass, message, String::new(), json!({"hits": shown})))
}

fn hit_json(hit: &NoteHit, brain: &OpenedBrain, names: &[ProjectIdentity], explain: bool) -> Value {
    let mut shown = json!({
        "path": hit.name,
        "title": words::cut_end(&words::plain(&hit.title), 100),
        "kind": hit.note.kind,
        "score": (hit.ranking.score * 100.0).round() / 100.0,
        "line": hit.line,
        "excerpt": words::plain(&hit.excerpt),
    });
    if hit.ranking.age_days >= 0.0 {
        shown["age_days"] = json!(hit.ranking.age_days.floor());
    }
    let about = ProjectIdentity::parse(&hit.note.project);
    let own = brain
        .project
        .as_ref()
        .filter(|_| names.iter().any(|name| name.is_same(&about)));
    if let Some(why) = own.and_then(|(root, _)| staleness_of(&hit.note, root)) {
        shown["stale"] = json!(true);
        shown["why_stale"] = json!(why);
    }
    if !hit.note.has_evidence() {
        shown["unproven"] = json!(true);
    }
    if let Some(warning) = &hit.note.warning {
        shown["warning"] = json!(warning);
    }
    if explain {
        shown["ranking"] = json!(hit.ranking);
    }
    shown
}

fn into_result(
    skill: &str,
    done: Result<Result<Answer, String>, tokio::task::JoinError>,
) -> CallResult {
    let result =
        |status, message, details| CallResult::new(skill, "memory", status, message, details);
    match done {
        Ok(Ok((status, message, file_path, details))) => CallResult {
            file_path,
            ..result(status, message, details)
        },
        Ok(Err(why)) => result(Status::Error, why, Value::Null),
        Err(panic) => result(
            Status::Error,
            format!("the notes could not be used: {panic}"),
            Value::Null,
        ),
    }
}
