//! Decides the next step of a walk: a pure function of the plan and the past attempts, so that the
//! tests can be a table of rules.

use std::collections::BTreeSet;

use super::Cause;
use super::work::RefusalScope;

/// What may be asked in one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WalkPlan {
    /// Cheapest first; never empty.
    pub(super) tiers: Vec<PlannedTier>,
    /// Maximum number of tiers that are asked in the whole call.
    pub(super) max_attempts: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedTier {
    pub(super) backend: String,
    pub(super) shares_quota_with: Vec<String>,
    /// Maximum number of asks of this tier while its answers are refused.
    pub(super) tries: u32,
    /// It cannot be reached now.
    pub(super) is_out: bool,
}

/// The part of an attempt that decides the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PastAttempt {
    pub(super) tier: usize,
    pub(super) cause: Cause,
    pub(super) reach: RefusalScope,
    /// It failed like the attempt before, with the same change. Asking again would give the same
    /// result.
    pub(super) repeats: bool,
}

/// The next step of a walk. Tiers are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkStep {
    Ask(usize),
    /// Recorded but not asked: it cannot be reached, or shares a quota that is used up.
    Skip(usize),
    End(WalkEnd),
}

/// Why a walk is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkEnd {
    Accepted,
    /// The last refusal is final.
    Refused,
    /// Every tier was tried.
    AllTiers,
    /// `max_attempts` was reached before every tier was tried.
    MaxAttempts,
    Budget,
    Cancelled,
}

/// Returns the step after these attempts, oldest first.
pub(super) fn decide(plan: &WalkPlan, past: &[PastAttempt]) -> WalkStep {
    let Some(last) = past.last() else {
        return step_to_tier(plan, past, 0);
    };
    let is_last_tier = last.tier + 1 == plan.tiers.len();
    match (last.cause, last.reach) {
        (Cause::Accepted, _) => return WalkStep::End(WalkEnd::Accepted),
        (Cause::Cancelled, _) => return WalkStep::End(WalkEnd::Cancelled),
        (_, RefusalScope::Call) => return WalkStep::End(WalkEnd::Refused),
        (Cause::Contradiction, _) if is_last_tier => return WalkStep::End(WalkEnd::Refused),
        (Cause::Budget, _) => return WalkStep::End(WalkEnd::Budget),
        _ => {}
    }
    if may_try_again(plan, past, last) {
        WalkStep::Ask(last.tier)
    } else {
        step_to_tier(plan, past, last.tier + 1)
    }
}

/// Asking the same model again helps only if its answer was judged and refused.
fn may_try_again(plan: &WalkPlan, past: &[PastAttempt], last: &PastAttempt) -> bool {
    let tries = past
        .iter()
        .rev()
        .take_while(|attempt| attempt.tier == last.tier)
        .count();
    last.cause == Cause::Rejected && !last.repeats && tries < plan.tiers[last.tier].tries as usize
}

/// The step to tier `number`, if it exists and may be asked.
fn step_to_tier(plan: &WalkPlan, past: &[PastAttempt], number: usize) -> WalkStep {
    let Some(tier) = plan.tiers.get(number) else {
        return WalkStep::End(WalkEnd::AllTiers);
    };
    if tier.is_out {
        return WalkStep::Skip(number);
    }
    if count_tiers(past) >= plan.max_attempts as usize {
        return WalkStep::End(WalkEnd::MaxAttempts);
    }
    let exhausted = past
        .iter()
        .filter(|attempt| attempt.reach == RefusalScope::Backend)
        .map(|a| &plan.tiers[a.tier]);
    let shares = |exhausted: &PlannedTier| {
        exhausted.backend == tier.backend || exhausted.shares_quota_with.contains(&tier.backend)
    };
    if exhausted.into_iter().any(shares) {
        WalkStep::Skip(number)
    } else {
        WalkStep::Ask(number)
    }
}

/// Number of tiers that count against `max_attempts`. Skipped ones were never asked; further tries
/// belong to their tier.
fn count_tiers(past: &[PastAttempt]) -> usize {
    let asked = past
        .iter()
        .filter(|attempt| attempt.cause != Cause::Skipped)
        .map(|attempt| attempt.tier);
    asked.collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tries` of each tier; tiers 0 and 1 share one backend.
    fn plan(tries: &[u32], max_attempts: u32) -> WalkPlan {
        let backends = ["near", "near", "far", "farther"];
        let tier = |(n, tries): (usize, &u32)| PlannedTier {
            backend: backends[n].into(),
            shares_quota_with: if n == 2 {
                vec!["farther".into()]
            } else {
                vec![]
            },
            tries: *tries,
            is_out: n == 3 && *tries == 9,
        };
        WalkPlan {
            tiers: tries.iter().enumerate().map(tier).collect(),
            max_attempts,
        }
    }

    /// Parses `0 rejected, 1 quota!, 2 rejected=`: `!` reaches the backend, `!!` the call, `=`
    /// repeats the attempt before.
    fn past(history: &str) -> Vec<PastAttempt> {
        let one = |part: &str| {
            let (tier, outcome) = part.trim().split_once(' ').expect("a tier and a cause");
            let reach = match outcome {
                s if s.ends_with("!!") => RefusalScope::Call,
                s if s.ends_with('!') => RefusalScope::Backend,
                _ => RefusalScope::Answer,
            };
            let word = outcome.trim_end_matches(['!', '=']);
            let cause = serde_json::from_value(serde_json::json!(word)).expect("a cause");
            PastAttempt {
                tier: tier.parse().expect("a number"),
                cause,
                reach,
                repeats: outcome.ends_with('='),
            }
        };
        history
            .split(',')
            .filter(|part| !part.trim().is_empty())
            .map(one)
            .collect()
    }

    #[test]
    fn each_history_has_its_next_step() {
        use WalkEnd::{Accepted, AllTiers, Budget, Cancelled, MaxAttempts, Refused};
        use WalkStep::{Ask, End, Skip};
        let one_each: &[u32] = &[1, 1, 1];
        let two_local: &[u32] = &[2, 2, 1];
        for (tries, max_attempts, history, step) in [
            (one_each, 4, "", Ask(0)),
            (one_each, 4, "0 rejected", Ask(1)),
            (one_each, 4, "0 accepted", End(Accepted)),
            (one_each, 4, "0 rejected, 1 accepted", End(Accepted)),
            (
                one_each,
                4,
                "0 rejected, 1 tampered, 2 rejected",
                End(AllTiers),
            ),
            (one_each, 4, "0 infra, 1 setup, 2 incapable", End(AllTiers)),
            (one_each, 4, "0 budget", End(Budget)),
            (one_each, 4, "0 cancelled", End(Cancelled)),
            (one_each, 4, "0 rejected!!", End(Refused)),
            // A contradiction moves to the next tier; from the last tier it is an answer.
            (one_each, 4, "0 contradiction", Ask(1)),
            (
                one_each,
                4,
                "0 rejected, 1 rejected, 2 contradiction",
                End(Refused),
            ),
            // A quota is shared by all tiers of a backend and by the backends listed in
            // `shares_quota_with`.
            (one_each, 4, "0 quota", Ask(1)),
            (one_each, 4, "0 quota!", Skip(1)),
            (one_each, 4, "0 quota!, 1 skipped", Ask(2)),
            (
                &[1, 1, 1, 1],
                4,
                "0 rejected, 1 rejected, 2 quota!",
                Skip(3),
            ),
            (
                &[1, 1, 1, 1],
                4,
                "0 rejected, 1 rejected, 2 quota!, 3 skipped",
                End(AllTiers),
            ),
            // One failure of one tier never ends the walk.
            (one_each, 4, "0 cannot_verify", Ask(1)),
            (one_each, 4, "0 skipped", Ask(1)),
            (one_each, 4, "0 refused", Ask(1)),
            // A second try only if the answer was judged and refused.
            (two_local, 4, "0 rejected", Ask(0)),
            (two_local, 4, "0 rejected, 0 rejected", Ask(1)),
            (two_local, 4, "0 tampered", Ask(1)),
            (two_local, 4, "0 infra", Ask(1)),
            (two_local, 4, "0 cannot_verify", Ask(1)),
            // The same failure twice moves on to the next tier.
            (&[3, 1], 9, "0 rejected, 0 rejected=", Ask(1)),
            (&[3, 1], 9, "0 rejected, 0 rejected", Ask(0)),
            // Further tries belong to their tier and cost no later tier its turn.
            (two_local, 3, "0 rejected", Ask(0)),
            (two_local, 3, "0 rejected, 0 rejected, 1 rejected", Ask(1)),
            (
                two_local,
                3,
                "0 rejected, 0 rejected, 1 rejected, 1 rejected",
                Ask(2),
            ),
            (&[2], 4, "0 rejected", Ask(0)),
            (&[2], 4, "0 rejected, 0 rejected", End(AllTiers)),
            (&[2], 1, "0 rejected", Ask(0)),
            // A tier that cannot be reached is recorded and not counted.
            (&[1, 1, 1, 9], 3, "0 infra, 1 infra, 2 infra", Skip(3)),
            // Skipped tiers do not count against the maximum.
            (one_each, 2, "0 rejected, 1 rejected", End(MaxAttempts)),
            (one_each, 2, "0 skipped, 1 rejected", Ask(2)),
            (one_each, 1, "0 infra", End(MaxAttempts)),
        ] {
            assert_eq!(
                decide(&plan(tries, max_attempts), &past(history)),
                step,
                "{tries:?} of {max_attempts}: {history}"
            );
        }
    }

    #[test]
    fn walk_ends_and_reaches_every_tier() {
        // Combines all causes that let a walk continue, in every order: it ends within the maximum
        // and reaches every tier.
        let causes = [
            Cause::Rejected,
            Cause::Infra,
            Cause::Tampered,
            Cause::CannotVerify,
        ];
        for tries in 1..=3 {
            for max_attempts in 3..=7 {
                let plan = plan(&[tries, tries, 1], max_attempts);
                for seed in 0..4_usize.pow(7) {
                    let (mut past, mut seed) = (Vec::new(), seed);
                    let end = loop {
                        match decide(&plan, &past) {
                            WalkStep::Ask(tier) => {
                                let cause = causes[seed % 4];
                                seed /= 4;
                                past.push(PastAttempt {
                                    tier,
                                    cause,
                                    reach: RefusalScope::Answer,
                                    repeats: false,
                                });
                            }
                            WalkStep::Skip(_) => unreachable!("no quota is used up"),
                            WalkStep::End(end) => break end,
                        }
                    };
                    assert_eq!(end, WalkEnd::AllTiers);
                    assert!(
                        past.len() <= 2 * tries as usize + 1
                            && past.iter().any(|attempt| attempt.tier == 2)
                    );
                }
            }
        }
    }
}
