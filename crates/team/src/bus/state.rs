//! What the roles of a team last said about themselves: `meta.json`, brought up to date from the log.
//! A state is kept per role, as teams expect it, and per role and task, so that a later task does not erase an earlier.

use serde_json::{Map, Value, json};

use super::{BusCursor, BusError, TeamBus};
use crate::message::{TeamMessage, now};
use crate::place::TeamLayout;

const LARGEST: u64 = 32 << 20;
/// What a role may say about the team as a whole.
const LIFTED: [&str; 5] = [
    "pipeline_mode",
    "pipeline_stages",
    "team_name",
    "task_description",
    "roles",
];
/// Up to where the log is part of the state.
const CURSOR: &str = "state_cursor";
const BY_TASK: &str = "task_state";

/// The state of a team: an object whose unknown fields are kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TeamMeta {
    pub fields: Map<String, Value>,
}

impl TeamMeta {
    /// The states of all roles.
    pub fn roles(&self) -> Map<String, Value> {
        self.fields
            .get("role_state")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    }

    /// What each role said about each of its tasks: role, task, state; in order of the role's name.
    pub fn tasks(&self) -> Vec<(String, String, Map<String, Value>)> {
        let by_role = self.fields.get(BY_TASK).and_then(Value::as_object);
        let mut tasks = Vec::new();
        for (role, states) in by_role.into_iter().flatten() {
            for (task, state) in states.as_object().into_iter().flatten() {
                tasks.push((
                    role.clone(),
                    task.clone(),
                    state.as_object().cloned().unwrap_or_default(),
                ));
            }
        }
        tasks
    }

    pub fn task(&self, role: &str, task: &str) -> Option<&Map<String, Value>> {
        self.fields.get(BY_TASK)?.get(role)?.get(task)?.as_object()
    }

    fn object(&mut self, key: &str) -> &mut Map<String, Value> {
        let slot = self.fields.entry(key).or_insert_with(|| json!({}));
        if !slot.is_object() {
            *slot = json!({});
        }
        slot.as_object_mut().expect("made an object above")
    }

    /// Doing this twice with the same messages in the same order changes nothing.
    fn merge(&mut self, message: &TeamMessage) {
        let Some(data) = &message.data else { return };
        let merge_into = |states: &mut Map<String, Value>, key: &str| {
            let state = states.entry(key).or_insert_with(|| json!({}));
            if !state.is_object() {
                *state = json!({});
            }
            let state = state.as_object_mut().expect("made an object above");
            state.extend(data.iter().map(|(k, v)| (k.clone(), v.clone())));
            state.insert(String::from("_updated_at"), json!(message.ts));
        };
        merge_into(self.object("role_state"), &message.from);
        if let Some(task) = data.get("task_id").and_then(Value::as_str) {
            let of_role = self
                .object(BY_TASK)
                .entry(message.from.clone())
                .or_insert_with(|| json!({}));
            if let Some(of_role) = of_role.as_object_mut() {
                merge_into(of_role, task);
            }
        }
        for key in LIFTED {
            if let Some(value) = data.get(key) {
                self.fields.insert(key.to_owned(), value.clone());
            }
        }
        self.fields
            .insert(String::from("updated_at"), json!(message.ts));
    }
}

impl TeamBus {
    /// The state with everything the log says, also what a killed writer had not merged.
    pub fn meta(&self) -> Result<TeamMeta, BusError> {
        self.meta_and_cost().map(|(meta, _)| meta)
    }

    /// The state, and how many bytes of the log had to be read for it.
    pub fn meta_and_cost(&self) -> Result<(TeamMeta, u64), BusError> {
        let stored = self.stored_meta()?;
        let cursor = stored.as_ref().and_then(|meta| meta.fields.get(CURSOR));
        let cursor =
            cursor.and_then(|cursor| serde_json::from_value::<BusCursor>(cursor.clone()).ok());
        let news = self.since(&cursor.unwrap_or_default())?;
        let mut meta = match stored {
            Some(meta) => meta,
            None => self.inferred_meta(&news.messages)?,
        };
        for message in news.messages.iter().filter(|m| m.kind == "state_update") {
            meta.merge(message);
        }
        if !news.cursor.last_id.is_empty() {
            meta.fields.insert(CURSOR.into(), json!(news.cursor));
        }
        Ok((meta, news.bytes))
    }

    /// Writes the state down with its place in the log, so that the log is not read from its beginning again.
    /// A bus that is only read stays as it is.
    pub fn settle_meta(&self) -> Result<TeamMeta, BusError> {
        if self.place.layout() == TeamLayout::Oldest {
            return self.meta();
        }
        let _lock = self.lock()?;
        let meta = self.meta()?;
        if meta.fields.contains_key(CURSOR) {
            self.write_meta(&meta)?;
            // Else the first message of ours would look for the highest id in all of the log.
            self.note_highest(self.next_number()?.saturating_sub(1))?;
        }
        Ok(meta)
    }

    /// As teams write it: indented by two, no line break at the end.
    pub(super) fn write_meta(&self, meta: &TeamMeta) -> Result<(), BusError> {
        let json = serde_json::to_string_pretty(&meta.fields).expect("plain data serialises");
        Ok(self
            .place
            .folder()
            .write(&self.file("meta.json"), json.as_bytes())?)
    }

    fn stored_meta(&self) -> Result<Option<TeamMeta>, BusError> {
        let mut meta = self.object_in(&self.file("meta.json"))?;
        // Older teams leave parts of it elsewhere.
        if let Some(fields) = &mut meta {
            for (key, value) in self.legacy_fields()? {
                fields.entry(key).or_insert(value);
            }
        }
        Ok(meta.map(|fields| TeamMeta { fields }))
    }

    fn inferred_meta(&self, messages: &[TeamMessage]) -> Result<TeamMeta, BusError> {
        let ended = messages.last().is_some_and(|m| m.kind == "shutdown");
        let created = messages.first().map_or_else(now, |m| m.ts.clone());
        let updated = messages
            .last()
            .map_or_else(|| created.clone(), |m| m.ts.clone());
        let mut fields = Map::new();
        fields.insert(
            "status".into(),
            json!(if ended { "completed" } else { "active" }),
        );
        fields.insert("created_at".into(), json!(created));
        fields.insert("updated_at".into(), json!(updated));
        fields.extend(self.legacy_fields()?);
        Ok(TeamMeta { fields })
    }

    /// `shared-memory.json` and `team-session.json` of older teams.
    fn legacy_fields(&self) -> Result<Map<String, Value>, BusError> {
        let mut fields = Map::new();
        if let Some(shared) = self.object_in(&self.place.team_file("shared-memory.json"))? {
            let mut roles = Map::new();
            for (key, value) in shared {
                match (key.as_str(), &value) {
                    ("pipeline_mode" | "pipeline_stages", _) => drop(fields.insert(key, value)),
                    (_, Value::Object(_)) => drop(roles.insert(key, value)),
                    _ => {}
                }
            }
            if !roles.is_empty() {
                fields.insert("role_state".into(), Value::Object(roles));
            }
        }
        let session = self.object_in(&self.place.team_file("team-session.json"))?;
        for (key, value) in session.into_iter().flatten() {
            if !LIFTED.contains(&key.as_str()) || fields.contains_key(&key) {
                continue;
            }
            let names = |roles: &Value| -> Option<Value> {
                let names = roles
                    .as_array()?
                    .iter()
                    .filter_map(|r| r.get("name").or(Some(r))?.as_str());
                Some(json!(names.collect::<Vec<_>>()))
            };
            let value = if key == "roles" {
                names(&value).unwrap_or(value)
            } else {
                value
            };
            fields.insert(key, value);
        }
        Ok(fields)
    }

    /// `None` if it is missing or no object: a file that cannot be read says nothing, and is not rewritten from nothing.
    fn object_in(&self, path: &str) -> Result<Option<Map<String, Value>>, BusError> {
        let bytes = self.place.folder().read(path, LARGEST)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }
}
