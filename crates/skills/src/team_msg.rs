//! `team_msg`: the message bus of a team of agents, in the operations and shapes that teams use.
//! Asks no model; reads and writes only below `.workflow` of the project.

use std::path::Path;

use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Call, Parameters};
use crate::{Reply, Tools};
use supervisor_engine::result::{CallResult, More, Status};
use supervisor_team::bus::{BusError, MessageFilter, TeamBus};
use supervisor_team::message::{MessageDraft, TeamMessage};
use supervisor_team::place::{PlaceError, TeamId, TeamPlace};
use supervisor_text::words;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TeamMsgParams {
    pub operation: BusOperation,
    /// Absolute path
    pub project_root: String,
    /// Run or team session
    #[serde(alias = "team_session_id", alias = "team")]
    pub session_id: String,
    // Which operation takes which argument, the tool's description says.
    /// Sender (log, broadcast), or filter (list).
    #[schemars(extend("said_elsewhere" = true))]
    #[serde(default)]
    pub from: Option<String>,
    /// Recipient, default coordinator; or filter (list).
    #[schemars(extend("said_elsewhere" = true))]
    #[serde(default)]
    pub to: Option<String>,
    /// Message type, default `message`; `state_update` merges `data` into the sender's state.
    #[schemars(extend("said_elsewhere" = true))]
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// One line (log, broadcast).
    #[schemars(extend("said_elsewhere" = true))]
    #[serde(default)]
    pub summary: Option<String>,
    /// Fields of the message.
    #[schemars(extend("said_elsewhere" = true))]
    #[serde(default)]
    pub data: Option<Map<String, Value>>,
    /// Message id (read, delete).
    #[schemars(extend("said_elsewhere" = true))]
    #[serde(default)]
    pub id: Option<String>,
    /// How many (list): 1 to 100, default 20.
    #[schemars(extend("said_elsewhere" = true))]
    #[serde(default)]
    pub last: Option<usize>,
    /// Only what came after this message (list).
    #[schemars(extend("said_elsewhere" = true))]
    #[serde(default)]
    pub since_id: Option<String>,
    /// Role (get_state, read_mailbox).
    #[schemars(extend("said_elsewhere" = true))]
    #[serde(default)]
    pub role: Option<String>,
    /// One task of that role (get_state).
    #[schemars(extend("said_elsewhere" = true))]
    #[serde(default)]
    pub task: Option<String>,
    /// With it a logged message waits in the recipient's mailbox.
    #[schemars(extend("said_elsewhere" = true))]
    #[serde(default)]
    pub delivery_method: Option<String>,
    /// `.workflow/sessions/<session>/runs/<run>`, to begin a bus there.
    #[schemars(extend("said_elsewhere" = true))]
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
    Place(#[from] PlaceError),
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
    async fn team_msg(&self, Parameters(asked): Parameters<TeamMsgParams>, _call: Call) -> Reply {
        let done = tokio::task::spawn_blocking(move || answer(&asked)).await;
        Reply(match done {
            Ok(Ok((message, result))) => told(
                Status::Pass,
                message,
                json!({"success": true, "result": result}),
            ),
            Ok(Err(error)) => told(
                Status::Error,
                error.to_string(),
                json!({"success": false, "error": error.to_string()}),
            ),
            Err(error) => told(
                Status::Error,
                format!("the bus could not be used: {error}"),
                Value::Null,
            ),
        })
    }
}

fn told(status: Status, message: String, details: Value) -> CallResult {
    CallResult {
        status,
        message,
        phase: String::from("bus"),
        skill: String::from("team_msg"),
        file_path: String::new(),
        runner_output: String::new(),
        verified: false,
        model_used: String::new(),
        more: More {
            details,
            ..More::default()
        },
    }
}

fn answer(asked: &TeamMsgParams) -> Result<(String, Value), TeamMsgError> {
    let root = Path::new(&asked.project_root);
    if !root.is_absolute() {
        return Err(TeamMsgError::Root(asked.project_root.clone()));
    }
    let id = TeamId::new("session_id", &asked.session_id)?;
    let run_dir = asked.run_dir.as_deref();
    let place = match asked.operation {
        BusOperation::Log | BusOperation::Broadcast => TeamPlace::find_or_new(root, &id, run_dir)?,
        _ => match TeamPlace::find(root, &id, run_dir)? {
            Some(place) => place,
            None => TeamPlace::find_or_new(root, &id, run_dir)?,
        },
    };
    let bus = TeamBus::new(&place);
    let need = |value: &Option<String>, operation, field| {
        value
            .clone()
            .filter(|v| !v.is_empty())
            .ok_or(TeamMsgError::Missing { operation, field })
    };
    match asked.operation {
        BusOperation::Log => log(
            &bus,
            asked,
            asked.to.clone(),
            need(&asked.from, "log", "from")?,
        ),
        BusOperation::Broadcast => log(
            &bus,
            asked,
            Some("all".into()),
            need(&asked.from, "broadcast", "from")?,
        ),
        BusOperation::Read => {
            let message = bus.read(&need(&asked.id, "read", "id")?)?;
            Ok((message.line(), json!(message)))
        }
        BusOperation::List => list(&bus, asked),
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
        BusOperation::GetState => state(&bus, asked),
        BusOperation::ReadMailbox => {
            let role = need(&asked.role, "read_mailbox", "role")?;
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
            let gone = bus.delete(&need(&asked.id, "delete", "id")?)?;
            let message = format!(
                "Deleted {}: [{} → {}] {}",
                gone.id, gone.from, gone.to, gone.summary
            );
            Ok((
                message.clone(),
                json!({"deleted": gone.id, "message": message}),
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
    asked: &TeamMsgParams,
    to: Option<String>,
    from: String,
) -> Result<(String, Value), TeamMsgError> {
    let mut data = asked.data.clone();
    if let Some(reference) = &asked.reference {
        data.get_or_insert_default()
            .entry("ref")
            .or_insert_with(|| json!(reference));
    }
    let draft = MessageDraft {
        from,
        to: to.filter(|to| !to.is_empty()),
        kind: asked.kind.clone().filter(|kind| !kind.is_empty()),
        summary: asked.summary.clone().filter(|summary| !summary.is_empty()),
        data,
        delivery_method: asked
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

fn list(bus: &TeamBus, asked: &TeamMsgParams) -> Result<(String, Value), TeamMsgError> {
    let last = asked.last.unwrap_or(20);
    if !(1..=100).contains(&last) {
        return Err(TeamMsgError::Last(last));
    }
    let filter = MessageFilter {
        from: asked.from.clone(),
        to: asked.to.clone(),
        kind: asked.kind.clone(),
        since_id: asked.since_id.clone(),
    };
    let reading = bus.list(&filter)?;
    let total = reading.messages.len();
    // Going on from a place means the next ones; otherwise the newest are wanted.
    let shown = match asked.since_id {
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

fn state(bus: &TeamBus, asked: &TeamMsgParams) -> Result<(String, Value), TeamMsgError> {
    let meta = bus.meta()?;
    let roles = meta.roles();
    Ok(match (&asked.role, &asked.task) {
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
