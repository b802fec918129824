//! What a tier's turns came to: how they ended, what they cost and how long they took.

use serde::{Deserialize, Serialize};

use crate::engine::{Attempt, ModelEvidence};

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

    pub fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.against += other.against;
        self.unable += other.unable;
        self.at_first += other.at_first;
        self.usd += other.usd;
        self.usd_turns += other.usd_turns;
        self.seconds += other.seconds;
    }

    /// Counts one turn that ended like this.
    pub fn count(&mut self, ended: ModelEvidence) {
        match ended {
            ModelEvidence::For => self.accepted += 1,
            ModelEvidence::Against => self.against += 1,
            ModelEvidence::Unable => self.unable += 1,
        }
    }

    /// The turn that these attempts of one tier are, if it says something about the model.
    pub fn of_turn<'a>(attempts: impl IntoIterator<Item = &'a Attempt>) -> Option<Self> {
        let mut turn = Self::default();
        let (mut usd, mut last) = (Some(0.0), None);
        for (number, attempt) in attempts.into_iter().filter(|attempt| attempt.was_asked()).enumerate() {
            usd = usd.zip(attempt.cost_usd).map(|(sum, cost)| sum + cost);
            turn.seconds += attempt.duration_ms as f64 / 1000.0;
            // What says nothing about the model takes nothing back.
            if let Some(evidence) = attempt.evidence() {
                last = Some(evidence);
                turn.at_first = u32::from(evidence == ModelEvidence::For && number == 0);
            }
        }
        turn.count(last?);
        if let Some(usd) = usd {
            (turn.usd, turn.usd_turns) = (usd, 1);
        }
        Some(turn)
    }
}
