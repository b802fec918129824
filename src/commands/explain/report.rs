//! The explanation as data: every value with the key and the layer that decided it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use supervisor_models::facts_of;
use supervisor_settings::{
    BackendKind, Choices, EditFormat, LoadedRouting, Origin, Samples, SettingDecision,
    SettingsLayer, Tier, TierDecisions, TierKind,
};

#[derive(Debug, Serialize)]
pub(super) struct ExplainReport {
    pub(super) sources: ReportSources,
    pub(super) warnings: Vec<String>,
    pub(super) skills: Vec<ReportSkill>,
    /// Every key that is set; `None` if a single skill was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) settings: Option<BTreeMap<String, ExplainedSetting<serde_json::Value>>>,
}

/// The sources of the settings.
#[derive(Debug, Serialize)]
pub(super) struct ReportSources {
    pub(super) file: Option<String>,
    pub(super) variables: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct ReportSkill {
    pub(super) skill: String,
    pub(super) pinned: bool,
    pub(super) chain: ExplainedSetting<Vec<ReportTier>>,
    pub(super) verifier: ExplainedSetting<Option<ReportTier>>,
    pub(super) max_attempts: ExplainedSetting<u32>,
    pub(super) tests_s: ExplainedSetting<f64>,
    pub(super) lock_wait_s: ExplainedSetting<f64>,
    pub(super) budget_usd: ExplainedSetting<Option<f64>>,
    pub(super) budget_tokens: ExplainedSetting<Option<u64>>,
    pub(super) budget_s: ExplainedSetting<Option<f64>>,
    /// The usual decision of the learned policy for each known class of tasks; empty if the policy
    /// is off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) policy: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct ReportTier {
    pub(super) model: String,
    /// The name sent to the server, where it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<ExplainedSetting<String>>,
    pub(super) tier: TierKind,
    pub(super) backend: String,
    pub(super) kind: BackendKind,
    /// How the backend is reached, as a verb for the text output.
    #[serde(skip)]
    pub(super) verb: &'static str,
    /// The backend's address, program or file.
    pub(super) at: ExplainedSetting<Option<String>>,
    /// Whether it would be asked now, or why not; `None` if that was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) now: Option<String>,
    /// The variable that holds the key; never the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api_key_env: Option<ExplainedSetting<String>>,
    pub(super) limit_s: ExplainedSetting<f64>,
    pub(super) attempts_per_tier: ExplainedSetting<u32>,
    pub(super) samples: ExplainedSetting<Samples>,
    pub(super) edit_format: ExplainedSetting<EditFormat>,
    pub(super) context: ExplainedSetting<u32>,
    pub(super) price_in: Option<ExplainedSetting<f64>>,
    pub(super) price_out: Option<ExplainedSetting<f64>>,
    /// Summary of the model's measurements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) passport: Option<String>,
}

/// A value and what decided it.
#[derive(Debug, Serialize)]
pub(super) struct ExplainedSetting<T> {
    pub(super) value: T,
    /// The key as written in TOML.
    pub(super) key: String,
    pub(super) layer: SettingsLayer,
    /// The file and line, the variable, or the argument of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<String>,
}

impl ExplainReport {
    pub(super) fn new(loaded: &LoadedRouting, skills: &[Choices], with_settings: bool) -> Self {
        let variables: BTreeSet<String> = loaded
            .routing
            .origins
            .values()
            .filter_map(|origin| match origin {
                Origin::Variable(name) => Some(name.clone()),
                Origin::BuiltIn | Origin::File(..) | Origin::Call(_) => None,
            })
            .collect();
        let settings = || {
            loaded
                .values
                .iter()
                .map(|(key, value)| (key.clone(), setting_by_key(loaded, key, value.clone())))
        };
        Self {
            sources: ReportSources {
                file: loaded.file.as_ref().map(|path| path.display().to_string()),
                variables: variables.into_iter().collect(),
            },
            warnings: loaded.warnings.iter().map(ToString::to_string).collect(),
            skills: skills
                .iter()
                .map(|choices| ReportSkill::new(loaded, choices))
                .collect(),
            settings: with_settings.then(|| settings().collect()),
        }
    }
}

impl ReportSkill {
    fn new(loaded: &LoadedRouting, choices: &Choices) -> Self {
        let route = &choices.route;
        let tiers = route.chain.tiers().zip(&choices.tiers);
        let tiers = tiers
            .map(|(tier, by)| ReportTier::new(loaded, tier, by))
            .collect();
        let limit = &choices.verifier_limit;
        let by = TierDecisions {
            limit: limit.clone(),
            attempts: limit.clone(),
            samples: limit.clone(),
            edit_format: limit.clone(),
        };
        let verifier = route
            .verifier
            .as_ref()
            .map(|tier| ReportTier::new(loaded, tier, &by));
        Self {
            skill: route.skill.clone(),
            pinned: route.pinned,
            chain: setting_from(&choices.chain, tiers),
            verifier: setting_from(&choices.verifier, verifier),
            max_attempts: setting_from(&choices.max_attempts, route.max_attempts),
            tests_s: setting_from(&choices.tests, route.limits.tests.as_secs_f64()),
            lock_wait_s: setting_by_key(
                loaded,
                "limits.lock_wait_s",
                route.limits.lock_wait.as_secs_f64(),
            ),
            budget_usd: setting_from(&choices.budget_usd, route.budget.usd),
            budget_tokens: setting_by_key(loaded, "budgets.call_tokens", route.budget.tokens),
            budget_s: setting_by_key(
                loaded,
                "budgets.call_s",
                route.budget.time.as_ref().map(Duration::as_secs_f64),
            ),
            policy: Vec::new(),
        }
    }
}

impl ReportTier {
    fn new(loaded: &LoadedRouting, tier: &Tier, by: &TierDecisions) -> Self {
        let (backend, model) = (&tier.backend, &tier.model);
        let key = |name: &str| backend.key(name);
        let place = facts_of(backend.kind).location(backend);
        let at = setting_by_key(loaded, &key(place.key), place.value);
        let model_key = |name: &str| tier.key(name);
        // A local model without a price costs nothing.
        let price = |name: &str, price: f64| {
            let own = Some(model_key(name)).filter(|key| loaded.origin(key).is_some());
            setting_by_key(loaded, &own.unwrap_or_else(|| key("tier")), price)
        };
        let context = Some(model_key("context")).filter(|key| loaded.origin(key).is_some());
        Self {
            model: tier.name.0.clone(),
            id: loaded
                .origin(&model_key("id"))
                .map(|_| setting_by_key(loaded, &model_key("id"), model.id.clone())),
            tier: backend.tier,
            backend: backend.name.clone(),
            kind: backend.kind,
            at,
            now: None,
            verb: place.verb,
            api_key_env: backend
                .api_key_env
                .clone()
                .map(|name| setting_by_key(loaded, &key("api_key_env"), name)),
            limit_s: setting_from(&by.limit, tier.limit.as_secs_f64()),
            attempts_per_tier: setting_from(&by.attempts, tier.attempts),
            samples: setting_from(&by.samples, tier.samples),
            edit_format: setting_from(&by.edit_format, tier.edit_format),
            context: setting_by_key(
                loaded,
                context.as_deref().unwrap_or("default_context"),
                model.context,
            ),
            price_in: model.price_in.map(|usd| price("price_in", usd)),
            price_out: model.price_out.map(|usd| price("price_out", usd)),
            passport: None,
        }
    }
}

fn setting_from<T>(by: &SettingDecision, value: T) -> ExplainedSetting<T> {
    let place = match &by.origin {
        Origin::BuiltIn => None,
        Origin::File(..) | Origin::Variable(_) | Origin::Call(_) => Some(by.origin.to_string()),
    };
    ExplainedSetting {
        value,
        key: by.key.clone(),
        layer: by.origin.layer(),
        origin: place,
    }
}

fn setting_by_key<T>(loaded: &LoadedRouting, key: &str, value: T) -> ExplainedSetting<T> {
    let origin = loaded.origin(key).cloned().unwrap_or(Origin::BuiltIn);
    setting_from(
        &SettingDecision {
            key: key.to_owned(),
            origin,
        },
        value,
    )
}
