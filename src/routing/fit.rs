//! Whether settings that are right one by one also fit together: every name names something, once.
//! Gathers all that does not, each with the origin of its key.

use std::collections::BTreeMap;

use super::error::{Fault, Origin, Problem};
use super::keys;
use super::types::*;
use crate::words;

/// Problems on the way, each with the origin of its key.
pub(crate) struct Found<'a> {
    origins: &'a BTreeMap<String, Origin>,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> Found<'a> {
    pub(crate) fn new(origins: &'a BTreeMap<String, Origin>) -> Self {
        Self { origins, problems: Vec::new() }
    }

    pub(crate) fn add(&mut self, path: &[&str], fault: Fault, hint: Option<&str>) {
        // A missing key has no origin; its table has.
        let origin = (1..=path.len()).rev().find_map(|n| self.origins.get(&keys::shown(&path[..n])));
        self.problems.push(Problem {
            origin: origin.cloned().unwrap_or(Origin::BuiltIn),
            key: Some(keys::shown(path)),
            fault,
            hint: hint.map(str::to_owned),
        });
    }

    /// Keys that a backend of this kind never reads. Those the user did not write are let be: they come from a
    /// built-in backend whose kind the user changed.
    pub(crate) fn not_for(&mut self, kind: BackendKind, backend: &str) {
        let Some((_, spelled, own)) = OF_KIND.iter().find(|(of, ..)| *of == kind) else { return };
        for key in OF_KIND.iter().flat_map(|(_, _, keys)| *keys).filter(|key| !own.contains(key)) {
            let path = ["backends", backend, key];
            if self.origins.get(&keys::shown(&path)).is_some_and(|origin| *origin != Origin::BuiltIn) {
                let hint = format!("kind \"{spelled}\" reads {}", words::one_of(own.iter().copied()));
                self.add(&path, Fault::NotForKind(spelled), Some(&hint));
            }
        }
    }

    /// Two backends with one pattern leave no way to tell which is meant.
    pub(crate) fn check_patterns(&mut self, backends: &BTreeMap<String, Backend>) {
        let mut owner: BTreeMap<&str, &str> = BTreeMap::new();
        for backend in backends.values() {
            for pattern in &backend.models {
                let Some(other) = owner.insert(pattern, &backend.name).filter(|other| *other != backend.name) else {
                    continue;
                };
                // Blame the one the user wrote.
                let built_in = |name: &str| {
                    self.origins.get(&keys::shown(&["backends", name, "models"])) == Some(&Origin::BuiltIn)
                };
                let (blamed, other) = if built_in(&backend.name) {
                    (other, backend.name.as_str())
                } else {
                    (backend.name.as_str(), other)
                };
                let fault = Fault::ServedTwice { pattern: pattern.clone(), other: other.to_owned() };
                let hint = format!("make one of them longer, or take it out of `backends.{other}.models`");
                self.add(&["backends", blamed, "models"], fault, Some(&hint));
            }
        }
    }

    /// Backends, chains and verifiers name only what is there.
    pub(crate) fn check_names(&mut self, routing: &Routing) {
        let known = || routing.backends.keys().map(String::as_str);
        for backend in routing.backends.values() {
            for other in backend.shares_quota_with.iter().filter(|other| !routing.backends.contains_key(*other)) {
                let hint = nearest(other, known());
                self.add(
                    &["backends", &backend.name, "shares_quota_with"],
                    Fault::NoSuchBackend(other.clone()),
                    Some(&hint),
                );
            }
        }
        for (name, model) in &routing.models {
            if let Some(backend) = model.backend.as_ref().filter(|b| !routing.backends.contains_key(*b)) {
                let hint = nearest(backend, known());
                self.add(&["models", &name.0, "backend"], Fault::NoSuchBackend(backend.clone()), Some(&hint));
            }
        }
        if !self.problems.is_empty() {
            return;
        }
        self.check_chain(routing, &["default_chain"], &routing.default_chain);
        self.check_chain(routing, &["verifier"], routing.verifier.as_slice());
        for (name, skill) in &routing.skills {
            if let Some(chain) = &skill.chain {
                self.check_chain(routing, &["skills", name, "chain"], chain);
            }
            if let Some(Judge::Model(model)) = &skill.verifier {
                self.check_chain(routing, &["skills", name, "verifier"], std::slice::from_ref(model));
            }
        }
    }

    fn check_chain(&mut self, routing: &Routing, path: &[&str], chain: &[ModelName]) {
        if chain.is_empty() && path != ["verifier"] {
            let hint = match path {
                ["skills", ..] => "leave it out to use `default_chain`",
                _ => "name at least one model",
            };
            self.add(path, Fault::Empty, Some(hint));
        }
        for model in chain.iter().filter(|model| routing.backend_for(&model.0).is_none()) {
            let mut names = routing.models.keys().map(|m| m.0.as_str()).collect::<Vec<_>>();
            names.retain(|name| routing.backend_for(name).is_some());
            names.extend((path == ["verifier"] || path.ends_with(&["verifier"])).then_some("none"));
            let hint = match words::did_you_mean(&model.0, names) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!(
                    "backends serve {}; add the name to `models` of one of them",
                    words::one_of(routing.served().iter().map(String::as_str))
                ),
            };
            self.add(path, Fault::NotServed(model.0.clone()), Some(&hint));
        }
    }
}

/// The keys that only one kind of backend reads.
const OF_KIND: &[(BackendKind, &str, &[&str])] = &[
    (BackendKind::Openai, "openai", &["base_url", "api_key_env"]),
    (BackendKind::ClaudeCli, "claude-cli", &["program", "permission_mode", "max_turns", "env_pass"]),
    (BackendKind::Replay, "replay", &["file", "program"]),
];

fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match words::did_you_mean(written, known.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there is {}", words::one_of(known)),
    }
}
