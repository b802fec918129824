//! One phase as the engine sees it: the question for each tier and the check of each answer.

use futures_util::future::BoxFuture;

use super::baseline::Ground;
use super::brief::Brief;
use super::gates::Gates;
use super::green::Green;
use super::red::Red;
use super::refactor::Refactor;
use crate::backend::Edits;
use crate::engine::evidence::Evidence;
use crate::engine::job::{Checked, Job, Question, Work};
use crate::routing::Tier;

/// A phase, ready to be asked.
pub(super) struct Tdd {
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
            gates.close(judged)
        })
    }
}
