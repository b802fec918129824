//! Reads the session file of a pipeline. Only the coordinator writes it.

use serde_json::{Map, Value};

use super::team_dirs::TeamDirs;
use supervisor_workspace::FolderError;

const MAX_FILE_BYTES: u64 = 4 << 20;

/// The parts of a session that the supervisor needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PipelineSession {
    pub mode: Option<String>,
    pub stages: Vec<String>,
    pub team_name: Option<String>,
    /// False if the user wants no checkpoints.
    pub supervised: bool,
    pub tasks_completed: Option<u64>,
    pub tasks_total: Option<u64>,
}

impl PipelineSession {
    /// Merges three files; earlier ones take precedence.
    pub fn read(place: &TeamDirs) -> Result<Self, FolderError> {
        let mut fields = Map::new();
        for file in [".msg/meta.json", "team-session.json", "session.json"] {
            let bytes = place
                .folder()
                .read(&place.team_file(file), MAX_FILE_BYTES)?;
            let object =
                bytes.and_then(|bytes| serde_json::from_slice::<Map<String, Value>>(&bytes).ok());
            for (key, value) in object.unwrap_or_default() {
                fields.entry(key).or_insert(value);
            }
        }
        let pipeline = fields.get("pipeline").cloned().unwrap_or_default();
        let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        let stages = fields
            .get("pipeline_stages")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        Ok(Self {
            mode: text("pipeline_mode"),
            stages: stages
                .iter()
                .filter_map(|s| s.as_str().map(str::to_owned))
                .collect(),
            team_name: text("team_name"),
            supervised: fields.get("supervision").and_then(Value::as_bool) != Some(false),
            tasks_completed: pipeline.get("tasks_completed").and_then(Value::as_u64),
            tasks_total: pipeline.get("tasks_total").and_then(Value::as_u64),
        })
    }
}
