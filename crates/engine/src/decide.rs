//! What follows an attempt: a pure function of what was planned and what happened, so that every rule of the walk is a
//! row of a table. Asks no model and touches nothing.

use super::Cause;
use super::work::RefusalReach;

/// What may be asked in one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WalkPlan {
    /// Cheapest first; never empty.
    pub(super) tiers: Vec<PlannedTier>,
    /// Asks in the whole call.
    pub(super) max_attempts: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedTier {
    pub(super) backend: String,
    pub(super) shares_quota_with: Vec<String>,
    /// Asks of this tier while its answers are refused.
    pub(super) tries: u32,
}

/// One attempt, as far as it decides what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PastAttempt {
    pub(super) tier: usize,
    pub(super) cause: Cause,
    pub(super) reach: RefusalReach,
    /// It failed as the attempt before did, with the same change: asking once more would show the same again.
    pub(super) repeats: bool,
}

/// What the walk does next. Tiers are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkStep {
    Ask(usize),
    /// Noted and not asked, because it shares a quota that is used up.
    Skip(usize),
    End(WalkEnd),
}

/// Why a walk is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkEnd {
    Accepted,
    /// The last word is a no that stands.
    Refused,
    /// Every tier was tried.
    AllTiers,
    /// `max_attempts` was reached before every tier was tried.
    MaxAttempts,
    Budget,
    Cancelled,
}

/// The step after these attempts, oldest first.
pub(super) fn decide(plan: &WalkPlan, past: &[PastAttempt]) -> WalkStep {
    let Some(last) = past.last() else {
        return reach(plan, past, 0);
    };
    let is_last_tier = last.tier + 1 == plan.tiers.len();
    match (last.cause, last.reach) {
        (Cause::Accepted, _) => return WalkStep::End(WalkEnd::Accepted),
        (Cause::Cancelled, _) => return WalkStep::End(WalkEnd::Cancelled),
        (_, RefusalReach::Call) => return WalkStep::End(WalkEnd::Refused),
        (Cause::Contradiction, _) if is_last_tier => return WalkStep::End(WalkEnd::Refused),
        (Cause::Budget, _) => return WalkStep::End(WalkEnd::Budget),
        _ => {}
    }
    if may_try_again(plan, past, last) {
        WalkStep::Ask(last.tier)
    } else {
        reach(plan, past, last.tier + 1)
    }
}

/// Asking the same model again helps only where it was heard and refused, and must not cost a later tier its turn.
fn may_try_again(plan: &WalkPlan, past: &[PastAttempt], last: &PastAttempt) -> bool {
    let tries = past
        .iter()
        .rev()
        .take_while(|attempt| attempt.tier == last.tier)
        .count();
    let later = plan.tiers.len() - last.tier - 1;
    last.cause == Cause::Rejected
        && !last.repeats
        && tries < plan.tiers[last.tier].tries as usize
        && asks(past) + 1 + later <= plan.max_attempts as usize
}

/// The tier with this number, if there is one and leave to ask it.
fn reach(plan: &WalkPlan, past: &[PastAttempt], number: usize) -> WalkStep {
    let Some(tier) = plan.tiers.get(number) else {
        return WalkStep::End(WalkEnd::AllTiers);
    };
    if asks(past) >= plan.max_attempts as usize {
        return WalkStep::End(WalkEnd::MaxAttempts);
    }
    let dry = past
        .iter()
        .filter(|attempt| attempt.reach == RefusalReach::Backend)
        .map(|a| &plan.tiers[a.tier]);
    let shares = |dry: &PlannedTier| {
        dry.backend == tier.backend || dry.shares_quota_with.contains(&tier.backend)
    };
    if dry.into_iter().any(shares) {
        WalkStep::Skip(number)
    } else {
        WalkStep::Ask(number)
    }
}

/// Attempts that used up one of those a call may make. What was skipped was never asked.
fn asks(past: &[PastAttempt]) -> usize {
    past.iter()
        .filter(|attempt| attempt.cause != Cause::Skipped)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tries` of each tier; tiers `a` and `b` are one backend, `c` is another.
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
        };
        WalkPlan {
            tiers: tries.iter().enumerate().map(tier).collect(),
            max_attempts,
        }
    }

    /// `0 rejected, 1 quota!, 2 rejected=`: `!` reaches the backend, `!!` the call, `=` repeats the attempt before.
    fn past(story: &str) -> Vec<PastAttempt> {
        let one = |part: &str| {
            let (tier, said) = part.trim().split_once(' ').expect("a tier and a cause");
            let reach = match said {
                s if s.ends_with("!!") => RefusalReach::Call,
                s if s.ends_with('!') => RefusalReach::Backend,
                _ => RefusalReach::Answer,
            };
            let word = said.trim_end_matches(['!', '=']);
            let cause = serde_json::from_value(serde_json::json!(word)).expect("a cause");
            PastAttempt {
                tier: tier.parse().expect("a number"),
                cause,
                reach,
                repeats: said.ends_with('='),
            }
        };
        story
            .split(',')
            .filter(|part| !part.trim().is_empty())
            .map(one)
            .collect()
    }

    #[test]
    fn each_story_has_its_next_step() {
        use WalkEnd::{Accepted, AllTiers, Budget, Cancelled, MaxAttempts, Refused};
        use WalkStep::{Ask, End, Skip};
        let one_each: &[u32] = &[1, 1, 1];
        let two_local: &[u32] = &[2, 2, 1];
        for (tries, most, story, step) in [
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
            // An honest way out moves up, and from the last tier it is an answer.
            (one_each, 4, "0 contradiction", Ask(1)),
            (
                one_each,
                4,
                "0 rejected, 1 rejected, 2 contradiction",
                End(Refused),
            ),
            // A quota is shared by its backend, and by those that say so.
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
            // Two tries where the answer was heard and refused.
            (two_local, 4, "0 rejected", Ask(0)),
            (two_local, 4, "0 rejected, 0 rejected", Ask(1)),
            (two_local, 4, "0 tampered", Ask(1)),
            (two_local, 4, "0 infra", Ask(1)),
            (two_local, 4, "0 cannot_verify", Ask(1)),
            // The same failure twice moves on at once.
            (&[3, 1], 9, "0 rejected, 0 rejected=", Ask(1)),
            (&[3, 1], 9, "0 rejected, 0 rejected", Ask(0)),
            // Every later tier keeps one ask.
            (two_local, 4, "0 rejected, 0 rejected, 1 rejected", Ask(2)),
            (two_local, 3, "0 rejected", Ask(1)),
            (two_local, 5, "0 rejected, 0 rejected, 1 rejected", Ask(1)),
            (&[2], 4, "0 rejected", Ask(0)),
            (&[2], 4, "0 rejected, 0 rejected", End(AllTiers)),
            (&[2], 1, "0 rejected", End(AllTiers)),
            // The cap, and what was never asked does not count.
            (one_each, 2, "0 rejected, 1 rejected", End(MaxAttempts)),
            (one_each, 2, "0 skipped, 1 rejected", Ask(2)),
            (one_each, 1, "0 infra", End(MaxAttempts)),
        ] {
            assert_eq!(
                decide(&plan(tries, most), &past(story)),
                step,
                "{tries:?} of {most}: {story}"
            );
        }
    }

    #[test]
    fn whatever_happens_every_tier_is_reached_or_the_walk_has_an_end() {
        // All causes that let a walk go on, in every order: it ends, within the cap, and no tier is passed over.
        let causes = [
            Cause::Rejected,
            Cause::Infra,
            Cause::Tampered,
            Cause::CannotVerify,
        ];
        for tries in 1..=3 {
            for most in 3..=7 {
                let plan = plan(&[tries, tries, 1], most);
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
                                    reach: RefusalReach::Answer,
                                    repeats: false,
                                });
                            }
                            WalkStep::Skip(_) => unreachable!("no quota is used up"),
                            WalkStep::End(end) => break end,
                        }
                    };
                    assert_eq!(end, WalkEnd::AllTiers);
                    assert!(
                        past.len() <= most as usize && past.iter().any(|attempt| attempt.tier == 2)
                    );
                }
            }
        }
    }
}
