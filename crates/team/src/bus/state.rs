//! The latest state of each role (`meta.json`), updated from the log. A state is kept per role, as
//! teams expect it, and per role and task, so that a later task does not overwrite an earlier one.

use serde_json::{Map, Value, json};

use super::{BusCursor, BusError, TeamBus};
use crate::message::{TeamMessage, now};
use crate::team_dirs::TeamLayout;

const MAX_META_BYTES: u64 = 32 << 20;
/// Fields in which a role describes the whole team.
const TEAM_FIELDS: [&str; 5] = [
    "pipeline_mode",
    "pipeline_stages",
    "team_name",
    "task_description",
    "roles",
];
/// Key of the cursor up to which the log is merged into the state.
const CURSOR: &str = "state_cursor";
const BY_TASK: &str = "task_state";

/// The state of a team. Unknown fields are kept.
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

    /// The state of each task as (role, task, state), sorted by role.
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

    /// Merges one message. Idempotent: merging the same messages in the same order changes nothing.
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
            let role_tasks = self
                .object(BY_TASK)
                .entry(message.from.clone())
                .or_insert_with(|| json!({}));
            if let Some(role_tasks) = role_tasks.as_object_mut() {
                merge_into(role_tasks, task);
            }
        }
        for key in TEAM_FIELDS {
            if let Some(value) = data.get(key) {
                self.fields.insert(key.to_owned(), value.clone());
            }
        }
        self.fields
            .insert(String::from("updated_at"), json!(message.ts));
    }
}

impl TeamBus {
    /// The state merged with the whole log, including messages that a killed writer had not merged.
    pub fn meta(&self) -> Result<TeamMeta, BusError> {
        self.meta_and_cost().map(|(meta, _)| meta)
    }

    /// The state, and how many bytes of the log were read for it.
    pub fn meta_and_cost(&self) -> Result<(TeamMeta, u64), BusError> {
        let stored = self.stored_meta()?;
        let cursor = stored.as_ref().and_then(|meta| meta.fields.get(CURSOR));
        let cursor =
            cursor.and_then(|cursor| serde_json::from_value::<BusCursor>(cursor.clone()).ok());
        let unmerged = self.since(&cursor.unwrap_or_default())?;
        let mut meta = match stored {
            Some(meta) => meta,
            None => self.inferred_meta(&unmerged.messages)?,
        };
        for message in unmerged
            .messages
            .iter()
            .filter(|m| m.kind == "state_update")
        {
            meta.merge(message);
        }
        if !unmerged.cursor.last_id.is_empty() {
            meta.fields.insert(CURSOR.into(), json!(unmerged.cursor));
        }
        Ok((meta, unmerged.bytes))
    }

    /// Writes the state with its cursor, so that the log is not read from its beginning again. A
    /// read-only bus is not changed.
    pub fn sync_meta(&self) -> Result<TeamMeta, BusError> {
        if self.place.layout() == TeamLayout::Oldest {
            return self.meta();
        }
        let _lock = self.lock()?;
        let meta = self.meta()?;
        if meta.fields.contains_key(CURSOR) {
            self.write_meta(&meta)?;
            // Otherwise our first message would search the whole log for the highest id.
            self.record_last_id(self.next_number()?.saturating_sub(1))?;
        }
        Ok(meta)
    }

    /// In the teams' format: indented by two, without a final newline.
    pub(super) fn write_meta(&self, meta: &TeamMeta) -> Result<(), BusError> {
        let json = serde_json::to_string_pretty(&meta.fields).expect("plain data serialises");
        Ok(self
            .place
            .folder()
            .write(&self.file("meta.json"), json.as_bytes())?)
    }

    fn stored_meta(&self) -> Result<Option<TeamMeta>, BusError> {
        let mut meta = self.read_object(&self.file("meta.json"))?;
        // Older teams keep parts of it in other files.
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

    /// Reads `shared-memory.json` and `team-session.json` of older teams.
    fn legacy_fields(&self) -> Result<Map<String, Value>, BusError> {
        let mut fields = Map::new();
        if let Some(shared) = self.read_object(&self.place.team_file("shared-memory.json"))? {
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
        let session = self.read_object(&self.place.team_file("team-session.json"))?;
        for (key, value) in session.into_iter().flatten() {
            if !TEAM_FIELDS.contains(&key.as_str()) || fields.contains_key(&key) {
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

    /// `None` if the file is missing or not an object. An unreadable file is ignored, and never
    /// rewritten from nothing.
    fn read_object(&self, path: &str) -> Result<Option<Map<String, Value>>, BusError> {
        let bytes = self.place.folder().read(path, MAX_META_BYTES)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }
}
