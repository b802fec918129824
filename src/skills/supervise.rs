//! `supervise`: the resident observer of a pipeline. Decides by code whether what was produced so far hangs together,
//! and writes nothing but its own reports, the wisdom of the team and the bus.

mod commands;
mod outside;
mod question;
mod run;

use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::engine::result::CallResult;
use crate::server::{Call, Parameters, Server};

pub use commands::CommandTrust;
pub use outside::{OutsideBench, QuestionPolicy};

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuperviseParams {
    #[serde(default)]
    pub operation: Option<SuperviseOperation>,
    /// Absolute path
    pub project_root: String,
    /// Run, or older team session
    pub session_id: String,
    // Which operation takes what is said once, in the tool's description.
    #[serde(default)]
    pub task_id: Option<String>,
    #[serde(default)]
    pub scope: Vec<String>,
    #[serde(default)]
    pub pipeline_progress: Option<String>,
    #[serde(default)]
    pub wake: Option<String>,
    #[serde(default)]
    pub team_name: Option<String>,
    #[serde(default)]
    pub requirement: Option<String>,
    #[serde(default)]
    pub role_spec: Option<String>,
    #[serde(default)]
    pub recovery: bool,
    #[serde(default)]
    pub by: Option<String>,
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub request_id: Option<String>,
    #[serde(default)]
    pub run_dir: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum SuperviseOperation {
    Init,
    Checkpoint,
    Status,
    Override,
    Shutdown,
}

#[tool_router(router = supervise_tool, vis = "pub(crate)")]
impl Server {
    /// Check a pipeline's work so far. init: requirement, team_name, role_spec (definitions file), recovery (after a
    /// crash), run_dir. checkpoint: task_id (CHECKPOINT-NNN), scope (tasks), pipeline_progress (3/10); gives pass, warn or
    /// block. override: task_id, by, reason. shutdown: request_id. Or wake: raw text of the coordinator.
    #[tool(annotations(
        title = "Supervise a pipeline",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    async fn supervise(&self, Parameters(asked): Parameters<SuperviseParams>, call: Call) -> CallResult {
        run::answer(self.app(), asked, &call).await
    }
}
