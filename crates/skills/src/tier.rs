//! `tier`: which models are reachable now, and which tiers of each skill's chain can be used. It
//! probes endpoints, asks no model, changes nothing and writes no log.

use std::collections::BTreeMap;
use std::time::Instant;

use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{App, Call, Parameters};
use crate::{Reply, Tools};
use supervisor_engine::policy;
use supervisor_engine::result::{CallResult, Status};
use supervisor_gym::passport::PassportBook;
use supervisor_models::availability::{Availability, Connectivity};
use supervisor_models::chain_status::{ChainStatus, TierStatus};
use supervisor_models::probe::{AddressRole, ProbedAddress};
use supervisor_settings::{CallOverrides, Routing};
use supervisor_text::words;

/// More sentences would not be read.
const MAX_ADVICE: usize = 5;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TierParams {
    /// Look again, instead of using what was seen in the last 10 seconds.
    #[serde(default)]
    pub refresh: bool,
}

#[tool_router(router = tier_tool, vis = "pub")]
impl Tools {
    /// Which models can be reached now: connectivity (1 cloud, 2 local network, 3 offline), what each endpoint
    /// answers, which models are loaded, and for each skill the tiers it can walk and why others are out.
    /// Asks no model and changes nothing.
    #[tool(annotations(
        title = "Reachable models",
        read_only_hint = true,
        destructive_hint = false,
        idempotent_hint = true,
        open_world_hint = true
    ))]
    async fn tier(&self, Parameters(params): Parameters<TierParams>, call: Call) -> Reply {
        call.progress.say("tier · asking every endpoint at once");
        Reply(answer(self.app(), &params, &call.stop).await)
    }
}

/// Probes the endpoints and reports what is reachable.
pub async fn answer(app: &App, params: &TierParams, stop: &CancellationToken) -> CallResult {
    let began = Instant::now();
    let settings = match app.settings() {
        Ok(settings) => settings,
        Err(error) => return failed(format!("the settings cannot be used: {error}")),
    };
    let (availability, age) = tokio::select! {
        seen = app.availability(&settings.routing, params.refresh, stop) => seen,
        () = stop.cancelled() => return failed("the call was cancelled".into()),
    };
    let walks = availability.chain_statuses(&settings.routing);
    let passports = passports(app, &walks);
    let details = Details {
        seen_s_ago: age.as_secs(),
        passports,
        advice: advice(app, &settings.routing),
        ..Details::of(&availability, &walks)
    };
    let mut details = serde_json::to_value(details).expect("details serialise to JSON");
    // Parts of it come from servers and programs that have seen a key.
    app.redactor(&settings.routing).redact_json(&mut details);
    let mut result = CallResult::new(
        "tier",
        "look",
        Status::Pass,
        message(&availability, &walks),
        details,
    );
    result.more.duration_ms = Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
    result
}

fn passports(app: &App, walks: &[ChainStatus]) -> BTreeMap<String, String> {
    let Ok(state) = app.state() else {
        return BTreeMap::new();
    };
    let book = PassportBook::of(&state);
    let steps = walks
        .iter()
        .flat_map(|walk| walk.tiers.iter().chain(&walk.verifier));
    let known = |step: &TierStatus| {
        let name = step.tier.name.to_string();
        let passport = book.newest(&name).ok().flatten()?;
        Some((name, passport.summary()))
    };
    steps.filter_map(known).collect()
}

/// A sentence for each kind of `tdd` task that is not expected to pay.
fn advice(app: &App, routing: &Routing) -> Vec<String> {
    let Ok(state) = app.state() else {
        return Vec::new();
    };
    let book = PassportBook::of(&state);
    let mut all = Vec::new();
    for skill in Routing::callable_skills().filter(|skill| skill.starts_with("tdd_")) {
        let Ok(route) = routing.route(skill, &CallOverrides::default()) else {
            continue;
        };
        let first = book.newest(&route.chain.first.name.0).ok().flatten();
        let classes = first.into_iter().flat_map(|passport| passport.classes);
        for class in classes.map(|record| record.class) {
            if class.skill == *skill {
                all.extend(policy::advise(&route, &book, routing, &class));
            }
        }
    }
    all.truncate(MAX_ADVICE);
    all
}

/// The details of the result, kept small.
#[derive(Debug, Serialize)]
struct Details {
    connectivity: u8,
    label: String,
    #[serde(skip_serializing_if = "is_zero")]
    seen_s_ago: u64,
    endpoints: Vec<Endpoint>,
    loaded: LoadedModels,
    /// The usable tiers of each skill, cheapest first.
    chains: BTreeMap<&'static str, Vec<String>>,
    /// Models that chains name but that cannot be reached.
    out: Vec<Unusable>,
    /// The models that verify local tiers; if empty, only the gates decide.
    verifiers: Vec<String>,
    /// One line of measurements per model.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    passports: BTreeMap<String, String>,
    /// Kinds of tasks that are not expected to pay here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    advice: Vec<String>,
}

/// Models that are unusable for the same reason.
#[derive(Debug, Serialize)]
struct Unusable {
    models: Vec<String>,
    why: String,
    hint: String,
}

#[derive(Debug, Serialize)]
struct Endpoint {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    reachable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
}

/// The models loaded now, or why that is unknown.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum LoadedModels {
    Models(Vec<Model>),
    Unknown { unknown: String },
}

#[derive(Debug, Serialize)]
struct Model {
    id: String,
    state: String,
    /// The tier names that resolve to this model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    serves: Vec<String>,
}

impl Details {
    fn of(availability: &Availability, walks: &[ChainStatus]) -> Self {
        let connectivity = availability.connectivity();
        let mut verifiers: Vec<_> = walks
            .iter()
            .filter_map(|w| w.verifier.as_ref())
            .map(|step| step.tier.name.to_string())
            .collect();
        verifiers.sort();
        verifiers.dedup();
        Self {
            connectivity: connectivity as u8,
            label: connectivity.to_string(),
            seen_s_ago: 0,
            // A server may be asked for its models and for those that are loaded.
            endpoints: availability
                .endpoints
                .iter()
                .enumerate()
                .filter(|(n, one)| {
                    let mut earlier = availability.endpoints[..*n].iter();
                    one.url.is_none() || !earlier.any(|other| other.url == one.url)
                })
                .map(|(_, one)| Endpoint::of(one))
                .collect(),
            loaded: LoadedModels::of(availability, walks),
            chains: walks
                .iter()
                .map(|walk| (walk.skill, names(walk.usable())))
                .collect(),
            out: Unusable::all(walks),
            verifiers,
            passports: BTreeMap::new(),
            advice: Vec::new(),
        }
    }
}

impl Unusable {
    fn all(walks: &[ChainStatus]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for step in walks
            .iter()
            .flat_map(|walk| walk.tiers.iter().chain(&walk.verifier))
        {
            let (name, Some(out)) = (step.tier.name.to_string(), &step.outage) else {
                continue;
            };
            match all.iter_mut().find(|known| known.why == out.why) {
                Some(known) if known.models.contains(&name) => {}
                Some(known) => known.models.push(name),
                None => all.push(Self {
                    models: vec![name],
                    why: out.why.clone(),
                    hint: out.hint.clone(),
                }),
            }
        }
        all
    }
}

impl Endpoint {
    fn of(probed: &ProbedAddress) -> Self {
        let took = probed
            .answer
            .as_ref()
            .ok()
            .map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        Self {
            name: probed.name.clone(),
            url: probed.url.clone(),
            reachable: probed.is_reachable(),
            latency_ms: took,
            why: probed.answer.as_ref().err().map(|why| why.code()),
        }
    }
}

impl LoadedModels {
    /// Max models listed.
    const MAX_MODELS: usize = 16;

    fn of(availability: &Availability, walks: &[ChainStatus]) -> Self {
        let models = match &availability.loaded {
            Some(Ok(models)) => models,
            Some(Err(error)) => {
                return Self::Unknown {
                    unknown: error.to_string(),
                };
            }
            None if !availability
                .endpoints
                .iter()
                .any(|probed| probed.role == AddressRole::Warm) =>
            {
                return Self::Unknown {
                    unknown: "`warm.kind` names no server that would know".into(),
                };
            }
            None => {
                return Self::Unknown {
                    unknown: "no server that would know can be reached".into(),
                };
            }
        };
        let of = |model: &supervisor_models::model_list::LoadedModel| {
            let serves = |step: &&TierStatus| {
                availability
                    .upstream_id(&step.tier)
                    .is_some_and(|id| model.is(id))
            };
            let mut serves = names(walks.iter().flat_map(|walk| &walk.tiers).filter(serves));
            serves.sort();
            serves.dedup();
            Model {
                id: words::cut_end(&model.id, 100).into_owned(),
                state: model.state.clone(),
                serves,
            }
        };
        Self::Models(models.iter().take(Self::MAX_MODELS).map(of).collect())
    }
}

fn names<'a>(steps: impl Iterator<Item = &'a TierStatus>) -> Vec<String> {
    steps.map(|step| step.tier.name.to_string()).collect()
}

fn message(availability: &Availability, walks: &[ChainStatus]) -> String {
    let reach = match availability.connectivity() {
        Connectivity::Cloud => "the cloud can be reached",
        Connectivity::LocalNetwork => "only the local network can be reached",
        Connectivity::Offline => "nothing can be reached",
    };
    let start = walks.iter().filter(|walk| walk.can_start()).count();
    let whole = walks
        .iter()
        .filter(|walk| walk.tiers.iter().all(|step| step.outage.is_none()))
        .count();
    let skills = words::count(walks.len(), "skill");
    match (start, whole) {
        (0, _) => format!("{reach}; no skill can start; `out` says what to do about each model"),
        (n, m) if n == walks.len() && m == n => {
            format!("{reach}; all {skills} can start, and every model can be reached")
        }
        (n, m) if n == walks.len() => {
            format!("{reach}; all {skills} can start; every model can be reached in {m} of them")
        }
        (n, m) => {
            format!("{reach}; {n} of {skills} can start; every model can be reached in {m} of them")
        }
    }
}

fn failed(message: String) -> CallResult {
    CallResult::new("tier", "look", Status::Error, message, Value::Null)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
