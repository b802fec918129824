//! Checks that references between settings resolve and are unambiguous. Collects all problems, each
//! with the origin of its key.

use std::collections::BTreeMap;

use super::backend_kinds::KINDS;
use super::error::{Fault, Origin, Problem};
use super::keys;
use super::types::*;
use supervisor_text::words;

/// Collects problems.
pub(crate) struct CrossChecks<'a> {
    origins: &'a BTreeMap<String, Origin>,
    pub problems: Vec<Problem>,
}

impl<'a> CrossChecks<'a> {
    pub(crate) fn new(origins: &'a BTreeMap<String, Origin>) -> Self {
        Self {
            origins,
            problems: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, path: &[&str], fault: Fault, hint: Option<&str>) {
        // A missing key has no origin, so use that of its table.
        let origin = (1..=path.len())
            .rev()
            .find_map(|n| self.origins.get(&keys::toml_path(&path[..n])));
        self.problems.push(Problem {
            origin: origin.cloned().unwrap_or(Origin::BuiltIn),
            key: Some(keys::toml_path(path)),
            fault,
            hint: hint.map(str::to_owned),
        });
    }

    /// Reports keys that a backend of this kind never reads. Keys that the user did not write are
    /// ignored: they come from a built-in backend whose kind the user changed.
    pub(crate) fn check_unused_keys(&mut self, kind: BackendKind, backend: &str) {
        let entry = kind.entry();
        for key in KINDS
            .iter()
            .flat_map(|other| other.keys)
            .filter(|key| !entry.keys.contains(key))
        {
            let path = ["backends", backend, key];
            let is_user_set = self
                .origins
                .get(&keys::toml_path(&path))
                .is_some_and(|origin| *origin != Origin::BuiltIn);
            let is_reported =
                |problem: &Problem| problem.key.as_deref() == Some(keys::toml_path(&path).as_str());
            if is_user_set && !self.problems.iter().any(is_reported) {
                let hint = format!(
                    "kind \"{}\" reads {}",
                    entry.name,
                    words::one_of(entry.keys.iter().copied())
                );
                self.add(&path, Fault::NotForKind(entry.name), Some(&hint));
            }
        }
    }

    /// Removes patterns from built-in backends that the user assigned to another backend.
    pub(crate) fn remove_overridden_patterns(
        &self,
        backends: &mut BTreeMap<String, BackendSettings>,
    ) {
        let built_in = |name: &str| {
            self.origins
                .get(&keys::toml_path(&["backends", name, "models"]))
                == Some(&Origin::BuiltIn)
        };
        let users: Vec<String> = backends
            .values()
            .filter(|b| !built_in(&b.name))
            .flat_map(|b| b.models.clone())
            .collect();
        for backend in backends.values_mut().filter(|b| built_in(&b.name)) {
            backend.models.retain(|pattern| !users.contains(pattern));
        }
    }

    /// Reports patterns that two backends share: it would be ambiguous which one serves the model.
    pub(crate) fn check_patterns(&mut self, backends: &BTreeMap<String, BackendSettings>) {
        let mut owner: BTreeMap<&str, &str> = BTreeMap::new();
        for backend in backends.values() {
            for pattern in &backend.models {
                let Some(other) = owner
                    .insert(pattern, &backend.name)
                    .filter(|other| *other != backend.name)
                else {
                    continue;
                };
                let current = backend.name.as_str();
                let fault = Fault::ServedTwice {
                    pattern: pattern.clone(),
                    other: other.to_owned(),
                };
                let hint =
                    format!("make one of them longer, or take it out of `backends.{other}.models`");
                self.add(&["backends", current, "models"], fault, Some(&hint));
            }
        }
    }

    /// Checks that backends, chains and verifiers name only what exists.
    pub(crate) fn check_names(&mut self, routing: &Routing) {
        let known = || routing.backends.keys().map(String::as_str);
        for backend in routing.backends.values() {
            for other in backend
                .shares_quota_with
                .iter()
                .filter(|other| !routing.backends.contains_key(*other))
            {
                let hint = suggest(other, known());
                self.add(
                    &["backends", &backend.name, "shares_quota_with"],
                    Fault::NoSuchBackend(other.clone()),
                    Some(&hint),
                );
            }
        }
        for (name, model) in &routing.models {
            if let Some(backend) = model
                .backend
                .as_ref()
                .filter(|b| !routing.backends.contains_key(*b))
            {
                let hint = suggest(backend, known());
                self.add(
                    &["models", &name.0, "backend"],
                    Fault::NoSuchBackend(backend.clone()),
                    Some(&hint),
                );
            }
        }
        if !self.problems.is_empty() {
            return;
        }
        for (key, names) in routing.names_in_use() {
            self.check_chain(routing, &key.split('.').collect::<Vec<_>>(), &names);
        }
    }

    fn check_chain(&mut self, routing: &Routing, path: &[&str], chain: &[ModelName]) {
        let is_verifier = path.ends_with(&["verifier"]);
        if chain.is_empty() && !is_verifier {
            let hint = match path {
                ["skills", ..] => "leave it out to use `default_chain`",
                _ => "name at least one model",
            };
            self.add(path, Fault::Empty, Some(hint));
        }
        for model in chain
            .iter()
            .filter(|model| routing.backend_for(&model.0).is_none())
        {
            let mut names = routing
                .models
                .keys()
                .map(|m| m.0.as_str())
                .collect::<Vec<_>>();
            names.retain(|name| routing.backend_for(name).is_some());
            names.extend(is_verifier.then_some("none"));
            let hint = match words::did_you_mean(&model.0, names) {
                Some(suggestion) => format!("did you mean `{suggestion}`?"),
                None => format!(
                    "backends serve {}; add the name to `models` of one of them",
                    words::one_of(routing.served().iter().map(String::as_str))
                ),
            };
            self.add(path, Fault::NotServed(model.0.clone()), Some(&hint));
        }
    }
}

fn suggest<'a>(input: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match words::did_you_mean(input, known.clone()) {
        Some(suggestion) => format!("did you mean `{suggestion}`?"),
        None => format!("there is {}", words::one_of(known)),
    }
}
