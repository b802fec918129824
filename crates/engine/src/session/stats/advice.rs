//! Finds models that are mostly wrong at a skill.

use serde::Serialize;

use super::SkillStats;

/// Minimum number of judged answers; fewer say nothing.
pub const ENOUGH: usize = 10;
/// A model that is accepted less often than this costs more than it saves.
pub const ADVISED_BELOW: f64 = 0.3;

/// A model that is mostly wrong at one skill.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    pub skill: String,
    pub model: String,
    pub accepted: usize,
    /// Accepted and rejected together; at least [`ENOUGH`].
    pub judged: usize,
    /// Below [`ADVISED_BELOW`].
    pub accept_rate: f64,
}

pub(super) fn for_skill(skill: &SkillStats) -> impl Iterator<Item = Advice> {
    skill.models.iter().filter_map(|model| {
        let judged = model.accepted + model.rejected;
        let accept_rate = model
            .accept_rate
            .filter(|rate| judged >= ENOUGH && *rate < ADVISED_BELOW)?;
        Some(Advice {
            skill: skill.skill.clone(),
            model: model.model.clone(),
            accepted: model.accepted,
            judged,
            accept_rate,
        })
    })
}
