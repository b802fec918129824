//! `retrospective`: learnings from a session. The server gathers statistics and leaves out routine
//! calls, a model proposes learnings, and the server checks that calls support them and writes the
//! notes.

mod call;
mod job;
mod learning;
mod material;

use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Call, Parameters};
use crate::{Reply, Tools};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetrospectiveParams {
    /// The session to look back at
    pub session_id: String,
    /// Write the learnings as notes; without it they are only shown
    #[serde(default)]
    pub write: bool,
    /// Pins one model and skips the chain; leave it out
    pub model: Option<String>,
    /// Seconds for each model
    pub timeout_s: Option<u64>,
    /// Most to spend, in USD
    pub budget_usd: Option<f64>,
    /// Show the plan, ask no model
    #[serde(default)]
    pub dry_run: bool,
}

#[tool_router(router = retrospective_tool, vis = "pub")]
impl Tools {
    /// Look back at a session: statistics, and learnings that cite the calls which show them. With `write` they become
    /// notes for `brain_query`. Nothing to learn is a good answer.
    #[tool(annotations(
        title = "Look back at a session",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = true
    ))]
    async fn retrospective(
        &self,
        Parameters(params): Parameters<RetrospectiveParams>,
        call: Call,
    ) -> Reply {
        Reply(call::run(self.app(), &params, &call).await)
    }
}
