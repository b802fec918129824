//! `trainer`: builds training data from checked work. Pairs and examples come from the log and its
//! exchanges. One model call scores them, another labels them; the server decides what may be
//! written and writes it.

mod candidates;
mod files;
mod reader;
mod run;
mod training;
mod writer;

use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Call, Parameters};
use crate::{Reply, Tools};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainerParams {
    /// One session; or instead of it:
    pub session_id: Option<String>,
    /// All calls since then: 2026-01-31, a time, or 7d
    pub since: Option<String>,
    /// Until then
    pub until: Option<String>,
    /// Default 3
    #[schemars(range(min = 1, max = 5))]
    pub min_score: Option<u8>,
    /// Pins one model and skips the chain; leave it out
    pub model: Option<String>,
    /// Seconds for each model
    pub timeout_s: Option<u64>,
    /// Most to spend, in USD
    pub budget_usd: Option<f64>,
    /// Show the candidates, ask no model
    #[serde(default)]
    pub dry_run: bool,
}

#[tool_router(router = trainer_tool, vis = "pub")]
impl Tools {
    /// Make training data of checked work: DPO pairs (refused, then accepted) and SFT examples, scored by a model, free
    /// of private names, appended as JSONL. Needs `exchange = "full"` under [log].
    #[tool(annotations(
        title = "Make training data",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = true,
        open_world_hint = true
    ))]
    async fn trainer(&self, Parameters(params): Parameters<TrainerParams>, call: Call) -> Reply {
        Reply(run::run(self.app(), &params, &call).await)
    }
}
