//! One phase as the engine sees it: the question for each tier and the check of each answer.

use futures_util::future::BoxFuture;

use super::baseline::Ground;
use super::brief::Brief;
use super::gates::Gates;
use super::green::Green;
use super::params::Goal;
use super::red::Red;
use super::refactor::Refactor;
use crate::backend::Edits;
use crate::engine::evidence::Evidence;
use crate::engine::job::{Checked, Job, Question, Work};
use crate::routing::Tier;

/// A phase, ready to be asked.
pub(super) struct Tdd {
    pub(super) goal: Goal,
    pub(super) ground: Ground,
    pub(super) brief: Brief,
    pub(super) phase: Phase,
}

pub(super) enum Phase {
    Red(Red),
    Green(Green),
    Refactor(Refactor),
}

impl Job for Tdd {
    fn skill(&self) -> &str {
        self.goal.skill()
    }

    fn phase(&self) -> &str {
        self.goal.phase()
    }

    fn discipline(&self) -> &str {
        &self.brief.discipline
    }

    fn task(&self) -> &str {
        &self.brief.task
    }

    fn question(&self, tier: &Tier, edits: Edits, evidence: &Evidence) -> Question {
        self.brief.question(tier, edits, evidence)
    }

    fn check<'a>(&'a self, mut work: Work<'a>) -> BoxFuture<'a, Checked> {
        Box::pin(async move {
            let mut gates = Gates::default();
            let judged = match &self.phase {
                Phase::Red(red) => red.judge(&self.ground, &mut work, &mut gates).await,
                Phase::Green(green) => green.judge(&self.ground, &mut work, &mut gates).await,
                Phase::Refactor(refactor) => refactor.judge(&self.ground, &mut work, &mut gates).await,
            };
            match judged {
                Ok(mut held) => {
                    held.gates = gates.0;
                    Checked::Holds(held)
                }
                Err(mut failed) => {
                    failed.gates = gates.0;
                    Checked::Fails(failed)
                }
            }
        })
    }
}
