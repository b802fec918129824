//! What comes in with a call: its arguments, what it shares with a cycle, and what the process around it gives it.
//! Knows names and values. Does not know what is done with them.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::budget::Budget;
use crate::means::Means;
use supervisor_models::Env;
use supervisor_process::Launcher;
use supervisor_settings::LoadedRouting;
use supervisor_workspace::UndoRecord;
use supervisor_workspace::state::StateDir;

/// The arguments that every tool with a chain takes besides its own; empty ones are taken for left out.
#[derive(Debug, Clone, Default)]
pub struct CallArguments {
    pub project_root: String,
    pub model: Option<String>,
    pub session_id: Option<String>,
    pub context: Option<String>,
    pub timeout_s: Option<u64>,
    pub max_attempts: Option<u32>,
    pub budget_usd: Option<f64>,
    /// Tests that another tier than the worker's writes; only for a skill that can use them.
    pub twins: Option<u32>,
    pub dry_run: bool,
    /// In a dry run: the first tier's prompt, word for word.
    pub show_prompt: bool,
    /// All arguments as they came, for the log.
    pub input: Value,
}

/// One call as it comes in.
#[derive(Debug, Clone)]
pub struct CallRequest {
    pub(super) skill: String,
    pub(super) phase: String,
    pub(super) arguments: CallArguments,
    /// Required arguments that are empty.
    pub(super) missing: Vec<&'static str>,
    pub(super) cycle: CycleTies,
}

/// What a call shares with the others of one cycle. A call of its own has none of it.
#[derive(Debug, Clone, Default)]
pub struct CycleTies {
    /// Stands in the log entry of each call.
    pub id: String,
    /// The budget of the whole cycle.
    pub budget: Option<Budget>,
    /// Filled by a call whose change is accepted, so that the cycle can take it back.
    pub undo: Option<Arc<Mutex<Option<UndoRecord>>>>,
}

impl CallRequest {
    /// `required` are the skill's own arguments that may not be empty.
    pub fn new(
        skill: impl Into<String>,
        phase: impl Into<String>,
        arguments: CallArguments,
        required: &[(&'static str, &str)],
    ) -> Self {
        let root = ("project_root", arguments.project_root.as_str());
        let all = std::iter::once(&root).chain(required);
        let missing = all
            .filter(|(_, value)| value.trim().is_empty())
            .map(|(name, _)| *name)
            .collect();
        Self {
            skill: skill.into(),
            phase: phase.into(),
            arguments,
            missing,
            cycle: CycleTies::default(),
        }
    }

    /// The same call as a part of a cycle.
    #[must_use]
    pub fn in_cycle(self, cycle: CycleTies) -> Self {
        Self { cycle, ..self }
    }

    /// A call about no project: what it works on is in its arguments.
    pub fn without_project(
        skill: impl Into<String>,
        phase: impl Into<String>,
        arguments: CallArguments,
    ) -> Self {
        Self {
            skill: skill.into(),
            phase: phase.into(),
            arguments,
            missing: Vec::new(),
            cycle: CycleTies::default(),
        }
    }

    /// The skill's own arguments that may not be empty.
    #[must_use]
    pub fn requiring(mut self, required: &[(&'static str, &str)]) -> Self {
        let empty = required.iter().filter(|(_, value)| value.trim().is_empty());
        self.missing.extend(empty.map(|(name, _)| *name));
        self
    }
}

/// What the process around a call gives it.
#[derive(Debug, Clone)]
pub struct Surroundings {
    pub settings: LoadedRouting,
    pub means: Arc<Means>,
    pub state: StateDir,
    pub launcher: Launcher,
    pub env: Env,
}

/// The process around a call. Read anew for each, so that edited settings need no restart.
pub trait CallHost {
    /// The error is a sentence for the caller.
    fn surroundings(&self) -> Result<Surroundings, String>;
}

/// What a call is, for the log and the result.
#[derive(Debug, Clone)]
pub struct CallHeader {
    pub skill: String,
    pub phase: String,
    pub session_id: String,
    /// Tells this call from all others; empty before it begins.
    pub call: String,
    /// Absolute; empty where no project is involved.
    pub project_root: String,
    /// The arguments as they came.
    pub input: Value,
}
