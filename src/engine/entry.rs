//! What is kept of one call: one entry of the session log, with every attempt in it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Attempt, Status, TopTier};

/// The version written today. It moves when the meaning of a field does; new fields do not move it.
pub const VERSION: u32 = 1;

/// One call, as it is remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    #[serde(default)]
    pub v: u32,
    pub session_id: String,
    /// RFC 3339, UTC.
    pub timestamp: String,
    pub skill: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    pub final_status: Status,
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    #[serde(default)]
    pub duration_ms: u64,
    /// Absent in older entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_tier: Option<TopTier>,
}
