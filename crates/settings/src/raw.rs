//! The settings as written, and their conversion to [`Routing`]. Single values have been checked
//! before; `fit` checks the references between them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::backend_kinds;
use super::cross_checks::CrossChecks;
use super::error::{Fault, Origin, Problem};
use super::layers::Layers;
use super::types::*;
use supervisor_process::SandboxMode;
use supervisor_text::words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    verifier: String,
    default_chain: Vec<ModelName>,
    max_attempts: u32,
    attempts_per_tier: Option<u32>,
    tiers: TierSettings,
    max_workers: u32,
    default_context: u32,
    env_pass: Vec<String>,
    prompts_dir: String,
    limits: RawLimits,
    budgets: RawBudgets,
    policy: PolicySettings,
    log: LogSettings,
    state: StateSettings,
    brain: RawBrain,
    breaker: RawBreaker,
    workspace: WorkspaceSettings,
    verify: VerifySettings,
    sandbox: SandboxSettings,
    warm: RawWarm,
    backends: BTreeMap<String, RawBackend>,
    models: BTreeMap<ModelName, RawModel>,
    skills: BTreeMap<String, RawSkill>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    local_s: f64,
    agent_s: f64,
    tests_s: f64,
    verifier_s: f64,
    lock_wait_s: f64,
    probe_s: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBudgets {
    call_usd: f64,
    call_tokens: u64,
    call_s: f64,
    session_usd: f64,
    session_tokens: u64,
    session_s: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBrain {
    dir: String,
    ingest_url: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBreaker {
    failures: u32,
    cooldown_s: f64,
    max_cooldown_s: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWarm {
    kind: RawWarmKind,
    url: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawWarmKind {
    LlamaSwap,
    Ollama,
    None,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBackend {
    kind: Option<BackendKind>,
    tier: Option<TierKind>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    program: Option<String>,
    file: Option<String>,
    permission_mode: Option<String>,
    max_turns: Option<u32>,
    #[serde(default)]
    env_pass: Vec<String>,
    sandbox: Option<SandboxMode>,
    #[serde(default)]
    models: Vec<String>,
    #[serde(default)]
    shares_quota_with: Vec<String>,
    record: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    id: Option<String>,
    backend: Option<String>,
    context: Option<u32>,
    price_in: Option<f64>,
    price_out: Option<f64>,
    limit_s: Option<f64>,
    max_tokens: Option<u32>,
    attempts_per_tier: Option<u32>,
    edit_format: Option<EditFormat>,
    temperature: Option<f64>,
    seed: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawSkill {
    chain: Option<Vec<ModelName>>,
    verifier: Option<String>,
    max_attempts: Option<u32>,
    attempts_per_tier: Option<u32>,
    edit_format: Option<EditFormat>,
    limit_s: Option<f64>,
    tests_s: Option<f64>,
    budget_usd: Option<f64>,
    recall: Option<RawRecall>,
    twins: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum RawRecall {
    Switch(bool),
    Word(RecallWord),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RecallWord {
    Session,
}

impl Raw {
    /// Converts to checked settings, or returns all problems.
    pub(crate) fn check(
        self,
        origins: BTreeMap<String, Origin>,
        layers: Layers,
    ) -> Result<Routing, Vec<Problem>> {
        let mut checks = CrossChecks::new(&origins);
        let mut backends = BTreeMap::new();
        for (name, raw) in self.backends {
            if let Some(backend) = raw.check(&name, &mut checks) {
                backends.insert(name, backend);
            }
        }
        checks.remove_overridden_patterns(&mut backends);
        checks.check_patterns(&backends);
        let problems = checks.problems;
        let default_context = self.default_context;
        let models = self.models.into_iter().map(|(name, raw)| {
            let model = raw.into_model(&name, default_context);
            (name, model)
        });
        let routing = Routing {
            verifier: named_model(self.verifier),
            default_chain: self.default_chain,
            max_attempts: self.max_attempts,
            attempts_per_tier: self.attempts_per_tier,
            tiers: self.tiers,
            max_workers: self.max_workers,
            env_pass: self.env_pass,
            limits: self.limits.into(),
            backends,
            models: models.collect(),
            warm: self.warm.into(),
            workspace: self.workspace,
            verify: self.verify,
            sandbox: self.sandbox,
            skills: self
                .skills
                .into_iter()
                .map(|(name, raw)| (name, raw.into()))
                .collect(),
            budgets: self.budgets.into(),
            policy: self.policy,
            breaker: self.breaker.into(),
            default_context,
            log: self.log,
            state: self.state,
            ingest_url: self
                .brain
                .ingest_url
                .map(|url| url.trim_end_matches('/').to_owned()),
            brain_dir: Some(self.brain.dir)
                .filter(|p| !p.is_empty())
                .map(PathBuf::from),
            prompts_dir: Some(self.prompts_dir)
                .filter(|p| !p.is_empty())
                .map(PathBuf::from),
            origins,
            layers,
        };
        // Stop here: a missing backend would only make its models look unserved.
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut checks = CrossChecks::new(&routing.origins);
        checks.check_names(&routing);
        let problems = checks.problems;
        if problems.is_empty() {
            Ok(routing)
        } else {
            Err(problems)
        }
    }
}

impl RawBackend {
    fn check(self, name: &str, checks: &mut CrossChecks<'_>) -> Option<BackendSettings> {
        let table = ["backends", name];
        let mut missing = |key: &str, hint: &str| {
            checks.add(&[&table[..], &[key]].concat(), Fault::Missing, Some(hint))
        };
        if self.models.is_empty() {
            missing(
                "models",
                r#"say which model names it serves: models = ["mine/*"]"#,
            );
        }
        if self.tier.is_none() {
            missing(
                "tier",
                "say where it ranks: `local`, `subagent` or `managed`",
            );
        }
        let Some(kind) = self.kind else {
            let hint = format!(
                "say how it is spoken to: {}",
                words::one_of(backend_kinds::NAMES)
            );
            missing("kind", &hint);
            return None;
        };
        let (needed, hint) = kind.entry().needs;
        let is_present = match needed {
            "base_url" => self.base_url.is_some(),
            "program" => self.program.is_some(),
            "file" => self.file.as_ref().is_some_and(|file| file.starts_with('/')),
            _ => true,
        };
        if !is_present {
            missing(needed, hint);
        }
        checks.check_unused_keys(kind, name);
        Some(BackendSettings {
            name: name.to_owned(),
            kind,
            tier: self.tier?,
            base_url: self.base_url.map(|url| without_version(&url)),
            api_key_env: self.api_key_env.filter(|variable| !variable.is_empty()),
            program: self.program,
            file: self.file,
            permission_mode: self.permission_mode,
            max_turns: self.max_turns,
            env_pass: self.env_pass,
            sandbox: self.sandbox,
            models: self.models,
            shares_quota_with: self.shares_quota_with,
            record: self.record.filter(|file| !file.is_empty()),
        })
    }
}

impl RawModel {
    fn into_model(self, name: &ModelName, default_context: u32) -> Model {
        Model {
            id: self.id.unwrap_or_else(|| name.0.clone()),
            context: self.context.unwrap_or(default_context),
            price_in: self.price_in,
            price_out: self.price_out,
            limit: self.limit_s.map(seconds),
            max_tokens: self.max_tokens,
            attempts: self.attempts_per_tier,
            edit_format: self.edit_format,
            temperature: self.temperature,
            seed: self.seed,
            backend: self.backend,
        }
    }
}

/// Removes a trailing `/v1` or `/`: people copy URLs with and without it.
fn without_version(url: &str) -> String {
    let url = url.trim_end_matches('/');
    url.strip_suffix("/v1")
        .unwrap_or(url)
        .trim_end_matches('/')
        .to_owned()
}

fn named_model(text: String) -> Option<ModelName> {
    (text != "none").then_some(ModelName(text))
}

fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX)
}

/// In budgets, 0 means unlimited.
fn nonzero(seconds_or_usd: f64) -> Option<f64> {
    (seconds_or_usd > 0.0).then_some(seconds_or_usd)
}

impl From<RawLimits> for TimeLimits {
    fn from(raw: RawLimits) -> Self {
        Self {
            local: seconds(raw.local_s),
            agent: seconds(raw.agent_s),
            tests: seconds(raw.tests_s),
            verifier: seconds(raw.verifier_s),
            lock_wait: seconds(raw.lock_wait_s),
            probe: seconds(raw.probe_s),
        }
    }
}

impl From<RawBudgets> for Budgets {
    fn from(raw: RawBudgets) -> Self {
        let budget = |usd, tokens: u64, s| BudgetSettings {
            usd: nonzero(usd),
            tokens: (tokens > 0).then_some(tokens),
            time: nonzero(s).map(seconds),
        };
        Self {
            call: budget(raw.call_usd, raw.call_tokens, raw.call_s),
            session: budget(raw.session_usd, raw.session_tokens, raw.session_s),
        }
    }
}

impl From<RawBreaker> for BreakerSettings {
    fn from(raw: RawBreaker) -> Self {
        let cooldown = seconds(raw.cooldown_s);
        Self {
            failures: raw.failures,
            cooldown,
            max_cooldown: seconds(raw.max_cooldown_s).max(cooldown),
        }
    }
}

impl From<RawWarm> for Option<Warm> {
    fn from(raw: RawWarm) -> Self {
        let kind = match raw.kind {
            RawWarmKind::LlamaSwap => WarmKind::LlamaSwap,
            RawWarmKind::Ollama => WarmKind::Ollama,
            RawWarmKind::None => return None,
        };
        Some(Warm {
            kind,
            url: raw.url.trim_end_matches('/').to_owned(),
        })
    }
}

impl From<RawSkill> for SkillSettings {
    fn from(raw: RawSkill) -> Self {
        Self {
            chain: raw.chain,
            verifier: raw
                .verifier
                .map(|v| named_model(v).map_or(VerifierChoice::None, VerifierChoice::Model)),
            max_attempts: raw.max_attempts,
            attempts_per_tier: raw.attempts_per_tier,
            edit_format: raw.edit_format,
            limit: raw.limit_s.map(seconds),
            tests: raw.tests_s.map(seconds),
            budget_usd: raw.budget_usd,
            recall: raw.recall.map(|recall| match recall {
                RawRecall::Switch(false) => Recall::Off,
                RawRecall::Switch(true) => Recall::Notes,
                RawRecall::Word(RecallWord::Session) => Recall::NotesAndSession,
            }),
            twins: raw.twins,
        }
    }
}
