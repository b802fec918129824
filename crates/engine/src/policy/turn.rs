//! Record of a tier's turns: how they ended, what they cost and how long they took, per try.

use serde::{Deserialize, Serialize};

use crate::{Attempt, ModelEvidence};

/// Number of later tries that are counted separately: the second, and all further ones together.
pub(super) const FURTHER_TRIES: usize = 2;

/// Totals over a tier's turns of one kind. A turn is everything that one call asks of one tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    pub accepted: u32,
    /// Turns that ended rejected, unreadable or tampered.
    pub against: u32,
    /// Turns that ended without an answer to judge although the endpoint worked: the answer was cut
    /// off or not finished in time, or the question was too large for the model.
    #[serde(default)]
    pub unable: u32,
    /// Accepted turns that were accepted at the first try.
    #[serde(default)]
    pub at_first: u32,
    /// Sums over all turns that are counted.
    pub usd: f64,
    pub usd_turns: u32,
    pub seconds: f64,
    /// The second tries, and all later ones. Older records lack this field; all cost and time of
    /// their turns then counts for the first tries.
    #[serde(default)]
    pub further: [TryRecord; FURTHER_TRIES],
}

/// Totals over tries with the same number, given that the earlier tries failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TryRecord {
    pub accepted: u32,
    pub lost: u32,
    pub usd: f64,
    /// Tries whose price is known.
    pub usd_tries: u32,
    pub seconds: f64,
}

/// One try of a turn.
#[derive(Debug, Clone, Copy)]
pub struct CountedTry {
    /// `None` if the try says nothing about the model.
    pub evidence: Option<ModelEvidence>,
    pub usd: Option<f64>,
    pub seconds: f64,
}

impl TryRecord {
    pub fn judged(&self) -> u32 {
        self.accepted + self.lost
    }

    fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.lost += other.lost;
        self.usd += other.usd;
        self.usd_tries += other.usd_tries;
        self.seconds += other.seconds;
    }
}

impl TurnRecord {
    /// Number of turns that count.
    pub fn judged(&self) -> u32 {
        self.accepted + self.lost()
    }

    /// Number of turns that were not accepted, for a reason that lies with the model.
    pub fn lost(&self) -> u32 {
        self.against + self.unable
    }

    /// The tries with this number, from 0. Numbers beyond those counted separately share the last
    /// slot.
    pub fn tries_at(&self, number: usize) -> TryRecord {
        match number.checked_sub(1) {
            Some(further) => self.further[further.min(FURTHER_TRIES - 1)],
            None => TryRecord {
                accepted: self.at_first,
                lost: self.judged().saturating_sub(self.at_first),
                usd: self.usd - self.further.iter().map(|tries| tries.usd).sum::<f64>(),
                usd_tries: self.usd_turns,
                seconds: self.seconds - self.further.iter().map(|tries| tries.seconds).sum::<f64>(),
            },
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.against += other.against;
        self.unable += other.unable;
        self.at_first += other.at_first;
        self.usd += other.usd;
        self.usd_turns += other.usd_turns;
        self.seconds += other.seconds;
        for (own, other) in self.further.iter_mut().zip(&other.further) {
            own.add(other);
        }
    }

    /// Summarises the attempts of one tier as a turn. `None` if they say nothing about the model.
    pub fn of_turn<'a>(attempts: impl IntoIterator<Item = &'a Attempt>) -> Option<Self> {
        let asked = attempts.into_iter().filter(|attempt| attempt.was_asked());
        Self::of_tries(asked.map(|attempt| CountedTry {
            evidence: attempt.evidence(),
            usd: attempt.cost_usd,
            seconds: attempt.duration_ms as f64 / 1000.0,
        }))
    }

    /// Summarises tries as a turn. `None` if they say nothing about the model. A try without
    /// evidence adds only its cost and time.
    pub fn of_tries(tries: impl IntoIterator<Item = CountedTry>) -> Option<Self> {
        let mut turn = Self::default();
        let (mut is_priced, mut number, mut last) = (true, 0_usize, None);
        for one in tries {
            let usd = one.usd.unwrap_or_default();
            is_priced &= one.usd.is_some();
            turn.usd += usd;
            turn.seconds += one.seconds;
            let Some(evidence) = one.evidence else {
                continue;
            };
            let is_accepted = evidence == ModelEvidence::For;
            if let Some(further) = number.checked_sub(1) {
                turn.further[further.min(FURTHER_TRIES - 1)].add(&TryRecord {
                    accepted: u32::from(is_accepted),
                    lost: u32::from(!is_accepted),
                    usd,
                    usd_tries: 1,
                    seconds: one.seconds,
                });
            }
            turn.at_first = u32::from(is_accepted && number == 0);
            (number, last) = (number + 1, Some(evidence));
        }
        match last? {
            ModelEvidence::For => turn.accepted = 1,
            ModelEvidence::Against => turn.against = 1,
            ModelEvidence::Unable => turn.unable = 1,
        }
        turn.usd_turns = u32::from(is_priced);
        if !is_priced {
            turn.usd = 0.0;
            turn.further
                .iter_mut()
                .for_each(|tries| (tries.usd, tries.usd_tries) = (0.0, 0));
        }
        Some(turn)
    }
}
