//! All settings, one struct per table of `models.toml`. A field is the only place where a key is
//! declared: its name, its bounds (schema attributes), and its sentence in
//! `docs/configuration.md` (doc comment). The table of keys, the checks of values, the variables
//! and the page are derived from the schema of [`Routing`]; see `keys`. Defaults are in
//! `models.toml`.
//!
//! Of an enum, either all variants have a doc comment or none: schemars lists those without first,
//! and messages list words in the order of the schema.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use supervisor_process::{NetworkRule, SandboxMode, SandboxRules, expand_home};
use url::Url;

use super::error::Origin;
use super::layers::Layers;
use super::types::ModelName;
use super::values::{AbsolutePath, Address, As, Seconds, Usd, VariableName};

/// All settings.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Routing {
    /// Who judges what a local tier made, after all gates have passed; `none`: gates alone decide.
    #[serde(with = "As::<VerifierChoice>")]
    pub verifier: Option<ModelName>,
    /// Models of a skill without a chain of its own, cheapest first.
    #[schemars(extend("format" = "models"))]
    pub default_chain: Vec<ModelName>,
    /// Tiers that one call may ask; further asks of a tier and skipped tiers do not count.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: u32,
    /// Asks of one tier before the next has its turn, for all kinds of tiers at once; not set in
    /// what is built in.
    #[schemars(range(min = 1, max = 100))]
    pub attempts_per_tier: Option<u32>,
    /// Answers that the first ask of a text tier brings: a number, or `auto`, as many as the gym
    /// measured to pay off; tests select among them.
    pub samples: Samples,
    /// How an answer that tests refused is asked for again: `cause` asks for the cause in a line
    /// first and shows the failing assertion, `plain` does neither.
    pub repair: Repair,
    pub tiers: TierSettings,
    /// How long a call is answered directly where the client offers tasks; after that it gets a task.
    #[serde(rename = "foreground_s", with = "As::<Seconds>")]
    #[schemars(range(min = 0.0))]
    pub foreground: Duration,
    /// Agent programs at once.
    #[schemars(range(min = 1, max = 256))]
    pub max_workers: u32,
    /// Tokens a model is believed to take in when nothing says otherwise.
    #[schemars(range(min = 256, max = 100_000_000))]
    pub default_context: u32,
    /// Variables that test commands get although their names or values look like secrets.
    #[schemars(extend("format" = "variables"))]
    pub env_pass: Vec<String>,
    /// Folder with your own prompts, absolute; empty: `supervisor/prompts` in the config directory,
    /// if it is there.
    #[serde(with = "As::<AbsolutePath>")]
    pub prompts_dir: Option<PathBuf>,
    /// Folder of the session logs, absolute; empty: `sessions` in the state directory.
    #[serde(with = "As::<AbsolutePath>")]
    pub sessions_dir: Option<PathBuf>,
    pub limits: TimeLimits,
    pub budgets: Budgets,
    pub policy: PolicySettings,
    pub log: LogSettings,
    pub state: StateSettings,
    // `[brain]` as a whole; its `ingest_url` is put into the next field.
    #[serde(rename = "brain", with = "As::<BrainSettings>")]
    pub brain_dir: Option<PathBuf>,
    #[serde(skip)]
    pub ingest_url: Option<String>,
    pub breaker: BreakerSettings,
    pub workspace: WorkspaceSettings,
    pub verify: VerifySettings,
    pub sandbox: SandboxSettings,
    pub remote: RemoteSettings,
    #[serde(with = "As::<WarmSettings>")]
    pub warm: Option<Warm>,
    pub http: HttpSettings,
    pub team: TeamSettings,
    pub backends: BTreeMap<String, BackendSettings>,
    pub models: BTreeMap<ModelName, Model>,
    pub skills: BTreeMap<String, SkillSettings>,
    /// Hosts that count as this machine for `stay_local`, such as `gpu.lan`.
    pub local_hosts: Vec<String>,
    /// By the directory of the project, such as `~/shop`; see [`Self::project`].
    #[serde(default)]
    pub projects: BTreeMap<String, ProjectSettings>,
    /// What `~` in the name of a project stands for.
    #[serde(skip)]
    pub home: Option<PathBuf>,
    /// Directories with a copy of a project, and the project whose settings apply to them.
    #[serde(skip)]
    pub copies: BTreeMap<PathBuf, PathBuf>,
    /// Origin of each key and table, by key as written in TOML.
    #[serde(skip)]
    pub origins: BTreeMap<String, Origin>,
    /// The layers behind these settings; a call adds its own on top.
    #[serde(skip)]
    pub layers: Layers,
}

/// How many answers the first ask of a tier brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "SamplesKey")]
#[schemars(with = "SamplesKey")]
pub enum Samples {
    /// As many as the gym measured to pay off; one, if it measured nothing.
    Auto,
    Count(u32),
}

impl Samples {
    /// Most answers to one ask.
    pub const MAX: u32 = 16;

    /// The number to ask for; nothing measured means one.
    pub fn count(self) -> u32 {
        match self {
            Self::Auto => 1,
            Self::Count(count) => count.clamp(1, Self::MAX),
        }
    }
}

impl Default for Samples {
    fn default() -> Self {
        Self::Count(1)
    }
}

impl std::fmt::Display for Samples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Count(count) => count.fmt(f),
        }
    }
}

impl Serialize for Samples {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => to.serialize_str("auto"),
            Self::Count(count) => to.serialize_u32(*count),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum SamplesKey {
    Count(#[schemars(range(min = 1, max = 16))] u32),
    Word(SamplesWord),
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SamplesWord {
    Auto,
}

impl From<SamplesKey> for Samples {
    fn from(key: SamplesKey) -> Self {
        match key {
            SamplesKey::Count(count) => Self::Count(count),
            SamplesKey::Word(SamplesWord::Auto) => Self::Auto,
        }
    }
}

/// How a refused answer is asked for again.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Repair {
    /// With the change and the output of the tests.
    Plain,
    /// The cause first; with the failing assertion and what the change did to the failing tests.
    #[default]
    Cause,
}

impl Repair {
    /// Its name in settings and results.
    pub fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Cause => "cause",
        }
    }
}

/// Settings for each kind of tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TierSettings {
    pub local: KindSettings,
    pub subagent: KindSettings,
    pub managed: KindSettings,
}

/// Settings for all tiers of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KindSettings {
    /// Asks of one tier of this kind; a further one is made only while each later tier keeps one.
    #[schemars(range(min = 1, max = 100))]
    pub attempts_per_tier: u32,
    /// How tiers of this kind are asked for edits.
    pub edit_format: EditFormat,
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

/// How a model is asked for edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EditFormat {
    /// Whole files while they are short, otherwise search and replace.
    #[default]
    Auto,
    /// Whole files.
    Whole,
    /// Blocks of text to find, each with its replacement.
    SearchReplace,
    /// A list of edits as JSON.
    Json,
}

/// Time limits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeLimits {
    /// One ask of a local tier.
    #[serde(rename = "local_s", with = "As::<Seconds>")]
    pub local: Duration,
    /// One run of an agent.
    #[serde(rename = "agent_s", with = "As::<Seconds>")]
    pub agent: Duration,
    /// One run of the project's tests.
    #[serde(rename = "tests_s", with = "As::<Seconds>")]
    pub tests: Duration,
    /// One opinion of the verifier.
    #[serde(rename = "verifier_s", with = "As::<Seconds>")]
    pub verifier: Duration,
    /// Waiting for another call on the same project.
    #[serde(rename = "lock_wait_s", with = "As::<Seconds>")]
    #[schemars(range(min = 0.0))]
    pub lock_wait: Duration,
    /// How long `tier` and `doctor` wait for an endpoint to answer.
    #[serde(rename = "probe_s", with = "As::<Seconds>")]
    pub probe: Duration,
}

/// Spending limits of one call and of one session.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(from = "BudgetKeys")]
#[schemars(with = "BudgetKeys")]
pub struct Budgets {
    pub call: BudgetSettings,
    pub session: BudgetSettings,
    pub caps: SpendCaps,
}

/// Caps in USD on what several calls spend, of all sessions; `None` means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SpendCaps {
    pub day: Option<f64>,
    pub week: Option<f64>,
    pub project_day: Option<f64>,
    pub person_day: Option<f64>,
}

/// Spending limits; `None` means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BudgetSettings {
    pub usd: Option<f64>,
    pub tokens: Option<u64>,
    pub time: Option<Duration>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BudgetKeys {
    /// USD one call may cost.
    call_usd: Usd,
    /// Tokens one call may use.
    call_tokens: u64,
    /// Seconds one call may take.
    #[schemars(range(min = 0.0))]
    call_s: Seconds,
    /// USD one session may cost.
    session_usd: Usd,
    /// Tokens one session may use.
    session_tokens: u64,
    /// Seconds the calls of one session may take.
    #[schemars(range(min = 0.0))]
    session_s: Seconds,
    /// USD all calls may cost within 24 hours.
    day_usd: Usd,
    /// USD all calls may cost within 7 days.
    week_usd: Usd,
    /// USD the calls in one project may cost within 24 hours.
    project_day_usd: Usd,
    /// USD the calls of one user of this machine may cost within 24 hours, where several share a state
    /// directory.
    person_day_usd: Usd,
}

impl From<BudgetKeys> for Budgets {
    fn from(keys: BudgetKeys) -> Self {
        let budget = |usd: Usd, tokens: u64, time: Seconds| BudgetSettings {
            usd: usd.into(),
            tokens: (tokens > 0).then_some(tokens),
            time: time.into(),
        };
        Self {
            call: budget(keys.call_usd, keys.call_tokens, keys.call_s),
            session: budget(keys.session_usd, keys.session_tokens, keys.session_s),
            caps: SpendCaps {
                day: keys.day_usd.into(),
                week: keys.week_usd.into(),
                project_day: keys.project_day_usd.into(),
                person_day: keys.person_day_usd.into(),
            },
        }
    }
}

/// How the order of the chain is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// `static`: the chain as it is written; `learned`: the way that has been cheapest to an
    /// accepted answer so far.
    pub mode: PolicyMode,
    /// What a minute of waiting is worth in USD, for `learned`.
    #[schemars(with = "Usd")]
    pub minute_usd: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyMode {
    /// The configured chain.
    Static,
    /// The order that has been cheapest so far.
    Learned,
}

/// What is stored beside the session log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// What is kept of what models were asked and answered: `answers`, `full` (the questions too)
    /// or `off`.
    pub exchange: ExchangeMode,
    /// Days after which it goes.
    #[schemars(range(min = 1, max = 3650))]
    pub exchange_days: u32,
    /// Megabytes that all of it may take; what was not used for longest goes first.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub exchange_mb: u64,
}

/// Which prompts and answers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExchangeMode {
    /// Nothing.
    Off,
    /// Only answers.
    Answers,
    /// Prompts and answers.
    Full,
}

/// Limits of the project data in the state directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateSettings {
    /// Days after which snapshots and undo records that were not used go.
    #[schemars(range(min = 1, max = 3650))]
    pub days: u32,
    /// Megabytes that all of them may take; what was not used for longest goes first.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub mb: u64,
}

/// Where notes are kept.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrainSettings {
    /// The folder of notes, absolute; empty: `supervisor/brain` in your data directory
    /// (`~/.local/share`).
    #[serde(with = "As::<AbsolutePath>")]
    dir: Option<PathBuf>,
    /// A service that keeps the notes instead of the folder: `POST /query` and `POST /write`.
    #[serde(default, with = "As::<Address>")]
    pub ingest_url: Option<String>,
}

impl From<BrainSettings> for Option<PathBuf> {
    fn from(brain: BrainSettings) -> Self {
        brain.dir
    }
}

/// When an endpoint or model that keeps failing is no longer asked, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BreakerSettings {
    /// Malformed answers in a row before a model is left alone; one that cannot be reached is left
    /// alone at once.
    #[schemars(range(min = 1, max = 1000))]
    pub failures: u32,
    /// Seconds before it is tried again, by one question at a time; as much longer with each
    /// further failure.
    #[serde(rename = "cooldown_s", with = "As::<Seconds>")]
    pub cooldown: Duration,
    /// Seconds the pause never grows beyond.
    #[serde(rename = "max_cooldown_s", with = "As::<Seconds>")]
    pub max_cooldown: Duration,
}

/// Limits of the snapshot, and paths excluded from it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceSettings {
    /// Files in the project.
    #[schemars(range(min = 1))]
    pub max_files: u64,
    /// Bytes of one file.
    #[schemars(range(min = 1))]
    pub max_file_bytes: u64,
    /// Bytes of all files together.
    #[schemars(range(min = 1))]
    pub max_total_bytes: u64,
    /// Bytes up to which a file that git ignores is protected too.
    pub max_ignored_file_bytes: u64,
    /// Patterns, as in a `.gitignore`, of what is not protected.
    pub exclude: Vec<String>,
    /// Where work happens until it is accepted: `overlay` (private views), `in-place`, or `auto`.
    pub strategy: ViewStrategy,
}

/// Where work happens before it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ViewStrategy {
    /// In an overlay if possible, otherwise in place.
    Auto,
    /// Only in an overlay.
    Overlay,
    /// In the project itself.
    InPlace,
}

/// How thoroughly results are verified.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifySettings {
    /// Runs of the target tests: of a red before a model is asked, of a green before it is
    /// accepted; what differs is flaky.
    #[schemars(range(min = 1, max = 100))]
    pub repeat: u32,
    /// True: the targets of a green run once more in the build that users get (Rust without debug
    /// assertions, `NODE_ENV` or `MIX_ENV` of production); what fails there is
    /// [flagged](tools.md#flags).
    pub other_build: bool,
    /// Commands such as `ruff check .`, as words, for [`prove`](commands.md), red, green and
    /// refactor: what is clean without the change must be clean with it.
    pub checks: Vec<String>,
    /// What becomes of a green with [flags](tools.md#flags) about its code: `show` lists them, `refuse` rejects it.
    pub flags: FlagRule,
    /// `tdd_green`: mutants of the accepted change. `after`: while the server is idle, and the next
    /// reply about the project names those that no test noticed; `require`: before the reply, and
    /// one that survives makes the result unverified.
    pub mutants: MutantRuns,
    /// Tests or test files that may be deleted, skipped or changed, or `*`. The [stop
    /// gate](commands.md) takes it from your settings file only, never from a variable.
    pub allow_test_change: Vec<String>,
}

/// What flags about the code of an answer decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FlagRule {
    Show,
    Refuse,
}

/// When `tdd_green` runs mutants of the accepted change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MutantRuns {
    Off,
    After,
    Require,
}

/// Sandbox settings of child processes, as written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxSettings {
    /// `auto`: walls as strong as the system allows; `require`: at full strength or not at all;
    /// `off`: none.
    #[schemars(with = "String", extend("enum" = ["auto", "require", "off"]))]
    pub mode: SandboxMode,
    /// Paths that test commands and agents may write besides the project and a private temporary
    /// directory.
    pub write: Vec<String>,
    /// Paths that they can neither read nor write.
    pub hide: Vec<String>,
    /// Of test commands: `private` (a loopback of their own), `host`, or `auto` (private where the
    /// tests pass with it).
    #[schemars(with = "String", extend("enum" = ["auto", "private", "host"]))]
    pub network: NetworkRule,
    /// Caches of build tools that test commands may fill.
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

/// Test runs on the workers of a Remote Execution engine. Needs a program built with the feature
/// `remote`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoteSettings {
    /// Which test runs are sent to the engine: `off` (none), `auto` (those that are expected to end
    /// sooner there) or `on` (all).
    pub mode: RemoteMode,
    /// Address of the engine: `grpc://host:port`, or `grpcs://host:port` for TLS.
    #[schemars(extend("format" = "engine"))]
    pub execution: String,
    /// Address of the storage of files, where it is not that of the engine.
    #[schemars(extend("format" = "engine"))]
    pub cas: String,
    /// Name of the instance on the engine.
    #[schemars(extend("format" = "optional-text"))]
    pub instance: String,
    /// Properties that a worker must have, as in `pool=linux`.
    pub platform: Vec<String>,
    /// NAME of the variable that holds the token; empty: no token.
    #[serde(with = "As::<VariableName>")]
    pub token_env: Option<String>,
    /// True: equal files and commands give equal results, so a run may be answered from the engine's
    /// cache.
    pub hermetic: bool,
    /// Variables that the tests need on a worker, besides `CI`, `LANG`, `LC_ALL` and `TZ`.
    #[schemars(extend("format" = "variables"))]
    pub env: Vec<String>,
    /// How long a run waits for a worker before it is made on this machine.
    #[serde(rename = "queue_s", with = "As::<Seconds>")]
    pub queue: Duration,
}

/// When test runs are sent to an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RemoteMode {
    Off,
    Auto,
    On,
}

/// How to find out which models are currently loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warm {
    pub kind: WarmKind,
    pub url: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmKind {
    LlamaSwap,
    Ollama,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WarmSettings {
    /// How to ask which models are loaded: `llama-swap`, `ollama` or `none`.
    kind: WarmChoice,
    /// Where that listens.
    url: Address,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum WarmChoice {
    LlamaSwap,
    Ollama,
    None,
}

impl From<WarmSettings> for Option<Warm> {
    fn from(WarmSettings { kind, url }: WarmSettings) -> Self {
        let kind = match kind {
            WarmChoice::LlamaSwap => WarmKind::LlamaSwap,
            WarmChoice::Ollama => WarmKind::Ollama,
            WarmChoice::None => return None,
        };
        Some(Warm {
            kind,
            url: url.into(),
        })
    }
}

/// One way to reach models. A backend without `kind` or `tier` is refused when settings are loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BackendSettings {
    #[serde(skip)]
    pub name: String,
    /// `openai`, `anthropic`, `claude-cli` or `replay`.
    pub kind: BackendKind,
    /// `local`, `subagent` or `managed`.
    pub tier: TierKind,
    /// Kind `openai`: where `/v1/chat/completions` lives; kinds `anthropic` and `claude-cli`: where
    /// `/v1/messages` lives, if not at Anthropic.
    #[serde(with = "As::<Address>")]
    pub base_url: Option<String>,
    /// Kinds `openai`, `anthropic` and `claude-cli`: NAME of the variable that holds the key; empty: no key.
    #[serde(with = "As::<VariableName>")]
    pub api_key_env: Option<String>,
    /// Kind `claude-cli`: a name on the PATH or an absolute path.
    #[schemars(extend("format" = "program"))]
    pub program: Option<String>,
    /// Kind `replay`: absolute path of the recorded answers.
    #[serde(with = "As::<AbsolutePath>")]
    pub file: Option<String>,
    /// Kind `claude-cli`: what the agent may do unasked.
    #[schemars(extend("enum" = ["acceptEdits", "default", "plan", "dontAsk", "auto", "bypassPermissions"]))]
    pub permission_mode: Option<String>,
    /// Kind `claude-cli`: turns after which a run is given up.
    // Never 0, which the CLI would treat as unlimited.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_turns: Option<u32>,
    /// Kind `claude-cli`: variables handed on to the agent.
    #[schemars(extend("format" = "variables"))]
    pub env_pass: Vec<String>,
    /// Kind `claude-cli`: `auto`, `require` or `off` for this agent.
    #[schemars(with = "String", extend("enum" = ["auto", "require", "off"]))]
    pub sandbox: Option<SandboxMode>,
    /// Kind `claude-cli`: `agent` works in the project with tools, `text` gives one answer without
    /// tools, at about a tenth of the tokens.
    pub worker: Option<Worker>,
    /// Kind `claude-cli`: `user`: chains that name its models ask them; `passport`: only once they
    /// were measured to be worth it.
    pub enabled_by: Option<EnabledBy>,
    /// How its answers are paid: `metered`, by the token, or `subscription`: then reports count
    /// tokens instead of dollars.
    pub billing: Option<Billing>,
    /// Model names it serves, `*` allowed at the end; the longest pattern wins.
    #[schemars(extend("format" = "patterns"))]
    pub models: Vec<String>,
    /// The backend that serves its models where this one is not set up.
    pub instead: Option<String>,
    /// Backends that run out of quota together with it.
    pub shares_quota_with: Vec<String>,
    /// Absolute path of a file that every answer is appended to, secrets taken out; kind `replay`
    /// gives such answers again.
    #[serde(with = "As::<AbsolutePath>")]
    pub record: Option<String>,
}

impl BackendSettings {
    /// A backend with only a name, a kind and a tier.
    pub fn named(name: impl Into<String>, kind: BackendKind, tier: TierKind) -> Self {
        Self {
            name: name.into(),
            kind,
            tier,
            ..Self::default()
        }
    }

    /// Whether its address is somebody else's than Anthropic's. A login there must not be sent to it.
    pub fn is_foreign(&self) -> bool {
        let is_anthropic = |address: &str| {
            Url::parse(address).is_ok_and(|url| {
                let host = url.host_str().unwrap_or_default();
                url.scheme() == "https"
                    && (host == "anthropic.com" || host.ends_with(".anthropic.com"))
            })
        };
        self.base_url
            .as_deref()
            .is_some_and(|address| !is_anthropic(address))
    }

    /// Whether it is `claude` with models of the user's own servers.
    pub fn runs_own_models(&self) -> bool {
        self.kind == BackendKind::ClaudeCli && self.tier == TierKind::Local && self.is_foreign()
    }
}

/// The protocol of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackendKind {
    #[default]
    Openai,
    Anthropic,
    ClaudeCli,
    Replay,
}

/// How the answers of a backend are paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Billing {
    /// By the token.
    Metered,
    /// At a fixed price.
    Subscription,
}

/// How a model works on a task.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Worker {
    /// One prompt, one answer, no tools.
    Text,
    /// With tools, in the project.
    Agent,
}

impl Worker {
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Agent => "agent",
        }
    }
}

/// What switches a backend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnabledBy {
    /// The chain that names a model of it.
    User,
    /// What was measured of the model, by the gym or by earlier calls.
    Passport,
}

/// Where a model runs, from cheapest to strongest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum TierKind {
    #[default]
    Local,
    Subagent,
    Managed,
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

/// Who may call `serve --http`, and how much.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    /// Directories, absolute, whose projects callers may name; empty: every project, on loopback only.
    #[schemars(extend("format" = "paths"))]
    pub roots: Vec<String>,
    /// Names by which clients reach the server, besides loopback and the host of `resource`.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call, such as `https://app.example.com:443`.
    pub origins: Vec<String>,
    /// The address at which clients reach the server; `https` elsewhere than on loopback, which is
    /// served by a proxy in front.
    #[serde(default, with = "As::<Address>")]
    pub resource: Option<String>,
    /// The `iss` of accepted bearer tokens; with it, every call needs one.
    #[serde(default)]
    pub issuer: Option<String>,
    /// The `aud` of accepted bearer tokens; not set: `resource`.
    #[serde(default)]
    pub audience: Option<String>,
    /// The keys of the issuer (JWKS): an `https` address, or an absolute path.
    #[serde(default)]
    pub jwks: Option<String>,
    /// Tool calls of one caller at once.
    #[schemars(range(min = 1, max = 1000))]
    pub calls: u32,
    /// Requests of one caller in a minute.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_minute: u32,
}

/// What a team shares in a database.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TeamSettings {
    /// The Postgres database, such as `postgres://me@db.example.com/supervisor`; without it nothing
    /// is shared.
    #[serde(default)]
    #[schemars(extend("format" = "database"))]
    pub database: Option<String>,
    /// NAME of the variable that holds its password; empty: none is sent.
    #[serde(with = "As::<VariableName>")]
    pub password_env: Option<String>,
    /// The name of the team.
    pub name: String,
    /// Your name in the team's figures and budgets; not set: `$USER`.
    #[serde(default)]
    pub person: Option<String>,
    /// What is shared of a logged call: `counts` (models, times, costs, verdicts) or `entries` (the
    /// whole entry, secrets taken out).
    pub share: SharedPart,
    /// What becomes of questions that cost money while the database cannot be reached: they are
    /// asked within the local budgets, or not at all.
    pub when_down: WhenDown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SharedPart {
    Counts,
    Entries,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenDown {
    LocalCaps,
    Stop,
}

/// Settings of one model.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// The name sent to the server, where it differs.
    pub id: String,
    /// The backend that serves it, where patterns should not decide.
    pub backend: Option<String>,
    /// Tokens it takes in.
    #[schemars(range(min = 256, max = 100_000_000))]
    pub context: u32,
    /// USD for a million tokens in.
    #[schemars(with = "Usd")]
    pub price_in: Option<f64>,
    /// USD for a million tokens out.
    #[schemars(with = "Usd")]
    pub price_out: Option<f64>,
    /// Seconds one ask may take.
    #[serde(rename = "limit_s", with = "As::<Seconds>")]
    pub limit: Option<Duration>,
    /// Kinds `openai` and `anthropic`: tokens after which its answer is cut off, so that a small model which writes
    /// without an end does not use up `limit_s`.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub max_tokens: Option<u32>,
    /// Asks of it before the next tier has its turn.
    #[serde(rename = "attempts_per_tier")]
    #[schemars(range(min = 1, max = 100))]
    pub attempts: Option<u32>,
    /// Answers that its first ask brings: 1 to 16, or `auto`.
    pub samples: Option<Samples>,
    /// How it is asked for edits: `auto`, `whole`, `search-replace` or `json`.
    pub edit_format: Option<EditFormat>,
    /// How it works where the backend leaves a choice (kind `claude-cli`): `agent` or `text`.
    pub worker: Option<Worker>,
    /// Temperature of the first ask, from 0 to 2; a further ask is warmer.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// Sent to the server with each ask.
    pub seed: Option<u64>,
}

/// Estimated bytes per token.
pub const TOKEN_BYTES: usize = 3;

impl Model {
    /// A model with only an id and a context window.
    pub fn named(id: impl Into<String>, context: u32) -> Self {
        Self {
            id: id.into(),
            context,
            ..Self::default()
        }
    }

    /// The price of these tokens in USD; `None` if a count or a price is unknown.
    pub fn price(&self, tokens_in: Option<u64>, tokens_out: Option<u64>) -> Option<f64> {
        let price = |tokens: Option<u64>, per_million: Option<f64>| {
            Some(tokens? as f64 * per_million? / 1e6)
        };
        Some(price(tokens_in, self.price_in)? + price(tokens_out, self.price_out)?)
    }

    /// Size of the context window in bytes.
    pub fn window(&self) -> usize {
        (self.context as usize).saturating_mul(TOKEN_BYTES)
    }
}

/// Settings of one skill. `None` falls back to its family, then to the general settings.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillSettings {
    /// The models, cheapest first.
    #[schemars(extend("format" = "models"))]
    pub chain: Option<Vec<ModelName>>,
    /// Who judges local tiers here.
    pub verifier: Option<VerifierChoice>,
    /// Tiers per call.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: Option<u32>,
    /// Asks per tier.
    #[schemars(range(min = 1, max = 100))]
    pub attempts_per_tier: Option<u32>,
    /// Answers that the first ask of a tier brings here: 1 to 16, or `auto`.
    pub samples: Option<Samples>,
    /// How edits are asked for here, whichever the model.
    pub edit_format: Option<EditFormat>,
    /// Seconds one ask may take, whichever the tier; wins over the model's own.
    #[serde(rename = "limit_s", with = "As::<Seconds>")]
    pub limit: Option<Duration>,
    /// Seconds one test run may take.
    #[serde(rename = "tests_s", with = "As::<Seconds>")]
    pub tests: Option<Duration>,
    /// USD one call may cost; 0: no cap.
    #[schemars(with = "Usd")]
    pub budget_usd: Option<f64>,
    /// `true`: the best notes about the task go into the brief; `session`: also what this session
    /// has tried.
    pub recall: Option<Recall>,
    /// `tdd_green`: so many [hidden twins](tools.md#hidden-twins), tests that another tier writes
    /// and the worker never sees; 0: none.
    #[schemars(range(max = 20))]
    pub twins: Option<u32>,
}

/// Settings of the user for one project and what is below it. They come from the user's own file: nothing in a project
/// configures us.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProjectSettings {
    /// The command that runs its tests, as words, instead of the detected one.
    pub test_cmd: Option<String>,
    /// Where that command leaves JUnit reports, as a pattern: `build/**/*.xml`.
    pub test_report: Option<String>,
    /// The models, cheapest first, for every skill.
    #[schemars(extend("format" = "models"))]
    pub chain: Option<Vec<ModelName>>,
    /// Linters and type checkers of this project, in place of `verify.checks`.
    pub checks: Option<Vec<String>>,
    /// True: only local tiers at an address of this machine or of `local_hosts` are asked, also as verifier, and notes go to
    /// no other service.
    pub stay_local: Option<bool>,
}

/// Who judges the work after its checks have passed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "String")]
#[schemars(with = "String")]
pub enum VerifierChoice {
    /// Written `"none"`.
    None,
    Model(ModelName),
}

impl From<String> for VerifierChoice {
    fn from(name: String) -> Self {
        match name.as_str() {
            "none" => Self::None,
            _ => Self::Model(ModelName(name)),
        }
    }
}

impl From<VerifierChoice> for Option<ModelName> {
    fn from(choice: VerifierChoice) -> Self {
        match choice {
            VerifierChoice::None => None,
            VerifierChoice::Model(name) => Some(name),
        }
    }
}

/// Which notes from earlier work a prompt contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(from = "RecallKey")]
#[schemars(with = "RecallKey")]
pub enum Recall {
    #[default]
    Off,
    /// The best notes about the task.
    Notes,
    /// The notes, and what this session has already tried.
    NotesAndSession,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum RecallKey {
    Switch(bool),
    Word(RecallWord),
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RecallWord {
    Session,
}

impl From<RecallKey> for Recall {
    fn from(key: RecallKey) -> Self {
        match key {
            RecallKey::Switch(false) => Self::Off,
            RecallKey::Switch(true) => Self::Notes,
            RecallKey::Word(RecallWord::Session) => Self::NotesAndSession,
        }
    }
}
