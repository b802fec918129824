//! Simulates policies: several policies handle the same tasks, with recorded outcomes or known
//! rates. Deterministic by seed, without asking a model.

mod published;
mod recorded;
#[cfg(test)]
mod tests;

use serde::Serialize;

use supervisor_engine::ModelEvidence;
use supervisor_engine::policy::{
    CountedTry, Draw, PolicyTier, TaskClass, TierPrior, TurnRecord, choose,
};
use supervisor_settings::TierKind;

pub use published::published_scenarios;
pub use recorded::{RecordedTasks, recorded_from_gym, recorded_from_log};

/// One try of one model at one task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TryOutcome {
    pub accepted: bool,
    /// Judged and refused, so that the model may be asked once more.
    pub is_refused: bool,
    pub usd: f64,
    pub seconds: f64,
}

impl TryOutcome {
    fn counted(&self) -> CountedTry {
        let evidence = if self.accepted {
            ModelEvidence::For
        } else {
            ModelEvidence::Against
        };
        CountedTry {
            evidence: Some(evidence),
            usd: Some(self.usd),
            seconds: self.seconds,
        }
    }
}

/// What one model would do with one task: its tries, in order, until one is accepted. Never empty.
pub type TurnOutcome = Vec<TryOutcome>;

/// One task, with what each tier of the chain would do.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedTask {
    pub class: TaskClass,
    pub turns: Vec<TurnOutcome>,
}

/// A source of tasks.
pub trait TaskSource {
    /// The chain, cheapest first.
    fn tiers(&self) -> &[SimulatedTier];
    /// The next task. The same random numbers give the same task.
    fn draw(&self, rng: &mut fastrand::Rng) -> SimulatedTask;
}

/// One tier of a simulated chain.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedTier {
    pub model: String,
    pub kind: TierKind,
}

impl SimulatedTier {
    /// Only local tiers are asked more than once.
    fn max_tries(&self, local: usize) -> usize {
        if self.kind == TierKind::Local {
            local.max(1)
        } else {
            1
        }
    }
}

/// Models with known rates.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownRates {
    tiers: Vec<SimulatedTier>,
    rates: Vec<TierRates>,
    /// Whether a stronger model solves every task that a weaker one solves; otherwise they are
    /// independent.
    nested: bool,
}

/// How often a model is right, and the cost of a try.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TierRates {
    pub first: f64,
    /// Within two tries.
    pub second: f64,
    pub usd: f64,
    pub seconds: f64,
    /// Answers to the first ask; each takes the above.
    pub samples: u32,
}

impl KnownRates {
    pub fn new(tiers: Vec<(SimulatedTier, TierRates)>, nested: bool) -> Self {
        let (tiers, rates) = tiers.into_iter().unzip();
        Self {
            tiers,
            rates,
            nested,
        }
    }
}

impl KnownRates {
    /// The same models, where the first ask of a local one brings this many answers. They are right
    /// independently of each other, unless a task is either within a model's reach or not (`nested`):
    /// then more of them gain nothing. Each costs as much as the first.
    #[must_use]
    pub fn with_samples(&self, samples: u32) -> Self {
        let within = |rate: f64| match self.nested {
            true => rate,
            false => 1.0 - (1.0 - rate).powi(i32::try_from(samples.max(1)).unwrap_or(i32::MAX)),
        };
        let sampled = |(tier, rates): (&SimulatedTier, &TierRates)| {
            if tier.kind != TierKind::Local {
                return *rates;
            }
            // The second try brings one answer, as before.
            let again = (rates.second - rates.first) / (1.0 - rates.first).max(1e-9);
            let first = within(rates.first);
            TierRates {
                first,
                second: first + (1.0 - first) * again,
                samples: samples.max(1),
                ..*rates
            }
        };
        let rates = self.tiers.iter().zip(&self.rates).map(sampled).collect();
        Self {
            rates,
            ..self.clone()
        }
    }
}

impl TaskSource for KnownRates {
    fn tiers(&self) -> &[SimulatedTier] {
        &self.tiers
    }

    fn draw(&self, rng: &mut fastrand::Rng) -> SimulatedTask {
        let shared = rng.f64();
        let turn = |rates: &TierRates| {
            let own = rng.f64();
            let difficulty = if self.nested { shared } else { own };
            let one = |accepted, answers: u32| TryOutcome {
                accepted,
                is_refused: !accepted,
                usd: rates.usd * f64::from(answers),
                seconds: rates.seconds * f64::from(answers),
            };
            if difficulty < rates.first {
                vec![one(true, rates.samples)]
            } else {
                let second = one(difficulty < rates.second, 1);
                vec![one(false, rates.samples), second]
            }
        };
        let turns = self.rates.iter().map(turn).collect();
        let class = TaskClass {
            skill: "tdd_green".into(),
            language: "any".into(),
            size: supervisor_engine::policy::TaskSize::Small,
        };
        SimulatedTask { class, turns }
    }
}

/// How a chain is handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimulatedPolicy {
    AlwaysTop,
    /// The configured chain, with this many tries of a local tier.
    Static {
        tries: usize,
    },
    /// The order that looks cheapest from what was seen so far.
    Learned,
    /// Always these tiers in this order, with this many tries of a local one; for comparison.
    #[cfg(test)]
    Fixed {
        order: Vec<usize>,
        tries: usize,
    },
}

impl SimulatedPolicy {
    pub fn name(&self) -> String {
        match self {
            Self::AlwaysTop => "always the top tier".into(),
            Self::Static { tries: 1 } => "static chain, one try".into(),
            Self::Static { tries } => format!("static chain, {tries} tries"),
            Self::Learned => "learned".into(),
            #[cfg(test)]
            Self::Fixed { order, tries } => format!("fixed {order:?}, {tries} tries"),
        }
    }
}

/// Result of one simulated call.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SimulatedCall {
    pub usd: f64,
    pub minutes: f64,
    pub accepted: bool,
}

impl SimulatedCall {
    pub fn priced(&self, minute_usd: f64) -> f64 {
        self.usd + self.minutes * minute_usd
    }
}

/// Tries of a local tier in the shipped settings.
const LOCAL_TRIES: usize = 2;

/// Simulates `calls` tasks. For the same seed, every policy gets the same tasks.
pub fn simulate(
    source: &dyn TaskSource,
    policy: &SimulatedPolicy,
    calls: usize,
    minute_usd: f64,
    seed: u64,
) -> Vec<SimulatedCall> {
    let (mut task_rng, mut rng) = (
        fastrand::Rng::with_seed(seed),
        fastrand::Rng::with_seed(seed ^ 0x005e_ed0f_d1ce),
    );
    let tiers = source.tiers();
    let top = tiers.len() - 1;
    let mut known: Vec<PolicyTier> = tiers
        .iter()
        .map(|tier| PolicyTier {
            model: tier.model.clone(),
            tries: u32::try_from(tier.max_tries(LOCAL_TRIES)).unwrap_or(1),
            class_record: TurnRecord::default(),
            all: TurnRecord::default(),
            prior: TierPrior::of(tier.kind, None, None),
        })
        .collect();
    let walk_one = |_| {
        let task = source.draw(&mut task_rng);
        let steps = |order: Vec<usize>, tries: usize| -> Vec<(usize, usize)> {
            order
                .into_iter()
                .map(|n| (n, tiers[n].max_tries(tries)))
                .collect()
        };
        let configured = |tries| steps((0..tiers.len()).collect(), tries);
        let plan = match policy {
            SimulatedPolicy::AlwaysTop => steps(vec![top], LOCAL_TRIES),
            SimulatedPolicy::Static { tries } => configured(*tries),
            #[cfg(test)]
            SimulatedPolicy::Fixed { order, tries } => steps(order.clone(), *tries),
            SimulatedPolicy::Learned => {
                let decision = choose(&known, &task.class, minute_usd, Draw::Random(&mut rng));
                let place = |model: &String| tiers.iter().position(|tier| tier.model == *model);
                let chosen = decision.map(|decision| {
                    let asked = decision.order.iter().zip(&decision.tries);
                    asked
                        .filter_map(|(model, tries)| Some((place(model)?, *tries as usize)))
                        .collect()
                });
                chosen.unwrap_or_else(|| configured(LOCAL_TRIES))
            }
        };
        let mut call = SimulatedCall::default();
        for (n, max_tries) in plan {
            let tries = task.turns[n]
                .iter()
                .take(max_tries)
                .map(TryOutcome::counted);
            let Some(turn) = TurnRecord::of_tries(tries) else {
                continue;
            };
            call.accepted = turn.accepted > 0;
            call.usd += turn.usd;
            call.minutes += turn.seconds / 60.0;
            known[n].class_record.add(&turn);
            known[n].all.add(&turn);
            if call.accepted {
                break;
            }
        }
        call
    };
    (0..calls).map(walk_one).collect()
}

/// A mean over seeds, with the half-width of its 95 % interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct MeanInterval {
    pub mean: f64,
    pub half_width: f64,
}

impl MeanInterval {
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        if values.is_empty() {
            return Self::default();
        }
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        Self {
            mean,
            half_width: 1.96 * (variance / n).sqrt(),
        }
    }
}

/// One policy over all seeds; figures are per call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicySummary {
    pub policy: String,
    pub usd: MeanInterval,
    pub minutes: MeanInterval,
    /// Money and time together, at the price of a minute.
    pub priced: MeanInterval,
    pub accepted: MeanInterval,
    /// Share of money saved compared with always asking the top tier.
    pub saving: f64,
}

/// Runs all policies over the same tasks, `seeds` times.
pub fn compare(
    source: &dyn TaskSource,
    calls: usize,
    seeds: u64,
    first_seed: u64,
    minute_usd: f64,
) -> Vec<PolicySummary> {
    let policies = [
        SimulatedPolicy::AlwaysTop,
        SimulatedPolicy::Static { tries: 1 },
        SimulatedPolicy::Static { tries: 2 },
        SimulatedPolicy::Learned,
    ];
    let mut all: Vec<PolicySummary> = Vec::new();
    for policy in policies {
        let runs: Vec<Vec<SimulatedCall>> = (0..seeds)
            .map(|n| {
                simulate(
                    source,
                    &policy,
                    calls,
                    minute_usd,
                    first_seed.wrapping_add(n),
                )
            })
            .collect();
        let per_call = |value: &dyn Fn(&SimulatedCall) -> f64| {
            let means: Vec<f64> = runs
                .iter()
                .map(|run| run.iter().map(value).sum::<f64>() / calls.max(1) as f64)
                .collect();
            MeanInterval::of(&means)
        };
        let usd = per_call(&|call| call.usd);
        let top = all.first().map_or(usd.mean, |top| top.usd.mean);
        all.push(PolicySummary {
            policy: policy.name(),
            usd,
            minutes: per_call(&|call| call.minutes),
            priced: per_call(&|call| call.priced(minute_usd)),
            accepted: per_call(&|call| f64::from(u8::from(call.accepted))),
            saving: if top > 0.0 { 1.0 - usd.mean / top } else { 0.0 },
        });
    }
    all
}
