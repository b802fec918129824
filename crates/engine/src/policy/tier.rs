//! One tier as the policy sees it: what is believed of each of its tries, from what was seen and from what is usual.

use super::odds::Beta;
use super::turn::{FURTHER_TRIES, TurnRecord};
use supervisor_settings::TierKind;

/// How many turns of other kinds of tasks count as much as they ever may for this kind.
const BORROWED_TURNS: f64 = 6.0;
/// Turns as which the first guess of a turn's cost and time counts.
const GUESSED_TURNS: f64 = 2.0;
/// Tries as which the rate of the try before counts, for one of which nothing was seen. Few: what a model could not do it
/// mostly cannot do again, but it has the tests' output then, and published rates go both ways.
const GUESSED_TRIES: f64 = 2.0;

/// One tier as the policy sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyTier {
    pub model: String,
    /// How often it may be asked while its answers are refused, at least once.
    pub tries: u32,
    /// For this kind of task.
    pub cell: TurnRecord,
    /// For all kinds together, this one included.
    pub all: TurnRecord,
    /// Before anything is known.
    pub prior: TierPrior,
}

/// What is believed of a tier before its first turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TierPrior {
    /// Of a first try.
    pub acceptance: Beta,
    pub usd: f64,
    pub seconds: f64,
}

impl TierPrior {
    /// By the kind of tier; the prices, where known, make the guess of what a turn costs.
    pub fn of(kind: TierKind, price_in: Option<f64>, price_out: Option<f64>) -> Self {
        let guess = |tokens_in: f64, tokens_out: f64| {
            price_in
                .zip(price_out)
                .map(|(i, o)| (tokens_in * i + tokens_out * o) / 1e6)
        };
        match kind {
            TierKind::Local => Self {
                acceptance: Beta::new(1.0, 1.0),
                usd: guess(6_000.0, 1_500.0).unwrap_or(0.0),
                seconds: 45.0,
            },
            TierKind::Subagent | TierKind::Managed => Self {
                acceptance: Beta::new(4.0, 1.0),
                usd: guess(60_000.0, 3_000.0).unwrap_or(0.25),
                seconds: 60.0,
            },
        }
    }
}

impl PolicyTier {
    /// How many of its tries are told apart.
    pub(super) fn known_tries(&self) -> usize {
        (self.tries.max(1) as usize).min(1 + FURTHER_TRIES)
    }

    /// How often a try of this number, counted from 0, is accepted if those before it were not: tries at this kind of task
    /// in full, others as a prior, and the try before where nothing was seen.
    pub fn acceptance_at(&self, number: usize) -> Beta {
        let prior = match number.checked_sub(1) {
            None => self.prior.acceptance,
            Some(before) => {
                let mean = self.acceptance_at(before).mean();
                Beta::new(mean * GUESSED_TRIES, (1.0 - mean) * GUESSED_TRIES)
            }
        };
        let (cell, all) = (self.cell.tries_at(number), self.all.tries_at(number));
        let (accepted, lost) = (
            all.accepted.saturating_sub(cell.accepted),
            all.lost.saturating_sub(cell.lost),
        );
        let others = f64::from(accepted + lost);
        let weight = if others > 0.0 {
            others.min(BORROWED_TURNS) / others
        } else {
            0.0
        };
        Beta::new(
            prior.accepted + f64::from(accepted) * weight + f64::from(cell.accepted),
            prior.against + f64::from(lost) * weight + f64::from(cell.lost),
        )
    }

    /// What a try of this number costs, and how many seconds it takes.
    pub(super) fn cost_at(&self, number: usize) -> (f64, f64) {
        let guess = match number.checked_sub(1) {
            None => (self.prior.usd, self.prior.seconds),
            Some(before) => self.cost_at(before),
        };
        let seen = self.all.tries_at(number);
        let mean = |sum: f64, tries: u32, guess: f64| {
            (sum + guess * GUESSED_TURNS) / (f64::from(tries) + GUESSED_TURNS)
        };
        (
            mean(seen.usd, seen.usd_tries, guess.0),
            mean(seen.seconds, seen.judged(), guess.1),
        )
    }
}
