//! The layers as figment stores them, each value with its source, and the last layer, which each
//! call adds.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider, Source};

use super::cross_checks;
use super::error::{Fault, Origin, Problem, RoutingError};
use super::keys;
use super::sections::{BrainSettings, Routing, SkillSettings};
use super::types::CallOverrides;

/// All layers except the call's, merged. Cheap to clone.
#[derive(Clone, Default)]
pub struct Layers {
    figment: Arc<Figment>,
    /// Line of each key in the user's file.
    lines: Arc<BTreeMap<String, usize>>,
}

/// Origin of each key and table.
type Origins = BTreeMap<String, Origin>;
/// Value of each key, as written.
type Values = BTreeMap<String, serde_json::Value>;

impl Layers {
    pub(super) fn new(figment: Figment, lines: BTreeMap<String, usize>) -> Self {
        Self {
            figment: Arc::new(figment),
            lines: Arc::new(lines),
        }
    }

    /// The checked settings, and the value of each key as written.
    pub(super) fn read(&self) -> Result<(Routing, Values), RoutingError> {
        let (origins, values) = provenance(&self.figment, &self.lines);
        let invalid = |e| invalid_value(&e, &origins);
        let mut routing: Routing = self.figment.extract().map_err(invalid)?;
        let brain: BrainSettings = self.figment.extract_inner("brain").map_err(invalid)?;
        routing.ingest_url = brain.ingest_url;
        routing.layers = self.clone();
        routing.origins = origins;
        cross_checks::complete(&mut routing).map_err(RoutingError::Invalid)?;
        Ok((routing, values))
    }

    /// The tables of all skills, with the overrides of this call for one of them.
    pub(super) fn with_call(
        &self,
        skill: &str,
        call: &CallOverrides,
    ) -> Result<(BTreeMap<String, SkillSettings>, Origins), RoutingError> {
        let mut figment = Figment::clone(&self.figment);
        for (argument, key, value) in override_settings(call) {
            let table = Dict::from([(
                skill.to_owned(),
                Value::from(Dict::from([(key.to_owned(), value)])),
            )]);
            let values = Dict::from([("skills".to_owned(), Value::from(table))]);
            figment = figment.merge(RoutingLayer::new(
                CALL,
                Some(Source::Custom(argument.to_owned())),
                values,
            ));
        }
        let (origins, _) = provenance(&figment, &self.lines);
        let skills = figment
            .extract_inner("skills")
            .map_err(|e| invalid_value(&e, &origins))?;
        Ok((skills, origins))
    }
}

/// The overrides of a call: argument, key in the skill's table, value. A pinned model is a chain of
/// one tier without a verifier.
fn override_settings(call: &CallOverrides) -> Vec<(&'static str, &'static str, Value)> {
    let mut settings = Vec::new();
    if let Some(model) = &call.model {
        settings.push(("model", "chain", Value::from(vec![model.clone()])));
        settings.push(("model", "verifier", Value::from("none")));
    }
    settings.extend(
        call.timeout
            .map(|limit| ("timeout_s", "limit_s", Value::from(limit.as_secs_f64()))),
    );
    settings.extend(
        call.max_attempts
            .map(|n| ("max_attempts", "max_attempts", Value::from(n))),
    );
    settings.extend(
        call.budget_usd
            .map(|usd| ("budget_usd", "budget_usd", Value::from(usd))),
    );
    settings.extend(
        call.twins
            .map(|count| ("twins", "twins", Value::from(count))),
    );
    settings.extend(
        call.samples
            .map(|count| ("samples", "samples", Value::from(count))),
    );
    settings
}

/// Name of the call's layer.
const CALL: &str = "call";

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Layers")
    }
}

/// Always equal: routings are compared by the values that result from their layers.
impl PartialEq for Layers {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// One layer, named by its source, so that figment keeps the source with each value.
pub(super) struct RoutingLayer {
    metadata: Metadata,
    values: Dict,
}

impl RoutingLayer {
    pub(super) fn new(name: &'static str, source: Option<Source>, values: Dict) -> Self {
        let metadata = Metadata::named(name);
        Self {
            metadata: source.into_iter().fold(metadata, Metadata::source),
            values,
        }
    }
}

impl Provider for RoutingLayer {
    fn metadata(&self) -> Metadata {
        self.metadata.clone()
    }

    fn data(&self) -> figment::Result<Map<Profile, Dict>> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

/// Origin of each key and table, and value of each key.
fn provenance(figment: &Figment, lines: &BTreeMap<String, usize>) -> (Origins, Values) {
    let (mut origins, mut values) = (BTreeMap::new(), BTreeMap::new());
    let all = figment
        .find_value("")
        .ok()
        .and_then(Value::into_dict)
        .unwrap_or_default();
    let mut pending: Vec<(Vec<String>, Value)> = all
        .into_iter()
        .map(|(name, value)| (vec![name], value))
        .collect();
    while let Some((path, value)) = pending.pop() {
        let key = keys::toml_path(&path);
        let metadata = figment.get_metadata(value.tag());
        let origin = match metadata.and_then(|m| Some((m.name.as_ref(), m.source.as_ref()?))) {
            Some((_, Source::File(file))) => Origin::File(file.clone(), lines.get(&key).copied()),
            Some((CALL, Source::Custom(argument))) => Origin::Call(argument.clone()),
            Some((_, Source::Custom(variable))) => Origin::Variable(variable.clone()),
            _ => Origin::BuiltIn,
        };
        origins.insert(key.clone(), origin);
        match value {
            Value::Dict(_, inner) => {
                pending.extend(
                    inner
                        .into_iter()
                        .map(|(name, value)| ([&path[..], &[name]].concat(), value)),
                );
            }
            leaf => {
                values.extend(serde_json::to_value(&leaf).ok().map(|value| (key, value)));
            }
        }
    }
    (origins, values)
}

/// For values that pass the table of keys but not deserialization. Never shows figment's own text,
/// because it quotes values.
fn invalid_value(error: &figment::Error, origins: &Origins) -> RoutingError {
    let key = keys::toml_path(&error.path);
    let origin = origins.get(&key).cloned().unwrap_or(Origin::BuiltIn);
    RoutingError::Invalid(vec![Problem {
        origin,
        key: Some(key),
        fault: Fault::InvalidValue,
        hint: None,
    }])
}
