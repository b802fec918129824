//! `supervise`: a resident observer that checks the work of a pipeline at checkpoints. Code decides
//! whether the artifacts so far are consistent. It writes only its own reports, the team's wisdom
//! file and the message bus.

mod commands;
mod external_checks;
mod question;
mod run;

use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Call, Parameters};
use crate::{Reply, Tools};

pub use commands::CommandTrust;
pub use external_checks::{ExternalCheckRunner, QuestionPolicy};

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuperviseParams {
    /// What to do; leave it out with `wake`.
    #[serde(default)]
    pub operation: Option<SuperviseOperation>,
    /// Absolute path
    pub project_root: String,
    /// Run or team session
    pub session_id: String,
    // The tool description says which operation takes which argument.
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
    /// File with checkpoint definitions (init); default: built in.
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
    // As the prompt of the first version has it.
    /// Always `supervisor`; starts the observer if no operation is given.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub role: Option<String>,
    /// Folder of the team session, as `run_dir`.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub session: Option<String>,
    /// Directory of the run, below the project.
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

#[tool_router(router = supervise_tool, vis = "pub")]
impl Tools {
    /// Check a pipeline's work so far. init: requirement, team_name, role_spec (definitions), recovery, run_dir.
    /// checkpoint: task_id (CHECKPOINT-NNN), scope (tasks), pipeline_progress; says pass, warn or block. override: task_id,
    /// by, reason. shutdown: request_id. wake: raw text instead.
    #[tool(annotations(
        title = "Supervise a pipeline",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    async fn supervise(
        &self,
        Parameters(params): Parameters<SuperviseParams>,
        call: Call,
    ) -> Reply {
        Reply(run::answer(self.app(), params, &call).await)
    }
}
