//! The settings as the rest of the program sees them: complete, checked, in types that cannot be wrong.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::Origin;
use super::layers::Layers;
use supervisor_process::{NetworkRule, SandboxMode, SandboxRules, expand_home};

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
pub struct BackendSettings {
    pub name: String,
    pub kind: BackendKind,
    pub tier: TierKind,
    /// `openai`: where `/v1/chat/completions` lives; `claude-cli`: where its API does. Without a trailing slash.
    pub base_url: Option<String>,
    /// Name of the variable that holds the key; the key itself is never part of the routing.
    pub api_key_env: Option<String>,
    /// `claude-cli`: the program, a bare name or absolute.
    pub program: Option<String>,
    /// `replay`: the absolute path of the recorded answers.
    pub file: Option<String>,
    /// `claude-cli`: never `bypassPermissions` unless the user wrote it.
    pub permission_mode: Option<String>,
    /// `claude-cli`: turns after which a run is given up; never 0, which would mean no limit there.
    pub max_turns: Option<u32>,
    /// Variables handed on to the agent by name.
    pub env_pass: Vec<String>,
    /// `claude-cli`: walls of its own kind; what [sandbox] says otherwise.
    pub sandbox: Option<SandboxMode>,
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
    /// Tokens after which an answer is cut off. `None`: what the server does by itself.
    pub max_tokens: Option<u32>,
    /// Asks of this model before the next tier has its turn.
    pub attempts: Option<u32>,
    pub edit_format: Option<EditFormat>,
    /// Of the first ask; later ones are warmer. `None`: what the server does by itself.
    pub temperature: Option<f64>,
    pub seed: Option<u64>,
    /// The backend that serves it, where patterns should not decide.
    pub backend: Option<String>,
}

/// How a model is asked for edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EditFormat {
    /// Whole files while they are short, search and replace beyond.
    #[default]
    Auto,
    Whole,
    SearchReplace,
    Json,
}

/// The house's reckoning: bytes of one token.
pub const TOKEN_BYTES: usize = 3;

impl BackendSettings {
    /// A backend of which nothing is known but its name, kind and rank.
    pub fn named(name: impl Into<String>, kind: BackendKind, tier: TierKind) -> Self {
        Self {
            name: name.into(),
            kind,
            tier,
            base_url: None,
            api_key_env: None,
            program: None,
            file: None,
            permission_mode: None,
            max_turns: None,
            env_pass: Vec::new(),
            sandbox: None,
            models: Vec::new(),
            shares_quota_with: Vec::new(),
            record: None,
        }
    }
}

impl Model {
    /// A model of which nothing is known but its name at the server and its window.
    pub fn named(id: impl Into<String>, context: u32) -> Self {
        Self {
            id: id.into(),
            context,
            price_in: None,
            price_out: None,
            limit: None,
            max_tokens: None,
            attempts: None,
            edit_format: None,
            temperature: None,
            seed: None,
            backend: None,
        }
    }

    /// Bytes it can take in.
    pub fn window(&self) -> usize {
        (self.context as usize).saturating_mul(TOKEN_BYTES)
    }
}

/// One step of a chain: a model and the backend that serves it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tier {
    pub name: ModelName,
    pub backend: BackendSettings,
    pub model: Model,
    /// How long one ask may take.
    pub limit: Duration,
    /// What decided that: a key as written in TOML, or an argument of the call. Messages name it.
    pub limit_by: String,
    /// Asks before the next tier has its turn, at least one.
    pub attempts: u32,
    pub edit_format: EditFormat,
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
pub struct TimeLimits {
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
    pub strategy: ViewStrategy,
}

/// How much is asked before a run is believed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifySettings {
    /// Runs of a red before a model is asked, and of a green before it is accepted.
    pub repeat: u32,
    /// Whether the targets of a green run once more in the build that users get.
    pub other_build: bool,
}

/// Where work happens before it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViewStrategy {
    /// In a private view where one can be had, else in place.
    Auto,
    /// In a private view or not at all.
    Overlay,
    InPlace,
}

/// The walls around children, as they are written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxSettings {
    pub mode: SandboxMode,
    pub write: Vec<String>,
    pub hide: Vec<String>,
    pub network: NetworkRule,
    pub caches: Vec<String>,
}

impl SandboxSettings {
    /// With whole paths. Our own state is not for others to see, and holds the caches that test commands get.
    pub fn rules(&self, home: Option<&Path>, state: Option<&Path>) -> SandboxRules {
        let whole = |written: &[String]| {
            written
                .iter()
                .filter_map(|path| expand_home(path, home))
                .collect()
        };
        let mut hide: Vec<PathBuf> = whole(&self.hide);
        hide.extend(state.map(Path::to_owned));
        SandboxRules {
            mode: self.mode,
            write: whole(&self.write),
            hide,
            network: self.network,
            caches: whole(&self.caches),
            private_caches: state.map(|state| state.join("caches")),
            home: home.map(Path::to_owned),
        }
    }
}

/// What holds for all tiers of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindSettings {
    pub attempts_per_tier: u32,
    pub edit_format: EditFormat,
}

/// What holds for each kind of tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierSettings {
    pub local: KindSettings,
    pub subagent: KindSettings,
    pub managed: KindSettings,
}

impl TierSettings {
    pub fn of(&self, kind: TierKind) -> KindSettings {
        match kind {
            TierKind::Local => self.local,
            TierKind::Subagent => self.subagent,
            TierKind::Managed => self.managed,
        }
    }
}

impl TierKind {
    /// As it is written in settings and logs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Subagent => "subagent",
            Self::Managed => "managed",
        }
    }
}

/// One skill's own settings; what is `None` comes from its family, then from the general settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SkillSettings {
    pub chain: Option<Vec<ModelName>>,
    pub verifier: Option<Judge>,
    pub max_attempts: Option<u32>,
    pub attempts_per_tier: Option<u32>,
    pub edit_format: Option<EditFormat>,
    /// How long one ask may take, whichever the tier.
    pub limit: Option<Duration>,
    /// How long one test run may take.
    pub tests: Option<Duration>,
    pub budget_usd: Option<f64>,
    pub recall: Option<Recall>,
    /// Further tests by another tier than the worker's.
    pub twins: Option<u32>,
}

/// What a brief carries of earlier work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recall {
    #[default]
    Off,
    /// The best notes about the task.
    Notes,
    /// These, and what this session has tried already.
    NotesAndSession,
}

/// What is kept beside the session log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    pub exchange: ExchangeMode,
    pub exchange_days: u32,
    pub exchange_mb: u64,
}

/// How much the state directory may hold of projects, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateSettings {
    pub days: u32,
    pub mb: u64,
}

/// How much of what was asked and answered is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExchangeMode {
    Off,
    /// What came back.
    Answers,
    /// What was asked, too.
    Full,
}

/// Who gives the opinion after the gates have passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judge {
    /// Written `"none"`.
    GatesAlone,
    Model(ModelName),
}

/// What may be spent; `None` is no cap.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BudgetSettings {
    pub usd: Option<f64>,
    pub tokens: Option<u64>,
    pub time: Option<Duration>,
}

/// What one call and one session may spend.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budgets {
    pub call: BudgetSettings,
    pub session: BudgetSettings,
}

/// Which way a call takes through its chain.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    pub mode: PolicyMode,
    /// What a minute of waiting is worth.
    pub minute_usd: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyMode {
    /// The chain as it is written.
    Static,
    /// The way that has been cheapest to acceptance so far.
    Learned,
}

/// When an endpoint or a model that keeps failing is left alone, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
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
    pub twins: Option<u32>,
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
    pub limits: TimeLimits,
    pub budget_usd: Option<f64>,
    /// Everything this call may spend; `usd` is the same figure as `budget_usd`.
    pub budget: BudgetSettings,
    pub recall: Recall,
    /// Tests that another tier than the worker's writes for work that holds; 0: none.
    pub twins: u32,
}

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Routing {
    pub verifier: Option<ModelName>,
    pub default_chain: Vec<ModelName>,
    pub max_attempts: u32,
    /// For every kind of tier, in place of what [`Self::tiers`] has.
    pub attempts_per_tier: Option<u32>,
    pub tiers: TierSettings,
    pub max_workers: u32,
    pub env_pass: Vec<String>,
    pub limits: TimeLimits,
    pub backends: BTreeMap<String, BackendSettings>,
    pub models: BTreeMap<ModelName, Model>,
    pub warm: Option<Warm>,
    pub workspace: WorkspaceSettings,
    pub verify: VerifySettings,
    pub sandbox: SandboxSettings,
    pub skills: BTreeMap<String, SkillSettings>,
    pub budgets: Budgets,
    pub policy: PolicySettings,
    pub breaker: BreakerSettings,
    /// Tokens a model is believed to take in when nothing says otherwise.
    pub default_context: u32,
    /// The folder with the user's own prompts: the configured one, else the one in the config directory if it is there.
    pub prompts_dir: Option<PathBuf>,
    /// Where notes are kept; `None`: `supervisor/brain` in the platform's data directory.
    pub brain_dir: Option<PathBuf>,
    /// A team's own service for notes, in place of the folder.
    pub ingest_url: Option<String>,
    pub log: LogSettings,
    pub state: StateSettings,
    /// Where each key and table came from, by key as written in TOML.
    pub origins: BTreeMap<String, Origin>,
    /// What it was made from: a call puts its own layer on top.
    pub layers: Layers,
}
