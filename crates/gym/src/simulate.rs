//! What a policy would have cost: the same tasks walked by several policies, over outcomes that were recorded or over
//! rates that are known. Deterministic by seed. Asks no model.

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
pub use recorded::{recorded_from_gym, recorded_from_log};

/// One try of one model at one task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TryOutcome {
    pub accepted: bool,
    /// Heard and refused, so that the model may be asked once more.
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

/// Where tasks come from.
pub trait SimulatedWorld {
    /// The chain, cheapest first.
    fn tiers(&self) -> &[SimulatedTier];
    /// The next task. The same dice give the same task.
    fn draw(&self, dice: &mut fastrand::Rng) -> SimulatedTask;
}

/// One tier of a simulated chain.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedTier {
    pub model: String,
    pub kind: TierKind,
}

impl SimulatedTier {
    /// Only a local tier is asked more than once.
    fn most_tries(&self, local: usize) -> usize {
        if self.kind == TierKind::Local {
            local.max(1)
        } else {
            1
        }
    }
}

/// Models whose rates are known.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownRates {
    tiers: Vec<SimulatedTier>,
    rates: Vec<TierRates>,
    /// A task that a weaker model can do is one that a stronger one can do too; otherwise they are right independently.
    nested: bool,
}

/// How often a model is right, and what a try takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TierRates {
    pub first: f64,
    /// Within two tries.
    pub second: f64,
    pub usd: f64,
    pub seconds: f64,
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

impl SimulatedWorld for KnownRates {
    fn tiers(&self) -> &[SimulatedTier] {
        &self.tiers
    }

    fn draw(&self, dice: &mut fastrand::Rng) -> SimulatedTask {
        let shared = dice.f64();
        let turn = |rates: &TierRates| {
            let own = dice.f64();
            let difficulty = if self.nested { shared } else { own };
            let one = |accepted| TryOutcome {
                accepted,
                is_refused: !accepted,
                usd: rates.usd,
                seconds: rates.seconds,
            };
            if difficulty < rates.first {
                vec![one(true)]
            } else {
                vec![one(false), one(difficulty < rates.second)]
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

/// How a chain is walked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimulatedPolicy {
    AlwaysTop,
    /// The chain as it is written, with so many tries of a local tier.
    Static {
        tries: usize,
    },
    /// The way that looks cheapest after what was seen so far.
    Learned,
    /// Always these tiers in this order, with so many tries of a local one: what a policy is compared with.
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

/// What one call of a simulation came to.
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

/// Tries of a tier by its kind, as the shipped settings have them.
const LOCAL_TRIES: usize = 2;

/// Walks `calls` tasks. Every policy meets the same tasks for the same seed.
pub fn simulate(
    world: &dyn SimulatedWorld,
    policy: &SimulatedPolicy,
    calls: usize,
    minute_usd: f64,
    seed: u64,
) -> Vec<SimulatedCall> {
    let (mut nature, mut dice) = (
        fastrand::Rng::with_seed(seed),
        fastrand::Rng::with_seed(seed ^ 0x005e_ed0f_d1ce),
    );
    let tiers = world.tiers();
    let top = tiers.len() - 1;
    let mut known: Vec<PolicyTier> = tiers
        .iter()
        .map(|tier| PolicyTier {
            model: tier.model.clone(),
            tries: u32::try_from(tier.most_tries(LOCAL_TRIES)).unwrap_or(1),
            cell: TurnRecord::default(),
            all: TurnRecord::default(),
            prior: TierPrior::of(tier.kind, None, None),
        })
        .collect();
    let walk_one = |_| {
        let task = world.draw(&mut nature);
        let steps = |order: Vec<usize>, tries: usize| -> Vec<(usize, usize)> {
            order
                .into_iter()
                .map(|n| (n, tiers[n].most_tries(tries)))
                .collect()
        };
        let as_written = |tries| steps((0..tiers.len()).collect(), tries);
        let way = match policy {
            SimulatedPolicy::AlwaysTop => steps(vec![top], LOCAL_TRIES),
            SimulatedPolicy::Static { tries } => as_written(*tries),
            #[cfg(test)]
            SimulatedPolicy::Fixed { order, tries } => steps(order.clone(), *tries),
            SimulatedPolicy::Learned => {
                let decision = choose(&known, &task.class, minute_usd, Draw::Dice(&mut dice));
                let place = |model: &String| tiers.iter().position(|tier| tier.model == *model);
                let chosen = decision.map(|decision| {
                    let asked = decision.order.iter().zip(&decision.tries);
                    asked
                        .filter_map(|(model, tries)| Some((place(model)?, *tries as usize)))
                        .collect()
                });
                chosen.unwrap_or_else(|| as_written(LOCAL_TRIES))
            }
        };
        let mut call = SimulatedCall::default();
        for (n, most) in way {
            let tries = task.turns[n].iter().take(most).map(TryOutcome::counted);
            let Some(turn) = TurnRecord::of_tries(tries) else {
                continue;
            };
            call.accepted = turn.accepted > 0;
            call.usd += turn.usd;
            call.minutes += turn.seconds / 60.0;
            known[n].cell.add(&turn);
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
pub struct Spread {
    pub mean: f64,
    pub half_width: f64,
}

impl Spread {
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
    pub usd: Spread,
    pub minutes: Spread,
    /// Money and time together, at the price of a minute.
    pub priced: Spread,
    pub accepted: Spread,
    /// Money saved against always asking the top tier, as a share.
    pub saving: f64,
}

/// All policies over the same tasks, `seeds` times.
pub fn compare(
    world: &dyn SimulatedWorld,
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
                    world,
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
            Spread::of(&means)
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
