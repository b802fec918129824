//! `team_msg`: the message bus of a team of agents. It asks no model and reads and writes only
//! below the project's `.workflow`.

use std::path::Path;

use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Call, Parameters};
use crate::{Reply, Tools};
use supervisor_engine::result::{CallResult, Status};
use supervisor_team::bus::{BusError, MessageFilter, TeamBus};
use supervisor_team::message::{MessageDraft, TeamMessage};
use supervisor_team::team_dirs::{TeamDirs, TeamDirsError, TeamId};
use supervisor_text::words;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TeamMsgParams {
    /// What to do on the bus.
    pub operation: BusOperation,
    /// Absolute path
    pub project_root: String,
    /// Run or team session
    #[serde(alias = "team_session_id", alias = "team")]
    pub session_id: String,
    // The tool description says which operation takes which argument.
    /// Sender (log, broadcast), or filter (list).
    #[serde(default)]
    pub from: Option<String>,
    /// Recipient, default coordinator; or filter (list).
    #[serde(default)]
    pub to: Option<String>,
    /// Message type, default `message`; `state_update` merges `data` into the sender's state.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// One line (log, broadcast).
    #[serde(default)]
    pub summary: Option<String>,
    /// Fields of the message.
    #[serde(default)]
    pub data: Option<Map<String, Value>>,
    /// Message id (read, delete).
    #[serde(default)]
    pub id: Option<String>,
    /// How many (list): 1 to 100, default 20.
    #[serde(default)]
    pub last: Option<usize>,
    /// Only what came after this message (list).
    #[serde(default)]
    pub since_id: Option<String>,
    /// Role (get_state, read_mailbox).
    #[serde(default)]
    pub role: Option<String>,
    /// One task of that role (get_state).
    #[serde(default)]
    pub task: Option<String>,
    /// With it a logged message waits in the recipient's mailbox.
    #[serde(default)]
    pub delivery_method: Option<String>,
    /// `.workflow/sessions/<session>/runs/<run>`, to begin a bus there.
    #[serde(default)]
    pub run_dir: Option<String>,
    /// Older form of `data.ref`.
    #[serde(default, rename = "ref")]
    #[schemars(skip)]
    pub reference: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum BusOperation {
    Log,
    Broadcast,
    Read,
    List,
    Status,
    GetState,
    ReadMailbox,
    MailboxStatus,
    Delete,
    Clear,
}

#[derive(Debug, thiserror::Error)]
enum TeamMsgError {
    #[error("`{operation}` needs `{field}`")]
    Missing {
        operation: &'static str,
        field: &'static str,
    },
    #[error("`last` is {0}; 1 to 100 messages can be listed, and `since_id` goes on from there")]
    Last(usize),
    #[error("`project_root` is {0:?}; give the absolute path of the project")]
    Root(String),
    #[error(transparent)]
    Place(#[from] TeamDirsError),
    #[error(transparent)]
    Bus(#[from] BusError),
}

#[tool_router(router = team_msg_tool, vis = "pub")]
impl Tools {
    /// Messages of a team. log, broadcast: from, to (default coordinator), type (state_update merges data into the
    /// sender's state), summary, data, delivery_method (mailbox). list: these as filters, last (at most 100), since_id.
    /// read, delete: id. get_state, read_mailbox: role, task. New bus: run_dir.
    #[tool(annotations(
        title = "Team message bus",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    async fn team_msg(&self, Parameters(params): Parameters<TeamMsgParams>, _call: Call) -> Reply {
        let done = tokio::task::spawn_blocking(move || answer(&params)).await;
        Reply(match done {
            Ok(Ok((message, result))) => call_result(
                Status::Pass,
                message,
                json!({"success": true, "result": result}),
            ),
            Ok(Err(error)) => call_result(
                Status::Error,
                error.to_string(),
                json!({"success": false, "error": error.to_string()}),
            ),
            Err(error) => call_result(
                Status::Error,
                format!("the bus could not be used: {error}"),
                Value::Null,
            ),
        })
    }
}

fn call_result(status: Status, message: String, details: Value) -> CallResult {
    CallResult::new("team_msg", "bus", status, message, details)
}

fn answer(params: &TeamMsgParams) -> Result<(String, Value), TeamMsgError> {
    let root = Path::new(&params.project_root);
    if !root.is_absolute() {
        return Err(TeamMsgError::Root(params.project_root.clone()));
    }
    let id = TeamId::new("session_id", &params.session_id)?;
    let run_dir = params.run_dir.as_deref();
    let place = match params.operation {
        BusOperation::Log | BusOperation::Broadcast => TeamDirs::find_or_new(root, &id, run_dir)?,
        _ => match TeamDirs::find(root, &id, run_dir)? {
            Some(place) => place,
            None => TeamDirs::find_or_new(root, &id, run_dir)?,
        },
    };
    let bus = TeamBus::new(&place);
    let required = |value: &Option<String>, operation, field| {
        value
            .clone()
            .filter(|v| !v.is_empty())
            .ok_or(TeamMsgError::Missing { operation, field })
    };
    match params.operation {
        BusOperation::Log => log(
            &bus,
            params,
            params.to.clone(),
            required(&params.from, "log", "from")?,
        ),
        BusOperation::Broadcast => log(
            &bus,
            params,
            Some("all".into()),
            required(&params.from, "broadcast", "from")?,
        ),
        BusOperation::Read => {
            let message = bus.read(&required(&params.id, "read", "id")?)?;
            Ok((message.line(), json!(message)))
        }
        BusOperation::List => list(&bus, params),
        BusOperation::Status => {
            let (members, total) = bus.activity()?;
            if members.is_empty() {
                let none = "No messages recorded yet.";
                return Ok((none.into(), json!({"members": [], "summary": none})));
            }
            let message = format!(
                "{} from {}",
                words::count(total, "message"),
                words::count(members.len(), "member")
            );
            Ok((
                message,
                json!({"members": members, "total_messages": total}),
            ))
        }
        BusOperation::GetState => state(&bus, params),
        BusOperation::ReadMailbox => {
            let role = required(&params.role, "read_mailbox", "role")?;
            let unread = bus.read_mailbox(&role)?;
            let message = format!(
                "{} for {role}",
                words::count(unread.len(), "unread message")
            );
            Ok((
                message,
                json!({"role": role, "count": unread.len(), "messages": unread, "formatted": formatted(&unread)}),
            ))
        }
        BusOperation::MailboxStatus => {
            let (roles, total) = bus.mailbox_status()?;
            Ok((
                words::count(total, "message"),
                json!({"roles": roles, "total_messages": total}),
            ))
        }
        BusOperation::Delete => {
            let deleted = bus.delete(&required(&params.id, "delete", "id")?)?;
            let message = format!(
                "Deleted {}: [{} → {}] {}",
                deleted.id, deleted.from, deleted.to, deleted.summary
            );
            Ok((
                message.clone(),
                json!({"deleted": deleted.id, "message": message}),
            ))
        }
        BusOperation::Clear => {
            let (count, archive) = bus.clear()?;
            let message = match &archive {
                Some(archive) => {
                    format!(
                        "Cleared {}, kept in `{archive}`; role states stay",
                        words::count(count, "message")
                    )
                }
                None => format!("Team \"{}\" has no messages to clear.", id.as_str()),
            };
            Ok((
                message.clone(),
                json!({"cleared": count, "archive": archive, "message": message}),
            ))
        }
    }
}

fn log(
    bus: &TeamBus,
    params: &TeamMsgParams,
    to: Option<String>,
    from: String,
) -> Result<(String, Value), TeamMsgError> {
    let mut data = params.data.clone();
    if let Some(reference) = &params.reference {
        data.get_or_insert_default()
            .entry("ref")
            .or_insert_with(|| json!(reference));
    }
    let draft = MessageDraft {
        from,
        to: to.filter(|to| !to.is_empty()),
        kind: params.kind.clone().filter(|kind| !kind.is_empty()),
        summary: params.summary.clone().filter(|summary| !summary.is_empty()),
        data,
        delivery_method: params
            .delivery_method
            .clone()
            .filter(|method| !method.is_empty()),
    };
    let message = bus.log_message(draft)?;
    let text = format!(
        "Logged {}: [{} → {}] {}",
        message.id, message.from, message.to, message.summary
    );
    Ok((text.clone(), json!({"id": message.id, "message": text})))
}

fn list(bus: &TeamBus, params: &TeamMsgParams) -> Result<(String, Value), TeamMsgError> {
    let last = params.last.unwrap_or(20);
    if !(1..=100).contains(&last) {
        return Err(TeamMsgError::Last(last));
    }
    let filter = MessageFilter {
        from: params.from.clone(),
        to: params.to.clone(),
        kind: params.kind.clone(),
        since_id: params.since_id.clone(),
    };
    let reading = bus.list(&filter)?;
    let total = reading.messages.len();
    // With `since_id` the caller wants the next messages, otherwise the newest.
    let shown = match params.since_id {
        Some(_) => &reading.messages[..total.min(last)],
        None => &reading.messages[total.saturating_sub(last)..],
    };
    let mut result = json!({"total": total, "showing": shown.len(), "messages": shown, "formatted": formatted(shown)});
    if reading.damaged > 0 {
        result["damaged_lines"] = json!(reading.damaged);
    }
    Ok((
        format!("{} of {}", shown.len(), words::count(total, "message")),
        result,
    ))
}

fn state(bus: &TeamBus, params: &TeamMsgParams) -> Result<(String, Value), TeamMsgError> {
    let meta = bus.meta()?;
    let roles = meta.roles();
    Ok(match (&params.role, &params.task) {
        (Some(role), Some(task)) => {
            let state = meta.task(role, task);
            (
                format!("{role}, {task}"),
                json!({"role": role, "task": task, "state": state}),
            )
        }
        (Some(role), None) => match roles.get(role) {
            Some(state) => (
                format!("state of {role}"),
                json!({"role": role, "state": state}),
            ),
            None => {
                let none = format!("No state found for role \"{role}\"");
                (
                    none.clone(),
                    json!({"role": role, "state": null, "message": none}),
                )
            }
        },
        (None, _) => (
            words::count(roles.len(), "role"),
            json!({"role_state": roles}),
        ),
    })
}

fn formatted(messages: &[TeamMessage]) -> String {
    messages
        .iter()
        .map(TeamMessage::line)
        .collect::<Vec<_>>()
        .join("\n")
}
