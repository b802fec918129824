//! What a call gets from the settings.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sections::{
    BackendKind, BackendSettings, BudgetSettings, EditFormat, Model, Recall, Repair, Samples,
    TimeLimits, Worker,
};

/// A model's exact name as used in chains: `ollama/qwen3-coder:30b`.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct ModelName(pub String);

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a tier cannot be asked now, and what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    pub why: String,
    pub hint: String,
}

/// One step of a chain: a model and the backend that serves it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tier {
    pub name: ModelName,
    pub backend: BackendSettings,
    /// The backend that serves it where the first is not set up.
    pub instead: Option<Box<BackendSettings>>,
    /// Why it is not asked now; set when a call begins.
    pub outage: Option<Outage>,
    pub model: Model,
    /// Time limit of one ask.
    pub limit: Duration,
    /// What decided the limit, for messages: a key as written in TOML, or an argument of the call.
    pub limit_by: String,
    /// Whether the caller gave less time than the settings do.
    pub is_shortened: bool,
    /// Maximum asks before the next tier is asked; at least one.
    pub attempts: u32,
    /// Answers that its first ask brings.
    pub samples: Samples,
    pub edit_format: EditFormat,
}

impl Tier {
    /// How its model works: as its own settings say, else its backend's. Only programs can be agents.
    pub fn worker(&self) -> Worker {
        match self.backend.kind {
            BackendKind::ClaudeCli => self
                .model
                .worker
                .or(self.backend.worker)
                .unwrap_or(Worker::Agent),
            BackendKind::Openai | BackendKind::Anthropic | BackendKind::Replay => Worker::Text,
        }
    }
}

/// Tiers from cheapest to strongest. Never empty: a missing model is reported when settings are
/// loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    pub first: Tier,
    pub rest: Vec<Tier>,
}

impl Chain {
    pub fn tiers(&self) -> impl Iterator<Item = &Tier> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    pub fn tiers_mut(&mut self) -> impl Iterator<Item = &mut Tier> {
        std::iter::once(&mut self.first).chain(&mut self.rest)
    }
}

/// Settings from the arguments of one call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallOverrides {
    /// Replaces the chain by this one model: no escalation, no verifier.
    pub model: Option<String>,
    /// Time limit of one ask; replaces every configured one.
    pub timeout: Option<Duration>,
    pub max_attempts: Option<u32>,
    pub budget_usd: Option<f64>,
    pub twins: Option<u32>,
    /// Answers that the first ask of a tier brings.
    pub samples: Option<u32>,
    /// The project of the call; settings of the user for it apply.
    pub project_root: Option<PathBuf>,
    /// Ask no tier outside this machine and `local_hosts`.
    pub stay_local: bool,
}

/// The chain and the limits of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    pub skill: String,
    pub chain: Chain,
    /// Whether the caller named the model.
    pub pinned: bool,
    /// `None` if only the checks decide.
    pub verifier: Option<Tier>,
    pub max_attempts: u32,
    pub limits: TimeLimits,
    pub budget_usd: Option<f64>,
    /// All spending limits of this call; `usd` equals `budget_usd`.
    pub budget: BudgetSettings,
    pub recall: Recall,
    /// Number of hidden tests that a tier other than the worker's writes; 0 for none.
    pub twins: u32,
    pub repair: Repair,
    /// Whether nothing may leave this machine and `local_hosts`.
    pub stay_local: bool,
}
