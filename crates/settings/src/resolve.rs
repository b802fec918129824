//! Resolves the chain and the limits of one call. Each value is looked up under several keys, most
//! specific first: the skill's own table, its family's, the model's, that of the tier's kind, the
//! general settings. The latest layer wins and, within one layer, the most specific key: a user's
//! setting always beats a built-in one. The key that decided is returned with each value.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::error::{Fault, Origin, RoutingError, Warning};
use super::keys;
use super::sections::{
    BackendKind, BackendSettings, BudgetSettings, Model, ProjectSettings, Recall, Routing, Samples,
    SkillSettings, TierKind, TimeLimits, VerifierChoice,
};
use supervisor_process::expand_home;
use url::{Host, Url};

use super::types::{CallOverrides, Chain, ModelName, Route, Tier};

/// The key that decided a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingDecision {
    /// The key as written in TOML.
    pub key: String,
    /// Where it was set.
    pub origin: Origin,
}

impl SettingDecision {
    /// What to change to get another value: the key, or the argument of the call.
    pub fn name(&self) -> String {
        match &self.origin {
            Origin::Call(argument) => argument.clone(),
            Origin::Variable(variable) => format!("${variable}"),
            Origin::BuiltIn | Origin::File(..) => self.key.clone(),
        }
    }
}

/// The route of one call, with the key that decided each part.
#[derive(Debug, Clone, PartialEq)]
pub struct Choices {
    pub route: Route,
    pub chain: SettingDecision,
    /// One per tier of the chain, in order.
    pub tiers: Vec<TierDecisions>,
    pub verifier: SettingDecision,
    pub verifier_limit: SettingDecision,
    pub max_attempts: SettingDecision,
    pub tests: SettingDecision,
    pub budget_usd: SettingDecision,
}

/// The keys that decided the parts of one tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierDecisions {
    pub limit: SettingDecision,
    pub attempts: SettingDecision,
    pub samples: SettingDecision,
    pub edit_format: SettingDecision,
}

impl Routing {
    /// The chain and the limits of one call.
    pub fn route(&self, skill: &str, call: &CallOverrides) -> Result<Route, RoutingError> {
        self.choices(skill, call).map(|choices| choices.route)
    }

    /// Like [`Self::route`], with the key that decided each part. The call's overrides are merged
    /// as the last layer.
    pub fn choices(&self, skill: &str, call: &CallOverrides) -> Result<Choices, RoutingError> {
        let tables = tables_of(skill)?;
        check_call(call)?;
        if let Some(model) = call
            .model
            .as_ref()
            .filter(|model| self.backend_for(model).is_none())
        {
            return Err(self.unknown_model(model));
        }
        let has_settings = CallOverrides {
            project_root: None,
            stay_local: false,
            ..call.clone()
        } != CallOverrides::default();
        if !has_settings {
            return self.resolve(skill, &tables, call);
        }
        let (skills, origins) = self.layers.with_call(skill, call)?;
        // A call overrides only keys of its own skill.
        Self {
            skills,
            origins,
            ..self.clone()
        }
        .resolve(skill, &tables, call)
    }

    /// The user's settings for the project that `root` is in, with their name; of several, those of
    /// the innermost.
    pub fn project(&self, root: &Path) -> Option<(&str, &ProjectSettings)> {
        let copy = self.copies.iter().find(|(copy, _)| root.starts_with(copy));
        let root = copy.map_or(root, |(_, original)| original.as_path());
        let place = |name: &str| {
            let path = expand_home(name, self.home.as_deref())?;
            Some(path.canonicalize().unwrap_or(path))
        };
        let projects = self.projects.iter();
        projects
            .filter_map(|(name, project)| Some((place(name)?, name, project)))
            .filter(|(path, ..)| root.starts_with(path))
            .max_by_key(|(path, ..)| path.components().count())
            .map(|(_, name, project)| (name.as_str(), project))
    }

    /// The test command of a project and the pattern of its reports: as given, else as the user's
    /// settings for the project say.
    pub fn test_command(
        &self,
        root: &Path,
        given: Option<String>,
        given_report: Option<String>,
    ) -> (Option<String>, Option<String>) {
        match self.project(root) {
            Some((_, project)) if given.is_none() && project.test_cmd.is_some() => (
                project.test_cmd.clone(),
                given_report.or_else(|| project.test_report.clone()),
            ),
            _ => (given, given_report),
        }
    }

    /// The linters and type checkers of a project.
    pub fn checks(&self, root: &Path) -> &[String] {
        let own = self
            .project(root)
            .and_then(|(_, project)| project.checks.as_ref());
        own.unwrap_or(&self.verify.checks)
    }

    /// Who says that nothing may leave this machine: a key, or the argument of the call.
    fn stays_local(&self, call: &CallOverrides) -> Option<String> {
        if call.stay_local {
            return Some(String::from("`stay_local`"));
        }
        let (name, project) = self.project(call.project_root.as_deref()?)?;
        let key = keys::toml_path(&["projects", name, "stay_local"]);
        (project.stay_local == Some(true)).then(|| format!("`{key}`"))
    }

    /// Whether the user named neither this tier nor the address of its backend.
    pub fn is_built_in(&self, tier: &Tier) -> bool {
        let address = keys::toml_path(&["backends", &tier.backend.name, "base_url"]);
        let is_default = |key: &str| matches!(self.origins.get(key), None | Some(Origin::BuiltIn));
        self.default_chain.contains(&tier.name)
            && is_default("default_chain")
            && is_default(&address)
    }

    /// Whether this address is on this machine or on one of `local_hosts`.
    pub fn is_local_address(&self, address: &str) -> bool {
        let Ok(url) = Url::parse(address) else {
            return false;
        };
        let is_named = |host: &str| {
            self.local_hosts
                .iter()
                .any(|named| named.eq_ignore_ascii_case(host))
        };
        match url.host() {
            Some(Host::Domain(host)) => {
                host == "localhost" || host.ends_with(".localhost") || is_named(host)
            }
            Some(Host::Ipv4(ip)) => ip.is_loopback() || is_named(&ip.to_string()),
            Some(Host::Ipv6(ip)) => ip.is_loopback() || is_named(&ip.to_string()),
            None => false,
        }
    }

    /// Whether what this backend is asked stays on this machine or on `local_hosts`.
    fn is_local(&self, backend: &BackendSettings) -> bool {
        backend.tier == TierKind::Local
            && (backend.kind == BackendKind::Replay
                || backend
                    .base_url
                    .as_deref()
                    .is_some_and(|url| self.is_local_address(url)))
    }

    fn resolve(
        &self,
        skill: &str,
        tables: &[&str],
        call: &CallOverrides,
    ) -> Result<Choices, RoutingError> {
        let pinned = call.model.is_some();
        let chain = self.chain_of(tables, call.project_root.as_deref());
        let stays_local = self.stays_local(call);
        let (mut tiers, mut decisions) = (Vec::new(), Vec::new());
        for name in &chain.value {
            let (mut tier, decision) = self.tier(name, tables)?;
            if stays_local.is_some() {
                if !self.is_local(&tier.backend) {
                    continue;
                }
                tier.instead = tier.instead.filter(|instead| self.is_local(instead));
            }
            tiers.push(tier);
            decisions.push(decision);
        }
        if let (Some(by), true) = (&stays_local, tiers.is_empty()) {
            return Err(RoutingError::StaysLocal {
                by: by.clone(),
                models: chain.value.into_iter().map(|name| name.0).collect(),
            });
        }
        let mut tiers = tiers.into_iter();
        let first = tiers.next().ok_or(RoutingError::Argument {
            argument: "chain",
            fault: Fault::Empty,
        })?;

        let judge = self.verifier_of(tables);
        let limit = self.choose(
            None,
            self.candidate(&["limits", "verifier_s"], self.limits.verifier),
        );
        let verifier = match &judge.value {
            VerifierChoice::None => None,
            VerifierChoice::Model(name) => Some(Tier {
                limit: limit.value,
                limit_by: limit.by.name(),
                ..self.tier(name, &[])?.0
            }),
        };
        let verifier = verifier
            .filter(|judge| stays_local.is_none() || self.is_local(&judge.backend))
            .map(|mut judge| {
                if stays_local.is_some() {
                    judge.instead = judge.instead.filter(|instead| self.is_local(instead));
                }
                judge
            });
        let max_attempts = self.choose(
            self.by_skill(tables, "max_attempts", |s| s.max_attempts),
            self.candidate(&["max_attempts"], self.max_attempts),
        );
        let tests = self.choose(
            self.by_skill(tables, "tests_s", |s| s.tests),
            self.candidate(&["limits", "tests_s"], self.limits.tests),
        );
        let budget_usd = self.choose(
            self.by_skill(tables, "budget_usd", |s| {
                s.budget_usd.map(|usd| (usd > 0.0).then_some(usd))
            }),
            self.candidate(&["budgets", "call_usd"], self.budgets.call.usd),
        );
        let route = Route {
            skill: skill.to_owned(),
            chain: Chain {
                first,
                rest: tiers.collect(),
            },
            pinned,
            verifier,
            max_attempts: max_attempts.value,
            limits: TimeLimits {
                tests: tests.value,
                ..self.limits.clone()
            },
            budget_usd: budget_usd.value,
            budget: BudgetSettings {
                usd: budget_usd.value,
                ..self.budgets.call
            },
            recall: self
                .by_skill(tables, "recall", |s| s.recall)
                .into_iter()
                .next()
                .map_or(Recall::Off, |r| r.value),
            twins: self
                .by_skill(tables, "twins", |s| s.twins)
                .into_iter()
                .next()
                .map_or(0, |twins| twins.value),
            repair: self.repair,
            stay_local: stays_local.is_some(),
        };
        Ok(Choices {
            route,
            chain: chain.by,
            tiers: decisions,
            verifier: judge.by,
            verifier_limit: limit.by,
            max_attempts: max_attempts.by,
            tests: tests.by,
            budget_usd: budget_usd.by,
        })
    }

    /// The backend that serves a model: the one named in its settings, otherwise the one with the
    /// longest matching pattern.
    pub fn backend_for(&self, model: &str) -> Option<&BackendSettings> {
        if let Some(named) = self
            .models
            .get(&ModelName(model.to_owned()))
            .and_then(|m| m.backend.as_ref())
        {
            return self.backends.get(named);
        }
        let specificity = |pattern: &String| match pattern.strip_suffix('*') {
            Some(prefix) => model.starts_with(prefix).then_some((prefix.len(), 0)),
            None => (pattern == model).then_some((pattern.len(), 1)),
        };
        let best = |backend: &BackendSettings| backend.models.iter().filter_map(specificity).max();
        self.backends
            .values()
            .filter_map(|b| best(b).map(|specificity| (specificity, b)))
            .max_by_key(|(specificity, _)| *specificity)
            .map(|(_, b)| b)
    }

    fn unknown_model(&self, model: &str) -> RoutingError {
        let in_use = self.names_in_use().into_values().flatten();
        let known = self.models.keys().cloned().chain(in_use);
        RoutingError::UnknownModel {
            model: model.to_owned(),
            served: self.served(),
            known: known.map(|name| name.0).collect(),
        }
    }

    /// The gateways that this call may ask which models they offer.
    pub fn gateways(&self, call: &CallOverrides) -> Vec<&BackendSettings> {
        let stays_local = self.stays_local(call).is_some();
        let gateways = self.backends.values();
        gateways
            .filter(|backend| backend.kind == BackendKind::Openai)
            .filter(|backend| !stays_local || self.is_local(backend))
            .collect()
    }

    /// All patterns that backends serve.
    pub fn served(&self) -> Vec<String> {
        self.backends
            .values()
            .flat_map(|b| b.models.iter().cloned())
            .collect()
    }

    /// The skills that settings and calls may name, including families.
    pub fn known_skills() -> impl Iterator<Item = &'static str> {
        keys::skills()
    }

    /// The skills that a tool implements. Wrong settings of the others never stop a call.
    pub fn callable_skills() -> impl Iterator<Item = &'static str> {
        Self::known_skills().filter(|skill| !keys::PLANNED.contains(skill))
    }

    /// Chains with more tiers than their calls may ask.
    pub fn unreachable_tiers(&self) -> Vec<Warning> {
        let mut found: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
        for skill in Self::known_skills() {
            let Ok(route) = self.route(skill, &CallOverrides::default()) else {
                continue;
            };
            let tiers = route.chain.tiers().count();
            // A second ask of one tier is granted only while one ask remains for each later tier.
            let reached = route.max_attempts as usize;
            if reached < tiers {
                found
                    .entry((tiers, reached))
                    .or_default()
                    .push(skill.to_owned());
            }
        }
        found
            .into_iter()
            .map(|((tiers, reached), skills)| Warning::NeverReached {
                skills,
                tiers,
                reached,
            })
            .collect()
    }

    /// Every chain and verifier in effect, with the key that sets it. Replaced ones are not
    /// included: their names need not resolve.
    pub fn names_in_use(&self) -> BTreeMap<String, Vec<ModelName>> {
        let mut used = BTreeMap::new();
        for (skill, _) in keys::SKILLS {
            let Ok(tables) = tables_of(skill) else {
                continue;
            };
            let chain = self.chain_of(&tables, None);
            used.insert(chain.by.key, chain.value);
            let judge = self.verifier_of(&tables);
            let model = match judge.value {
                VerifierChoice::None => Vec::new(),
                VerifierChoice::Model(model) => vec![model],
            };
            used.insert(judge.by.key, model);
        }
        for (name, project) in &self.projects {
            let chain = project.chain.clone().filter(|chain| !chain.is_empty());
            let key = keys::toml_path(&["projects", name, "chain"]);
            used.extend(chain.map(|chain| (key, chain)));
        }
        used
    }

    fn chain_of(&self, tables: &[&str], root: Option<&Path>) -> DecidedValue<Vec<ModelName>> {
        // An empty chain is none.
        let own = self.by_skill(tables, "chain", |s| {
            s.chain.clone().filter(|chain| !chain.is_empty())
        });
        let project = root.and_then(|root| {
            let (name, project) = self.project(root)?;
            let chain = project.chain.clone().filter(|chain| !chain.is_empty())?;
            Some(self.candidate(&["projects", name, "chain"], chain))
        });
        self.choose(
            project.into_iter().chain(own),
            self.candidate(&["default_chain"], self.default_chain.clone()),
        )
    }

    fn verifier_of(&self, tables: &[&str]) -> DecidedValue<VerifierChoice> {
        let own = self.by_skill(tables, "verifier", |s| s.verifier.clone());
        let general = self
            .verifier
            .clone()
            .map_or(VerifierChoice::None, VerifierChoice::Model);
        self.choose(own, self.candidate(&["verifier"], general))
    }

    fn tier(
        &self,
        name: &ModelName,
        tables: &[&str],
    ) -> Result<(Tier, TierDecisions), RoutingError> {
        let backend = self
            .backend_for(&name.0)
            .ok_or_else(|| self.unknown_model(&name.0))?;
        let mut model = self
            .models
            .get(name)
            .cloned()
            .unwrap_or_else(|| Model::named(name.0.clone(), self.default_context));
        // A model of one's own costs nothing unless it has a price.
        if backend.tier == TierKind::Local && model.price_in.or(model.price_out).is_none() {
            (model.price_in, model.price_out) = (Some(0.0), Some(0.0));
        }
        let own = |key: &str| ["models".to_owned(), name.0.clone(), key.to_owned()];
        let (kind, of_kind) = (backend.tier.word(), self.tiers.of(backend.tier));

        let (key, general) = match backend.tier {
            TierKind::Local => ("local_s", self.limits.local),
            TierKind::Subagent | TierKind::Managed => ("agent_s", self.limits.agent),
        };
        let usual_limit = model.limit.unwrap_or(general);
        let by_model = model
            .limit
            .map(|limit| self.candidate(&own("limit_s"), limit));
        let specific = self
            .by_skill(tables, "limit_s", |s| s.limit)
            .into_iter()
            .chain(by_model);
        let limit: DecidedValue<Duration> =
            self.choose(specific, self.candidate(&["limits", key], general));

        let by_model = model
            .attempts
            .map(|n| self.candidate(&own("attempts_per_tier"), n));
        let specific = self
            .by_skill(tables, "attempts_per_tier", |s| s.attempts_per_tier)
            .into_iter()
            .chain(by_model);
        let of_kind_attempts = self.candidate(
            &["tiers", kind, "attempts_per_tier"],
            of_kind.attempts_per_tier,
        );
        let attempts = match self.attempts_per_tier {
            None => self.choose(specific, of_kind_attempts),
            Some(n) => self.choose(
                specific.chain([of_kind_attempts]),
                self.candidate(&["attempts_per_tier"], n),
            ),
        };
        let by_model = model.samples.map(|n| self.candidate(&own("samples"), n));
        let specific = self
            .by_skill(tables, "samples", |s| s.samples)
            .into_iter()
            .chain(by_model);
        let samples = self.choose(specific, self.candidate(&["samples"], self.samples));
        let by_model = model
            .edit_format
            .map(|format| self.candidate(&own("edit_format"), format));
        let specific = self
            .by_skill(tables, "edit_format", |s| s.edit_format)
            .into_iter()
            .chain(by_model);
        let edit_format = self.choose(
            specific,
            self.candidate(&["tiers", kind, "edit_format"], of_kind.edit_format),
        );

        let tier = Tier {
            name: name.clone(),
            backend: backend.clone(),
            instead: backend
                .instead
                .as_ref()
                .and_then(|name| self.backends.get(name).cloned().map(Box::new)),
            outage: None,
            model,
            limit: limit.value,
            limit_by: limit.by.name(),
            is_shortened: matches!(limit.by.origin, Origin::Call(_)) && limit.value < usual_limit,
            attempts: attempts.value,
            samples: samples.value,
            edit_format: edit_format.value,
        };
        Ok((
            tier,
            TierDecisions {
                limit: limit.by,
                attempts: attempts.by,
                samples: samples.by,
                edit_format: edit_format.by,
            },
        ))
    }

    /// The values in the tables of a skill, its own table first.
    fn by_skill<T>(
        &self,
        tables: &[&str],
        key: &str,
        value: impl Fn(&SkillSettings) -> Option<T>,
    ) -> Vec<DecidedValue<T>> {
        let one = |table: &&str| {
            Some(self.candidate(&["skills", table, key], value(self.skills.get(*table)?)?))
        };
        tables.iter().filter_map(one).collect()
    }

    /// A value with its key and the origin of that key.
    fn candidate<T, S: AsRef<str>>(&self, key: &[S], value: T) -> DecidedValue<T> {
        let key = keys::toml_path(key);
        let origin = self.origins.get(&key).cloned().unwrap_or(Origin::BuiltIn);
        DecidedValue {
            value,
            by: SettingDecision { key, origin },
        }
    }

    /// The value of the latest layer. Within one layer the more specific one wins; it comes first.
    fn choose<T>(
        &self,
        specific: impl IntoIterator<Item = DecidedValue<T>>,
        general: DecidedValue<T>,
    ) -> DecidedValue<T> {
        let mut all = specific.into_iter().chain([general]);
        let first = all.next().expect("there is always a general value");
        all.fold(first, |best, next| {
            if next.by.origin.layer() > best.by.origin.layer() {
                next
            } else {
                best
            }
        })
    }
}

impl BackendSettings {
    /// A key of this backend as written in TOML, for [`super::LoadedRouting::origin`].
    pub fn key(&self, name: &str) -> String {
        keys::toml_path(&["backends", &self.name, name])
    }
}

impl Tier {
    /// A key of this tier's model as written in TOML, for [`super::LoadedRouting::origin`].
    pub fn key(&self, name: &str) -> String {
        keys::toml_path(&["models", &self.name.0, name])
    }

    /// The variable that sets a key of this tier's model.
    pub fn variable(&self, name: &str) -> String {
        keys::variable(&["models", &self.name.0, name])
    }
}

/// A value and the key that decided it.
struct DecidedValue<T> {
    value: T,
    by: SettingDecision,
}

/// The tables that apply to a skill, its own first.
fn tables_of(skill: &str) -> Result<Vec<&'static str>, RoutingError> {
    let (own, family) = keys::SKILLS
        .iter()
        .find(|(name, _)| *name == skill)
        .ok_or_else(|| RoutingError::UnknownSkill {
            skill: skill.to_owned(),
            known: Routing::known_skills().map(str::to_owned).collect(),
        })?;
    Ok(std::iter::once(*own).chain(*family).collect())
}

fn check_call(call: &CallOverrides) -> Result<(), RoutingError> {
    let wrong = |argument, takes: &str| {
        let fault = Fault::OutOfBounds {
            expected: takes.into(),
            found: None,
        };
        Err(RoutingError::Argument { argument, fault })
    };
    if call
        .model
        .as_ref()
        .is_some_and(|model| model.trim().is_empty())
    {
        return wrong(
            "model",
            "the name of a model; leave it out to use the chain",
        );
    }
    if call.timeout.is_some_and(|t| t.is_zero()) {
        return wrong("timeout_s", "a number of seconds above 0");
    }
    if call.max_attempts == Some(0) {
        return wrong("max_attempts", "a whole number from 1 on");
    }
    if call.twins.is_some_and(|count| count > 20) {
        return wrong("twins", "a whole number from 0 to 20");
    }
    if call
        .samples
        .is_some_and(|count| !(1..=Samples::MAX).contains(&count))
    {
        return wrong("samples", "a whole number from 1 to 16");
    }
    if call
        .budget_usd
        .is_some_and(|usd| !(usd > 0.0 && usd.is_finite()))
    {
        return wrong("budget_usd", "an amount of USD above 0");
    }
    Ok(())
}
