//! `session_log`: the session log as a tool. Entries from the caller go into the same files, under
//! the same lock, and reads match what `supervisor stats` counts. It asks no model.

use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{App, Call, Parameters};
use crate::{Reply, Tools};
use supervisor_engine::result::{CallResult, Status};
use supervisor_engine::session::{CallRecord, Filter, SessionId, SessionLog, Stats};
use supervisor_text::words;

const DEFAULT_LAST: usize = 20;
const MAX_LAST: usize = 200;
/// Max bytes of entries in a result. The rest is in the file whose path is returned.
const MAX_READ_BYTES: usize = 30_000;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionLogParams {
    /// What to do: write an entry, read entries, list sessions, or count.
    pub operation: LogOperation,
    /// Needed for append and read.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The skill of the entry (append), or filter.
    #[serde(default)]
    pub skill: Option<String>,
    /// How it ended (append), or filter (read).
    #[serde(default, alias = "status")]
    pub final_status: Option<LoggedStatus>,
    /// How many entries (read): 1 to 200, default 20.
    #[serde(default)]
    pub last: Option<usize>,
    /// Only entries from this RFC 3339 time on (read, stats).
    #[serde(default)]
    pub since: Option<String>,
    /// Further fields of the entry (append): phase, message, project_root, file_path, model_used, input, attempts, duration_ms.
    #[serde(default)]
    pub entry: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum LogOperation {
    Append,
    Read,
    List,
    Stats,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum LoggedStatus {
    Pass,
    Fail,
    Error,
    Skip,
}

impl LoggedStatus {
    fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
            Self::Skip => "skip",
        }
    }
}

#[tool_router(router = session_log_tool, vis = "pub")]
impl Tools {
    /// The session log: append an entry of your own, read a session, list sessions, or get statistics per skill and model.
    #[tool(annotations(
        title = "Session log",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    async fn session_log(
        &self,
        Parameters(params): Parameters<SessionLogParams>,
        _call: Call,
    ) -> Reply {
        let opened = open(self.app());
        let done = tokio::task::spawn_blocking(move || answer(&opened?, &params)).await;
        let (status, message, details) = match done {
            Ok(Ok((message, details))) => (Status::Pass, message, details),
            Ok(Err(why)) => (Status::Error, why, Value::Null),
            Err(panic) => (
                Status::Error,
                format!("the log could not be used: {panic}"),
                Value::Null,
            ),
        };
        Reply(CallResult::new(
            "session_log",
            "log",
            status,
            message,
            details,
        ))
    }
}

fn open(app: &App) -> Result<SessionLog, String> {
    let state = app.state().map_err(|e| e.to_string())?;
    let log = SessionLog::open(&state).map_err(|e| e.to_string())?;
    match app.settings() {
        Ok(settings) => Ok(log.with_redactor(std::sync::Arc::new(app.redactor(&settings.routing)))),
        // Without settings, keys are still recognised by their shape.
        Err(_) => Ok(log),
    }
}

fn answer(log: &SessionLog, params: &SessionLogParams) -> Result<(String, Value), String> {
    match params.operation {
        LogOperation::Append => append(log, params),
        LogOperation::Read => read(log, params),
        LogOperation::List => {
            let sessions = log.sessions().map_err(|e| e.to_string())?;
            let shown: Vec<&str> = sessions
                .iter()
                .rev()
                .take(MAX_LAST)
                .map(SessionId::as_str)
                .collect();
            let details = json!({"total": sessions.len(), "sessions": shown, "directory": log.directory().display().to_string()});
            Ok((words::count(sessions.len(), "session"), details))
        }
        LogOperation::Stats => {
            let session = params
                .session_id
                .as_deref()
                .map(str::parse)
                .transpose()
                .map_err(|e: supervisor_engine::session::InvalidSessionId| e.to_string())?;
            let filter = Filter {
                since: since(params)?,
                skill: params.skill.clone(),
                session,
                project: None,
            };
            let stats = Stats::gather(log, &filter).map_err(|e| e.to_string())?;
            Ok((words::count(stats.total.calls, "call"), json!(stats)))
        }
    }
}

fn session(params: &SessionLogParams) -> Result<SessionId, String> {
    let id = params.session_id.as_deref().filter(|id| !id.is_empty());
    let id = id.ok_or("session_id is required: the argument `session_id` is missing")?;
    id.parse()
        .map_err(|e: supervisor_engine::session::InvalidSessionId| e.to_string())
}

fn since(params: &SessionLogParams) -> Result<Option<jiff::Timestamp>, String> {
    let parse = |text: &str| {
        text.parse()
            .map_err(|_| format!("`since` is {text:?}; write a time such as 2026-11-01T00:00:00Z"))
    };
    params
        .since
        .as_deref()
        .filter(|text| !text.is_empty())
        .map(parse)
        .transpose()
}

fn append(log: &SessionLog, params: &SessionLogParams) -> Result<(String, Value), String> {
    let id = session(params)?;
    let skill = params
        .skill
        .as_deref()
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .ok_or("`append` needs `skill`")?;
    let status = params
        .final_status
        .ok_or("`append` needs `final_status`: pass, fail, error or skip")?;
    let mut entry = Map::new();
    entry.insert("v".into(), json!(supervisor_engine::entry::VERSION));
    entry.insert("session_id".into(), json!(id));
    entry.insert(
        "timestamp".into(),
        json!(jiff::Timestamp::now().to_string()),
    );
    entry.insert("skill".into(), json!(skill));
    entry.insert("final_status".into(), json!(status.word()));
    for (key, value) in params.entry.iter().flatten() {
        // The caller cannot override the fields set above.
        entry.entry(key).or_insert_with(|| value.clone());
    }
    if !entry.get("attempts").is_some_and(Value::is_array) {
        entry.insert("attempts".into(), json!([]));
    }
    let written = log
        .append_value(&id, Value::Object(entry))
        .map_err(|e| e.to_string())?;
    let index = log.reader(&id).map_err(|e| e.to_string())?.count();
    let path = written.path.display().to_string();
    Ok((
        format!("entry {index} of session `{id}`"),
        json!({"index": index, "path": path}),
    ))
}

fn read(log: &SessionLog, params: &SessionLogParams) -> Result<(String, Value), String> {
    let id = session(params)?;
    let last = params.last.unwrap_or(DEFAULT_LAST);
    if !(1..=MAX_LAST).contains(&last) {
        return Err(format!(
            "`last` is {last}; 1 to {MAX_LAST} entries can be read"
        ));
    }
    let since = since(params)?;
    let is_wanted = |record: &CallRecord| {
        let entry = &record.entry;
        let status = params
            .final_status
            .is_none_or(|wanted| record.outcome.word() == wanted.word());
        let skill = params
            .skill
            .as_deref()
            .is_none_or(|wanted| supervisor_engine::session::stats::is_of(&entry.tool, wanted));
        let time = since.is_none_or(|since| {
            entry
                .timestamp
                .parse::<jiff::Timestamp>()
                .is_ok_and(|at| at >= since)
        });
        status && skill && time
    };
    let mut reader = log.reader(&id).map_err(|e| e.to_string())?;
    let found: Vec<(usize, CallRecord)> = reader
        .by_ref()
        .enumerate()
        .filter(|(_, record)| is_wanted(record))
        .collect();
    let damage = reader.damage().summary();
    let total = found.len();
    let mut entries: Vec<Value> = Vec::new();
    let mut bytes = 0;
    for (n, record) in found.into_iter().rev().take(last) {
        let mut entry = serde_json::to_value(&record.entry).expect("entries serialise to JSON");
        entry["final_status"] = json!(record.outcome.word());
        entry["index"] = json!(n + 1);
        bytes += entry.to_string().len();
        if bytes > MAX_READ_BYTES && !entries.is_empty() {
            break;
        }
        entries.push(entry);
    }
    entries.reverse();
    let mut details = json!({"total": total, "showing": entries.len(), "entries": entries, "path": log.path(&id).display().to_string()});
    if let Some(damage) = damage {
        details["unread"] = json!(damage);
    }
    let entries = if total == 1 { "entry" } else { "entries" };
    Ok((
        format!("{} of {total} {entries}", details["showing"]),
        details,
    ))
}
