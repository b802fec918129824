//! `tier`: which models can be reached at this moment, and so how far each skill's chain can be walked.
//! Looks, and asks no model. Nothing is changed and nothing is logged.

use std::collections::BTreeMap;
use std::time::Instant;

use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{App, Call, Parameters};
use crate::{Reply, Tools};
use supervisor_engine::result::{CallResult, More, Status};
use supervisor_gym::passport::PassportBook;
use supervisor_models::probe::{AddressRole, ProbedAddress};
use supervisor_models::walk::{ChainWalk, ChainWalkStep};
use supervisor_models::world::{Connectivity, World};
use supervisor_text::words;

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
    async fn tier(&self, Parameters(asked): Parameters<TierParams>, call: Call) -> Reply {
        call.progress.say("tier · asking every endpoint at once");
        Reply(answer(self.app(), &asked, &call.stop).await)
    }
}

/// Looks, and says what was seen.
pub async fn answer(app: &App, asked: &TierParams, stop: &CancellationToken) -> CallResult {
    let began = Instant::now();
    let settings = match app.settings() {
        Ok(settings) => settings,
        Err(error) => return failed(format!("the settings cannot be used: {error}")),
    };
    let (world, age) = tokio::select! {
        seen = app.world(&settings.routing, asked.refresh, stop) => seen,
        () = stop.cancelled() => return failed("the call was cancelled".into()),
    };
    let walks = world.walks(&settings.routing);
    let passports = passports(app, &walks);
    let details = Details {
        seen_s_ago: age.as_secs(),
        passports,
        ..Details::of(&world, &walks)
    };
    let mut details = serde_json::to_value(details).expect("plain data serialises");
    // Parts of it were said by servers and programs that have seen a key.
    app.redactor(&settings.routing).redact_json(&mut details);
    let duration_ms = Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
    CallResult {
        status: Status::Pass,
        message: message(&world, &walks),
        more: More {
            duration_ms,
            details,
            ..More::default()
        },
        ..empty()
    }
}

fn passports(app: &App, walks: &[ChainWalk]) -> BTreeMap<String, String> {
    let Ok(state) = app.state() else {
        return BTreeMap::new();
    };
    let book = PassportBook::of(&state);
    let steps = walks
        .iter()
        .flat_map(|walk| walk.tiers.iter().chain(&walk.verifier));
    let known = |step: &ChainWalkStep| {
        let name = step.tier.name.to_string();
        let passport = book.newest(&name).ok().flatten()?;
        Some((name, passport.summary()))
    };
    steps.filter_map(known).collect()
}

/// What was seen, small enough to be read at a glance.
#[derive(Debug, Serialize)]
struct Details {
    connectivity: u8,
    label: String,
    #[serde(skip_serializing_if = "is_zero")]
    seen_s_ago: u64,
    endpoints: Vec<Endpoint>,
    loaded: LoadedModels,
    /// Each skill's tiers that can be walked, cheapest first.
    chains: BTreeMap<&'static str, Vec<String>>,
    /// The models that chains name and that cannot be reached.
    out: Vec<Unusable>,
    /// Who judges what a local tier made; empty: gates alone decide.
    verifiers: Vec<String>,
    /// What was measured about models of the chains, in a line each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    passports: BTreeMap<String, String>,
}

/// Models that are out for one and the same reason.
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

/// What is in memory now, or why that is unknown.
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
    /// Names in chains that lead to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    serves: Vec<String>,
}

impl Details {
    fn of(world: &World, walks: &[ChainWalk]) -> Self {
        let connectivity = world.connectivity();
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
            endpoints: world.endpoints.iter().map(Endpoint::of).collect(),
            loaded: LoadedModels::of(world, walks),
            chains: walks
                .iter()
                .map(|walk| (walk.skill, names(walk.usable())))
                .collect(),
            out: Unusable::all(walks),
            verifiers,
            passports: BTreeMap::new(),
        }
    }
}

impl Unusable {
    fn all(walks: &[ChainWalk]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for step in walks
            .iter()
            .flat_map(|walk| walk.tiers.iter().chain(&walk.verifier))
        {
            let (name, Some(out)) = (step.tier.name.to_string(), &step.out) else {
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
    /// More models than a machine holds are not listed one by one.
    const MOST: usize = 16;

    fn of(world: &World, walks: &[ChainWalk]) -> Self {
        let models = match &world.loaded {
            Some(Ok(models)) => models,
            Some(Err(error)) => {
                return Self::Unknown {
                    unknown: error.to_string(),
                };
            }
            None if !world
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
        let of = |model: &supervisor_models::loaded::LoadedModel| {
            let serves =
                |step: &&ChainWalkStep| world.id_behind(&step.tier).is_some_and(|id| model.is(id));
            let mut serves = names(walks.iter().flat_map(|walk| &walk.tiers).filter(serves));
            serves.sort();
            serves.dedup();
            Model {
                id: words::cut_end(&model.id, 100).into_owned(),
                state: model.state.clone(),
                serves,
            }
        };
        Self::Models(models.iter().take(Self::MOST).map(of).collect())
    }
}

fn names<'a>(steps: impl Iterator<Item = &'a ChainWalkStep>) -> Vec<String> {
    steps.map(|step| step.tier.name.to_string()).collect()
}

fn message(world: &World, walks: &[ChainWalk]) -> String {
    let reach = match world.connectivity() {
        Connectivity::Cloud => "the cloud can be reached",
        Connectivity::LocalNetwork => "only the local network can be reached",
        Connectivity::Offline => "nothing can be reached",
    };
    let start = walks.iter().filter(|walk| walk.can_start()).count();
    let whole = walks
        .iter()
        .filter(|walk| walk.tiers.iter().all(|step| step.out.is_none()))
        .count();
    let skills = words::count(walks.len(), "skill");
    match (start, whole) {
        (0, _) => format!("{reach}; no skill can start, and `out` says what helps"),
        (n, m) if n == walks.len() && m == n => {
            format!("{reach}; all {skills} can start, with every tier")
        }
        (n, m) if n == walks.len() => {
            format!("{reach}; all {skills} can start, {m} with every tier")
        }
        (n, m) => format!("{reach}; {n} of {skills} can start, {m} with every tier"),
    }
}

fn failed(message: String) -> CallResult {
    CallResult {
        status: Status::Error,
        message,
        ..empty()
    }
}

fn empty() -> CallResult {
    CallResult {
        status: Status::Error,
        message: String::new(),
        phase: "look".into(),
        skill: "tier".into(),
        file_path: String::new(),
        runner_output: String::new(),
        verified: false,
        model_used: String::new(),
        more: More::default(),
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it by reference"
)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
