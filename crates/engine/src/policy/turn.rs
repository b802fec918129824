//! What a tier's turns came to: how they ended, what they cost and how long they took, try by try.

use serde::{Deserialize, Serialize};

use crate::{Attempt, ModelEvidence};

/// Tries after the first that are told apart: the second, and all later ones together.
pub const FURTHER_TRIES: usize = 2;

/// What a tier's turns of one kind came to. A turn is all that one call asks of one tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    pub accepted: u32,
    /// Ended rejected, unreadable or tampered.
    pub against: u32,
    /// Ended without an answer that could be judged, by no fault of the endpoint: it was not finished within its limit or
    /// cut off, or the question was too much for the model.
    #[serde(default)]
    pub unable: u32,
    /// Of the accepted ones, those accepted at the first try.
    #[serde(default)]
    pub at_first: u32,
    /// Sums over the turns that count either way.
    pub usd: f64,
    pub usd_turns: u32,
    pub seconds: f64,
    /// Of these turns, the second tries, and all later ones. A record from before they were counted has none, and what
    /// its turns took counts as taken by their first tries.
    #[serde(default)]
    pub further: [TryRecord; FURTHER_TRIES],
}

/// What tries of one number came to, given that those before them failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TryRecord {
    pub accepted: u32,
    pub lost: u32,
    pub usd: f64,
    /// Those whose price is known.
    pub usd_tries: u32,
    pub seconds: f64,
}

/// One try of a turn, as far as it is counted.
#[derive(Debug, Clone, Copy)]
pub struct CountedTry {
    /// Absent where it says nothing about the model.
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
    /// All turns that say how a turn of this tier ends.
    pub fn judged(&self) -> u32 {
        self.accepted + self.lost()
    }

    /// Those that did not end accepted, for whatever reason that is the model's own.
    pub fn lost(&self) -> u32 {
        self.against + self.unable
    }

    /// The tries of this number, counted from 0; later ones than are told apart count as the last that is.
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

    /// The turn that these attempts of one tier are, if it says something about the model.
    pub fn of_turn<'a>(attempts: impl IntoIterator<Item = &'a Attempt>) -> Option<Self> {
        let asked = attempts.into_iter().filter(|attempt| attempt.was_asked());
        Self::of_tries(asked.map(|attempt| CountedTry {
            evidence: attempt.evidence(),
            usd: attempt.cost_usd,
            seconds: attempt.duration_ms as f64 / 1000.0,
        }))
    }

    /// The turn that these tries are, if it says something about the model. A try that says nothing takes its time, and
    /// takes nothing back.
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
