//! `spec`: turns requirements into a specification whose every criterion can be tested. Models
//! return data, `specification` checks it, and the server writes the document.

mod brief;
mod call;
mod details;
mod job;
mod params;
mod render;
mod specification;
mod target;

use rmcp::{tool, tool_router};

pub use params::SpecParams;

use crate::{Call, Parameters};
use crate::{Reply, Tools};

#[tool_router(router = spec_tool, vis = "pub")]
impl Tools {
    /// Call before something large: writes a spec from requirements. Checked: each criterion has a test, nothing is vague or left open, each
    /// requirement is mapped. Too vague: error with questions, nothing written.
    #[tool(annotations(
        title = "Write a spec",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = true
    ))]
    async fn spec(&self, Parameters(params): Parameters<SpecParams>, call: Call) -> Reply {
        Reply(call::run(self.app(), &params, &call).await)
    }
}
