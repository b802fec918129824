//! `review`: findings about files or a range of commits. Models find defects; the server compares
//! every citation with the text and scans for some defects itself.

mod brief;
mod call;
mod files;
mod job;
mod judgement;
mod material;
mod params;
mod range;
mod report;
mod scan;

use rmcp::{tool, tool_router};

pub use params::ReviewParams;

use crate::{Call, Parameters};
use crate::{Reply, Tools};

#[tool_router(router = review_tool, vis = "pub")]
impl Tools {
    /// Call before a commit or merge: reviews files or commits. Each finding's line and quote is compared with the text; secrets and skipped tests
    /// are found anyway. fail: at least one critical finding.
    #[tool(annotations(
        title = "Review code",
        read_only_hint = true,
        destructive_hint = false,
        idempotent_hint = true,
        open_world_hint = true
    ))]
    async fn review(&self, Parameters(params): Parameters<ReviewParams>, call: Call) -> Reply {
        Reply(call::run(self.app(), &params, &call).await)
    }
}
