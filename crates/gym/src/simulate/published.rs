//! Published success rates of models, as simulations.

use serde::Deserialize;

use super::{KnownRates, SimulatedTier, TierRates};
use supervisor_settings::TierKind;

/// A chain of models with published rates.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedScenario {
    pub name: String,
    /// Models are right independently of each other.
    pub independent: KnownRates,
    /// A stronger model solves every task that a weaker one solves.
    pub nested: KnownRates,
    /// Source of each figure.
    pub sources: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedFile {
    scenario: Vec<ScenarioText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioText {
    name: String,
    tiers: Vec<RateText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RateText {
    model: String,
    kind: TierKind,
    first: f64,
    second: Option<f64>,
    usd: f64,
    seconds: f64,
    source: String,
}

/// The scenarios of `published.toml`.
pub fn published_scenarios() -> Vec<PublishedScenario> {
    let file: PublishedFile = toml::from_str(include_str!("../published.toml"))
        .expect("a test reads the published rates");
    file.scenario
        .into_iter()
        .map(PublishedScenario::from)
        .collect()
}

impl From<ScenarioText> for PublishedScenario {
    fn from(text: ScenarioText) -> Self {
        let tier = |text: &RateText| {
            let rates = TierRates {
                first: text.first,
                second: text.second.unwrap_or(text.first),
                usd: text.usd,
                seconds: text.seconds,
                samples: 1,
            };
            (
                SimulatedTier {
                    model: text.model.clone(),
                    kind: text.kind,
                },
                rates,
            )
        };
        let source = |nested| KnownRates::new(text.tiers.iter().map(tier).collect(), nested);
        let sources = text
            .tiers
            .iter()
            .map(|tier| format!("{}: {}", tier.model, tier.source))
            .collect();
        Self {
            name: text.name.clone(),
            independent: source(false),
            nested: source(true),
            sources,
        }
    }
}
