//! One tier as the policy sees it: estimates for each of its tries, from its record and from
//! priors.

use super::beta::Beta;
use super::turn::{FURTHER_TRIES, TurnRecord};
use supervisor_settings::TierKind;

/// Turns at other kinds of tasks count for at most this many turns at this kind.
const BORROWED_TURNS: f64 = 6.0;
/// Weight, in turns, of the prior for a turn's cost and time.
const GUESSED_TURNS: f64 = 2.0;
/// Weight, in tries, of the previous try's rate as the prior of a try without data. It is low: a
/// model that failed mostly fails again, but then it has the test output, and published rates go
/// both ways.
const GUESSED_TRIES: f64 = 2.0;

/// One tier as the policy sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyTier {
    pub model: String,
    /// How often it may be asked while its answers are refused; at least once.
    pub tries: u32,
    /// Record for this kind of task.
    pub class_record: TurnRecord,
    /// Record for all kinds of tasks, including this one.
    pub all: TurnRecord,
    /// Used before there is any data.
    pub prior: TierPrior,
}

/// Estimates for a tier before its first turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TierPrior {
    /// Acceptance rate of a first try.
    pub acceptance: Beta,
    pub usd: f64,
    pub seconds: f64,
}

impl TierPrior {
    /// Priors by kind of tier. The cost of a turn is estimated from the prices, if known.
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
    /// Number of tries that are modelled separately.
    pub(super) fn known_tries(&self) -> usize {
        (self.tries.max(1) as usize).min(1 + FURTHER_TRIES)
    }

    /// Probability that try `number` (from 0) is accepted, given that the earlier tries failed.
    /// Tries at this kind of task count fully, other tasks count as a prior, and without data the
    /// previous try's rate is the prior.
    pub fn acceptance_at(&self, number: usize) -> Beta {
        let prior = match number.checked_sub(1) {
            None => self.prior.acceptance,
            Some(before) => {
                let mean = self.acceptance_at(before).mean();
                Beta::new(mean * GUESSED_TRIES, (1.0 - mean) * GUESSED_TRIES)
            }
        };
        let (class_record, all) = (
            self.class_record.tries_at(number),
            self.all.tries_at(number),
        );
        let (accepted, lost) = (
            all.accepted.saturating_sub(class_record.accepted),
            all.lost.saturating_sub(class_record.lost),
        );
        let others = f64::from(accepted + lost);
        let weight = if others > 0.0 {
            others.min(BORROWED_TURNS) / others
        } else {
            0.0
        };
        Beta::new(
            prior.accepted + f64::from(accepted) * weight + f64::from(class_record.accepted),
            prior.against + f64::from(lost) * weight + f64::from(class_record.lost),
        )
    }

    /// Expected cost in USD and seconds of try `number`.
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
