//! The result type that every call returns. The meaning of its eight top-level fields is fixed;
//! [`More`] is open for additions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Attempt;
use super::attempt::serialize_nano_usd;
use super::entry::skill_of;
use super::top_tier::TopTier;

/// The message of a cancelled call.
pub const CANCELLED: &str = "Cancelled. Your files are as they were.";

/// The phases of each tool. A call that ended before its tool began has the phase `call`.
const PHASES: &[(&str, &[&str])] = &[
    ("tdd", &["red", "green", "refactor"]),
    ("tdd_red", &["red"]),
    ("tdd_green", &["green"]),
    ("tdd_refactor", &["refactor"]),
    ("review", &["review"]),
    ("debug", &["debug"]),
    ("spec", &["spec"]),
    ("prove", &["prove"]),
    ("retrospective", &["retrospective"]),
    ("trainer", &["trainer-read", "trainer-write"]),
    ("brain_query", &["memory"]),
    ("brain_write", &["memory"]),
    ("session_log", &["log"]),
    ("tier", &["look"]),
    ("team_msg", &["bus"]),
    ("supervise", &["checkpoint", "question"]),
];

/// Every value that `phase` may have in a result of this tool; empty for an unknown tool.
pub fn phases_of(tool: &str) -> Vec<&'static str> {
    let known = PHASES.iter().find(|(name, _)| *name == tool);
    known.map_or_else(Vec::new, |(_, phases)| [phases, &["call"][..]].concat())
}

/// What came of a call. Every field is written by the server from what it saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallResult {
    /// `pass`: the goal is reached; `fail`: rejected by a check; `error`: there is no result.
    pub status: Status,
    /// One sentence for the reader.
    pub message: String,
    /// The phase of the skill that this result speaks of.
    pub phase: String,
    /// The skill that was called.
    pub skill: String,
    /// Absolute path of the file that was made or changed; empty if none.
    pub file_path: String,
    /// What the project's own test runner printed, head and tail.
    pub runner_output: String,
    /// True only if the server's own checks held.
    pub verified: bool,
    /// The model whose work this is; empty if none was asked.
    pub model_used: String,
    /// What goes beyond the eight fields. Empty parts are left out.
    #[serde(flatten)]
    #[schemars(skip)]
    pub more: More,
}

impl CallResult {
    /// A result without work of a model.
    pub fn new(
        tool: impl Into<String>,
        phase: impl Into<String>,
        status: Status,
        message: impl Into<String>,
        details: Value,
    ) -> Self {
        let tool = tool.into();
        Self {
            status,
            message: message.into(),
            phase: phase.into(),
            skill: skill_of(&tool).to_owned(),
            file_path: String::new(),
            runner_output: String::new(),
            verified: false,
            model_used: String::new(),
            more: More {
                tool,
                details,
                ..More::default()
            },
        }
    }
}

/// The open part of a result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct More {
    /// The tool that was called: `tdd_red` where `skill` is `tdd`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session_id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_changed: Vec<String>,
    /// Unified diff, truncated to a maximum length.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// File with the diff, if it is too long for a reply.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff_path: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// Sum over all attempts whose cost is known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_nano_usd"
    )]
    pub cost_usd: Option<f64>,
    /// What the last tier of the chain alone would have cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_tier: Option<TopTier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// That such calls are not expected to pay here, with figures.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub advice: String,
    /// How the programs of this call were sandboxed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
    /// Files that another process changed during the call. They were left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanwhile: Vec<String>,
    /// Files that another process changed on top of a refused attempt. The changes were undone with
    /// the attempt; copies are in `kept_in`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<String>,
    /// Folders with the files of refused attempts, kept for a week.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_in: Vec<String>,
    /// Files restored without some metadata: owner, extended attributes or hard links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_given_back: Vec<String>,
    /// Specific to each tool.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
    /// The call that usually follows, with its arguments.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub next: Value,
    /// File with the complete result, if the reply is shortened.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub full_result: String,
}

/// One check that the server made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    pub id: String,
    pub pass: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Pass,
    Fail,
    Error,
}
