//! The settings as the rest of the program sees them: complete, checked, in types that cannot be wrong.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A model's name as written in chains, exact to the letter: `ollama/qwen3-coder:30b`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelName(pub String);

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a model runs, from cheapest to strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TierKind {
    Local,
    Subagent,
    Managed,
}

/// How a backend is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendKind {
    Openai,
    ClaudeCli,
    Replay,
}

/// One way to reach models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    pub name: String,
    pub kind: BackendKind,
    pub tier: TierKind,
    /// `openai`: where `/v1/chat/completions` lives. Without a trailing slash.
    pub base_url: Option<String>,
    /// Name of the variable that holds the key; the key itself is never part of the routing.
    pub api_key_env: Option<String>,
    /// `claude-cli`: the program, a bare name or absolute; `replay`: the absolute path of the recorded answers.
    pub program: Option<String>,
    /// `claude-cli`: never `bypassPermissions` unless the user wrote it.
    pub permission_mode: Option<String>,
    /// `claude-cli`: turns after which a run is given up; never 0, which would mean no limit there.
    pub max_turns: Option<u32>,
    /// Variables handed on to the agent by name.
    pub env_pass: Vec<String>,
    /// Model names served here; `*` at the end matches the rest.
    pub models: Vec<String>,
    /// Other backends that run dry together with this one.
    pub shares_quota_with: Vec<String>,
    /// The absolute path of a file that every answer is appended to, for a `replay` backend.
    pub record: Option<String>,
}

/// What is known about one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The name sent to the server.
    pub id: String,
    /// Tokens it can take in, reckoned at 3 bytes a token.
    pub context: u32,
    /// USD for a million tokens.
    pub price_in: Option<f64>,
    pub price_out: Option<f64>,
    pub limit: Option<Duration>,
    pub edit_format: Option<String>,
    /// The backend that serves it, where patterns should not decide.
    pub backend: Option<String>,
}

/// The house's reckoning: bytes of one token.
pub const TOKEN_BYTES: usize = 3;

impl Model {
    /// Bytes it can take in.
    pub fn window(&self) -> usize {
        (self.context as usize).saturating_mul(TOKEN_BYTES)
    }
}

/// One step of a chain: a model and the backend that serves it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tier {
    pub name: ModelName,
    pub backend: Backend,
    pub model: Model,
    /// How long one ask may take.
    pub limit: Duration,
}

/// Tiers from cheapest to strongest. Never empty, so "no model configured" ends at load time.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    pub first: Tier,
    pub rest: Vec<Tier>,
}

impl Chain {
    pub fn tiers(&self) -> impl Iterator<Item = &Tier> {
        std::iter::once(&self.first).chain(&self.rest)
    }
}

/// Time limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    pub local: Duration,
    pub agent: Duration,
    pub tests: Duration,
    pub verifier: Duration,
    pub lock_wait: Duration,
    /// For one endpoint to answer at all, when `tier` or `doctor` knocks.
    pub probe: Duration,
}

/// How to ask which models are loaded now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warm {
    pub kind: WarmKind,
    pub url: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmKind {
    LlamaSwap,
    Ollama,
}

/// What may be protected, and what is left out by name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceSettings {
    pub max_files: u64,
    pub max_file_bytes: u64,
    pub max_total_bytes: u64,
    pub max_ignored_file_bytes: u64,
    pub exclude: Vec<String>,
}

/// One skill's own settings; what is `None` comes from its family, then from the general settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Skill {
    pub chain: Option<Vec<ModelName>>,
    pub verifier: Option<Judge>,
    pub max_attempts: Option<u32>,
    pub attempts_per_tier: Option<u32>,
    /// How long one ask may take, whichever the tier.
    pub limit: Option<Duration>,
    /// How long one test run may take.
    pub tests: Option<Duration>,
    pub budget_usd: Option<f64>,
}

/// Who gives the opinion after the gates have passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judge {
    /// Written `"none"`: gates alone decide.
    Nobody,
    Model(ModelName),
}

/// What may be spent; `None` is no cap.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    pub usd: Option<f64>,
    pub tokens: Option<u64>,
    pub time: Option<Duration>,
}

/// What one call and one session may spend.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budgets {
    pub call: Budget,
    pub session: Budget,
}

/// When an endpoint or a model that keeps failing is left alone, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// Malformed answers in a row before a model is left alone.
    pub failures: u32,
    /// The first pause; it grows by as much with each further failure.
    pub cooldown: Duration,
    pub max_cooldown: Duration,
}

/// What one call asked for itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallOverrides {
    /// Collapses the chain to this one model: no escalation, no verifier.
    pub model: Option<String>,
    /// How long one ask may take, in place of every configured limit for asks.
    pub timeout: Option<Duration>,
    pub max_attempts: Option<u32>,
    pub budget_usd: Option<f64>,
}

/// The chain and the limits of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    pub skill: String,
    pub chain: Chain,
    /// The caller named the model.
    pub pinned: bool,
    /// `None`: gates alone decide.
    pub verifier: Option<Tier>,
    pub max_attempts: u32,
    pub attempts_per_tier: u32,
    pub limits: Limits,
    pub budget_usd: Option<f64>,
    /// Everything this call may spend; `usd` is the same figure as `budget_usd`.
    pub budget: Budget,
}

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Routing {
    pub verifier: Option<ModelName>,
    pub default_chain: Vec<ModelName>,
    pub max_attempts: u32,
    pub attempts_per_tier: u32,
    pub max_workers: u32,
    pub env_pass: Vec<String>,
    pub limits: Limits,
    pub backends: BTreeMap<String, Backend>,
    pub models: BTreeMap<ModelName, Model>,
    pub warm: Option<Warm>,
    pub workspace: WorkspaceSettings,
    pub skills: BTreeMap<String, Skill>,
    pub budgets: Budgets,
    pub breaker: Breaker,
    /// Tokens a model is believed to take in when nothing says otherwise.
    pub default_context: u32,
    /// The folder with the user's own prompts: the configured one, else the one in the config directory if it is there.
    pub prompts_dir: Option<PathBuf>,
}
