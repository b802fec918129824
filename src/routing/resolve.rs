//! The chain and the limits of one call: this call > the skill > its family > the general settings.
//! Resolved anew for every call, from owned values; what decided is kept beside what was decided.

use std::collections::BTreeMap;
use std::time::Duration;

use super::error::{Fault, RoutingError, Warning};
use super::keys;
use super::types::*;

/// A value, and what decided it.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen<T> {
    pub value: T,
    pub by: By,
}

/// What decided a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// The key as written in TOML; its origin is in [`super::Loaded::origin`].
    Key(String),
    Call,
}

/// The route of one call with the reason of each part.
#[derive(Debug, Clone, PartialEq)]
pub struct Choices {
    pub route: Route,
    pub chain: By,
    /// Per tier of the chain, in its order.
    pub limits: Vec<By>,
    pub verifier: By,
    pub max_attempts: By,
    pub attempts_per_tier: By,
    pub tests: By,
    pub budget_usd: By,
}

impl Routing {
    /// The chain and the limits of one call.
    pub fn route(&self, skill: &str, call: &CallOverrides) -> Result<Route, RoutingError> {
        self.choices(skill, call).map(|choices| choices.route)
    }

    /// The same, with what decided each part.
    pub fn choices(&self, skill: &str, call: &CallOverrides) -> Result<Choices, RoutingError> {
        let settings = Settings::of(self, skill)?;
        check_call(call)?;

        let chain = match &call.model {
            Some(model) => Chosen { value: vec![ModelName(model.clone())], by: By::Call },
            None => settings
                .pick("chain", |s| s.chain.clone())
                .unwrap_or_else(|| general(&["default_chain"], &self.default_chain)),
        };
        let pinned = call.model.is_some();
        let skill_limit = settings.pick("limit_s", |s| s.limit);
        let (mut tiers, mut limits) = (Vec::new(), Vec::new());
        for name in &chain.value {
            let (tier, by) = self.tier(name, call.timeout, skill_limit.as_ref())?;
            tiers.push(tier);
            limits.push(by);
        }
        let mut tiers = tiers.into_iter();
        let first = tiers.next().ok_or(RoutingError::Argument { argument: "chain", fault: Fault::Empty })?;

        let judge = match pinned {
            true => Chosen { value: Judge::Nobody, by: By::Call },
            false => settings
                .pick("verifier", |s| s.verifier.clone())
                .unwrap_or_else(|| general(&["verifier"], &self.verifier.clone().map_or(Judge::Nobody, Judge::Model))),
        };
        let verifier = match &judge.value {
            Judge::Nobody => None,
            Judge::Model(name) => {
                let (mut tier, _) = self.tier(name, None, None)?;
                tier.limit = self.limits.verifier;
                Some(tier)
            }
        };
        let max_attempts = by_call(call.max_attempts)
            .or_else(|| settings.pick("max_attempts", |s| s.max_attempts))
            .unwrap_or_else(|| general(&["max_attempts"], &self.max_attempts));
        let attempts_per_tier = settings
            .pick("attempts_per_tier", |s| s.attempts_per_tier)
            .unwrap_or_else(|| general(&["attempts_per_tier"], &self.attempts_per_tier));
        let tests = settings
            .pick("tests_s", |s| s.tests)
            .unwrap_or_else(|| general(&["limits", "tests_s"], &self.limits.tests));
        let budget_usd = by_call(call.budget_usd.map(Some))
            .or_else(|| settings.pick("budget_usd", |s| s.budget_usd.map(|usd| (usd > 0.0).then_some(usd))))
            .unwrap_or_else(|| general(&["budgets", "call_usd"], &self.budgets.call.usd));

        let route = Route {
            skill: skill.to_owned(),
            chain: Chain { first, rest: tiers.collect() },
            pinned,
            verifier,
            max_attempts: max_attempts.value,
            attempts_per_tier: attempts_per_tier.value,
            limits: Limits { tests: tests.value, ..self.limits.clone() },
            budget_usd: budget_usd.value,
            budget: Budget { usd: budget_usd.value, ..self.budgets.call },
        };
        Ok(Choices {
            route,
            chain: chain.by,
            limits,
            verifier: judge.by,
            max_attempts: max_attempts.by,
            attempts_per_tier: attempts_per_tier.by,
            tests: tests.by,
            budget_usd: budget_usd.by,
        })
    }

    /// The backend that serves a model: the one its settings name, else the one with the longest matching pattern.
    pub fn backend_for(&self, model: &str) -> Option<&Backend> {
        if let Some(named) = self.models.get(&ModelName(model.to_owned())).and_then(|m| m.backend.as_ref()) {
            return self.backends.get(named);
        }
        let fit = |pattern: &String| match pattern.strip_suffix('*') {
            Some(prefix) => model.starts_with(prefix).then_some((prefix.len(), 0)),
            None => (pattern == model).then_some((pattern.len(), 1)),
        };
        let best = |backend: &Backend| backend.models.iter().filter_map(fit).max();
        self.backends.values().filter_map(|b| best(b).map(|fit| (fit, b))).max_by_key(|(fit, _)| *fit).map(|(_, b)| b)
    }

    /// Every pattern that some backend serves.
    pub fn served(&self) -> Vec<String> {
        self.backends.values().flat_map(|b| b.models.iter().cloned()).collect()
    }

    /// The skills that settings and calls may name, families included.
    pub fn known_skills() -> impl Iterator<Item = &'static str> {
        keys::SKILLS.iter().map(|(name, _)| *name)
    }

    /// Those that a tool has. Whatever ails the others stops nobody.
    pub fn callable_skills() -> impl Iterator<Item = &'static str> {
        Self::known_skills().filter(|skill| !keys::PLANNED.contains(skill))
    }

    /// Chains with more tiers than their calls may ask.
    pub(crate) fn never_reached(&self) -> Vec<Warning> {
        let mut found: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
        for skill in Self::known_skills() {
            let Ok(route) = self.route(skill, &CallOverrides::default()) else { continue };
            let tiers = route.chain.tiers().count();
            let reached = route.max_attempts.div_ceil(route.attempts_per_tier) as usize;
            if reached < tiers {
                found.entry((tiers, reached)).or_default().push(skill.to_owned());
            }
        }
        found.into_iter().map(|((tiers, reached), skills)| Warning::NeverReached { skills, tiers, reached }).collect()
    }

    fn tier(
        &self,
        name: &ModelName,
        call: Option<Duration>,
        skill: Option<&Chosen<Duration>>,
    ) -> Result<(Tier, By), RoutingError> {
        let backend = self
            .backend_for(&name.0)
            .ok_or_else(|| RoutingError::UnknownModel { model: name.0.clone(), served: self.served() })?;
        let model = self.models.get(name).cloned().unwrap_or_else(|| Model {
            id: name.0.clone(),
            context: self.default_context,
            price_in: None,
            price_out: None,
            limit: None,
            edit_format: None,
            backend: None,
        });
        let own = model.limit.map(|limit| general(&["models", &name.0, "limit_s"], &limit));
        let limit = by_call(call).or_else(|| skill.cloned()).or(own).unwrap_or_else(|| match backend.tier {
            TierKind::Local => general(&["limits", "local_s"], &self.limits.local),
            TierKind::Subagent | TierKind::Managed => general(&["limits", "agent_s"], &self.limits.agent),
        });
        Ok((Tier { name: name.clone(), backend: backend.clone(), model, limit: limit.value }, limit.by))
    }
}

impl Backend {
    /// A key of this backend as written in TOML, for [`super::Loaded::origin`].
    pub fn key(&self, name: &str) -> String {
        keys::shown(&["backends", &self.name, name])
    }
}

impl Tier {
    /// A key of this tier's model as written in TOML, for [`super::Loaded::origin`].
    pub fn key(&self, name: &str) -> String {
        keys::shown(&["models", &self.name.0, name])
    }
}

/// The tables that hold for a skill, its own first.
struct Settings<'a> {
    tables: Vec<(&'static str, &'a Skill)>,
}

impl<'a> Settings<'a> {
    fn of(routing: &'a Routing, skill: &str) -> Result<Self, RoutingError> {
        let (own, family) =
            keys::SKILLS.iter().find(|(name, _)| *name == skill).ok_or_else(|| RoutingError::UnknownSkill {
                skill: skill.to_owned(),
                known: Routing::known_skills().map(str::to_owned).collect(),
            })?;
        let names = std::iter::once(*own).chain(*family);
        Ok(Self { tables: names.filter_map(|name| Some((name, routing.skills.get(name)?))).collect() })
    }

    fn pick<T>(&self, key: &str, value: impl Fn(&Skill) -> Option<T>) -> Option<Chosen<T>> {
        self.tables.iter().find_map(|(name, skill)| {
            Some(Chosen { value: value(skill)?, by: By::Key(keys::shown(&["skills", name, key])) })
        })
    }
}

fn general<T: Clone>(key: &[&str], value: &T) -> Chosen<T> {
    Chosen { value: value.clone(), by: By::Key(keys::shown(key)) }
}

fn by_call<T>(value: Option<T>) -> Option<Chosen<T>> {
    value.map(|value| Chosen { value, by: By::Call })
}

fn check_call(call: &CallOverrides) -> Result<(), RoutingError> {
    let wrong = |argument, takes: &str| {
        let fault = Fault::OutOfBounds { expected: takes.into(), found: None };
        Err(RoutingError::Argument { argument, fault })
    };
    if call.model.as_ref().is_some_and(|model| model.trim().is_empty()) {
        return wrong("model", "the name of a model; leave it out to use the chain");
    }
    if call.timeout.is_some_and(|t| t.is_zero()) {
        return wrong("timeout_s", "a number of seconds above 0");
    }
    if call.max_attempts == Some(0) {
        return wrong("max_attempts", "a whole number from 1 on");
    }
    if call.budget_usd.is_some_and(|usd| !(usd > 0.0 && usd.is_finite())) {
        return wrong("budget_usd", "an amount of USD above 0");
    }
    Ok(())
}
