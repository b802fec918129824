//! What is kept of one call: one entry of the session log, with every attempt in it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::policy::{PolicyDecision, TaskClass};
use super::{Attempt, Cause, Status, TopTier};

/// The version written today. It moves when the meaning of a field does; new fields do not move it.
pub const VERSION: u32 = 1;

/// One call, as it is remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    #[serde(default)]
    pub v: u32,
    pub session_id: String,
    /// The same for all phases of one `tdd` call; empty for a call of its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cycle_id: String,
    /// Tells this call from all others; absent in older entries and in those of callers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// RFC 3339, UTC.
    pub timestamp: String,
    pub skill: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    pub final_status: Status,
    /// Only where no attempt tells it: `crashed`, if the server died in the middle of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub project_root: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file_path: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model_used: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The arguments of the call.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// Always there, also when none was made, so that a reader need not ask.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
    #[serde(default)]
    pub duration_ms: u64,
    /// Absent in older entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_tier: Option<TopTier>,
    /// What kind of task it was; absent in older entries, and where no tier was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<TaskClass>,
    /// Which way through the chain was chosen, and why; absent where the settings say `static`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyDecision>,
    /// Which walls stood around the programs of this call; absent where none was run, and in older entries.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
}
