//! Completes the variables of resource templates.

use std::collections::HashMap;
use std::path::Path;

use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};

use super::contents::ResourceReader;
use super::newest_sessions;
use crate::Server;
use supervisor_engine::session::SessionId;
use supervisor_engine::session::detail::CallChoice;
use supervisor_settings::Routing;
use supervisor_team::sidecar::CheckpointSidecar;
use supervisor_team::team_dirs::{TeamDirs, TeamId};

impl Server {
    /// Returns nothing for an unknown variable, and for prompts, whose argument is free text.
    pub async fn completions(&self, request: CompleteRequestParams) -> CompletionInfo {
        let server = self.clone();
        let known = tokio::task::spawn_blocking(move || {
            let given = request
                .context
                .and_then(|context| context.arguments)
                .unwrap_or_default();
            let known = match &request.r#ref {
                Reference::Resource(_) => server.known_values(&request.argument.name, &given),
                _ => Vec::new(),
            };
            matching(known, &request.argument.value)
        });
        known.await.unwrap_or_else(|_| matching(Vec::new(), ""))
    }

    fn known_values(&self, variable: &str, given: &HashMap<String, String>) -> Vec<String> {
        let of = |name: &str| given.get(name).map(String::as_str).unwrap_or_default();
        match variable {
            "skill" => Routing::known_skills().map(str::to_owned).collect(),
            "session" => newest_sessions(self.app()),
            "call" => self.known_calls(of("session")),
            "name" => self.known_notes(),
            "team" | "checkpoint"
                if !Path::new(of("project_root")).is_absolute()
                    || !self.allows_project(Path::new(of("project_root"))) =>
            {
                Vec::new()
            }
            "team" => TeamDirs::team_names(Path::new(of("project_root"))).unwrap_or_default(),
            "checkpoint" => known_checkpoints(Path::new(of("project_root")), of("team")),
            _ => Vec::new(),
        }
    }

    /// Newest call first.
    fn known_calls(&self, session: &str) -> Vec<String> {
        let Ok(id) = session.parse::<SessionId>() else {
            return Vec::new();
        };
        let reader = ResourceReader::of(self.app(), None).ok();
        let calls = reader
            .and_then(|reader| reader.log().calls(&id, &CallChoice::All).ok())
            .unwrap_or_default();
        calls
            .iter()
            .rev()
            .map(|call| call.index.to_string())
            .collect()
    }

    fn known_notes(&self) -> Vec<String> {
        let notes = ResourceReader::of(self.app(), None)
            .and_then(|reader| reader.notes())
            .ok()
            .flatten();
        let listed = notes
            .and_then(|notes| notes.list().ok())
            .unwrap_or_default();
        listed.into_iter().map(|(name, _)| name).collect()
    }
}

fn known_checkpoints(root: &Path, team: &str) -> Vec<String> {
    let Ok(team) = TeamId::new("team", team) else {
        return Vec::new();
    };
    let place = TeamDirs::find(root, &team, None).ok().flatten();
    let reports = place
        .and_then(|place| CheckpointSidecar::read_all(&place).ok())
        .unwrap_or_default();
    reports.into_iter().map(|report| report.task_id).collect()
}

/// Values that begin with the typed text, then those that contain it.
fn matching(known: Vec<String>, typed: &str) -> CompletionInfo {
    let typed = typed.to_lowercase();
    let (starting, others): (Vec<_>, Vec<_>) = known
        .into_iter()
        .partition(|value| value.to_lowercase().starts_with(&typed));
    let containing = others
        .into_iter()
        .filter(|value| value.to_lowercase().contains(&typed));
    let mut values: Vec<String> = starting.into_iter().chain(containing).collect();
    let total = values.len();
    values.truncate(CompletionInfo::MAX_VALUES);
    let has_more = total > values.len();
    CompletionInfo::with_pagination(values, u32::try_from(total).ok(), has_more).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_matches_come_first() {
        let known = ["tdd_red", "retrospective", "review"]
            .map(str::to_owned)
            .to_vec();
        let fits = matching(known, "RE");
        assert_eq!(fits.values, ["retrospective", "review", "tdd_red"]);
        let many = matching((0..250).map(|n| n.to_string()).collect(), "");
        assert_eq!(
            (many.values.len(), many.total, many.has_more),
            (100, Some(250), Some(true))
        );
    }
}
