//! One entry of the session log: one call with all its attempts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::policy::{PolicyDecision, TaskClass};
use super::{Attempt, Cause, Status, TopTier, Verdict};

/// Current version. It changes when the meaning of a field changes, not when fields are added.
pub const VERSION: u32 = 2;

/// One logged call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    #[serde(default)]
    pub v: u32,
    pub session_id: String,
    /// Shared by all phases of one `tdd` call; empty for other calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cycle_id: String,
    /// Unique id of the call; absent in older entries and in entries written by callers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// RFC 3339, UTC.
    pub timestamp: String,
    /// The skill that the tool belongs to: `tdd` for `tdd_red`.
    pub skill: String,
    /// The tool that was called; in version 1 it was in `skill`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    pub final_status: Status,
    /// Set only if no attempt has the cause: `crashed`, if the server died during the call.
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
    /// Always written, even if empty, to keep readers simple.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
    #[serde(default)]
    pub duration_ms: u64,
    /// How long the caller waited, if the call went on in the background after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreground_ms: Option<u64>,
    /// Absent in older entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_tier: Option<TopTier>,
    /// Kind of task; absent in older entries and if no tier was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<TaskClass>,
    /// The chosen order of the chain and why; absent if the policy is `static`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyDecision>,
    /// How the programs of this call were sandboxed; absent if none was run, and in older entries.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
}

/// The skill that a tool belongs to.
pub fn skill_of(tool: &str) -> &str {
    let is_in = |skill: &&&str| {
        tool.strip_prefix(**skill)
            .is_some_and(|rest| rest.starts_with('_'))
    };
    ["tdd", "brain"].iter().find(is_in).unwrap_or(&tool)
}

impl Entry {
    /// Completes an entry that an earlier version, or a caller, has written.
    pub(super) fn upgrade(&mut self) {
        if self.tool.is_empty() {
            self.tool = std::mem::take(&mut self.skill);
            skill_of(&self.tool).clone_into(&mut self.skill);
        }
        for attempt in &mut self.attempts {
            if self.v < 2 {
                attempt.gates_passed |= attempt.verified;
                attempt.verified &= attempt.verdict == Some(Verdict::Accept);
            }
            // Before there were causes, an answer was only escalated if it had been refused.
            if attempt.cause.is_none() && attempt.verdict == Some(Verdict::Escalate) {
                attempt.cause = Some(Cause::Rejected);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_belong_to_skills() {
        for (tool, skill) in [
            ("tdd_red", "tdd"),
            ("tdd", "tdd"),
            ("brain_write", "brain"),
            ("session_log", "session_log"),
            ("tddish", "tddish"),
        ] {
            assert_eq!(skill_of(tool), skill);
        }
    }
}
