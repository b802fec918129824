//! The settings as the rest of the program sees them: complete and checked.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::Origin;
use super::layers::Layers;
use supervisor_process::{NetworkRule, SandboxMode, SandboxRules, expand_home};

/// A model's exact name as used in chains: `ollama/qwen3-coder:30b`.
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

/// The protocol of a backend.
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
    /// `openai`: base URL of `/v1/chat/completions`; `claude-cli`: base URL of its API. Without a
    /// trailing slash.
    pub base_url: Option<String>,
    /// Name of the variable that contains the key. The key itself is never part of the settings.
    pub api_key_env: Option<String>,
    /// `claude-cli`: the program, a bare name or an absolute path.
    pub program: Option<String>,
    /// `replay`: absolute path of the recorded answers.
    pub file: Option<String>,
    /// `claude-cli`: never `bypassPermissions` unless the user configured it.
    pub permission_mode: Option<String>,
    /// `claude-cli`: maximum number of turns; never 0, which the CLI would treat as unlimited.
    pub max_turns: Option<u32>,
    /// Variables passed on to the agent, by name.
    pub env_pass: Vec<String>,
    /// `claude-cli`: sandbox mode of its own; `None` uses [sandbox].
    pub sandbox: Option<SandboxMode>,
    /// Model names served here; a trailing `*` matches the rest.
    pub models: Vec<String>,
    /// Other backends that share this one's quota.
    pub shares_quota_with: Vec<String>,
    /// Absolute path of a file to which every answer is appended, for a `replay` backend.
    pub record: Option<String>,
}

/// Settings of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The name sent to the server.
    pub id: String,
    /// Context window in tokens, at an estimated 3 bytes per token.
    pub context: u32,
    /// USD per million tokens.
    pub price_in: Option<f64>,
    pub price_out: Option<f64>,
    pub limit: Option<Duration>,
    /// Maximum tokens of an answer; `None` uses the server's default.
    pub max_tokens: Option<u32>,
    /// Maximum asks of this model before the next tier is asked.
    pub attempts: Option<u32>,
    pub edit_format: Option<EditFormat>,
    /// Temperature of the first ask; later ones use a higher one. `None` uses the server's default.
    pub temperature: Option<f64>,
    pub seed: Option<u64>,
    /// The backend that serves it, if patterns should not decide.
    pub backend: Option<String>,
}

/// How a model is asked for edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EditFormat {
    /// Whole files while they are short, otherwise search and replace.
    #[default]
    Auto,
    Whole,
    SearchReplace,
    Json,
}

/// Estimated bytes per token.
pub const TOKEN_BYTES: usize = 3;

impl BackendSettings {
    /// A backend with only a name, a kind and a tier.
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
    /// A model with only an id and a context window.
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

    /// Size of the context window in bytes.
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
    /// Time limit of one ask.
    pub limit: Duration,
    /// What decided the limit, for messages: a key as written in TOML, or an argument of the call.
    pub limit_by: String,
    /// Maximum asks before the next tier is asked; at least one.
    pub attempts: u32,
    pub edit_format: EditFormat,
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
}

/// Time limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeLimits {
    pub local: Duration,
    pub agent: Duration,
    pub tests: Duration,
    pub verifier: Duration,
    pub lock_wait: Duration,
    /// Time limit for an endpoint to respond when `tier` or `doctor` probes it.
    pub probe: Duration,
}

/// How to find out which models are currently loaded.
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

/// Limits of the snapshot, and paths excluded from it.
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

/// How thoroughly results are verified.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifySettings {
    /// Number of runs of a red before a model is asked, and of a green before it is accepted.
    pub repeat: u32,
    /// Whether the target tests of a green also run in the production build.
    pub other_build: bool,
}

/// Where work happens before it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViewStrategy {
    /// In an overlay if possible, otherwise in place.
    Auto,
    /// Only in an overlay.
    Overlay,
    InPlace,
}

/// Sandbox settings of child processes, as written.
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
    /// The rules with absolute paths. Our own state is hidden; it contains the caches that test
    /// commands get.
    pub fn rules(&self, home: Option<&Path>, state: Option<&Path>) -> SandboxRules {
        let expand = |paths: &[String]| {
            paths
                .iter()
                .filter_map(|path| expand_home(path, home))
                .collect()
        };
        let mut hide: Vec<PathBuf> = expand(&self.hide);
        hide.extend(state.map(Path::to_owned));
        SandboxRules {
            mode: self.mode,
            write: expand(&self.write),
            hide,
            network: self.network,
            caches: expand(&self.caches),
            private_caches: state.map(|state| state.join("caches")),
            home: home.map(Path::to_owned),
        }
    }
}

/// Settings for all tiers of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindSettings {
    pub attempts_per_tier: u32,
    pub edit_format: EditFormat,
}

/// Settings for each kind of tier.
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
    /// Name in settings and logs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Subagent => "subagent",
            Self::Managed => "managed",
        }
    }
}

/// Settings of one skill. `None` falls back to its family, then to the general settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SkillSettings {
    pub chain: Option<Vec<ModelName>>,
    pub verifier: Option<VerifierChoice>,
    pub max_attempts: Option<u32>,
    pub attempts_per_tier: Option<u32>,
    pub edit_format: Option<EditFormat>,
    /// Time limit of one ask, for every tier.
    pub limit: Option<Duration>,
    /// Time limit of one test run.
    pub tests: Option<Duration>,
    pub budget_usd: Option<f64>,
    pub recall: Option<Recall>,
    /// Number of hidden tests, written by a tier other than the worker's.
    pub twins: Option<u32>,
}

/// Which notes from earlier work a prompt contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recall {
    #[default]
    Off,
    /// The best notes about the task.
    Notes,
    /// The notes, and what this session has already tried.
    NotesAndSession,
}

/// What is stored beside the session log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    pub exchange: ExchangeMode,
    pub exchange_days: u32,
    pub exchange_mb: u64,
}

/// Limits of the project data in the state directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateSettings {
    pub days: u32,
    pub mb: u64,
}

/// Which prompts and answers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExchangeMode {
    Off,
    /// Only answers.
    Answers,
    /// Prompts and answers.
    Full,
}

/// Who judges the work after its checks have passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifierChoice {
    /// Written `"none"`.
    None,
    Model(ModelName),
}

/// Spending limits; `None` means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BudgetSettings {
    pub usd: Option<f64>,
    pub tokens: Option<u64>,
    pub time: Option<Duration>,
}

/// Spending limits of one call and of one session.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budgets {
    pub call: BudgetSettings,
    pub session: BudgetSettings,
}

/// How the order of the chain is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    pub mode: PolicyMode,
    /// Value of a minute of waiting.
    pub minute_usd: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyMode {
    /// The configured chain.
    Static,
    /// The order that has been cheapest so far.
    Learned,
}

/// When an endpoint or model that keeps failing is no longer asked, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Consecutive malformed answers before a model is no longer asked.
    pub failures: u32,
    /// The first pause; each further failure adds as much.
    pub cooldown: Duration,
    pub max_cooldown: Duration,
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
}

/// All settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Routing {
    pub verifier: Option<ModelName>,
    pub default_chain: Vec<ModelName>,
    pub max_attempts: u32,
    /// For every kind of tier; overrides [`Self::tiers`].
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
    /// Context window in tokens of models without a setting.
    pub default_context: u32,
    /// Folder with the user's own prompts: the configured one, or the one in the config directory
    /// if it exists.
    pub prompts_dir: Option<PathBuf>,
    /// Folder of the notes; `None` means `supervisor/brain` in the platform's data directory.
    pub brain_dir: Option<PathBuf>,
    /// A team's own service for notes, used instead of the folder.
    pub ingest_url: Option<String>,
    pub log: LogSettings,
    pub state: StateSettings,
    /// Origin of each key and table, by key as written in TOML.
    pub origins: BTreeMap<String, Origin>,
    /// The layers behind these settings; a call adds its own on top.
    pub layers: Layers,
}
