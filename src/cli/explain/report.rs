//! What is explained, as data: every value beside the key and the layer that decided it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use crate::routing::{BackendKind, By, Choices, Loaded, Origin, Tier, TierKind};

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) sources: ReportSources,
    pub(super) warnings: Vec<String>,
    pub(super) skills: Vec<ReportSkill>,
    /// Every key that is set; only when no single skill was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) settings: Option<BTreeMap<String, Valued<serde_json::Value>>>,
}

/// The layers that took part.
#[derive(Debug, Serialize)]
pub(super) struct ReportSources {
    pub(super) file: Option<String>,
    pub(super) variables: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct ReportSkill {
    pub(super) skill: String,
    pub(super) pinned: bool,
    pub(super) chain: Valued<Vec<ReportTier>>,
    pub(super) verifier: Valued<Option<ReportTier>>,
    pub(super) max_attempts: Valued<u32>,
    pub(super) attempts_per_tier: Valued<u32>,
    pub(super) tests_s: Valued<f64>,
    pub(super) lock_wait_s: Valued<f64>,
    pub(super) budget_usd: Valued<Option<f64>>,
    pub(super) budget_tokens: Valued<Option<u64>>,
    pub(super) budget_s: Valued<Option<f64>>,
}

#[derive(Debug, Serialize)]
pub(super) struct ReportTier {
    pub(super) model: String,
    /// The name sent to the server, where it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<Valued<String>>,
    pub(super) tier: TierKind,
    pub(super) backend: String,
    pub(super) kind: BackendKind,
    /// The address, program or file that the backend is reached by.
    pub(super) at: Valued<Option<String>>,
    /// The variable that holds the key; never the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api_key_env: Option<Valued<String>>,
    pub(super) limit_s: Valued<f64>,
    pub(super) context: Valued<u32>,
    pub(super) price_in: Option<Valued<f64>>,
    pub(super) price_out: Option<Valued<f64>>,
}

/// A value and what decided it.
#[derive(Debug, Serialize)]
pub(super) struct Valued<T> {
    pub(super) value: T,
    /// The key as written in TOML; none when the call itself decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    pub(super) layer: &'static str,
    /// The file and line, or the variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<String>,
}

impl Report {
    pub(super) fn new(loaded: &Loaded, skills: &[Choices], with_settings: bool) -> Self {
        let variables: BTreeSet<String> = loaded
            .origins
            .values()
            .filter_map(|origin| match origin {
                Origin::Variable(name) => Some(name.clone()),
                Origin::BuiltIn | Origin::File(..) | Origin::Call => None,
            })
            .collect();
        let settings = || loaded.values.iter().map(|(key, value)| (key.clone(), by_key(loaded, key, value.clone())));
        Self {
            sources: ReportSources {
                file: loaded.file.as_ref().map(|path| path.display().to_string()),
                variables: variables.into_iter().collect(),
            },
            warnings: loaded.warnings.iter().map(ToString::to_string).collect(),
            skills: skills.iter().map(|choices| ReportSkill::new(loaded, choices)).collect(),
            settings: with_settings.then(|| settings().collect()),
        }
    }
}

impl ReportSkill {
    fn new(loaded: &Loaded, choices: &Choices) -> Self {
        let route = &choices.route;
        let tiers = route.chain.tiers().zip(&choices.limits);
        let tiers = tiers.map(|(tier, limit)| ReportTier::new(loaded, tier, limit)).collect();
        let verifier_limit = By::Key("limits.verifier_s".into());
        let verifier = route.verifier.as_ref().map(|tier| ReportTier::new(loaded, tier, &verifier_limit));
        Self {
            skill: route.skill.clone(),
            pinned: route.pinned,
            chain: valued(loaded, &choices.chain, tiers),
            verifier: valued(loaded, &choices.verifier, verifier),
            max_attempts: valued(loaded, &choices.max_attempts, route.max_attempts),
            attempts_per_tier: valued(loaded, &choices.attempts_per_tier, route.attempts_per_tier),
            tests_s: valued(loaded, &choices.tests, route.limits.tests.as_secs_f64()),
            lock_wait_s: by_key(loaded, "limits.lock_wait_s", route.limits.lock_wait.as_secs_f64()),
            budget_usd: valued(loaded, &choices.budget_usd, route.budget.usd),
            budget_tokens: by_key(loaded, "budgets.call_tokens", route.budget.tokens),
            budget_s: by_key(loaded, "budgets.call_s", route.budget.time.as_ref().map(Duration::as_secs_f64)),
        }
    }
}

impl ReportTier {
    fn new(loaded: &Loaded, tier: &Tier, limit: &By) -> Self {
        let (backend, model) = (&tier.backend, &tier.model);
        let key = |name: &str| backend.key(name);
        let set = |name: &str| loaded.origin(&backend.key(name)).is_some();
        let at = match backend.kind {
            BackendKind::Openai => by_key(loaded, &key("base_url"), backend.base_url.clone()),
            BackendKind::ClaudeCli => by_key(loaded, &key("program"), backend.program.clone()),
            BackendKind::Replay if set("file") => by_key(loaded, &key("file"), backend.program.clone()),
            BackendKind::Replay => by_key(loaded, &key("program"), backend.program.clone()),
        };
        let own = |name: &str| tier.key(name);
        let context = Some(own("context")).filter(|key| loaded.origin(key).is_some());
        Self {
            model: tier.name.0.clone(),
            id: loaded.origin(&own("id")).map(|_| by_key(loaded, &own("id"), model.id.clone())),
            tier: backend.tier,
            backend: backend.name.clone(),
            kind: backend.kind,
            at,
            api_key_env: backend.api_key_env.clone().map(|name| by_key(loaded, &key("api_key_env"), name)),
            limit_s: valued(loaded, limit, tier.limit.as_secs_f64()),
            context: by_key(loaded, context.as_deref().unwrap_or("default_context"), model.context),
            price_in: model.price_in.map(|price| by_key(loaded, &own("price_in"), price)),
            price_out: model.price_out.map(|price| by_key(loaded, &own("price_out"), price)),
        }
    }
}

fn valued<T>(loaded: &Loaded, by: &By, value: T) -> Valued<T> {
    match by {
        By::Key(key) => by_key(loaded, key, value),
        By::Call => Valued { value, key: None, layer: Origin::Call.layer(), origin: None },
    }
}

fn by_key<T>(loaded: &Loaded, key: &str, value: T) -> Valued<T> {
    let origin = loaded.origin(key).unwrap_or(&Origin::BuiltIn);
    let place = match origin {
        Origin::BuiltIn | Origin::Call => None,
        Origin::File(..) | Origin::Variable(_) => Some(origin.to_string()),
    };
    Valued { value, key: Some(key.to_owned()), layer: origin.layer(), origin: place }
}
