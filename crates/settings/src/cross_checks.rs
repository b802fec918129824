//! Checks that references between settings resolve and are unambiguous. Collects all problems, each
//! with the origin of its key.

use std::collections::BTreeMap;

use super::backend_kinds::{self, KINDS};
use super::error::{Fault, Origin, Problem};
use super::keys;
use super::sections::{BackendSettings, Routing};
use super::types::ModelName;
use supervisor_text::words;

/// Fills in what follows from other settings and checks all references. Returns every problem.
pub(crate) fn complete(routing: &mut Routing) -> Result<(), Vec<Problem>> {
    let mut checks = CrossChecks::new(&routing.origins);
    for (name, backend) in &mut routing.backends {
        backend.name.clone_from(name);
        // People copy URLs with and without the version.
        backend.base_url = backend.base_url.take().map(|url| {
            let url = url.strip_suffix("/v1").unwrap_or(&url);
            url.trim_end_matches('/').to_owned()
        });
        checks.check_backend(backend);
    }
    checks.remove_overridden_patterns(&mut routing.backends);
    checks.check_patterns(&routing.backends);
    for (name, model) in &mut routing.models {
        if model.id.is_empty() {
            model.id.clone_from(&name.0);
        }
        if model.context == 0 {
            model.context = routing.default_context;
        }
    }
    routing.breaker.max_cooldown = routing.breaker.max_cooldown.max(routing.breaker.cooldown);
    if cfg!(not(feature = "database")) && routing.team.database.is_some() {
        checks.add(&["team", "database"], Fault::NotBuilt("database"), None);
    }
    // With a wrong backend, its models would only look unserved.
    if checks.problems.is_empty() {
        checks.check_names(routing);
    }
    match checks.problems {
        problems if problems.is_empty() => Ok(()),
        problems => Err(problems),
    }
}

/// Collects problems.
struct CrossChecks<'a> {
    origins: &'a BTreeMap<String, Origin>,
    problems: Vec<Problem>,
}

impl<'a> CrossChecks<'a> {
    fn new(origins: &'a BTreeMap<String, Origin>) -> Self {
        Self {
            origins,
            problems: Vec::new(),
        }
    }

    fn add(&mut self, path: &[&str], fault: Fault, hint: Option<&str>) {
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

    fn check_backend(&mut self, backend: &BackendSettings) {
        let entry = backend.kind.entry();
        let path = |key| ["backends", backend.name.as_str(), key];
        let is_set = |key| self.origins.contains_key(&keys::toml_path(&path(key)));
        let (has_kind, has_tier) = (is_set("kind"), is_set("tier"));
        let mut missing = |key, hint: &str| self.add(&path(key), Fault::Missing, Some(hint));
        if backend.models.is_empty() {
            let hint = r#"say which model names it serves: models = ["mine/*"]"#;
            missing("models", hint);
        }
        if !has_tier {
            let hint = "say where it ranks: `local`, `subagent` or `managed`";
            missing("tier", hint);
        }
        if !has_kind {
            let names = words::one_of(backend_kinds::names());
            missing("kind", &format!("say how it is spoken to: {names}"));
            return;
        }
        let (needed, hint) = entry.needs;
        let value = match needed {
            "base_url" => &backend.base_url,
            "program" => &backend.program,
            // A server of one's own may want no key.
            "api_key_env" if backend.base_url.is_some() => &backend.base_url,
            "api_key_env" => &backend.api_key_env,
            _ => &backend.file,
        };
        if value.is_none() {
            missing(needed, hint);
        }
        self.check_unused_keys(backend);
    }

    /// Reports keys that a backend of this kind never reads. Keys that the user did not write are
    /// ignored: they come from a built-in backend whose kind the user changed.
    fn check_unused_keys(&mut self, backend: &BackendSettings) {
        let entry = backend.kind.entry();
        let mut read: Vec<&str> = entry.keys.to_vec();
        for key in KINDS.iter().flat_map(|kind| kind.keys) {
            if read.contains(key) {
                continue;
            }
            read.push(key);
            let path = ["backends", backend.name.as_str(), key];
            let origin = self.origins.get(&keys::toml_path(&path));
            if origin.is_some_and(|origin| *origin != Origin::BuiltIn) {
                let keys = words::one_of(entry.keys.iter().copied());
                let hint = format!("kind \"{}\" reads {keys}", entry.name);
                self.add(&path, Fault::NotForKind(entry.name), Some(&hint));
            }
        }
    }

    /// Removes patterns from built-in backends that the user assigned to another backend.
    fn remove_overridden_patterns(&self, backends: &mut BTreeMap<String, BackendSettings>) {
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
    fn check_patterns(&mut self, backends: &BTreeMap<String, BackendSettings>) {
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
    fn check_names(&mut self, routing: &Routing) {
        let known = || routing.backends.keys().map(String::as_str);
        for backend in routing.backends.values() {
            let quota = backend.shares_quota_with.iter();
            let others = quota.map(|other| ("shares_quota_with", other));
            let others = others.chain(backend.instead.iter().map(|other| ("instead", other)));
            for (key, other) in others.filter(|(_, other)| !routing.backends.contains_key(*other)) {
                let hint = suggest(other, known());
                self.add(
                    &["backends", &backend.name, key],
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
            self.add(path, Fault::Empty, Some("name at least one model"));
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
