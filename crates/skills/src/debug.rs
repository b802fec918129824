//! `debug`: explains an error with causes that the server can test. It runs the reproduction
//! command if one is given, checks every claim it can check, runs the tests that a hypothesis
//! names, and restores the project afterwards.

mod brief;
mod call;
mod diagnosis;
mod files;
mod job;
mod params;
mod report;
mod visits;

use rmcp::{tool, tool_router};

pub use params::DebugParams;

use crate::{Call, Parameters};
use crate::{Reply, Tools};

#[tool_router(router = debug_tool, vis = "pub")]
impl Tools {
    /// Call before fixing an error or a failing test: 3-5 ranked causes, each with evidence and a test. Verified: repro_cmd
    /// showed the error and a test came out as predicted. Changes nothing.
    #[tool(annotations(
        title = "Explain an error",
        // It runs project commands and takes the exclusive lock, although all their writes are
        // reverted.
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = true
    ))]
    async fn debug(&self, Parameters(params): Parameters<DebugParams>, call: Call) -> Reply {
        Reply(call::run(self.app(), params, &call).await)
    }
}
