//! Inputs of a call: its arguments, the state it shares with a cycle, and its environment.

use std::sync::Arc;

use parking_lot::Mutex;

use serde_json::Value;

use crate::budget::Budget;
use crate::services::Services;
use supervisor_models::Env;
use supervisor_process::Launcher;
use supervisor_settings::LoadedRouting;
use supervisor_workspace::UndoRecord;
use supervisor_workspace::state::StateDir;

/// The arguments that every tool with a chain takes besides its own. Empty ones count as missing.
#[derive(Debug, Clone, Default)]
pub struct CallArguments {
    pub project_root: String,
    pub model: Option<String>,
    pub session_id: Option<String>,
    pub context: Option<String>,
    pub timeout_s: Option<u64>,
    pub max_attempts: Option<u32>,
    pub budget_usd: Option<f64>,
    /// Number of hidden tests to be written by another tier, for skills that support them.
    pub twins: Option<u32>,
    /// Answers that the first ask of a tier brings.
    pub samples: Option<u32>,
    /// Ask no tier outside this machine.
    pub stay_local: bool,
    pub dry_run: bool,
    /// In a dry run: return the first tier's complete prompt.
    pub show_prompt: bool,
    /// All arguments as received, for the log.
    pub input: Value,
}

/// One incoming call.
#[derive(Debug, Clone)]
pub struct CallRequest {
    pub(super) skill: String,
    pub(super) phase: String,
    pub(super) arguments: CallArguments,
    /// Required arguments that are empty.
    pub(super) missing: Vec<&'static str>,
    pub(super) cycle: CycleContext,
}

/// State that the calls of one cycle share. Empty for a call outside a cycle.
#[derive(Debug, Clone, Default)]
pub struct CycleContext {
    /// Written to the log entry of each call.
    pub id: String,
    /// Budget of the whole cycle.
    pub budget: Option<Budget>,
    /// Set by a call whose change is accepted, so that the cycle can undo it.
    pub undo: Option<Arc<Mutex<Option<UndoRecord>>>>,
}

impl CallRequest {
    /// `required` are the skill's own arguments that must not be empty.
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
            cycle: CycleContext::default(),
        }
    }

    /// Makes the call part of a cycle.
    #[must_use]
    pub fn in_cycle(self, cycle: CycleContext) -> Self {
        Self { cycle, ..self }
    }

    /// A call without a project: its arguments contain everything it works on.
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
            cycle: CycleContext::default(),
        }
    }

    /// Adds arguments of the skill that must not be empty.
    #[must_use]
    pub fn requiring(mut self, required: &[(&'static str, &str)]) -> Self {
        let empty = required.iter().filter(|(_, value)| value.trim().is_empty());
        self.missing.extend(empty.map(|(name, _)| *name));
        self
    }
}

/// Environment of a call: settings, services and process-wide resources.
#[derive(Debug, Clone)]
pub struct CallEnvironment {
    pub settings: LoadedRouting,
    pub services: Arc<Services>,
    pub state: StateDir,
    pub launcher: Launcher,
    pub env: Env,
}

/// Provides the environment. Called once per call, so that edited settings take effect without a
/// restart.
pub trait EnvironmentProvider {
    /// The error is a sentence for the caller.
    fn environment(&self) -> Result<CallEnvironment, String>;
}

/// Identifies a call in the log and the result.
#[derive(Debug, Clone)]
pub(crate) struct CallHeader {
    pub skill: String,
    pub phase: String,
    pub session_id: String,
    /// Unique id of the call; empty before it begins.
    pub call: String,
    /// Id of the `tdd` call that it is a phase of; empty if none.
    pub cycle_id: String,
    /// Absolute; empty if no project is involved.
    pub project_root: String,
    /// The arguments as received.
    pub input: Value,
}
