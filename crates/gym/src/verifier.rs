//! Measures a model as a verifier, with changes that pass every check and are known to be good or
//! bad.

use serde::{Deserialize, Serialize};

use supervisor_engine::policy::rate_interval;

/// A verifier that exceeds one of these rates is advised against.
const MAX_BAD_ACCEPTED_RATE: f64 = 0.5;
const MAX_GOOD_REFUSED_RATE: f64 = 0.2;
/// Minimum number of changes of a kind before advice is given.
const MIN_CHANGES: u32 = 8;

/// Judgements of a model about changes that are known to be good or bad.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct VerifierRecord {
    pub good: u32,
    pub good_refused: u32,
    pub bad: u32,
    pub bad_accepted: u32,
}

impl VerifierRecord {
    /// `refused 3 of 48 good changes (2 to 17 %), accepted 20 of 96 bad ones (14 to 30 %)`
    pub fn summary(self) -> String {
        let share = |yes: u32, of: u32| {
            let likely = rate_interval(yes as usize, of as usize);
            format!(
                "({:.0} to {:.0} %)",
                likely.low * 100.0,
                likely.high * 100.0
            )
        };
        format!(
            "refused {} of {} good changes {}, accepted {} of {} bad ones {}",
            self.good_refused,
            self.good,
            share(self.good_refused, self.good),
            self.bad_accepted,
            self.bad,
            share(self.bad_accepted, self.bad)
        )
    }

    /// Why the model should not be used as a verifier, if so.
    pub fn advice(self) -> Option<String> {
        let rate = |yes: u32, of: u32| f64::from(yes) / f64::from(of.max(1));
        let accepts_too_many =
            self.bad >= MIN_CHANGES && rate(self.bad_accepted, self.bad) > MAX_BAD_ACCEPTED_RATE;
        let refuses_too_many =
            self.good >= MIN_CHANGES && rate(self.good_refused, self.good) > MAX_GOOD_REFUSED_RATE;
        let why = match (accepts_too_many, refuses_too_many) {
            (false, false) => return None,
            (true, false) => "it accepts more than half of the bad changes",
            (false, true) => "it refuses more than a fifth of the good changes",
            (true, true) => {
                "it accepts more than half of the bad changes and refuses more than a fifth of the good ones"
            }
        };
        Some(format!(
            "{why}, so it costs more than it shows; set `verifier = \"none\"` or another model"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreliable_verifier_is_advised_against() {
        let record = |good_refused, bad_accepted| VerifierRecord {
            good: 10,
            good_refused,
            bad: 20,
            bad_accepted,
        };
        assert_eq!(record(0, 4).advice(), None);
        assert!(
            record(0, 20)
                .advice()
                .is_some_and(|advice| advice.contains("more than half of the bad"))
        );
        assert!(
            record(5, 0)
                .advice()
                .is_some_and(|advice| advice.contains("a fifth of the good"))
        );
        assert_eq!(
            VerifierRecord {
                good: 1,
                good_refused: 1,
                bad: 1,
                bad_accepted: 1
            }
            .advice(),
            None,
            "too few"
        );
        assert_eq!(
            record(1, 4).summary(),
            "refused 1 of 10 good changes (2 to 40 %), accepted 4 of 20 bad ones (8 to 42 %)"
        );
    }
}
