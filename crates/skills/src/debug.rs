//! `debug`: explain an error, with causes that the server can look into. It reproduces the error when told how, checks
//! every claim it can check, runs the tests that an explanation names, and leaves the project as it was.

mod answer;
mod brief;
mod call;
mod files;
mod job;
mod params;
mod visits;

use rmcp::{tool, tool_router};

pub use params::DebugParams;

use crate::{Call, Parameters};
use crate::{Reply, Tools};
use supervisor_engine::CallResult;

#[tool_router(router = debug_tool, vis = "pub")]
impl Tools {
    /// Call before fixing an error or a failing test: 3-5 ranked causes, each with evidence and a test. Verified: repro_cmd
    /// showed the error and a test came out as predicted. Changes nothing.
    #[tool(annotations(
        title = "Explain an error",
        // It runs commands of the project, so it keeps others out, although all they write is taken back.
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = true
    ))]
    async fn debug(&self, Parameters(asked): Parameters<DebugParams>, call: Call) -> Reply {
        Reply(call::run(self.app(), asked, &call).await)
    }
}
