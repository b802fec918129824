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
    /// Leave out with `wake`.
    #[serde(default)]
    pub operation: Option<SuperviseOperation>,
    /// Absolute path of the project that holds `.workflow`.
    pub project_root: String,
    /// Run id, or the id of an older team session.
    pub session_id: String,
    /// CHECKPOINT-NNN (checkpoint, override).
    #[serde(default)]
    pub task_id: Option<String>,
    /// Tasks whose work is checked; default: the checkpoint's own.
    #[serde(default)]
    pub scope: Vec<String>,
    /// As in `3/10 tasks completed`.
    #[serde(default)]
    pub pipeline_progress: Option<String>,
    /// The coordinator's raw text instead of an operation.
    #[serde(default)]
    pub wake: Option<String>,
    /// Shown in reports (init).
    #[serde(default)]
    pub team_name: Option<String>,
    /// What the pipeline is for (init).
    #[serde(default)]
    pub requirement: Option<String>,
    /// File below the project with checkpoint definitions (init); default: built in.
    #[serde(default)]
    pub role_spec: Option<String>,
    /// Rebuild after a crash (init).
    #[serde(default)]
    pub recovery: bool,
    /// Who overrides a verdict.
    #[serde(default)]
    pub by: Option<String>,
    /// Why it is overridden.
    #[serde(default)]
    pub reason: Option<String>,
    /// Given back (shutdown).
    #[serde(default)]
    pub request_id: Option<String>,
    /// Directory of the run, below the project.
    #[serde(default)]
    pub run_dir: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SuperviseOperation {
    Init,
    Checkpoint,
    Status,
    Override,
    Shutdown,
}

#[tool_router(router = supervise_tool, vis = "pub(crate)")]
impl Server {
    /// Check at the seams of an agent pipeline whether what was produced so far hangs together: init once, then one
    /// checkpoint at a time, each with a verdict (pass, warn, block), a report and evidence.
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
